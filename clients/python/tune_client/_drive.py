"""A study whose trials run on workers: the driver's side."""

from __future__ import annotations

import contextlib
import queue
import time
from typing import Any, Callable

from tune_client._errors import Lost, TuneError
from tune_client._study import Study
from tune_client._trial import Trial
from tune_client._workers import Engine, Outcome, Pool

LEASE_S = 20.0  # a driver that is gone gives its trials back after so long
_LOOK_S = 2.0  # how often engine and study are looked at while nothing happens
_LOSSES_MAX = 3  # of a trial whose workers died: the third time it is the trial's fault


class Driver:
    """Gives trials of a study to workers. For one thread."""

    def __init__(self, study: Study, objective: Callable[[Trial], Any], engine: Engine,
                 answer: Callable[[Any], Any] = lambda question: None) -> None:
        self.running: dict[int, Trial] = {}
        self.lost: set[int] = set()  # given back: they are queued again once their leases have ended
        self._study, self._engine = study, engine
        self._pool = Pool(study, objective, engine, answer)
        self._workers = 0  # that are there
        self._losses: dict[int, int] = {}

    def start(self, count: int) -> None:
        """Starts so many workers; does not wait for them."""
        self._count = count
        self._pool.start(count)

    @property
    def free(self) -> int:
        """Workers without a trial. The end of an idle one may not be known yet."""
        return max(min(self._workers, self._count) - len(self.running), 0)

    def ask(self, count_max: int | None = None) -> list[Trial]:
        """Trials for the workers that are free, as far as the study has any, given to them; at most `count_max`."""
        count = self.free if count_max is None else min(self.free, count_max)
        if count == 0:
            return []
        trials = self._study.ask_many(count, wait=False)
        for trial in trials:
            self.lost.discard(trial.number)
            self.running[trial.number] = trial
            self._pool.run(trial)
        return trials

    def wait(self, deadline_s: float | None = None) -> list[tuple[Trial, Outcome]]:
        """Waits for something to happen, for two seconds at most; the trials that have ended meanwhile, not told yet.

        A trial whose worker died is given to another one; the third time it has ended with an error. Raises TuneError when workers
        die again and again.
        """
        self._pool.check()
        timeout_s = _LOOK_S if deadline_s is None else max(min(_LOOK_S, deadline_s - time.monotonic()), 0.001)
        ended: list[tuple[Trial, Outcome]] = []
        with contextlib.suppress(queue.Empty):
            self._note(*self._pool.events.get(timeout=timeout_s), ended)
            while True:
                self._note(*self._pool.events.get_nowait(), ended)
        return ended

    def _note(self, trial: Trial | None, outcome: Outcome | str | None, ended: list[tuple[Trial, Outcome]]) -> None:
        if isinstance(outcome, str):  # a worker came
            self._workers += 1
            return
        if outcome is None:
            self._workers -= 1
        if trial is None or self.running.get(trial.number) is not trial:
            return
        if outcome is not None:
            del self.running[trial.number]
            ended.append((trial, outcome))
            return
        losses = self._losses[trial.number] = self._losses.get(trial.number, 0) + 1
        if losses >= _LOSSES_MAX:
            del self.running[trial.number]
            words = f"the process that ran it died, {losses} times"
            ended.append((trial, {"error": (str(RuntimeError), words, words)}))
        elif self._engine.is_remote:
            # Its process may live on where we cannot see it: the next attempt comes when the lease has ended, and writes alone.
            del self.running[trial.number]
            self.lost.add(trial.number)
            trial._lost = True
        else:
            self._pool.run(trial)

    def again(self, trial: Trial) -> None:
        """Runs a trial that has ended, and was not told, once more as the same attempt."""
        self.running[trial.number] = trial
        self._pool.run(trial)

    def cancel(self, reason: str) -> None:
        """Ends the workers, and what they ran as cancelled."""
        self._pool.stop()
        for trial in self.running.values():
            with contextlib.suppress(TuneError):
                trial.tell(state="cancelled", reason=reason)
        self.running = {}


def tell(trial: Trial, value: float | None = None, state: str | None = None, reason: str = "") -> None:
    """Ends a trial. One that the server ended meanwhile, or gave to others, is left as it is."""
    with contextlib.suppress(Lost):
        trial.tell(value, state=state, reason=reason[:1000])

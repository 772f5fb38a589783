"""The loop of Study.optimize: trial after trial, in one thread or several."""

from __future__ import annotations

import gc
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence, Union

from tune_client._errors import TuneError, say
from tune_client._records import FrozenTrial
from tune_client._trial import Trial
from tune_client._words import counted

if TYPE_CHECKING:
    from tune_client._study import Study

Objective = Callable[[Trial], Any]
Catch = Union["type[BaseException]", "Iterable[type[BaseException]]"]
Callback = Callable[["Study", FrozenTrial], object]

_VALUELESS_MAX = 3  # trials in a row without a value: the objective lacks a `return`


class Loop:
    """One call of Study.optimize."""

    def __init__(self, study: Study, objective: Objective, trials: int | None, timeout_s: float | None, catch: Catch,
                 callbacks: Iterable[Callback] | None, of_ours: Sequence[Callback] = ()) -> None:
        self._study = study
        self._objective = objective
        self._catch = _classes(catch)
        self._left = _Counter(trials)
        self._deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._callbacks = [*of_ours, *_functions(callbacks)]
        self._valueless = _Valueless()
        self._errors: list[BaseException] = []
        self._running: dict[int, Trial] = {}  # by thread, the last one

    def run(self, jobs: int) -> None:
        """Until the study has ended or the count or time is used; raises what ended it before."""
        if jobs == 1:
            self._work()
        else:
            self._run_threads(jobs)
        if self._errors:
            raise self._errors[0]

    def _run_threads(self, jobs: int) -> None:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(jobs)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException as error:  # Ctrl-C
            self._errors.append(error)
            for trial in list(self._running.values()):
                trial._abandon(type(error).__name__)
            raise

    def _work(self) -> None:
        try:
            while not self._errors and self._has_time() and self._left.take():
                trial = self._study._next(self._deadline_s)
                if trial is None:
                    return
                self._running[threading.get_ident()] = trial
                if self._errors:
                    trial._abandon("interrupted")
                    return
                self._run_one(trial)
                self._valueless.note(trial)
                if trial._told is not None:
                    for callback in self._callbacks:
                        callback(self._study, self._study._frozen(trial._told))
        except BaseException as error:
            self._errors.append(error)

    def _run_one(self, trial: Trial) -> None:
        try:
            with trial:
                value = self._objective(trial)
                if value is not None and not trial.ended:
                    trial.tell(value)
        except self._catch:
            pass

    def _has_time(self) -> bool:
        return self._deadline_s is None or time.monotonic() < self._deadline_s


class _Counter:
    def __init__(self, count: int | None) -> None:
        self._left = count
        self._lock = threading.Lock()

    def take(self) -> bool:
        with self._lock:
            if self._left is not None:
                self._left -= 1
            return self._left is None or self._left >= 0


class _Valueless:
    """Counts trials in a row whose objective gave no value: a slip that would use up the budget without a word."""

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()

    def note(self, trial: Trial) -> None:
        with self._lock:
            self._count = self._count + 1 if trial._has_no_value else 0
            count = self._count
        if count == 1:
            say(f"the objective gave no value for trial {trial.number}, which failed; does it lack a `return`?")
        if count >= _VALUELESS_MAX:
            raise TuneError(f"the objective gave no value for {count} trials in a row, the last being {trial.number}; "
                            "does it lack a `return`?")


def collect_garbage(study: Study, trial: FrozenTrial) -> None:
    """A callback, for objectives that leave cycles of large objects behind."""
    del study, trial
    gc.collect()


def say_progress(study: Study, trial: FrozenTrial) -> None:
    """A callback: how this trial ended, the best one, and how far the study is."""
    info = study.info()
    best = info.get("best")
    total = (info.get("budget") or {}).get("trials")
    ended = sum(info["counts"].get(state, 0) for state in ("complete", "pruned", "failed", "cancelled")) - info.get("excused", 0)
    value = "" if trial.values is None else f" with {', '.join(f'{one:g}' for one in trial.values)}"
    say(f"trial {trial.number} is {trial.state}{value}; " + (f"best: {best['value']} of trial {best['number']}; " if best else "") +
        (f"{ended} of {total} trials" if total else counted(ended, "trial")))


def jobs_of(jobs: int, n_jobs: int | None) -> int:
    """How many threads: n_jobs is Optuna's name, with -1 for as many as there are processors."""
    if n_jobs is None:
        return jobs
    return os.cpu_count() or 1 if n_jobs == -1 else n_jobs


def _classes(catch: Catch) -> tuple[type[BaseException], ...]:
    """A class of exceptions or several, as the tuple that `except` takes."""
    classes: tuple[Any, ...] = (catch,) if isinstance(catch, type) else tuple(catch)
    for one in classes:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise TypeError(f"catch must be a class of exceptions, or several, found {one!r}")
    return classes


def _functions(callbacks: Iterable[Callback] | None) -> list[Callback]:
    found = [] if callbacks is None else list(callbacks)
    for one in found:
        if not callable(one):
            raise TypeError(f"callbacks must be functions of (study, trial), found {one!r}")
    return found

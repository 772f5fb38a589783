"""The driver of TuneTrials: asks Hyperopt for points while workers run them, and wakes when one of them has ended."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

import numpy
from hyperopt import STATUS_FAIL, STATUS_OK, base, progress, tpe
from hyperopt.base import Domain
from hyperopt.utils import coarse_utcnow

from tune_client import _mlflow
from tune_client._drive import LEASE_S, Driver, tell
from tune_client._errors import TuneError, say
from tune_client._study import Study, create_study, load_study
from tune_client._trial import Trial
from tune_client._workers import Engine, Outcome
from tune_client.hyperopt import _space
from tune_client.hyperopt._objective import Objective

if TYPE_CHECKING:
    from tune_client.hyperopt._trials import TuneTrials

_METRIC = {"name": "loss", "goal": "min", "take": "last"}
_NO_END = 10_000_000  # a study's largest budget: fmin knows when it is over
_SAMPLER = {"type": "random", "duplicates": "allow"}  # never asked: it is Hyperopt that suggests


class Loop:
    """One call of fmin."""

    def __init__(self, trials: TuneTrials, function: Callable[..., Any], space: Any, algo: Any, url: str, engine: Engine) -> None:
        self.early_stop_fn: Any = None
        self.queue_len = 1
        self.save: Callable[[], None] = lambda: None
        self._trials = trials
        self._domain = Domain(function, space)
        self._algo = algo or tpe.suggest
        self._labels = _space.labels_of(space)
        self._objective = Objective(function, space)
        self._url = url
        self._engine = engine
        self._waiting: dict[int, dict[str, Any]] = {}  # documents of trials that have not ended, by our number
        self._held: set[int] = set()  # of those, by drivers before this one, whose leases have not ended
        self._early_stop_arguments: list[Any] = []
        self._returned: list[dict[str, Any]] = []  # in the order in which they did
        self._looked_at = 0  # of them, by early_stop_fn

    def run(self, evals_max: int | None, rstate: Any, show: Any) -> None:
        """Until so many evaluations are there, the time is over, or a stop. What has not ended by then is cancelled."""
        trials = self._trials
        total = sys.maxsize if evals_max is None else evals_max
        self._rstate = rstate if rstate is not None else numpy.random.default_rng()
        deadline_s = None if trials.timeout is None else time.monotonic() + trials.timeout
        self._study = self._open()
        self._left = total - len(trials.trials)
        self._driver = Driver(self._study, self._objective, self._engine)
        shown = show if callable(show) else progress.default_callback if show else progress.no_progress_callback
        reason = "fmin has ended"
        with _mlflow.main_run(self._study):
            try:
                with shown(initial=trials.count_successful_trials(), total=total) as bar:
                    self._driver.start(trials.parallelism)
                    reason = self._turn(deadline_s, bar)
            except KeyboardInterrupt:
                reason = "fmin run cancelled by user"
                self._note_cancelled(reason)
                raise
            finally:
                self._give_up(reason)
                trials.refresh()
                self.save()

    def _turn(self, deadline_s: float | None, bar: Any) -> str:
        """Why it ended."""
        ended: list[dict[str, Any]] = []
        while True:
            reason = self._why_over(deadline_s, ended)
            if reason:
                return reason
            self._suggest()
            for trial in self._driver.ask(self._count_queued()):
                self._begin(trial)
            if not self._waiting:
                return "every evaluation has ended"
            ended = [self._end(trial, outcome) for trial, outcome in self._driver.wait(deadline_s)]
            if ended:
                self._trials.refresh()
                best = self._best()
                if best is not None:
                    bar.postfix = f"best loss: {best}"
                bar.update(len(ended))
                self.save()

    def _open(self) -> Study:
        """The study, new or with the trials that this object does not know of yet."""
        trials = self._trials
        declared = _space.declared(self._labels, False)
        try:
            study = load_study(trials.study_name, self._url, LEASE_S)
        except TuneError as error:
            if error.status != 404:
                raise
            known = {"pruner": trials.pruner} if trials.pruner is not None else {}
            study = create_study(trials.study_name, space=declared, metric=_METRIC, trials=_NO_END, sampler=_SAMPLER,
                                 server=self._url, lease_s=LEASE_S, stop_after_failures=0, **known)
        if set(study._space()) != set(declared):
            raise TuneError(f"study {study.name!r} has another space: {', '.join(study._space())}; give TuneTrials a study of its own")
        self._set_budget(study, _NO_END)
        if study.info()["state"] != "running":
            study.resume()
        known_numbers = {document["misc"].get("tune_number") for document in trials._dynamic_trials}
        for trial in study.trials:
            if trial.number not in known_numbers:
                self._adopt(trial)
        trials.refresh()
        return study

    def _adopt(self, trial: Mapping[str, Any]) -> dict[str, Any]:
        """A trial of the study that Hyperopt has not suggested here: of a driver before this one, or enqueued by hand."""
        [tid] = self._trials.new_trial_ids(1)
        values = _space.to_values(self._labels, trial["params"])
        misc = {"tid": tid, "cmd": self._domain.cmd, "workdir": None, "tune_number": trial["number"], "run_id": trial["run_id"],
                "idxs": {name: [tid] if name in values else [] for name in self._labels},
                "vals": {name: [values[name]] if name in values else [] for name in self._labels}}
        [made] = self._trials.new_trial_docs([tid], [None], [{"status": base.STATUS_NEW}], [misc])
        self._trials._insert_trial_docs([made])
        state = trial.get("state", "queued")
        if state in ("queued", "running"):
            self._waiting[trial["number"]] = made
            if state == "running":
                self._held.add(trial["number"])
        elif state == "complete":
            self._close(made, {"status": STATUS_OK, "loss": float(trial["value"])})
        elif state == "pruned":
            self._close(made, {"status": STATUS_FAIL, "pruned": True})
        else:
            made["state"] = base.JOB_STATE_CANCEL if state == "cancelled" else base.JOB_STATE_ERROR
            made["misc"]["error"] = (str(RuntimeError), trial["reason"])
        found: dict[str, Any] = made
        return found

    def _suggest(self) -> None:
        """Keeps as many points waiting as there are free workers, and fmin's max_queue_len beyond."""
        waiting = sum(document["state"] == base.JOB_STATE_NEW for document in self._waiting.values())
        for _ in range(min(self._driver.free + self.queue_len - waiting, self._left)):
            ids = self._trials.new_trial_ids(1)
            self._trials.refresh()
            made = self._algo(ids, self._domain, self._trials, self._rstate.integers(2**31 - 1))
            if not made:
                self._left = 0  # the algorithm has no point left
                break
            self._left -= len(made)
            self._trials.insert_trial_docs(made)
            for document in self._trials._dynamic_trials[-len(made):]:
                self._enqueue(document)
            self._trials.refresh()

    def _enqueue(self, document: dict[str, Any]) -> None:
        values = {name: found[0] for name, found in document["misc"]["vals"].items() if len(found)}
        queued = self._study.enqueue(_space.to_point(self._labels, values))
        document["misc"]["tune_number"], document["misc"]["run_id"] = queued["number"], queued["run_id"]
        self._waiting[queued["number"]] = document

    def _count_queued(self) -> int:
        """How many trials may be asked for: for more the server would suggest points of its own."""
        uncertain = self._held | self._driver.lost
        if uncertain:
            uncertain -= {trial.number for trial in self._study.trials(state="queued")}
        for number in self._driver.lost & set(self._waiting):
            self._waiting[number]["state"] = base.JOB_STATE_NEW
        new = {number for number, document in self._waiting.items() if document["state"] == base.JOB_STATE_NEW}
        return len(new - uncertain)

    def _begin(self, trial: Trial) -> None:
        document = self._waiting.get(trial.number) or self._adopt(trial._asked)
        document.update(state=base.JOB_STATE_RUNNING, book_time=coarse_utcnow(), refresh_time=coarse_utcnow())

    def _end(self, trial: Trial, outcome: Outcome) -> dict[str, Any]:
        document = self._waiting.pop(trial.number)
        if "error" in outcome:
            kind, trace, words = outcome["error"]
            tell(trial, state="failed", reason=words)
            document.update(state=base.JOB_STATE_ERROR, refresh_time=coarse_utcnow())
            document["misc"]["error"] = (kind, trace)
            say(f"trial {trial.number}: {words}")
        elif "pruned" in outcome:
            tell(trial, state="pruned")
            told = trial._told or {}
            value = {} if told.get("value") is None else {"loss": float(told["value"])}
            self._close(document, {"status": STATUS_FAIL, "pruned": True, **value})
        else:
            self._end_returned(trial, document, dict(outcome["result"]))
        return document

    def _end_returned(self, trial: Trial, document: dict[str, Any], result: dict[str, Any]) -> None:
        for name, attached in result.pop("attachments", {}).items():
            self._trials.trial_attachments(document)[name] = attached
        if result["status"] == STATUS_OK:
            tell(trial, float(result["loss"]))
        else:
            tell(trial, state="failed", reason=str(result.get("status_fail", f"its status is {result['status']!r}")))
        self._close(document, result)

    def _close(self, document: dict[str, Any], result: dict[str, Any]) -> None:
        document.update(state=base.JOB_STATE_DONE, result=result, refresh_time=coarse_utcnow())

    def _why_over(self, deadline_s: float | None, ended: list[dict[str, Any]]) -> str | None:
        """Why nothing more is to begin or continue."""
        best, good = self._best(), self._trials.loss_threshold
        if good is not None and best is not None and best < good:
            return f"the loss is below {good}"
        reason = None
        if deadline_s is not None and time.monotonic() >= deadline_s:
            reason = "fmin run timeout"
        elif self.early_stop_fn is not None and self._stops_early(ended):
            reason = "early stopping condition"
        if reason is None and any(trial.stopping for trial in self._driver.running.values()):
            reason = "the study was stopped" if self._study.info()["state"] == "stopped" else None
        if reason:
            self._note_cancelled(reason)
        return reason

    def _stops_early(self, ended: list[dict[str, Any]]) -> bool:
        """Asks after each trial that returned, with those that had returned by then: Hyperopt's own rules look at the last one's loss."""
        self._returned += [document for document in ended if document["result"]["status"] == STATUS_OK]
        for count in range(self._looked_at + 1, len(self._returned) + 1):
            seen = base.trials_from_docs(self._returned[:count], validate=False)
            stop, self._early_stop_arguments = self.early_stop_fn(seen, *self._early_stop_arguments)
            self._looked_at = count
            if stop:
                return True
        return False

    def _note_cancelled(self, reason: str) -> None:
        self._trials._fmin_cancelled, self._trials._fmin_cancelled_reason = True, reason
        say(f"fmin was cancelled: {reason}")

    def _give_up(self, reason: str) -> None:
        """Ends the workers and cancels what has not ended, and with it the study."""
        self._driver.cancel(reason)
        for document in self._waiting.values():
            document.update(state=base.JOB_STATE_CANCEL, refresh_time=coarse_utcnow())
            document["misc"]["error"] = (str(RuntimeError), reason)
        if self._waiting:
            self._study.stop()  # what is queued is cancelled
        elif len(self._study.trials):
            self._set_budget(self._study, len(self._study.trials))
        self._waiting = {}

    def _set_budget(self, study: Study, trials: int) -> None:
        study._connection.call("/studies", {"name": study.name, "space": study._space(), "metric": _METRIC,
                                            "budget": {"trials": trials}})

    def _losses(self) -> Iterator[float]:
        for document in self._trials._dynamic_trials:
            result = document["result"]
            if document["state"] == base.JOB_STATE_DONE and result["status"] == STATUS_OK and not numpy.isnan(result["loss"]):
                yield float(result["loss"])

    def _best(self) -> float | None:
        return min(self._losses(), default=None)

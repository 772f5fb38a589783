"""Tuner: ray.tune's loop, with a study of ours."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import secrets
import sys
import time
from typing import Any, Mapping

from tune_client import _mlflow
from tune_client._drive import LEASE_S, Driver, tell
from tune_client._errors import TuneError, say
from tune_client._serve import serving
from tune_client._study import Study, create_study, load_study
from tune_client._trial import Trial
from tune_client._workers import Engine, LocalProcesses, Outcome, pickled
from tune_ray.tune import _session
from tune_ray.tune._config import RunConfig, TuneConfig, check, folder_of, seconds_of
from tune_ray.tune._objective import Asking, Objective, name_of
from tune_ray.tune._results import Result, ResultGrid
from tune_ray.tune._schedule import pruner_of, search_of
from tune_ray.tune._space import Space

_STATE = "tuner.json"
_OBJECTS = "tuner.pickle"
_ENDS = ("completed", "stopped")


class Tuner:
    """`Tuner(trainable, param_space=..., tune_config=..., run_config=...).fit()`, as ray.tune's.

    The trainable is a function of the config that calls report(), or a subclass of Trainable. Trials run as actors of Ray where Ray
    runs in this process or RAY_ADDRESS names a cluster, else in processes of this machine.
    """

    def __init__(self, trainable: Any, *, param_space: Mapping[str, Any] | None = None, tune_config: Any = None,
                 run_config: Any = None) -> None:
        self._resources: Mapping[str, float] = getattr(trainable, "_tune_resources", {})
        self._trainable = trainable
        self._space = Space(param_space or {})
        self._tune = tune_config or TuneConfig()
        self._run = run_config or RunConfig()
        self._name: str = self._run.name or f"{name_of(trainable)}-{datetime.datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self._results: ResultGrid | None = None
        self._again: tuple[bool, bool] = (False, False)  # trials that failed: whether they are run, and from the start
        check(self._tune, self._run, isinstance(trainable, type))
        self._search = search_of(self._tune.search_alg)
        self._pruner, self._last = pruner_of(self._tune.scheduler)
        self._budget_s = seconds_of(self._tune.time_budget_s)
        if self._tune.num_samples == -1 and self._budget_s is None and not hasattr(self._run.stop, "stop_all"):
            raise TuneError("num_samples=-1 has no end: give time_budget_s, or a Stopper whose stop_all() says True at some time")

    @classmethod
    def can_restore(cls, path: str | os.PathLike[str], storage_filesystem: Any = None) -> bool:
        """Whether a Tuner left its state in this folder."""
        del storage_filesystem
        return pathlib.Path(os.path.expanduser(path), _STATE).is_file()

    @classmethod
    def restore(cls, path: str | os.PathLike[str], trainable: Any = None, resume_unfinished: bool = True, resume_errored: bool = False,
                restart_errored: bool = False, param_space: Any = None, storage_filesystem: Any = None) -> Tuner:
        """The Tuner whose folder this is; fit() resumes what has not ended, from the latest checkpoints.

        `resume_errored`: also what failed, `restart_errored`: that from the start, each as a new trial of the study with the same
        parameters, in the place of the one that failed. `param_space`: with the same searched parameters, and other objects.
        """
        if not cls.can_restore(path):
            raise TuneError(f"no Tuner left its state in {os.fspath(path)}")
        if not resume_unfinished or storage_filesystem is not None:
            raise TuneError("Tuner.restore() resumes all that has not ended, in a folder: resume_unfinished=False and storage_filesystem are "
                            "not supported")
        import pickle

        found: Tuner = pickle.loads(pathlib.Path(os.path.expanduser(path), _OBJECTS).read_bytes())
        if trainable is not None:
            found._trainable = trainable
        if param_space is not None:
            space = Space(param_space)
            if space.declared != found._space.declared:
                raise TuneError("Tuner.restore(param_space=...) has another search space than the study; only what is not searched, and the "
                                "objects of a choice, may change")
            found._space = space
        found._again = (resume_errored or restart_errored, restart_errored)
        return found

    def fit(self) -> ResultGrid:
        """Runs all trials; their results. Raises TuneError where no server is, and with fail_fast="raise" when a trial failed."""
        count = self._concurrency()
        with serving(getattr(self._run, "server", None)) as url:
            study = self._open(url)
            self._save()
            asking = Asking(self._run.stop) if hasattr(self._run.stop, "stop_all") else None
            trainable = Objective(self._trainable, self._space, self._folder(), self._rules(asking is not None), self._name, self._shown())
            with _mlflow.main_run(study):
                outcomes = self._drive(study, trainable, count, asking)
            self._results = ResultGrid([self._result(trial, outcomes.get(trial.number, {})) for trial in self._trials(study)],
                                       self._folder(), self._metric(), self._mode())
        return self._results

    def get_results(self) -> ResultGrid:
        """Of the last fit(), here or before restore()."""
        if self._results is None and self.can_restore(self._folder()):
            with serving(getattr(self._run, "server", None)) as url:
                trials = self._trials(load_study(self._name, url))
                self._results = ResultGrid([self._result(trial, {}) for trial in trials], self._folder(), self._metric(), self._mode())
        if self._results is None:
            raise RuntimeError("call fit() first")
        return self._results

    def _metric(self) -> str:
        scheduler = self._tune.scheduler
        return self._tune.metric or getattr(scheduler, "_metric", None) or self._search.metric or "training_iteration"

    def _mode(self) -> str:
        found: str | None = self._tune.mode or getattr(self._tune.scheduler, "_mode", None) or self._search.mode
        return found or ("max" if self._metric() == "training_iteration" else "min")

    def _rules(self, has_stopper: bool) -> _session.Rules:
        stop: Any = self._run.stop
        bounds = dict(stop) if isinstance(stop, Mapping) else {}
        if self._last is not None:
            bounds["training_iteration"] = min(bounds.get("training_iteration", self._last), self._last)
        saved: Any = self._run.checkpoint_config
        ask = Asking.ask if has_stopper else stop if callable(stop) else None
        return _session.Rules(self._metric(), bounds, ask, keep=getattr(saved, "num_to_keep", None),
                              score=getattr(saved, "checkpoint_score_attribute", None), order=getattr(saved, "checkpoint_score_order", "max"),
                              every=getattr(saved, "checkpoint_frequency", 0) or 0, at_end=bool(getattr(saved, "checkpoint_at_end", False)))

    def _shown(self) -> Mapping[str, Any]:
        """How a trial is named, and where its output goes."""
        return {"name": self._tune.trial_name_creator, "log": getattr(self._run, "log_to_file", False)}

    def _folder(self) -> str:
        return folder_of(self._run.storage_path, self._name)

    def _save(self) -> None:
        os.makedirs(self._folder(), exist_ok=True)
        pathlib.Path(self._folder(), _OBJECTS).write_bytes(pickled(self, "the tuner"))
        self._write_state(self._replaced())

    def _replaced(self) -> dict[str, int]:
        """Trials that failed and were run again as others: the number of the other by theirs."""
        path = pathlib.Path(self._folder(), _STATE)
        found: dict[str, int] = json.loads(path.read_text()).get("replaced", {}) if path.is_file() else {}
        return found

    def _write_state(self, replaced: Mapping[str, int]) -> None:
        pathlib.Path(self._folder(), _STATE).write_text(json.dumps({"study": self._name, "replaced": replaced}))

    def _trials(self, study: Study) -> list[Any]:
        """In the order of their numbers; one that was run again stands where the first one stood."""
        replaced = self._replaced()
        first = {number: int(failed) for failed, number in replaced.items()}

        def place(number: int) -> int:
            while number in first:
                number = first[number]
            return number

        trials = [trial for trial in study.trials(with_intermediate=True) if str(trial.number) not in replaced]
        return sorted(trials, key=lambda trial: place(trial.number))

    def _open(self, url: str) -> Study:
        try:
            study = load_study(self._name, url, LEASE_S)
        except TuneError as error:
            if error.status != 404:
                raise
            return self._create(url)
        if self._again[0]:
            self._run_failed_again(study)
        return study

    def _create(self, url: str) -> Study:
        declared = self._space.declared or {"trainable": {"const": name_of(self._trainable)}}
        points = self._space.points(max(self._tune.num_samples, 1))
        budget: dict[str, Any] = {} if self._tune.num_samples == -1 else {"trials": len(points)}
        if self._budget_s is not None:
            budget["time"] = self._budget_s
        more = {"pruner": self._pruner} if self._pruner is not None else {}
        study = create_study(self._name, space=declared, metric=self._declared_metric(), budget=budget, sampler=self._search.sampler, server=url,
                             lease_s=LEASE_S, stop_after_failures=0, **more)
        wanted = [self._space.point(each) for each in self._search.points]
        for i, point in enumerate(points):
            if point or i < len(wanted):
                study.enqueue({**(wanted[i] if i < len(wanted) else {}), **point})
        return study

    def _declared_metric(self) -> dict[str, str]:
        return {"name": self._metric(), "goal": self._mode(), "take": "last"}

    def _run_failed_again(self, study: Study) -> None:
        """Each trial that failed once more, as a new one with the same parameters, and with its checkpoints unless it is to begin anew."""
        import shutil

        replaced = self._replaced()
        failed = [trial for trial in study.trials if trial.state == "failed" and str(trial.number) not in replaced]
        if not failed:
            return
        budget = dict(study.info().get("budget") or {})
        if "trials" in budget:
            body = {"name": study.name, "space": study._space(), "metric": self._declared_metric()}
            study._connection.call("/studies", {**body, "budget": {**budget, "trials": budget["trials"] + len(failed)}})
        if study.info()["state"] != "running":
            study.resume()
        for trial in failed:
            made = study.enqueue(trial.params)
            replaced[str(trial.number)] = made["number"]
            old, new = (os.path.join(self._folder(), f"trial_{number:05d}") for number in (trial.number, made["number"]))
            if not self._again[1] and os.path.isdir(old):
                shutil.copytree(old, new, dirs_exist_ok=True)
        self._write_state(replaced)

    def _concurrency(self) -> int:
        most = min(filter(None, (self._tune.max_concurrent_trials, self._search.concurrent)), default=None)
        if most is not None:
            return int(most)
        cpus = max(float(self._resources.get("cpu", 1)), 0.001)
        if _has_ray():
            import ray  # type: ignore[import-untyped,import-not-found,unused-ignore]

            return max(int(ray.cluster_resources().get("CPU", 1) // cpus), 1)
        return max(int((os.cpu_count() or 1) // cpus), 1)

    def _engine(self) -> Engine:
        if _has_ray():
            from tune_ray._actors import RayActors

            made: Engine = RayActors(float(self._resources.get("cpu", 1)), float(self._resources.get("gpu", 0)))
            return made
        if self._resources.get("gpu"):
            self._say("Ray does not run: each trial sees all GPUs of this machine, whatever with_resources() says")
        return LocalProcesses()

    def _say(self, text: str) -> None:
        if getattr(self._run, "verbose", None) != 0:
            say(text)

    def _drive(self, study: Study, objective: Objective, count: int, asking: Asking | None) -> dict[int, Outcome]:
        """What each trial that ended here left."""
        failures: dict[int, int] = {}
        outcomes: dict[int, Outcome] = {}
        deadline_s = None if self._budget_s is None else time.monotonic() + self._budget_s
        driver = Driver(study, objective, self._engine(), asking.answer if asking else lambda question: None)
        reason = "Tuner.fit() has ended"
        try:
            if self._tune.num_samples != -1:
                count = min(count, len(self._space.points(self._tune.num_samples)))
            driver.start(count)
            while driver.ask() or driver.running or study.info()["state"] not in _ENDS:
                for trial, outcome in driver.wait(deadline_s):
                    if "error" in outcome and self._has_retry(failures.get(trial.number, 0)):
                        failures[trial.number] = failures.get(trial.number, 0) + 1
                        self._say(f"trial {trial.number} failed and is run again from its checkpoint: {outcome['error'][2]}")
                        driver.again(trial)
                        continue
                    outcomes[trial.number] = outcome
                    self._tell(trial, outcome)
                reason = self._why_over(outcomes, deadline_s, asking)
                if reason:
                    _stop(study)
                    break
        finally:
            driver.cancel(reason or "Tuner.fit() has ended")
        if asking and asking.fault is not None:
            raise asking.fault
        failed = [outcome["error"] for outcome in outcomes.values() if "error" in outcome]
        if failed and isinstance(getattr(self._run.failure_config, "fail_fast", False), str):
            raise TuneError(f"a trial failed, and fail_fast is 'raise':\n{failed[0][1]}")
        return outcomes

    def _has_retry(self, failures: int) -> bool:
        most = getattr(self._run.failure_config, "max_failures", 0)
        return most < 0 or failures < most

    def _why_over(self, outcomes: Mapping[int, Outcome], deadline_s: float | None, asking: Asking | None) -> str:
        """Why all is to end now; empty: it is not."""
        if getattr(self._run.failure_config, "fail_fast", False) and any("error" in outcome for outcome in outcomes.values()):
            return "a trial failed, and fail_fast is set"
        if asking is not None and asking.is_over():
            return "the Stopper ended all"
        return "time_budget_s is over" if deadline_s is not None and time.monotonic() >= deadline_s else ""

    def _tell(self, trial: Trial, outcome: Outcome) -> None:
        if "error" in outcome:
            self._say(f"trial {trial.number}: {outcome['error'][2]}")
            tell(trial, state="failed", reason=outcome["error"][2])
        elif outcome["result"]["is_pruned"]:
            tell(trial, state="pruned")
        elif not outcome["result"]["history"]:
            tell(trial, state="failed", reason="it reported nothing")
        else:
            tell(trial, float(outcome["result"]["history"][-1][self._metric()]))

    def _result(self, trial: Any, outcome: Outcome) -> Result:
        folder = os.path.join(self._folder(), f"trial_{trial.number:05d}")
        rows = _session.rows_in(folder) or dict(sorted(trial.intermediate_values.items()))  # the folder may be gone: what the server has
        by_step = {step: {"training_iteration": step, **(row if isinstance(row, dict) else {self._metric(): row})} for step, row in rows.items()}
        by_step.update({row["training_iteration"]: row for row in outcome.get("result", {}).get("history", [])})
        history = [row for _, row in sorted(by_step.items())]
        found = _session.checkpoints_in(folder)
        error = TuneError(outcome["error"][1]) if "error" in outcome else TuneError(trial.reason) if trial.state == "failed" else None
        best = [(_session.Checkpoint(path), by_step.get(iteration, {"training_iteration": iteration})) for iteration, path in found]
        return Result(metrics=history[-1] if history else {}, checkpoint=best[-1][0] if best else None, error=error, path=folder,
                      config=self._space.config(trial.params), history=history, run_id=trial.run_id, best_checkpoints=best)


def _stop(study: Study) -> None:
    try:
        study.stop()
    except TuneError:
        if study.info()["state"] not in _ENDS:  # by its last trial
            raise


def _has_ray() -> bool:
    if "ray" not in sys.modules and "RAY_ADDRESS" not in os.environ:
        return False
    from tune_ray._cluster import started

    return "RAY_ADDRESS" in os.environ and bool(started()) or bool(sys.modules["ray"].is_initialized())

"""Tuner: ray.tune's loop, with a study of ours."""

from __future__ import annotations

import datetime
import functools
import json
import os
import pathlib
import secrets
import sys
from typing import Any, Callable, Mapping

from tune_client import _mlflow
from tune_client._drive import LEASE_S, Driver, tell
from tune_client._errors import TuneError, say
from tune_client._serve import serving
from tune_client._study import Study, create_study, load_study
from tune_client._trial import Trial
from tune_client._workers import Engine, LocalProcesses, Outcome, pickled
from tune_ray.tune import _session
from tune_ray.tune._config import RunConfig, TuneConfig, pruner_of, sampler_of
from tune_ray.tune._results import Result, ResultGrid
from tune_ray.tune._space import Space

_STATE = "tuner.json"
_OBJECTS = "tuner.pickle"


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
        self._name: str = self._run.name or f"{_name_of(trainable)}-{datetime.datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self._results: ResultGrid | None = None

    @classmethod
    def can_restore(cls, path: str | os.PathLike[str]) -> bool:
        """Whether a Tuner left its state in this folder."""
        return pathlib.Path(path, _STATE).is_file()

    @classmethod
    def restore(cls, path: str | os.PathLike[str], trainable: Any = None, resume_unfinished: bool = True, resume_errored: bool = False,
                restart_errored: bool = False, param_space: Any = None) -> Tuner:
        """The Tuner whose folder this is; fit() resumes what has not ended, from the latest checkpoints."""
        if not cls.can_restore(path):
            raise TuneError(f"no Tuner left its state in {os.fspath(path)}")
        if resume_errored or restart_errored:
            raise TuneError("trials that failed are not run again here: give FailureConfig(max_failures=...) before, or `tune rerun`")
        import pickle

        found: Tuner = pickle.loads(pathlib.Path(path, _OBJECTS).read_bytes())
        if trainable is not None:
            found._trainable = trainable
        return found

    def fit(self) -> ResultGrid:
        """Runs all trials; their results. Raises TuneError where no server is, and for what has no counterpart."""
        cores = self._default_concurrency()
        with serving(getattr(self._run, "server", None)) as url:
            study = self._open(url)
            self._save()
            trainable = Objective(self._trainable, self._space, self._folder(), self._stop(), self._keep(), self._name, self._metric())
            with _mlflow.main_run(study):
                outcomes = self._drive(study, trainable, cores)
            self._results = ResultGrid([self._result(trial, outcomes.get(trial.number, {})) for trial in study.trials(with_intermediate=True)],
                                       self._folder(), self._metric(), self._mode())
        return self._results

    def get_results(self) -> ResultGrid:
        """Of the last fit()."""
        if self._results is None:
            raise RuntimeError("call fit() first")
        return self._results

    def _metric(self) -> str:
        scheduler = self._tune.scheduler
        return self._tune.metric or getattr(scheduler, "_metric", None) or "training_iteration"

    def _mode(self) -> str:
        found: str = self._tune.mode or getattr(self._tune.scheduler, "_mode", None) or ("max" if self._metric() == "training_iteration" else "min")
        return found

    def _stop(self) -> dict[str, float]:
        stop = dict(self._run.stop or {})
        _, last = pruner_of(self._tune.scheduler)
        if last is not None:
            stop["training_iteration"] = min(stop.get("training_iteration", last), last)
        return stop

    def _keep(self) -> int | None:
        found: int | None = getattr(self._run.checkpoint_config, "num_to_keep", None)
        return found

    def _folder(self) -> str:
        return os.path.join(os.path.expanduser(self._run.storage_path or "~/ray_results"), self._name)

    def _save(self) -> None:
        os.makedirs(self._folder(), exist_ok=True)
        pathlib.Path(self._folder(), _OBJECTS).write_bytes(pickled(self, "the tuner"))
        pathlib.Path(self._folder(), _STATE).write_text(json.dumps({"study": self._name}))

    def _open(self, url: str) -> Study:
        try:
            return load_study(self._name, url, LEASE_S)
        except TuneError as error:
            if error.status != 404:
                raise
        declared = self._space.declared or {"trainable": {"const": _name_of(self._trainable)}}
        points = self._space.points(self._tune.num_samples)
        pruner, _ = pruner_of(self._tune.scheduler)
        budget: dict[str, Any] = {"trials": len(points)}
        if self._tune.time_budget_s is not None:
            budget["time"] = float(self._tune.time_budget_s)
        more = {"pruner": pruner} if pruner is not None else {}
        sampler = sampler_of(self._tune.search_alg, True)
        study = create_study(self._name, space=declared, metric={"name": self._metric(), "goal": self._mode(), "take": "last"},
                             budget=budget, sampler=sampler, server=url, lease_s=LEASE_S, stop_after_failures=0, **more)
        for point in points:
            if point:
                study.enqueue(point)
        return study

    def _default_concurrency(self) -> int:
        if self._tune.max_concurrent_trials:
            return int(self._tune.max_concurrent_trials)
        if _has_ray():
            import ray  # type: ignore[import-untyped,import-not-found,unused-ignore]

            cpus = max(float(self._resources.get("cpu", 1)), 0.001)
            return max(int(ray.cluster_resources().get("CPU", 1) // cpus), 1)
        return os.cpu_count() or 1

    def _engine(self) -> Engine:
        if _has_ray():
            from tune_ray._actors import RayActors

            made: Engine = RayActors(float(self._resources.get("cpu", 1)), float(self._resources.get("gpu", 0)))
            return made
        return LocalProcesses()

    def _drive(self, study: Study, objective: Objective, count: int) -> dict[int, Outcome]:
        """What each trial that ended here left."""
        left = getattr(self._run.failure_config, "max_failures", 0)
        failures: dict[int, int] = {}
        outcomes: dict[int, Outcome] = {}
        driver = Driver(study, objective, self._engine())
        try:
            driver.start(min(count, len(self._space.points(self._tune.num_samples))))
            while driver.ask() or driver.running or study.info()["state"] not in ("completed", "stopped"):
                for trial, outcome in driver.wait():
                    if "error" in outcome and (left < 0 or failures.get(trial.number, 0) < left):
                        failures[trial.number] = failures.get(trial.number, 0) + 1
                        say(f"trial {trial.number} failed and is run again from its checkpoint: {outcome['error'][2]}")
                        driver.again(trial)
                        continue
                    outcomes[trial.number] = outcome
                    self._tell(trial, outcome)
        finally:
            driver.cancel("Tuner.fit() has ended")
        return outcomes

    def _tell(self, trial: Trial, outcome: Outcome) -> None:
        if "error" in outcome:
            say(f"trial {trial.number}: {outcome['error'][2]}")
            tell(trial, state="failed", reason=outcome["error"][2])
        elif outcome["result"]["is_pruned"]:
            tell(trial, state="pruned")
        elif not outcome["result"]["history"]:
            tell(trial, state="failed", reason="it reported nothing")
        else:
            tell(trial, float(outcome["result"]["history"][-1][self._metric()]))

    def _result(self, trial: Any, outcome: Outcome) -> Result:
        folder = os.path.join(self._folder(), f"trial_{trial.number:05d}")
        history = list(outcome.get("result", {}).get("history", []))
        if not history:  # of a Tuner before this one: what the server has
            history = [{"training_iteration": step, self._metric(): value} for step, value in sorted(trial.intermediate_values.items())]
        found = _session.checkpoints_in(folder)
        error = TuneError(outcome["error"][1]) if "error" in outcome else TuneError(trial.reason) if trial.state == "failed" else None
        return Result(metrics=history[-1] if history else {}, checkpoint=_session.Checkpoint(found[-1][1]) if found else None, error=error,
                      path=folder, config=self._space.config(trial.params), history=history, run_id=trial.run_id)


class Objective:
    """A trainable as an objective of ours, in a worker."""

    def __init__(self, trainable: Any, space: Space, folder: str, stop: Mapping[str, float], keep: int | None, experiment: str,
                 metric: str) -> None:
        self._trainable, self._space, self._folder, self._stop = trainable, space, folder, stop
        self._keep, self._experiment, self._metric = keep, experiment, metric

    def __call__(self, trial: Trial) -> dict[str, Any]:
        from tune_client._errors import Pruned

        folder = os.path.join(self._folder, f"trial_{trial.number:05d}")
        name = f"{_name_of(self._trainable)}_{trial.number:05d}"
        session = _session.Session(trial, folder, self._metric, self._stop, self._keep, self._experiment, name)
        _session.begin(session)
        is_pruned = False
        try:
            returned = self._train(self._space.config(trial.params))
            if isinstance(returned, Mapping):  # the metrics of a function that reports once
                session.report(returned)
        except Pruned:
            is_pruned = True
        except _session.Stop:
            pass
        finally:
            _session.begin(None)
        return {"history": session.history, "is_pruned": is_pruned}

    def _train(self, config: dict[str, Any]) -> Any:
        if isinstance(self._trainable, type):
            from tune_ray.tune._trainable import run_class

            return run_class(self._trainable, config)
        return self._trainable(config)


def with_resources(trainable: Any, resources: Mapping[str, float]) -> Any:
    """The trainable, of which each trial has {"cpu": ..., "gpu": ...} to itself."""
    if isinstance(trainable, type):
        return type(trainable.__name__, (trainable,), {"_tune_resources": dict(resources)})
    wrapped = functools.partial(trainable)
    wrapped._tune_resources = dict(resources)  # type: ignore[attr-defined]
    return wrapped


def with_parameters(trainable: Callable[..., Any], **kwargs: Any) -> Any:
    """The trainable with these arguments beside its config; they are sent to each worker once."""
    return functools.partial(trainable, **kwargs)


def _name_of(trainable: Any) -> str:
    while isinstance(trainable, functools.partial):
        trainable = trainable.func
    return str(getattr(trainable, "__name__", type(trainable).__name__)).strip("<>")


def _has_ray() -> bool:
    if "ray" not in sys.modules and "RAY_ADDRESS" not in os.environ:
        return False
    from tune_ray._cluster import started

    return "RAY_ADDRESS" in os.environ and bool(started()) or bool(sys.modules["ray"].is_initialized())



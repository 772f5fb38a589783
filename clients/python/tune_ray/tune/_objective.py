"""A trainable of ray.tune as an objective of ours: what a worker runs, and what decorates it."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import types
from typing import Any, Callable, Iterator, Mapping

from tune_client._errors import Pruned, TuneError
from tune_client._trial import Trial
from tune_client._workers import ask_driver
from tune_ray.tune import _session
from tune_ray.tune._space import Space
from tune_ray.tune._trainable import run_class


class Asking:
    """The driver's end of a Stopper, which sees all trials."""

    def __init__(self, stopper: Any) -> None:
        self.fault: Exception | None = None  # what the stopper raised
        self._stopper = stopper

    @staticmethod
    def ask(trial_id: str, result: Mapping[str, Any]) -> bool:
        """In a worker: whether the driver says that this trial ends."""
        return bool(ask_driver((trial_id, dict(result))))

    def answer(self, question: tuple[str, Mapping[str, Any]]) -> bool:
        """Whether the trial that asks ends: alone, or with all."""
        try:
            return bool(self._stopper(*question)) or bool(self._stopper.stop_all())
        except Exception as error:
            self.fault = error
            return True

    def is_over(self) -> bool:
        """Whether all trials are to end."""
        return self.fault is not None or bool(self._stopper.stop_all())


class Objective:
    """Trains with the config of a trial, in the trial's folder; its history, and whether it was stopped by the pruner."""

    def __init__(self, trainable: Any, space: Space, folder: str, rules: _session.Rules, experiment: str, shown: Mapping[str, Any]) -> None:
        """`shown`: {"name": a function that names a trial or None, "log": RunConfig.log_to_file}."""
        self._trainable, self._space, self._folder, self._rules = trainable, space, folder, rules
        self._experiment, self._shown = experiment, shown

    def __call__(self, trial: Trial) -> dict[str, Any]:
        folder = os.path.join(self._folder, f"trial_{trial.number:05d}")
        config = self._space.config(trial.params)
        session = _session.Session(trial, folder, self._rules, self._experiment, self._name(trial, config))
        _session.begin(session)
        is_pruned = False
        try:
            with _output_in(folder, self._shown["log"]), _standing_in(folder):
                returned = self._train(config)
                if isinstance(returned, Mapping):  # the metrics of a function that reports once
                    session.report(returned)
        except Pruned:
            is_pruned = True
        except _session.Stop:
            pass
        finally:
            _session.begin(None)
        return {"history": session.history, "is_pruned": is_pruned}

    def _name(self, trial: Trial, config: Mapping[str, Any]) -> str:
        name = name_of(self._trainable)
        if self._shown["name"] is None:
            return f"{name}_{trial.number:05d}"
        return str(self._shown["name"](types.SimpleNamespace(trial_id=trial.run_id, trainable_name=name, config=config,
                                                             evaluated_params=dict(trial.params))))

    def _train(self, config: dict[str, Any]) -> Any:
        return run_class(self._trainable, config) if isinstance(self._trainable, type) else self._trainable(config)


@contextlib.contextmanager
def _standing_in(folder: str) -> Iterator[None]:
    """As with ray.tune: relative paths of a trial lie in its folder, unless RAY_CHDIR_TO_TRIAL_DIR is 0."""
    if os.environ.get("RAY_CHDIR_TO_TRIAL_DIR", "1") == "0":
        yield
        return
    before = os.getcwd()
    os.environ.setdefault("TUNE_ORIG_WORKING_DIR", before)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _output_in(folder: str, log_to_file: Any) -> Iterator[None]:
    """What is written to stdout and stderr goes to files of the trial's folder, also from programs that the trial starts."""
    if not log_to_file:
        yield
        return
    names = ("stdout", "stderr") if log_to_file is True else (log_to_file,) * 2 if isinstance(log_to_file, str) else tuple(log_to_file)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    try:
        for descriptor, name in zip((1, 2), names, strict=True):
            with open(os.path.join(folder, name), "ab") as file:
                os.dup2(file.fileno(), descriptor)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, before in zip((1, 2), kept):
            os.dup2(before, descriptor)
            os.close(before)


def with_resources(trainable: Any, resources: Mapping[str, float]) -> Any:
    """The trainable, of which each trial has {"cpu": ..., "gpu": ...} to itself. TuneError for other resources."""
    if not isinstance(resources, Mapping):
        raise TuneError(f"with_resources() takes {{'cpu': ..., 'gpu': ...}} here, found {resources!r}")
    named = {name.lower(): amount for name, amount in resources.items()}
    unknown = set(named) - {"cpu", "gpu"}
    if unknown:
        raise TuneError(f"with_resources() takes cpu and gpu here, found {', '.join(sorted(unknown))}")
    if isinstance(trainable, type):
        return type(trainable.__name__, (trainable,), {"_tune_resources": named})
    wrapped = functools.partial(trainable)
    wrapped._tune_resources = named  # type: ignore[attr-defined]
    return wrapped


def with_parameters(trainable: Callable[..., Any], **kwargs: Any) -> Any:
    """The trainable with these arguments beside its config, of a class those of setup(); they are sent to each worker once."""
    if isinstance(trainable, type):
        given: Any = trainable

        def setup(self: Any, config: dict[str, Any]) -> None:
            given.setup(self, config, **kwargs)

        return type(trainable.__name__, (trainable,), {"setup": setup})
    wrapped = functools.partial(trainable, **kwargs)
    wrapped._tune_resources = getattr(trainable, "_tune_resources", {})  # type: ignore[attr-defined]
    return wrapped


def name_of(trainable: Any) -> str:
    """What it is called in names of studies and trials."""
    while isinstance(trainable, functools.partial):
        trainable = trainable.func
    return str(getattr(trainable, "__name__", type(trainable).__name__)).strip("<>")

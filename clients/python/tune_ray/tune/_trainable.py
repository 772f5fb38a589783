"""Trainable: a training as a class with steps."""

from __future__ import annotations

import os
import pathlib
import pickle
import tempfile
from typing import Any, Mapping

from tune_client._errors import Pruned
from tune_ray.tune import _session

_DICT = "dict_checkpoint.pickle"  # of a class whose save_checkpoint() returns its state


class Trainable:
    """Overridden: setup(config), step() -> metrics (with "done": True at the end), save_checkpoint(dir), load_checkpoint(dir), cleanup()."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.iteration = 0
        self.setup(self.config)

    @property
    def training_iteration(self) -> int:
        """Steps that have ended."""
        return self.iteration

    @property
    def logdir(self) -> str:
        """The trial's folder."""
        return _session._current("Trainable").folder

    @property
    def trial_id(self) -> str:
        """The trial's MLflow run."""
        return _session._current("Trainable").trial.run_id

    @property
    def trial_name(self) -> str:
        """As get_context().get_trial_name()."""
        return _session._current("Trainable").name

    def setup(self, config: dict[str, Any]) -> None:
        """Called once, before the first step."""

    def step(self) -> Mapping[str, Any]:
        """One iteration; its metrics. With "should_checkpoint": True it is saved."""
        raise NotImplementedError

    def save_checkpoint(self, checkpoint_dir: str) -> Any:
        """Writes the state into the folder, or returns it as a dict."""
        raise NotImplementedError

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Reads the state from the folder, or from the dict."""
        raise NotImplementedError

    def cleanup(self) -> None:
        """Called at the end."""


def run_class(kind: type[Any], config: dict[str, Any]) -> None:
    """Steps until `done`, or until a report ends it; a checkpoint as often as CheckpointConfig says."""
    trainable = kind(config)
    session = _session._current("Trainable")
    if session.loaded is not None:
        _load(trainable, session.loaded.path)
    try:
        while True:
            trainable.iteration = session.iteration
            _report(trainable, session, dict(trainable.step()))
    finally:
        trainable.cleanup()


def _report(trainable: Any, session: _session.Session, metrics: dict[str, Any]) -> None:
    every = session.rules.every
    if metrics.get("should_checkpoint") or every and (session.iteration + 1) % every == 0:
        with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
            _save(trainable, folder)
            session.report(metrics, _session.Checkpoint(folder))
        return
    try:
        session.report(metrics)
    except (_session.Stop, Pruned):
        if session.rules.at_end:
            with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
                _save(trainable, folder)
                session.persist(_session.Checkpoint(folder), session.history[-1])
        raise


def _save(trainable: Any, folder: str) -> None:
    state = trainable.save_checkpoint(folder)
    if isinstance(state, dict):
        pathlib.Path(folder, _DICT).write_bytes(pickle.dumps(state))


def _load(trainable: Any, folder: str) -> None:
    path = os.path.join(folder, _DICT)
    trainable.load_checkpoint(pickle.loads(pathlib.Path(path).read_bytes()) if os.path.exists(path) else folder)

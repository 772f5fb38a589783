"""Trainable: a training as a class with steps."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Mapping

from tune_ray.tune import _session


class Trainable:
    """Overridden: setup(config), step() -> metrics (with "done": True at the end), save_checkpoint(dir), load_checkpoint(dir), cleanup()."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.iteration = 0
        self.setup(self.config)

    def setup(self, config: dict[str, Any]) -> None:
        """Called once, before the first step."""

    def step(self) -> Mapping[str, Any]:
        """One iteration; its metrics."""
        raise NotImplementedError

    def save_checkpoint(self, checkpoint_dir: str) -> Any:
        """Writes the state into the folder."""

    def load_checkpoint(self, checkpoint: str) -> None:
        """Reads the state from the folder."""

    def cleanup(self) -> None:
        """Called at the end."""


def run_class(kind: type[Any], config: dict[str, Any]) -> None:
    """Steps until `done`, or until a report ends it; a checkpoint after each step of a class that saves them."""
    trainable = kind(config)
    session = _session._current("Trainable")
    saves = kind.save_checkpoint is not Trainable.save_checkpoint if issubclass(kind, Trainable) else True
    if session.loaded is not None:
        trainable.load_checkpoint(session.loaded.path)
    try:
        while True:
            trainable.iteration = session.iteration
            metrics = trainable.step()
            if not saves:
                session.report(metrics)
                continue
            with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
                trainable.save_checkpoint(folder)
                session.report(metrics, _session.Checkpoint(folder) if os.listdir(folder) else None)
    finally:
        trainable.cleanup()

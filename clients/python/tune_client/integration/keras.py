"""Keras: model.fit(..., callbacks=[KerasPruningCallback(trial, "val_loss")])."""

from __future__ import annotations

from typing import Any, Mapping

import keras  # type: ignore[import-untyped,import-not-found,unused-ignore]

from tune_client._trial import Trial
from tune_client.integration._monitor import Monitor


class KerasPruningCallback(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    """Reports `monitor` at the end of each epoch, or of each `interval`-th one."""

    def __init__(self, trial: Trial, monitor: str, interval: int = 1) -> None:
        super().__init__()
        self._monitor = Monitor(trial, monitor, interval)
        self._key = monitor

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Called by Keras. Raises Pruned."""
        logs = logs or {}
        self._monitor.report(logs.get(self._key), epoch, logs)

"""Lightning: Trainer(..., callbacks=[PyTorchLightningPruningCallback(trial, "val_loss")])."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tune_client._trial import Trial
from tune_client.integration._monitor import Monitor


def _callback_class() -> Any:
    """Of the package that the program has imported, `lightning` or `pytorch_lightning`; else of the one that is installed."""
    names = ["lightning.pytorch", "pytorch_lightning"]
    names.sort(key=lambda name: name not in sys.modules)
    try:
        return importlib.import_module(names[0]).Callback
    except ImportError:
        return importlib.import_module(names[1]).Callback


class PyTorchLightningPruningCallback(_callback_class()):  # type: ignore[misc]
    """Reports `monitor`, a metric that the module logs, at the end of each validation.

    For a training in one process: where each of several would have to hear that the trial should stop, ValueError.
    """

    def __init__(self, trial: Trial, monitor: str) -> None:
        super().__init__()
        self._monitor = Monitor(trial, monitor)
        self._key = monitor

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Called by Lightning."""
        if trainer.world_size > 1:
            raise ValueError(f"PyTorchLightningPruningCallback is for a training in one process, and this one has "
                             f"{trainer.world_size}; report with trial.should_stop in the first of them")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Called by Lightning. Raises Pruned."""
        if not trainer.sanity_checking:
            metrics = trainer.callback_metrics
            self._monitor.report(metrics.get(self._key), trainer.current_epoch, metrics)

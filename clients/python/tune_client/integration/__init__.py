"""Callbacks that report a training's metric to a trial and end the training when the trial should stop.

A module a library, which is imported when it is asked for: keras, lightning, lightgbm, xgboost. Names and arguments are those of
optuna_integration, whose imports they replace:

    from tune_client.integration import LightGBMPruningCallback

    def objective(trial):
        lightgbm.train(trial.params, data, valid_sets=[valid], callbacks=[LightGBMPruningCallback(trial, "auc")])

Each raises Pruned out of the training, with which `optimize` and `with trial:` end the trial as pruned.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tune_client.integration.keras import KerasPruningCallback
    from tune_client.integration.lightgbm import LightGBMPruningCallback
    from tune_client.integration.lightning import PyTorchLightningPruningCallback
    from tune_client.integration.xgboost import XGBoostPruningCallback

__all__ = ["KerasPruningCallback", "LightGBMPruningCallback", "PyTorchLightningPruningCallback", "XGBoostPruningCallback"]

_MODULES = {"KerasPruningCallback": "keras", "LightGBMPruningCallback": "lightgbm",
            "PyTorchLightningPruningCallback": "lightning", "XGBoostPruningCallback": "xgboost"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)

"""XGBoost: xgboost.train(..., callbacks=[XGBoostPruningCallback(trial, "validation-rmse")]); also cv and the scikit-learn classes."""

from __future__ import annotations

from typing import Any

import xgboost  # type: ignore[import-untyped,import-not-found,unused-ignore]

from tune_client._trial import Trial
from tune_client.integration._monitor import Monitor


class XGBoostPruningCallback(xgboost.callback.TrainingCallback):  # type: ignore[misc,unused-ignore]
    """Reports `observation_key`, DATA-METRIC as XGBoost prints it, after each boosting round; of cv the mean over the folds."""

    def __init__(self, trial: Trial, observation_key: str) -> None:
        super().__init__()
        self._monitor = Monitor(trial, observation_key)
        self._key = observation_key

    def after_iteration(self, model: Any, epoch: int, evals_log: dict[str, dict[str, Any]]) -> bool:
        """Called by XGBoost. Raises Pruned."""
        found = {f"{data}-{metric}": values[-1] for data, metrics in evals_log.items() for metric, values in metrics.items()}
        value = found.get(self._key)
        self._monitor.report(value[0] if isinstance(value, tuple) else value, epoch, found)
        return False

"""LightGBM: lightgbm.train(..., callbacks=[LightGBMPruningCallback(trial, "auc")]); also cv and the scikit-learn classes."""

from __future__ import annotations

from typing import Any

from tune_client._trial import Trial
from tune_client.integration._monitor import Monitor


class LightGBMPruningCallback:
    """Reports `metric` on the validation data named `valid_name` after each iteration, or each `report_interval`-th one.

    With lightgbm.cv, `valid_name` is "valid", and the value is the mean over the folds.
    """

    def __init__(self, trial: Trial, metric: str, valid_name: str = "valid_0", report_interval: int = 1) -> None:
        self._monitor = Monitor(trial, f"{valid_name} {metric}", report_interval)
        self._key = (valid_name, metric)

    def __call__(self, env: Any) -> None:
        """Called by LightGBM. Raises Pruned."""
        found = {}
        for name, metric, value, *_ in env.evaluation_result_list or []:
            if name == "cv_agg":  # "valid auc" was one word before LightGBM 4.6
                name, _, metric = metric.partition(" ")
            found[name, metric] = value
        self._monitor.report(found.get(self._key), env.iteration, map(" ".join, found))

"""What Tuner.fit() gives: the names of ray.tune.Result and ResultGrid."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Iterator

from tune_ray.tune._session import Checkpoint


@dataclasses.dataclass
class Result:
    """One trial: `metrics` as last reported, `history` of all reports, `config`, `checkpoint` (the latest), `error`, `path`, `run_id`,
    `best_checkpoints`: those that are kept, oldest first, each with what was reported with it.
    """

    metrics: dict[str, Any]
    checkpoint: Checkpoint | None
    error: Exception | None
    path: str
    config: dict[str, Any]
    history: list[dict[str, Any]]
    run_id: str
    best_checkpoints: list[tuple[Checkpoint, dict[str, Any]]] = dataclasses.field(default_factory=list)

    def get_best_checkpoint(self, metric: str, mode: str) -> Checkpoint | None:
        """Of the kept checkpoints the one with which the best value was reported; None without any. RuntimeError for an unknown metric."""
        known = [(float(metrics[metric]), each) for each, metrics in self.best_checkpoints if metric in metrics]
        if self.best_checkpoints and not known:
            raise RuntimeError(f"no checkpoint was reported with {metric!r}")
        found: list[Checkpoint] = [each for _, each in sorted(known, key=lambda one: one[0], reverse=mode == "max")]
        return found[0] if found else None

    @property
    def metrics_dataframe(self) -> Any:
        """A pandas.DataFrame with a row for each report."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame(self.history)


class ResultGrid:
    """All trials of a Tuner, in the order of their numbers."""

    def __init__(self, results: list[Result], path: str, metric: str, mode: str) -> None:
        self._results, self.experiment_path, self._metric, self._mode = results, path, metric, mode

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, index: int) -> Result:
        return self._results[index]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    @property
    def errors(self) -> list[Exception]:
        """Of the trials that failed."""
        return [result.error for result in self._results if result.error is not None]

    @property
    def num_errors(self) -> int:
        """How many failed."""
        return len(self.errors)

    @property
    def num_terminated(self) -> int:
        """How many did not."""
        return len(self) - self.num_errors

    def get_best_result(self, metric: str | None = None, mode: str | None = None, scope: str = "last", filter_nan_and_inf: bool = True) -> Result:
        """The best by its last value; with scope="all" by the best that it reported. RuntimeError where none reported the metric."""
        metric, mode = metric or self._metric, mode or self._mode
        best, best_value = None, math.inf
        for result in self._results:
            values = [float(each[metric]) for each in result.history if metric in each]
            values = values if scope == "all" else values[-1:]
            for value in (one for one in values if math.isfinite(one) or not filter_nan_and_inf):
                signed = value if mode == "min" else -value
                if best is None or signed < best_value:
                    best, best_value = result, signed
        if best is None:
            raise RuntimeError(f"no trial reported {metric!r}")
        return best

    def get_dataframe(self, filter_metric: str | None = None, filter_mode: str | None = None) -> Any:
        """A pandas.DataFrame with a row for each trial: its last metrics, and its config as config/NAME.

        With `filter_metric` and `filter_mode` ("min" or "max"): those of the report in which that was best.
        """
        import pandas

        if (filter_metric is None) != (filter_mode is None):
            raise ValueError("get_dataframe() takes filter_metric and filter_mode together")
        return pandas.DataFrame([{**_row(result, filter_metric, filter_mode),
                                  **{f"config/{name}": value for name, value in result.config.items()}} for result in self._results])


def _row(result: Result, metric: str | None, mode: str | None) -> dict[str, Any]:
    rows = [each for each in result.history if metric in each]
    if metric is None or not rows:
        return result.metrics
    return (max if mode == "max" else min)(rows, key=lambda each: float(each[metric]))

"""An objective of Hyperopt's, as workers call it."""

from __future__ import annotations

from typing import Any, Callable

from hyperopt.base import Domain

from tune_client._trial import Trial
from tune_client.hyperopt import _space


class Objective:
    """Calls the function with the point of the trial; returns Hyperopt's result, a dict with a status."""

    def __init__(self, function: Callable[..., Any], space: Any) -> None:
        self._function, self._space = function, space
        self._known: tuple[Domain, dict[str, _space.Label]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": None}

    def __call__(self, trial: Trial) -> dict[str, Any]:
        if self._known is None:
            self._known = Domain(self._function, self._space), _space.labels_of(self._space)
        domain, labels = self._known
        result: dict[str, Any] = domain.evaluate(_space.to_values(labels, trial.params), None, attach_attachments=False)
        return result

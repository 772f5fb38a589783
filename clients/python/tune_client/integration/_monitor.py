"""What the callbacks share: a metric of the training, by its name."""

from __future__ import annotations

import warnings
from typing import Any, Iterable

from tune_client._trial import Trial


class Monitor:
    """Reports one metric of a training to a trial. Raises Pruned when the trial should stop."""

    def __init__(self, trial: Trial, name: str, interval: int = 1) -> None:
        if interval < 1:
            raise ValueError(f"the interval must be at least 1, found {interval}")
        self._trial = trial
        self._name = name
        self._interval = interval
        self._has_warned = False

    def report(self, found: Any, step: int, known: Iterable[str]) -> None:
        """`found`: the value, or None where the training has none of this name; then warns, once, of what it has."""
        if found is None:
            if not self._has_warned:
                self._has_warned = True
                warnings.warn(f"the training has no {self._name!r} at step {step}, so nothing is reported; it has "
                              f"{', '.join(sorted(known)) or 'no metrics'}", stacklevel=3)
        elif (step + 1) % self._interval == 0:
            self._trial.report(float(found), step)

"""ray.tune.stopper: when trainings end. Ray's own objects are taken, too."""

from __future__ import annotations

import collections
import datetime
import time
from typing import Any, Callable, Mapping

from tune_ray.tune._config import seconds_of


class Stopper:
    """Says of each report whether its trial ends, and at any time whether all do. One object, in the driver, sees all trials."""

    def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Whether this trial ends with this report."""
        raise NotImplementedError

    def stop_all(self) -> bool:
        """Whether all trials end, and none begins."""
        raise NotImplementedError


class CombinedStopper(Stopper):
    """Ends what any of these ends."""

    def __init__(self, *stoppers: Stopper) -> None:
        self._stoppers = stoppers

    def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """See Stopper. Each is asked, for those that count."""
        return any([each(trial_id, result) for each in self._stoppers])

    def stop_all(self) -> bool:
        """See Stopper."""
        return any(each.stop_all() for each in self._stoppers)


class FunctionStopper(Stopper):
    """Ends a trial when a function of (trial_id, result) says so."""

    def __init__(self, function: Callable[[str, Mapping[str, Any]], bool]) -> None:
        self._function = function

    def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """See Stopper."""
        return bool(self._function(trial_id, result))

    def stop_all(self) -> bool:
        """See Stopper."""
        return False


class MaximumIterationStopper(Stopper):
    """Ends a trial with its report number max_iter."""

    def __init__(self, max_iter: int) -> None:
        self._max_iter = max_iter
        self._counts: collections.Counter[str] = collections.Counter()

    def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """See Stopper."""
        self._counts[trial_id] += 1
        return self._counts[trial_id] >= self._max_iter

    def stop_all(self) -> bool:
        """See Stopper."""
        return False


class TimeoutStopper(Stopper):
    """Ends all when this time has gone by since the first question."""

    def __init__(self, timeout: float | datetime.timedelta) -> None:
        self._seconds = seconds_of(timeout) or 0.0
        self._began_s: float | None = None

    def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """See Stopper."""
        return self.stop_all()

    def stop_all(self) -> bool:
        """See Stopper."""
        now_s = time.monotonic()
        self._began_s = now_s if self._began_s is None else self._began_s
        return now_s - self._began_s >= self._seconds

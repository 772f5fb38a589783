"""Which sampler and which pruner of ours a search algorithm and a scheduler of ray.tune mean."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from tune_client._errors import TuneError, say


class ASHAScheduler:
    """Asynchronous successive halving: the pruner `asha`. With stop_last_trials=False a training may go beyond max_t."""

    def __init__(self, time_attr: str = "training_iteration", metric: str | None = None, mode: str | None = None, max_t: int = 100,
                 grace_period: int = 1, reduction_factor: float = 4, brackets: int = 1, stop_last_trials: bool = True) -> None:
        self._metric, self._mode, self._time_attr, self._stop_last_trials = metric, mode, time_attr, stop_last_trials
        self._max_t, self._grace_period, self._reduction_factor, self._brackets = max_t, grace_period, reduction_factor, brackets


AsyncHyperBandScheduler = ASHAScheduler


class HyperBandScheduler:
    """Hyperband: the pruner `hyperband`, which waits for no other trial where ray.tune's pauses some."""

    def __init__(self, time_attr: str = "training_iteration", metric: str | None = None, mode: str | None = None, max_t: int = 81,
                 reduction_factor: float = 3, stop_last_trials: bool = True) -> None:
        self._metric, self._mode, self._time_attr, self._stop_last_trials = metric, mode, time_attr, stop_last_trials
        self._max_t_attr, self._eta = max_t, reduction_factor


class MedianStoppingRule:
    """Stops what is worse than the median: the pruner `median`. `grace_period` counts iterations: time_attr has that default here."""

    def __init__(self, time_attr: str = "training_iteration", metric: str | None = None, mode: str | None = None, grace_period: float = 1,
                 min_samples_required: int = 3, min_time_slice: int = 0, hard_stop: bool = True) -> None:
        self._metric, self._mode, self._time_attr = metric, mode, time_attr
        self._grace_period, self._min_samples_required = grace_period, min_samples_required
        self._min_time_slice, self._hard_stop = min_time_slice, hard_stop


class FIFOScheduler:
    """Stops nothing."""


@dataclasses.dataclass
class Search:
    """A search algorithm: the study's sampler, what it brings of its own, and how many trials it wants at a time."""

    sampler: Any
    points: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    concurrent: int | None = None
    metric: str | None = None
    mode: str | None = None


def search_of(search_alg: Any) -> Search:
    """`search_alg`: a sampler as in study.yaml ("tpe", {"type": "gp"}); left out, random search, as in ray.tune. Searchers of ray.tune by
    Optuna, Hyperopt, Ax and the like mean our "tpe". TuneError for one that is not known.
    """
    if search_alg is None:
        return Search({"type": "random", "duplicates": "allow"})
    if isinstance(search_alg, (str, Mapping)):
        return Search(search_alg)
    concurrent = getattr(search_alg, "max_concurrent", 0) or None
    inner = getattr(search_alg, "searcher", search_alg)  # within a ConcurrencyLimiter
    name = type(inner).__name__
    if not type(inner).__module__.startswith("ray.tune.search.") or "Repeater" in (name, type(search_alg).__name__):
        raise TuneError(f"search_alg is the name of a sampler, a mapping as in study.yaml, or a searcher of ray.tune; found {search_alg!r}")
    metric, mode = getattr(inner, "_metric", None), getattr(inner, "_mode", None)
    if isinstance(metric, list) or isinstance(mode, list):
        raise TuneError(f"{name} with several metrics is not supported: study.yaml's `metrics` is a study of several objectives")
    points = list(getattr(inner, "_points_to_evaluate", None) or [])
    if name == "BasicVariantGenerator":
        if getattr(inner, "_constant_grid_search", False):
            raise TuneError("BasicVariantGenerator(constant_grid_search=True) is not supported: each point of a grid has draws of its own")
        return Search({"type": "random", "duplicates": "allow"}, points, concurrent)
    say(f"search_alg={name}: the server's tpe suggests; search_alg='gp' or another name of a sampler chooses")
    return Search({"type": "tpe"}, points, concurrent, metric, mode)


def pruner_of(scheduler: Any) -> Any:
    """The study's pruner, and the step at which a training ends (None: no such bound). TuneError for one that is not known."""
    name = type(scheduler).__name__
    if scheduler is None or name == "FIFOScheduler":
        return None, None
    known = {"ASHAScheduler": _asha, "AsyncHyperBandScheduler": _asha, "HyperBandScheduler": _hyperband, "MedianStoppingRule": _median}
    if name not in known:
        raise TuneError(f"the scheduler {name} is not supported: ASHAScheduler, HyperBandScheduler, MedianStoppingRule and FIFOScheduler "
                        "are; population based training is the sampler pbt of study.yaml")
    attr = getattr(scheduler, "_time_attr", "training_iteration")
    if attr != "training_iteration":
        raise TuneError(f"{name} counts training_iteration here, found time_attr={attr!r}: give time_attr='training_iteration' and its "
                        "periods in iterations")
    pruner = known[name](scheduler)
    return pruner, pruner.get("max") if getattr(scheduler, "_stop_last_trials", True) else None


def _asha(scheduler: Any) -> dict[str, Any]:
    if hasattr(scheduler, "_grace_period"):
        low, brackets = scheduler._grace_period, scheduler._brackets
    else:  # ray.tune's own
        low, brackets = min(mark for mark, _ in scheduler._brackets[0]._rungs), len(scheduler._brackets)
    if brackets != 1:
        raise TuneError(f"ASHAScheduler(brackets={brackets}) is not supported: HyperBandScheduler has brackets")
    return {"type": "asha", "min": int(low), "max": int(scheduler._max_t), "eta": _whole(scheduler._reduction_factor)}


def _hyperband(scheduler: Any) -> dict[str, Any]:
    return {"type": "hyperband", "min": 1, "max": int(scheduler._max_t_attr), "eta": _whole(scheduler._eta)}


def _median(scheduler: Any) -> dict[str, Any]:
    if getattr(scheduler, "_min_time_slice", 0) or not getattr(scheduler, "_hard_stop", True):
        raise TuneError("MedianStoppingRule's min_time_slice and hard_stop=False are not supported: a trial that is stopped has ended")
    return {"type": "median", "warmup": int(scheduler._grace_period), "startup": int(scheduler._min_samples_required)}


def _whole(factor: float) -> int:
    if int(factor) != factor:
        raise TuneError(f"reduction_factor is a whole number here, found {factor}")
    return int(factor)

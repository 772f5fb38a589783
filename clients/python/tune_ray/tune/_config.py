"""What a Tuner is told: the names and defaults of ray.tune, as far as we have them."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Sequence

from tune_client._errors import TuneError


@dataclasses.dataclass
class TuneConfig:
    """`search_alg`: a sampler as in study.yaml ("tpe", {"type": "gp"}); left out, random search, as in ray.tune. Searchers of ray.tune
    by Optuna, Hyperopt, Ax and the like mean our "tpe". `scheduler`: ray.tune's or this package's ASHA, HyperBand and median rules.
    """

    metric: str | None = None
    mode: str | None = None
    search_alg: Any = None
    scheduler: Any = None
    num_samples: int = 1
    max_concurrent_trials: int | None = None
    time_budget_s: float | None = None
    reuse_actors: bool = False
    trial_name_creator: Any = None
    trial_dirname_creator: Any = None


@dataclasses.dataclass
class CheckpointConfig:
    """`num_to_keep`: of a trial's checkpoints, the latest; left out, all."""

    num_to_keep: int | None = None
    checkpoint_frequency: int = 0
    checkpoint_at_end: bool | None = None


@dataclasses.dataclass
class FailureConfig:
    """`max_failures`: how often a trial that raised is run again, from its latest checkpoint; -1: without a bound."""

    max_failures: int = 0
    fail_fast: bool = False


@dataclasses.dataclass
class RunConfig:
    """`name`: of the study on the server and of the folder; `storage_path`: where that lies, common to all nodes. `stop`: a training ends
    once a metric that it reports is at least this. `server`: ours; left out, what TUNE_SERVER names.
    """

    name: str | None = None
    storage_path: str | None = None
    failure_config: Any = None
    checkpoint_config: Any = None
    stop: Mapping[str, float] | None = None
    verbose: int | None = None
    callbacks: Sequence[Any] | None = None
    server: str | None = None


class ASHAScheduler:
    """Asynchronous successive halving: the pruner `asha`."""

    def __init__(self, time_attr: str = "training_iteration", metric: str | None = None, mode: str | None = None, max_t: int = 100,
                 grace_period: int = 1, reduction_factor: float = 4, brackets: int = 1, stop_last_trials: bool = True) -> None:
        self._metric, self._mode, self._time_attr = metric, mode, time_attr
        self._max_t, self._grace_period, self._reduction_factor, self._brackets = max_t, grace_period, reduction_factor, brackets


AsyncHyperBandScheduler = ASHAScheduler


class MedianStoppingRule:
    """Stops what is worse than the median: the pruner `median`."""

    def __init__(self, time_attr: str = "training_iteration", metric: str | None = None, mode: str | None = None, grace_period: float = 1,
                 min_samples_required: int = 3) -> None:
        self._metric, self._mode, self._time_attr = metric, mode, time_attr
        self._grace_period, self._min_samples_required = grace_period, min_samples_required


class FIFOScheduler:
    """Stops nothing."""


def sampler_of(search_alg: Any, has_grid: bool) -> Any:
    """The study's sampler. TuneError for one that is not known."""
    if search_alg is None or type(search_alg).__name__ == "BasicVariantGenerator":
        return {"type": "random", **({"duplicates": "allow"} if has_grid else {})}
    if isinstance(search_alg, (str, Mapping)):
        return search_alg
    inner = getattr(search_alg, "searcher", search_alg)  # within a ConcurrencyLimiter
    if type(inner).__module__.startswith("ray.tune.search."):
        return {"type": "tpe"}
    raise TuneError(f"search_alg is the name of a sampler, a mapping as in study.yaml, or a searcher of ray.tune; found {search_alg!r}")


def pruner_of(scheduler: Any) -> Any:
    """The study's pruner, and the step at which a training ends (None: no such bound). TuneError for one that is not known."""
    name = type(scheduler).__name__
    if scheduler is None or name == "FIFOScheduler":
        return None, None
    if name in ("ASHAScheduler", "AsyncHyperBandScheduler"):
        known = _asha(scheduler)
        return {"type": "asha", **known}, known["max"]
    if name == "MedianStoppingRule":
        return {"type": "median", "warmup": int(scheduler._grace_period), "startup": int(scheduler._min_samples_required)}, None
    raise TuneError(f"the scheduler {name} is not supported: ASHAScheduler, MedianStoppingRule and FIFOScheduler are; population based "
                    "training is the sampler pbt of study.yaml")


def _asha(scheduler: Any) -> dict[str, Any]:
    if getattr(scheduler, "_time_attr", "training_iteration") != "training_iteration":
        raise TuneError(f"a scheduler counts training_iteration here, found time_attr={scheduler._time_attr!r}")
    if hasattr(scheduler, "_grace_period"):
        low, factor = scheduler._grace_period, scheduler._reduction_factor
    else:  # ray.tune's own
        milestones = [mark for mark, _ in scheduler._brackets[0]._rungs]
        low, factor = min(milestones), scheduler._reduction_factor
    return {"min": int(low), "max": int(scheduler._max_t), "eta": int(factor)}

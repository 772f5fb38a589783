"""ray.tune's names for a study of ours: `from tune_ray import tune` in the place of `from ray import tune`.

Tuner (fit, restore), TuneConfig, RunConfig, FailureConfig, CheckpointConfig, report, get_checkpoint, Checkpoint, get_context, Trainable,
with_resources, with_parameters, ResultGrid, the search spaces, and ASHAScheduler, MedianStoppingRule and FIFOScheduler in
tune_ray.tune.schedulers. Ray itself is needed only to run on its cluster. What has no counterpart is refused with a sentence: sample_from,
other schedulers, searchers that are not ray.tune's.
"""

from tune_ray.tune._config import CheckpointConfig, FailureConfig, RunConfig, TuneConfig
from tune_ray.tune._results import Result, ResultGrid
from tune_ray.tune._session import Checkpoint, get_checkpoint, get_context, report
from tune_ray.tune._space import (
    choice,
    grid_search,
    lograndint,
    loguniform,
    qlograndint,
    qloguniform,
    qrandint,
    qrandn,
    quniform,
    randint,
    randn,
    sample_from,
    uniform,
)
from tune_ray.tune._trainable import Trainable
from tune_ray.tune._tuner import Tuner, with_parameters, with_resources

__all__ = ["Checkpoint", "CheckpointConfig", "FailureConfig", "Result", "ResultGrid", "RunConfig", "Trainable", "TuneConfig", "Tuner",
           "choice", "get_checkpoint", "get_context", "grid_search", "lograndint", "loguniform", "qlograndint", "qloguniform",
           "qrandint", "qrandn", "quniform", "randint", "randn", "report", "sample_from", "uniform", "with_parameters",
           "with_resources"]

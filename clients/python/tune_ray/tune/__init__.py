"""ray.tune's names for a study of ours: `from tune_ray import tune` in the place of `from ray import tune`.

Tuner (fit, restore), TuneConfig, RunConfig, FailureConfig, CheckpointConfig, report, get_checkpoint, Checkpoint, get_context, Trainable,
with_resources, with_parameters, ResultGrid, Stopper and the search spaces; tune_ray.tune.schedulers and tune_ray.tune.stopper. Ray itself is
needed only to run on its cluster. What has no counterpart is refused with a sentence: sample_from, tune.run, other schedulers, searchers
that are not ray.tune's.
"""

from typing import Any

from tune_client._errors import TuneError
from tune_ray.tune._config import CheckpointConfig, FailureConfig, RunConfig, TuneConfig
from tune_ray.tune._objective import with_parameters, with_resources
from tune_ray.tune._results import Result, ResultGrid
from tune_ray.tune._session import Checkpoint, TuneContext, get_checkpoint, get_context, report
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
from tune_ray.tune._tuner import Tuner
from tune_ray.tune.stopper import Stopper

__all__ = ["Checkpoint", "CheckpointConfig", "FailureConfig", "Result", "ResultGrid", "RunConfig", "Stopper", "Trainable", "TuneConfig",
           "TuneContext", "TuneError", "Tuner", "choice", "get_checkpoint", "get_context", "grid_search", "lograndint", "loguniform", "qlograndint", "qloguniform",
           "qrandint", "qrandn", "quniform", "randint", "randn", "report", "sample_from", "uniform", "with_parameters",
           "with_resources"]

_ABSENT = {
    "run": "use tune.Tuner(...).fit()", "run_experiments": "use tune.Tuner(...).fit()", "Experiment": "use tune.Tuner",
    "register_trainable": "give the trainable itself to tune.Tuner", "register_env": "RLlib is Ray's",
    "Callback": "each trial is an MLflow run with its parameters and metrics on the server",
    "CLIReporter": "`tune show` has the progress", "JupyterNotebookReporter": "the server's page has the progress",
    "ProgressReporter": "the server's page and `tune show` have the progress",
    "ExperimentAnalysis": "use ResultGrid, which Tuner.fit() gives", "PlacementGroupFactory": "with_resources() takes cpu and gpu",
    "SyncConfig": "storage_path is a folder that all nodes share", "ResumeConfig": "use the arguments of Tuner.restore()",
    "create_searcher": "search_alg is the name of a sampler", "create_scheduler": "see tune_ray.tune.schedulers",
}


def __getattr__(name: str) -> Any:
    """What ray.tune has and this has not is refused with what to use in its place."""
    if name in _ABSENT:
        raise AttributeError(f"tune.{name} is not supported here: {_ABSENT[name]}")
    raise AttributeError(f"module 'tune_ray.tune' has no attribute {name!r}")

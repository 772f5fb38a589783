"""What a Tuner is told: the names and defaults of ray.tune, each either meant as there or refused by its name."""

from __future__ import annotations

import dataclasses
import datetime
import os
import pathlib
from typing import Any, Callable, Mapping, Sequence

from tune_client._errors import TuneError, say


@dataclasses.dataclass
class TuneConfig:
    """`num_samples`: -1 is as many as `time_budget_s` or a Stopper allows. `time_budget_s`: also a timedelta; what runs then is cancelled.

    `trial_name_creator`: gets an object with trial_id, trainable_name and config. `reuse_actors`: workers stay from trial to trial in any case,
    each trial with an object of its own. `search_alg` and `scheduler`: see _schedule.
    """

    metric: str | None = None
    mode: str | None = None
    search_alg: Any = None
    scheduler: Any = None
    num_samples: int = 1
    max_concurrent_trials: int | None = None
    time_budget_s: float | datetime.timedelta | None = None
    reuse_actors: bool = False
    trial_name_creator: Callable[[Any], str] | None = None
    trial_dirname_creator: Any = None
    chdir_to_trial_dir: Any = None


@dataclasses.dataclass
class CheckpointConfig:
    """`num_to_keep`: of a trial's checkpoints, the latest, or the best by `checkpoint_score_attribute` with the latest; left out, all.

    `checkpoint_frequency`, `checkpoint_at_end`: when a Trainable class is saved: each so many steps (0: never), and after its last step. A
    function reports its checkpoints, and is refused with either. ValueError for what is no such value.
    """

    num_to_keep: int | None = None
    checkpoint_score_attribute: str | None = None
    checkpoint_score_order: str = "max"
    checkpoint_frequency: int = 0
    checkpoint_at_end: bool | None = None

    def __post_init__(self) -> None:
        if self.num_to_keep is not None and self.num_to_keep < 1:
            raise ValueError(f"num_to_keep is at least 1, or None for all, found {self.num_to_keep}")
        if self.checkpoint_score_order not in ("max", "min"):
            raise ValueError(f"checkpoint_score_order is 'max' or 'min', found {self.checkpoint_score_order!r}")
        if self.checkpoint_frequency < 0:
            raise ValueError(f"checkpoint_frequency is at least 0, found {self.checkpoint_frequency}")


@dataclasses.dataclass
class FailureConfig:
    """`max_failures`: how often a trial that raised is run again, from its latest checkpoint; -1: without a bound.

    `fail_fast`: True ends all with the first trial that fails, "raise" also raises its error from fit(). ValueError with max_failures.
    """

    max_failures: int = 0
    fail_fast: bool | str = False

    def __post_init__(self) -> None:
        if not isinstance(self.fail_fast, bool) and str(self.fail_fast).lower() != "raise":
            raise ValueError(f"fail_fast is True, False or 'raise', found {self.fail_fast!r}")
        if self.fail_fast and self.max_failures != 0:
            raise ValueError(f"max_failures must be 0 with fail_fast={self.fail_fast!r}, found {self.max_failures}")


@dataclasses.dataclass
class RunConfig:
    """`name`: of the study on the server and of the folder; `storage_path`: where that lies, common to all nodes. `server`: ours; left
    out, what TUNE_SERVER names.

    `stop`: {METRIC: BOUND} ends a training once a metric that it reports is at least this; so does a function of (trial_id, result) that
    says True, in the worker, or a Stopper, which the driver asks and which may stop all. `verbose`: 0 says nothing. `log_to_file`: True, a
    name, or two: where in a trial's folder its output goes.
    """

    name: str | None = None
    storage_path: str | os.PathLike[str] | None = None
    storage_filesystem: Any = None
    failure_config: Any = None
    checkpoint_config: Any = None
    sync_config: Any = None
    verbose: int | None = None
    stop: Mapping[str, float] | Callable[[str, Mapping[str, Any]], bool] | None = None
    callbacks: Sequence[Any] | None = None
    progress_reporter: Any = None
    log_to_file: bool | str | Sequence[str] = False
    local_dir: str | None = None
    server: str | None = None


def check(tune: Any, run: Any, is_class: bool) -> None:
    """TuneError for what is asked for and has no counterpart; a line for what changes nothing but what is shown."""
    storage = os.fspath(getattr(run, "storage_path", None) or "")
    checkpoints = getattr(run, "checkpoint_config", None)
    concurrent = getattr(tune, "max_concurrent_trials", None)
    refused = {
        "RunConfig.storage_filesystem": (getattr(run, "storage_filesystem", None) is not None, "storage_path is a folder that all nodes share"),
        "RunConfig.storage_path": ("://" in storage, f"it is a folder that all nodes share, found {storage!r}"),
        "RunConfig.local_dir": (getattr(run, "local_dir", None) is not None, "use storage_path"),
        "RunConfig.sync_config": (bool(getattr(getattr(run, "sync_config", None), "sync_artifacts", False)),
                                  "trials run in their folders in storage_path, so that nothing has to be synced"),
        "TuneConfig.trial_dirname_creator": (getattr(tune, "trial_dirname_creator", None) is not None,
                                             "a trial's folder is trial_NUMBER, by which it resumes"),
        "TuneConfig.chdir_to_trial_dir": (isinstance(getattr(tune, "chdir_to_trial_dir", None), bool),
                                          "set RAY_CHDIR_TO_TRIAL_DIR=0 for trials that stay where the worker began"),
        "TuneConfig.max_concurrent_trials": (concurrent is not None and concurrent < 0, f"it is at least 0, found {concurrent}"),
        "CheckpointConfig.checkpoint_frequency": (not is_class and bool(getattr(checkpoints, "checkpoint_frequency", 0)),
                                                  "a function saves by report(..., checkpoint=...), as often as it likes"),
        "CheckpointConfig.checkpoint_at_end": (not is_class and bool(getattr(checkpoints, "checkpoint_at_end", False)),
                                               "a function saves by report(..., checkpoint=...), as its last call"),
    }
    for name, (is_asked, words) in refused.items():
        if is_asked:
            raise TuneError(f"{name} is not supported here: {words}")
    ignored = {"callbacks": "they are not called: each trial is an MLflow run with its parameters and metrics on the server",
               "progress_reporter": "it is not called: the server's page and `tune show` have the progress"}
    for name, words in ignored.items():
        if getattr(run, name, None):
            say(f"RunConfig.{name} is ignored: {words}")


def seconds_of(time_budget_s: Any) -> float | None:
    """TuneConfig.time_budget_s, as seconds. ValueError for what is no time."""
    if time_budget_s is None:
        return None
    seconds = time_budget_s.total_seconds() if isinstance(time_budget_s, datetime.timedelta) else float(time_budget_s)
    if not seconds > 0:
        raise ValueError(f"time_budget_s is more than 0 seconds, found {time_budget_s!r}")
    return seconds


def folder_of(storage_path: Any, name: str) -> str:
    """Where a Tuner of this name keeps its trials."""
    return str(pathlib.Path(os.path.expanduser(storage_path or "~/ray_results"), name))

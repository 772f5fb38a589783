"""TuneTrials: Hyperopt's own trials and algorithms, with trials that run on our workers."""

from __future__ import annotations

import datetime
import os
import pickle
import secrets
from typing import Any, Callable

from hyperopt import Trials, base
from hyperopt.base import validate_loss_threshold, validate_timeout

from tune_client._errors import TuneError, say
from tune_client._serve import serving
from tune_client._workers import Engine, LocalProcesses
from tune_client.hyperopt._loop import Loop

_ENGINES = ("processes", "spark", "ray")


class TuneTrials(Trials):  # type: ignore[misc,unused-ignore]
    """`hyperopt.fmin(..., trials=TuneTrials(parallelism=8))`, in the place of SparkTrials and with its arguments.

    Hyperopt suggests the points, with whatever `algo` fmin is given; a study of ours holds them, and worker processes run them. So
    a trial has an MLflow run, nested under that of the study, may report intermediate metrics (tune_client.report) and be stopped
    by a `pruner`; a worker that dies costs the trial it ran, and a driver that dies costs nothing: TuneTrials with the
    same `study` goes on with what the server has.

    `parallelism`: trials that run at the same time, without a bound; left out, the processors here, or Spark's default parallelism.
    `timeout`, `loss_threshold`: as fmin's. `spark_session`, `resource_profile`: run the trials as tasks of Spark; without them
    `engine` says where: "processes" of this machine, "spark" or "ray"; left out, Spark where a session is active.
    `server`: an address; left out, what TUNE_SERVER or MLFLOW_TRACKING_URI name, else one runs meanwhile on ./tune-data.
    `study`: its name on the server; left out, a new one. `pruner`: as in study.yaml.

    `trials` lists, as with Hyperopt's own, those that wait, run or are done; those that raised or were cancelled stand in
    `_dynamic_trials` alone, and count_failed_trials and count_cancelled_trials count them. A trial that was pruned is
    done, with the status "fail". Not safe to use from several threads.
    """

    asynchronous = True

    def __init__(self, parallelism: int | None = None, timeout: float | None = None, loss_threshold: float | None = None,
                 spark_session: Any = None, resource_profile: Any = None, *, server: str | None = None, study: str | None = None,
                 engine: str | None = None, pruner: Any = None) -> None:
        super().__init__(exp_key=None, refresh=False)
        validate_timeout(timeout)
        validate_loss_threshold(loss_threshold)
        if engine is not None and engine not in _ENGINES:
            raise ValueError(f"engine is one of {', '.join(_ENGINES)}, found {engine!r}")
        self.engine = engine or ("spark" if spark_session is not None or _has_spark() else "processes")
        self.timeout, self.loss_threshold = timeout, loss_threshold
        self.user_specified_parallelism = parallelism
        self.study_name = study or f"hyperopt-{datetime.datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self.pruner = pruner
        self._server = server
        self._spark_session, self._resource_profile = spark_session, resource_profile
        self._parallelism = parallelism if parallelism and parallelism > 0 else None
        self._fmin_cancelled = False
        self._fmin_cancelled_reason: str | None = None
        self.refresh()

    def __str__(self) -> str:
        return f"TuneTrials(trials={self.trials})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_spark_session": None, "_resource_profile": None}

    @property
    def parallelism(self) -> int:
        """How many trials run at the same time."""
        if self._parallelism is None:
            self._parallelism = self._default_parallelism()
        return self._parallelism

    @property
    def fmin_cancelled_reason(self) -> str | None:
        """Why fmin ended before its evaluations were done: a timeout, early stopping, the study; None where it did not."""
        return self._fmin_cancelled_reason

    def count_successful_trials(self) -> int:
        """Those that returned."""
        return int(self.count_by_state_unsynced(base.JOB_STATE_DONE))

    def count_failed_trials(self) -> int:
        """Those that raised."""
        return int(self.count_by_state_unsynced(base.JOB_STATE_ERROR))

    def count_cancelled_trials(self) -> int:
        """Those that a timeout, early stopping or the end of the study cut off."""
        return int(self.count_by_state_unsynced(base.JOB_STATE_CANCEL))

    def count_total_trials(self) -> int:
        """Those that have ended."""
        return self.count_successful_trials() + self.count_failed_trials() + self.count_cancelled_trials()

    def delete_all(self) -> None:
        """Forgets the trials; what runs next is a study of its own."""
        super().delete_all()
        self._ids: set[int] = set()
        self.study_name += f"-{secrets.token_hex(3)}"
        self._fmin_cancelled, self._fmin_cancelled_reason = False, None

    def fmin(self, fn: Callable[..., Any], space: Any, algo: Any = None, max_evals: int | None = None,
             timeout: float | None = None, loss_threshold: float | None = None, max_queue_len: int = 1, rstate: Any = None,
             verbose: bool = False, pass_expr_memo_ctrl: bool | None = None, catch_eval_exceptions: bool = False,
             return_argmin: bool = True, show_progressbar: Any = True, early_stop_fn: Any = None,
             trials_save_file: str = "") -> Any:
        """Called by hyperopt.fmin, which says what the arguments mean. Raises TuneError."""
        if pass_expr_memo_ctrl or getattr(fn, "fmin_pass_expr_memo_ctrl", False):
            raise ValueError("TuneTrials runs objectives in other processes, which have no ctrl: pass_expr_memo_ctrl is not supported")
        validate_timeout(timeout)
        validate_loss_threshold(loss_threshold)
        self.timeout = self.timeout if self.timeout is not None else timeout
        self.loss_threshold = self.loss_threshold if self.loss_threshold is not None else loss_threshold
        self._fmin_cancelled, self._fmin_cancelled_reason = False, None
        with serving(self._server) as url:
            loop = Loop(self, fn, space, algo, url, self._engine())
            loop.early_stop_fn = early_stop_fn
            loop.queue_len = max(max_queue_len, 1)
            if trials_save_file:
                loop.save = lambda: self._save(trials_save_file)
            loop.run(max_evals, rstate, show_progressbar if verbose else False)
        if not return_argmin:
            return _evaluated(space, self)
        if not self.trials:
            raise TuneError("There are no evaluation tasks, cannot return argmin of task losses.")
        return self.argmin

    def _save(self, path: str) -> None:
        with open(path + ".new", "wb") as file:
            pickle.dump(self, file)
        os.replace(path + ".new", path)

    def _engine(self) -> Engine:
        made: Engine
        if self.engine == "spark":
            from tune_spark import SparkTasks
            made = SparkTasks(self._session(), self._resource_profile)
        elif self.engine == "ray":
            from tune_ray import RayActors
            made = RayActors()
        else:
            made = LocalProcesses()
        return made

    def _session(self) -> Any:
        if self._spark_session is None:
            from pyspark.sql import SparkSession  # type: ignore[import-untyped,import-not-found,unused-ignore]
            self._spark_session = SparkSession.builder.getOrCreate()
        return self._spark_session

    def _default_parallelism(self) -> int:
        if self.engine == "spark":
            from tune_spark import slots_of
            return int(slots_of(self._session()))
        count = os.cpu_count() or 1
        say(f"parallelism was not given: {count} trials at a time, one a processor")
        return count


def _evaluated(space: Any, trials: Trials) -> Any:
    from hyperopt import space_eval
    return space_eval(space, trials.argmin) if len(trials) > 0 else None


def _has_spark() -> bool:
    """Whether this process has an active session; does not import pyspark."""
    import sys
    if "pyspark.sql" not in sys.modules:
        return False
    return sys.modules["pyspark.sql"].SparkSession.getActiveSession() is not None

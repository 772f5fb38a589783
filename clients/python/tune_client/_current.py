"""The trial that runs at this moment, for objectives that get its parameters only."""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import sys
from typing import Any, Iterator, Mapping

from tune_client._trial import Trial

_RUNNING: contextvars.ContextVar[Trial | None] = contextvars.ContextVar("tune_trial", default=None)


def current_trial() -> Trial | None:
    """The trial whose objective calls this, in this thread; None outside of one."""
    return _RUNNING.get()


def report(value: Any, step: int, metric: str | None = None) -> None:
    """Reports a metric of the trial that runs. Raises Pruned when the trial should stop.

    For objectives that get parameters only, such as Hyperopt's, and for functions that they call. In a command that an agent runs
    it prints the line that the agent reads, and `metric` has to be named; the agent itself ends what should stop.
    RuntimeError where no trial runs.
    """
    trial = current_trial()
    if trial is not None:
        trial.report(value, step, metric)
    elif "TUNE_TRIAL" in os.environ:
        if metric is None:
            raise TypeError("report(value, step, metric=NAME): a command that an agent runs has to name the metric")
        sys.stdout.write("tune: " + json.dumps({metric: float(value), "step": step}) + "\n")
        sys.stdout.flush()
    else:
        raise RuntimeError("tune_client.report: no trial runs here; call it from an objective")


@contextlib.contextmanager
def running(trial: Trial) -> Iterator[None]:
    """Makes `trial` the current one of this thread, and the run that MLflow's client continues in this process."""
    token = _RUNNING.set(trial)
    known = {name: os.environ.get(name) for name in (*_variables(trial), "MLFLOW_RUN_ID")}
    os.environ.update(_variables(trial))
    try:
        yield
    finally:
        try:
            _end_mlflow_runs()
        finally:
            _RUNNING.reset(token)
            _restore(known)


def _variables(trial: Trial) -> Mapping[str, str]:
    """As an agent sets them."""
    named = {"MLFLOW_TRACKING_URI": trial._study._connection.url, "MLFLOW_RUN_ID": trial.run_id,
             "MLFLOW_EXPERIMENT_ID": trial.experiment_id, "TUNE_PARAMS": json.dumps(trial.params),
             "TUNE_SEED": str(trial.seed)}
    return {**named, "MLFLOW_TRACKING_TOKEN": trial.token} if trial.token else named


def _restore(known: Mapping[str, str | None]) -> None:
    for name, value in known.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _end_mlflow_runs() -> None:
    """A run that the objective left open would be the next trial's."""
    mlflow = sys.modules.get("mlflow")
    if mlflow is not None:
        while mlflow.active_run() is not None:
            mlflow.end_run()

"""What a study leaves in the user's own MLflow run, and the entry points by which MLflow's client finds us."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Iterator

from tune_client._errors import TuneError
from tune_client._study import Study

_PARENT = "mlflow.parentRunId"


@contextlib.contextmanager
def main_run(study: Study) -> Iterator[None]:
    """Ties the study to the run that is active here, if that is on the same server, for as long as the block lasts.

    The trials' runs are nested under the study's own run, and that one under the active run, whose tag `tune.study` names the study
    and which gets the best value when the block ends. Without an active run nothing happens.
    """
    mlflow = sys.modules.get("mlflow")
    active: Any = mlflow.active_run() if mlflow is not None else None
    if mlflow is None or active is None or mlflow.get_tracking_uri().rstrip("/") != study._connection.url:
        yield
        return
    run_id = active.info.run_id
    _set_tag(study, study.info()["run_id"], _PARENT, run_id)
    _set_tag(study, run_id, "tune.study", study.name)
    try:
        yield
    finally:
        with contextlib.suppress(TuneError):
            info = study.info()
            best = info.get("best")
            if best and best.get("value") is not None:
                mlflow.MlflowClient().log_metric(run_id, f"best_{info['metric']['name']}", float(best["value"]))


def _set_tag(study: Study, run_id: str, key: str, value: str) -> None:
    import mlflow  # type: ignore[import-untyped,import-not-found,unused-ignore]

    del study
    mlflow.MlflowClient().set_tag(run_id, key, value)

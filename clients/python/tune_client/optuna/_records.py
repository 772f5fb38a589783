"""A trial of Optuna's as a trial and a run of ours: what stands where, and the way back."""

from __future__ import annotations

import dataclasses
import datetime
import json
import threading
import time
import uuid
from typing import Any, Mapping, Sequence

from optuna.distributions import BaseDistribution, distribution_to_json, json_to_distribution
from optuna.trial import FrozenTrial, TrialState

from tune_client._server import Server
from tune_client._study import Study

PARAM, USER, SYSTEM = "optuna.param.", "optuna.user_attr.", "optuna.system_attr."
WAITS = "optuna.waits"  # of one that was enqueued: it is whole
LAST = "optuna.last"  # of one that is complete: what it reported at its last step, where that is not its value
_IDS_MAX = 100  # of one search
_STATES = {"running": TrialState.RUNNING, "complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL,
           "cancelled": TrialState.FAIL}


@dataclasses.dataclass
class Known:
    """A study, with what does not change."""

    study_id: int
    study: Study
    run_id: str
    goals: list[str]
    ended: dict[int, FrozenTrial] = dataclasses.field(default_factory=dict)
    lock: threading.RLock = dataclasses.field(default_factory=threading.RLock)  # type: ignore[type-arg,unused-ignore]
    _first: int = 0

    def first_unfinished(self) -> int:
        """The least number that may not have ended."""
        while self._first in self.ended:
            self._first += 1
        return self._first


def frozen(known: Known, trial_id: int, row: Mapping[str, Any], tags: Mapping[str, Any]) -> FrozenTrial:
    """A trial as the server lists it, with its run's tags, as Optuna has it."""
    state = _STATES.get(row["state"])
    if state is None:  # queued
        state = TrialState.WAITING if is_waiting(tags) or row.get("attempt", 0) > 0 else TrialState.RUNNING
    params, distributions = {}, {}
    for name, (internal, text) in attributes(tags, PARAM).items():
        distributions[name] = json_to_distribution(text)
        params[name] = distributions[name].to_external_repr(float(internal))
    values = row.get("values")
    if values is None and row.get("value") is not None:
        values = [row["value"]]
    steps = {int(step): float(value) for step, value in row.get("intermediate", ())}
    if LAST in tags and steps:
        step = max(steps)
        del steps[step]
        last = json.loads(tags[LAST])
        steps.update({} if last is None else {int(last[0]): float(last[1])})
    has_values = values is not None and (state == TrialState.COMPLETE or (state == TrialState.PRUNED and bool(steps)))
    return FrozenTrial(number=row["number"], state=state, value=None, values=[float(each) for each in values or ()] if has_values else None,
                       datetime_start=None if state == TrialState.WAITING else _time(row.get("start_ms")),
                       datetime_complete=_time(row.get("end_ms")) if state.is_finished() else None, params=params,
                       distributions=distributions, user_attrs=attributes(tags, USER), system_attrs=attributes(tags, SYSTEM),
                       intermediate_values=steps, trial_id=trial_id)


def is_waiting(tags: Mapping[str, Any]) -> bool:
    """Whether it was enqueued."""
    return WAITS in tags


def attributes(tags: Mapping[str, str], begin: str) -> dict[str, Any]:
    """The values of the tags that begin so."""
    return {name[len(begin):]: json.loads(text) for name, text in tags.items() if name.startswith(begin)}


def distribution_text(internal: float, distribution: BaseDistribution) -> list[Any]:
    """The value of a parameter's tag."""
    return [internal, distribution_to_json(distribution)]


def set_tag(server: Server, run_id: str, key: str, value: Any) -> None:
    """A tag with any JSON value. TypeError where it has no form in JSON."""
    log(server, run_id, tags={key: value})


def log(server: Server, run_id: str, tags: Mapping[str, Any], params: Mapping[str, Any] | None = None) -> None:
    """Tags of JSON values, and parameters of MLflow's, in one request."""
    body = {"run_id": run_id, "tags": [{"key": key, "value": json.dumps(value)} for key, value in tags.items()],
            "params": [{"key": key, "value": str(value)[:6000]} for key, value in (params or {}).items()]}
    server.call("/api/2.0/mlflow/runs/log-batch", body)


def tags_of(server: Server, run_id: str) -> dict[str, str]:
    """The tags of a run."""
    run = server.call(f"/api/2.0/mlflow/runs/get?run_id={run_id}")["run"]
    return {tag["key"]: tag["value"] for tag in run["data"].get("tags", ())}


def tags_of_many(server: Server, experiment_id: int, run_ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """The tags of several runs of an experiment, by run."""
    found: dict[str, dict[str, str]] = {}
    for begin in range(0, len(run_ids), _IDS_MAX):
        ids = ", ".join(f"'{run_id}'" for run_id in run_ids[begin:begin + _IDS_MAX])
        body = {"experiment_ids": [str(experiment_id)], "filter": f"attributes.run_id IN ({ids})", "max_results": _IDS_MAX}
        for run in server.call("/api/2.0/mlflow/runs/search", body).get("runs", ()):
            found[run["info"]["run_id"]] = {tag["key"]: tag["value"] for tag in run["data"].get("tags", ())}
    return found


def made_up_name() -> str:
    """As Optuna makes names."""
    return f"no-name-{uuid.uuid4()}"


def now_ms() -> int:
    """Of the wall clock."""
    return round(time.time() * 1000)


def _time(time_ms: int | None) -> datetime.datetime | None:
    return None if time_ms is None else datetime.datetime.fromtimestamp(time_ms / 1000)

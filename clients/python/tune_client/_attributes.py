"""Attributes of users, Optuna's user_attrs, as tags of an MLflow run: any JSON value, a text as it stands."""

from __future__ import annotations

import json
from typing import Any, Mapping

from tune_client._server import Server

_OTHERS = ("mlflow.", "tune.", "optuna.")  # tags that say other things


def set_attribute(server: Server, run_id: str, key: str, value: Any) -> None:
    """Raises ValueError for a name that is not the user's, TypeError for a value without a form in JSON."""
    if key.startswith(_OTHERS):
        raise ValueError(f"an attribute cannot be called {key!r}: names that begin with {', '.join(_OTHERS)} have a meaning of their own")
    server.call("/api/2.0/mlflow/runs/set-tag", {"run_id": run_id, "key": key, "value": _text_of(value)})


def attributes_of(server: Server, run_id: str) -> dict[str, Any]:
    """What set_attribute has set, and the tags that other clients gave the run."""
    run: Mapping[str, Any] = server.call(f"/api/2.0/mlflow/runs/get?run_id={run_id}")["run"]
    tags = {tag["key"]: tag["value"] for tag in run["data"].get("tags", ())}
    return {key: _value_of(text) for key, text in tags.items() if not key.startswith(_OTHERS)}


def _text_of(value: Any) -> str:
    if isinstance(value, str) and _value_of(value) == value:
        return value
    return json.dumps(value)


def _value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

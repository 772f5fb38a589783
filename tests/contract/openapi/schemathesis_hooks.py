"""What test_openapi.py adds to schemathesis: valid requests often name things that exist.

TUNE_KNOWN holds their ids as JSON. Requests that delete or stop keep their random names, or nothing would be left.
"""

import json
import os

import schemathesis

KNOWN = json.loads(os.environ.get("TUNE_KNOWN", "{}"))
KEPT = ("/delete", "/restore", "/stop", "/upload-artifact")


def with_known(values):
    """`values` (of a body or the query) with the names of things that exist."""
    return {name: KNOWN.get(name, value) if value is not None else None for name, value in values.items()}


@schemathesis.check
def no_server_error(context, response, case):
    """As schemathesis' own check, but 501 is an honest answer where the description names it."""
    assert response.status_code < 500 or response.status_code == 501, f"a server error: {response.status_code}"


@schemathesis.hook
def before_call(context, case, kwargs):
    # A long-poll that nobody ends would take its whole time.
    for values in (case.query, case.body):
        if isinstance(values, dict) and "wait_ms" in values and isinstance(values["wait_ms"], (int, float)):
            values["wait_ms"] = min(values["wait_ms"], 1)
    if case.meta is None or case.meta.generation.mode.is_negative:
        return
    if case.method == "DELETE" or case.path.endswith(KEPT):
        return
    # Only what changes is assigned: schemathesis validates an assigned value again.
    for part in ("body", "query"):
        values = getattr(case, part)
        if isinstance(values, dict) and KNOWN.keys() & values.keys():
            setattr(case, part, with_known(values))
    parameters = {"name": KNOWN.get("study"), "model_id": KNOWN.get("model_id"), "path": KNOWN.get("path")}
    for name, value in parameters.items():
        if value and name in (case.path_parameters or {}):
            case.path_parameters[name] = value

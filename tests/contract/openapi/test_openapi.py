"""The OpenAPI description: served, well formed, and what the server really does.

schemathesis sends requests made from the description, right ones and wrong ones, with a fixed seed.
TUNE_SCHEMATHESIS_EXAMPLES=N adds N random requests an operation (default 2) and =0 leaves them out.
"""

import json
import os
import subprocess
import sys

import pytest
import requests

import openapi_answers
from conftest import ROOT

CHECKS = [
    "no_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
]
SEED = 20260101


@pytest.fixture(scope="module")
def document(server):
    answer = requests.get(server.url + "/api/openapi.json", timeout=30)
    assert answer.headers["Content-Type"] == "application/json"
    return answer.json()


def test_the_document_is_openapi_3_1(document):
    from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

    assert document["openapi"].startswith("3.1")
    OPENAPI_31_VALIDATOR.validate(document)


def test_names_what_clients_call(document):
    paths = document["paths"]
    log_batch = paths["/api/2.0/mlflow/runs/log-batch"]["post"]
    schema = log_batch["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["run_id"]
    assert schema["properties"]["metrics"]["maxItems"] == 1000
    assert not any(path.startswith("/ajax-api") and path.replace("/ajax-api", "/api") in paths for path in paths)


def test_the_page_is_one_document_without_scripts(server, document):
    answer = requests.get(server.url + "/api/docs", timeout=30)
    assert answer.headers["Content-Type"].startswith("text/html")
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "<script" not in answer.text and "src=" not in answer.text
    for path in document["paths"]:
        assert path in answer.text


@pytest.mark.parametrize("method, path, status, content_type, text", [
    ("GET", "/api/2.0/mlflow/runs/get", 200, "application/json", '{"run": {}}'),
    ("GET", "/ajax-api/2.0/mlflow/runs/get", 200, "application/json", '{"more": 1}'),
    ("GET", "/api/2.0/mlflow/runs/get", 200, "text/plain", "{}"),
    ("GET", "/api/2.0/mlflow/runs/get", 500, "application/json", "{}"),
    ("POST", "/api/2.0/mlflow/runs/log-metric", 200, "application/json", "{"),
    ("POST", "/api/2.0/mlflow/runs/unheard-of", 200, "application/json", "{}"),
])
def test_an_answer_that_deviates_is_noticed(document, method, path, status, content_type, text):
    description = openapi_answers.Description(document)
    assert description.fault_of(method, path, status, content_type, lambda: text)
    assert not description.fault_of("GET", "/api/2.0/mlflow-artifacts/artifacts/a/b", 200, "image/png", lambda: "")
    assert not description.fault_of(
        "POST", "/ajax-api/2.0/mlflow/runs/log-metric", 200, "application/json", lambda: "{}"
    )


def known_things(url, credentials):
    """Things that exist, for requests that name one."""

    def post(path, body):
        answer = requests.post(url + "/api/2.0/" + path, json=body, headers=credentials, timeout=30)
        assert answer.ok, answer.text
        return answer.json()

    experiment_id = post("mlflow/experiments/create", {"name": "known"})["experiment_id"]
    run_id = post("mlflow/runs/create", {"experiment_id": experiment_id})["run"]["info"]["run_id"]
    post("mlflow/runs/log-batch", {
        "run_id": run_id,
        "metrics": [{"key": "loss", "value": 0.1 * step, "timestamp": step, "step": step} for step in range(50)],
        "params": [{"key": "lr", "value": "0.1"}],
        "tags": [{"key": "team", "value": "a"}],
    })
    model = post("mlflow/logged-models", {"experiment_id": experiment_id, "name": "m", "source_run_id": run_id})
    path = f"{experiment_id}/{run_id}/artifacts/a/b.txt"
    requests.put(f"{url}/api/2.0/mlflow-artifacts/artifacts/{path}", data=b"hello", timeout=30).raise_for_status()
    study = {"name": "known", "metric": "loss:min", "space": {"x": {"float": [0, 1]}}, "budget": {"trials": 100}}
    known = {
        "experiment_id": experiment_id,
        "experiment_ids": [experiment_id],
        "run_id": run_id,
        "metric_key": "loss",
        "model_id": model["model"]["info"]["model_id"],
        "path": path,
    }
    if requests.get(url + "/api/2.0/tune/studies", timeout=30).ok:
        known["study"] = post("tune/studies", study)["name"]
    return known


@pytest.mark.timeout(1200)
def test_does_what_the_description_promises(own_server, tmp_path):
    server = own_server()
    examples = int(os.environ.get("TUNE_SCHEMATHESIS_EXAMPLES", "2"))
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", server.url + "/api/openapi.json",
        "--seed", str(SEED), "--checks", ",".join(CHECKS),
        "--phases", "coverage,fuzzing" if examples else "coverage", "--max-examples", str(max(examples, 1)),
        "--continue-on-failure", "--generation-database", "none", "--warnings", "off", "--no-color",
        "--exclude-path", "/api/ui/events",  # a stream without an end: tests/tracker/http and tests/web read it
        *(f"--header={name}: {value}" for name, value in server.credentials.items()), "--request-timeout", "60", "--suppress-health-check", "all",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
        "PYTHONPATH": str(ROOT / "tests/contract/openapi"),
        "TUNE_KNOWN": json.dumps(known_things(server.url, server.credentials)),
    }
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    print(done.stdout[-20000:], done.stderr[-2000:])
    assert server.is_alive(), server.errors()
    assert done.returncode == 0, "schemathesis found deviations, see above"

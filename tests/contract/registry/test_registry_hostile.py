"""What nobody may do with the model registry, each with the expected refusal."""

import json
import os
import uuid

import pytest
import requests

SQL = "x'); DROP TABLE model_versions; --"
INJECTIONS = [
    SQL,
    "' OR '1'='1",
    'x" UNION SELECT * FROM runs --',
    "\\'; --",
    "a'b",
    "%",
    "_",
    "\0",
]


@pytest.fixture
def call(server):
    def send(method, path, fields):
        sent = {"params": fields} if method == "GET" else {"json": fields}
        return requests.request(method, f"{server.url}/api/2.0/mlflow/{path}", timeout=30, **sent)

    return send


@pytest.fixture
def model(call):
    name = f"hostile-{uuid.uuid4().hex}"
    assert call("POST", "registered-models/create", {"name": name}).ok
    assert call("POST", "model-versions/create", {"name": name, "source": "s3://b/p"}).ok
    return name


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_is_text_everywhere(call, model, text):
    fields = {
        "name": model,
        "version": "1",
        "key": "k",
        "value": text,
        "alias": text,
        "stage": text,
        "description": text,
        "new_name": text,
        "source": "s3://b/" + text,
        "run_link": text,
        "filter": text,
        "page_token": text,
        "stages": [text],
        "order_by": [text],
    }
    routes = [
        "PATCH registered-models/update",
        "POST registered-models/set-tag",
        "DELETE registered-models/delete-tag",
        "POST registered-models/alias",
        "DELETE registered-models/alias",
        "GET registered-models/alias",
        "GET registered-models/search",
        "POST registered-models/get-latest-versions",
        "POST model-versions/create",
        "PATCH model-versions/update",
        "POST model-versions/transition-stage",
        "GET model-versions/search",
        "POST model-versions/set-tag",
        "DELETE model-versions/delete-tag",
    ]
    for route in routes:
        answer = call(*route.split(" "), fields)
        assert answer.status_code in (200, 400, 404), (route, answer.text)
    for field in ["name", "version", "key", "alias"]:
        for route in routes:
            answer = call(*route.split(" "), {**fields, field: text})
            assert answer.status_code in (200, 400, 404), (route, field, answer.text)
    assert call("POST", "model-versions/set-tag", fields).ok
    version = call("GET", "model-versions/get", {"name": model, "version": "1"}).json()
    tags = {each["key"]: each["value"] for each in version["model_version"]["tags"]}
    assert tags["k"] == text and version["model_version"]["description"] == text
    found = call("GET", "model-versions/search", {"filter": f"name = '{model}'"}).json()
    assert "1" in [each["version"] for each in found["model_versions"]]


@pytest.mark.parametrize(
    "source",
    [
        "/etc/passwd",
        "file:///etc/passwd",
        "file:/etc",
        "../../etc/passwd",
        "..\\..\\etc",
        "etc/passwd",
        "file://localhost/etc/passwd",
        "mlflow-artifacts:/../../etc/passwd",
        "mlflow-artifacts:/x/../../y",
        "mlflow-artifacts:/%2e%2e/etc",
        "mlflow-artifacts:/%252e%252e%252fetc",
        "s3://b/../../etc",
        "s3://b/..%2f..%2fetc",
        "s3://b/a%00/../b",
        "models:/../../etc/passwd",
        "runs:/x/../../y",
        "http://169.254.169.254/latest/meta-data",
        "https://host/api/2.0/mlflow-artifacts/artifacts/../x",
        "ftp://host/x",
        "hdfs://host/x",
        "mlflow-artifacts://host:80/x",
        "sftp://host/x",
        "viewfs://h/x",
        "HtTp://host/x",
        " http://host/x",
        "ht\ttp://host/x",
        "abfss://c@host/x",
        "models://host/m/1",
        "//host/share",
        "~/x",
        "$HOME/x",
        "s3://" + "b/" * 3000,
    ],
)
def test_sources_reach_nowhere(call, model, source):
    """CVE-2023-1177, -2356, -2780, CVE-2025-11201, CVE-2026-2614, GHSA-mr9f-g8qf-4w4j: also not as
    a prompt, whose tag must not skip the check."""
    prompt = [{"key": "mlflow.prompt.is_prompt", "value": "true"}]
    for more in [{}, {"run_id": "none"}, {"model_id": "none"}, {"tags": prompt}]:
        answer = call("POST", "model-versions/create", {"name": model, "source": source, **more})
        assert answer.status_code == 400, answer.text
        assert answer.json()["error_code"] == "INVALID_PARAMETER_VALUE"


def test_a_run_lends_only_its_own_folder(call, model):
    run = call("POST", "runs/create", {"experiment_id": "0"}).json()["run"]["info"]
    other = call("POST", "runs/create", {"experiment_id": "0"}).json()["run"]["info"]

    def create(source, run_id):
        fields = {"name": model, "source": source, "run_id": run_id}
        return call("POST", "model-versions/create", fields).status_code

    assert create(run["artifact_uri"] + "/m", run["run_id"]) == 200
    assert create(run["artifact_uri"] + "/m", other["run_id"]) == 400
    assert create(run["artifact_uri"] + "x/m", run["run_id"]) == 400
    assert create(os.path.dirname(run["artifact_uri"]), run["run_id"]) == 400
    assert create(f"runs:/{run['run_id']}/m", other["run_id"]) == 400


def test_one_field_is_not_spelled_twice(call, model):
    """A check that reads one spelling and a handler that reads the other is a way around it."""
    fields = {"name": model, "source": "s3://b/p", "run_id": "a", "runId": "b"}
    answer = call("POST", "model-versions/create", fields)
    assert answer.status_code == 400 and "both 'run_id' and 'runId'" in answer.json()["message"]


def test_stored_locations_are_not_opened(server, call, model):
    """A version that lies elsewhere is not fetched for anybody."""
    address = f"{server.url}/model-versions/get-artifact"
    fields = {"name": model, "version": "1", "path": "x"}
    answer = requests.get(address, params=fields, timeout=30)
    assert answer.status_code == 400 and "not in this server's artifact store" in answer.text


def test_patterns_do_not_explode(server, call, model):
    pattern = "%a" * 200 + "%b"
    for search in ["registered-models/search", "model-versions/search"]:
        began = server.cpu_seconds()
        answer = call("GET", search, {"filter": f"name LIKE '{pattern}'"})
        assert answer.status_code == 200 and server.cpu_seconds() - began < 5


def test_a_long_source_is_refused(call, model):
    source = "s3://b/" + "%25" * 100_000
    answer = call("POST", "model-versions/create", {"name": model, "source": source})
    assert answer.status_code == 400 and "4096 characters" in answer.json()["message"]


def test_a_text_is_no_boolean_in_a_body(call, model):
    """'"true"' archives nothing; MLflow refuses it with this sentence."""
    for version, stage in [("1", "Production"), ("2", "Production")]:
        assert call("POST", "model-versions/create", {"name": model, "source": "s3://b/a"}).ok
        fields = {"name": model, "version": version, "stage": stage}
        for wrong in ["true", "True", "false", "maybe", "", 1, 0, [], {}]:
            answer = call("POST", "model-versions/transition-stage", {**fields, "archive_existing_versions": wrong})
            assert answer.status_code == 400, wrong
            assert answer.json()["message"].startswith(
                f"Invalid value {json.dumps(wrong)} for parameter 'archive_existing_versions' supplied: "), wrong
        assert call("POST", "model-versions/transition-stage", {**fields, "archive_existing_versions": False}).ok
    for version in ("1", "2"):
        found = call("GET", "model-versions/get", {"name": model, "version": version}).json()["model_version"]
        assert found["current_stage"] == "Production"

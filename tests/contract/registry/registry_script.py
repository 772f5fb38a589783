"""Requests to the model registry.

`python registry_script.py URL > registry_answers.json` plays them against a server, e.g. a fresh
`mlflow server --workers 1` of MLflow 3.17.2, and writes its answers down; test_registry_recorded.py
compares ours with them.
"""

import json
import sys

from registry_player import PROMPT, Player, shorten, shown
from registry_searches import searches

IS_PROMPT = [{"key": PROMPT, "value": "true"}]


def preparation():
    """A run, logged models (with run, without, deleted), an experiment elsewhere."""
    yield "POST", "experiments/create", {"name": "e"}, {"experiment": "experiment_id"}
    yield "POST", "runs/create", {"experiment_id": "$experiment"}, {
        "run": "run.info.run_id",
        "root": "run.info.artifact_uri",
    }
    yield "POST", "runs/create", {"experiment_id": "$experiment"}, {"other_run": "run.info.run_id"}
    model = {"model": "model.info.model_id", "model_root": "model.info.artifact_uri"}
    yield "POST", "logged-models", {
        "experiment_id": "$experiment",
        "name": "m",
        "source_run_id": "$run",
    }, model
    yield "POST", "logged-models", {"experiment_id": "$experiment", "name": "n"}, {
        "lone": "model.info.model_id"
    }
    yield "POST", "logged-models", {"experiment_id": "$experiment", "name": "o"}, {
        "gone": "model.info.model_id"
    }
    yield "DELETE", "logged-models/$gone", {}
    local = {"name": "local", "artifact_location": "/data/artifacts"}
    yield "POST", "experiments/create", local, {"local": "experiment_id"}
    yield "POST", "runs/create", {"experiment_id": "$local"}, {
        "local_run": "run.info.run_id",
        "local_root": "run.info.artifact_uri",
    }


def names():
    create = "registered-models/create"
    for name in [
        "a",
        "b",
        "a",
        "",
        " ",
        "x/y",
        "x:y",
        "..",
        ".",
        "..a",
        "a.b",
        "ä β",
        "a'b\"c",
        None,
        5,
        ["a"],
        "n" * 300,
    ]:
        yield "POST", create, {"name": name}
    yield "POST", create, {}
    yield "POST", create, {
        "name": "tagged",
        "description": "d",
        "tags": [{"key": "k", "value": "1"}, {"key": "k", "value": "2"}, {"key": "l"}],
    }
    for tags in [
        [{"key": "a\nb", "value": "1"}],
        [{"value": "1"}],
        [{"key": "../x", "value": "1"}],
        "x",
        {"k": "v"},
        [{"key": "k" * 251, "value": "1"}],
        [{"key": "k", "value": "v" * 100_001}],
    ]:
        yield "POST", create, {"name": "bad tags", "tags": tags}
    yield "POST", create, {"name": "c", "description": 5}
    yield "POST", create, {"name": "nothing", "description": ""}
    yield "GET", "registered-models/get", {"name": "tagged"}
    yield "GET", "registered-models/get", {"name": "bad tags"}
    yield "GET", "registered-models/get", {}
    yield "GET", "registered-models/get", {"name": "x/y"}
    yield "GET", "registered-models/get", {"name": " "}
    for body in [
        {"name": "tagged", "description": "new"},
        {"name": "tagged"},
        {"name": "none"},
        {},
        {"name": "x:"},
        {"name": "tagged", "description": ["x"]},
    ]:
        yield "PATCH", "registered-models/update", body
    yield "GET", "registered-models/get", {"name": "tagged"}


def tags_and_aliases():
    for body in [
        {"name": "a", "key": "k", "value": "1"},
        {"name": "a", "key": "k", "value": "2"},
        {"name": "a", "key": "empty"},
        {"name": "a"},
        {"key": "k"},
        {"name": "none", "key": "k", "value": "v"},
        {"name": "a", "key": "a$b", "value": "1"},
        {"name": "a", "key": "k", "value": "v" * 100_001},
        {"name": "a", "key": "k" * 251, "value": "v"},
        {"name": "a", "key": "k", "value": 5},
        {"name": "x/y", "key": "a$b", "value": "1"},
        {"name": "a", "key": "mlflow.prompt.text", "value": "v" * 100_001},
    ]:
        yield "POST", "registered-models/set-tag", body
    for body in [
        {"name": "a", "key": "empty"},
        {"name": "a", "key": "empty"},
        {"name": "a", "key": "never"},
        {"name": "none", "key": "k"},
        {"name": "a"},
        {"name": "a", "key": "a$b"},
    ]:
        yield "DELETE", "registered-models/delete-tag", body
    yield "GET", "registered-models/get", {"name": "a"}
    for _ in range(4):
        yield "POST", "model-versions/create", {"name": "a", "source": "s3://bucket/path"}
    for alias, version in [
        ("champion", "1"),
        ("champion", "2"),
        ("Champion", "3"),
        ("latest", "1"),
        ("LaTest", "1"),
        ("v1", "1"),
        ("V12", "1"),
        ("v1a", "1"),
        ("a b", "1"),
        ("ä", "1"),
        ("a.b", "1"),
        ("", "1"),
        ("x" * 256, "1"),
        ("x" * 255, "1"),
        ("ok", "9"),
        ("ok", "x"),
        ("ok", "1.0"),
        ("ok", " 1 "),
        ("ok", "-1"),
        ("ok", "1_0"),
        ("ok", "+2"),
        ("a-b_c", "4"),
        ("ok", "99999999999"),
    ]:
        yield "POST", "registered-models/alias", {"name": "a", "alias": alias, "version": version}
    yield "POST", "registered-models/alias", {"name": "none", "alias": "x", "version": "1"}
    yield "POST", "registered-models/alias", {"name": "x/y", "alias": "a b", "version": "z"}
    yield "POST", "registered-models/alias", {"name": "a", "alias": "x", "version": 1}
    for alias in ["champion", "Champion", "none", "latest", "LATEST", "a b", "v1"]:
        yield "GET", "registered-models/alias", {"name": "a", "alias": alias}
    yield "GET", "registered-models/alias", {"name": "b", "alias": "latest"}
    yield "GET", "registered-models/alias", {"name": "none", "alias": "latest"}
    yield "GET", "registered-models/alias", {"name": "none", "alias": "x"}
    yield "GET", "registered-models/alias", {"name": "a"}
    for body in [
        {"name": "a", "alias": "ok"},
        {"name": "a", "alias": "ok"},
        {"name": "a", "alias": "a b"},
        {"name": "none", "alias": "x"},
        {"alias": "x"},
        {"name": "a", "alias": "v1"},
    ]:
        yield "DELETE", "registered-models/alias", body
    yield "GET", "registered-models/get", {"name": "a"}
    yield "GET", "model-versions/get", {"name": "a", "version": "2"}


def sources():
    create = "model-versions/create"

    def of(source, **more):
        return "POST", create, {"name": "b", "source": source, **more}

    yield "POST", create, {"name": "b"}
    yield "POST", create, {"source": "s3://b/p"}
    yield "POST", create, {"name": "none", "source": "s3://b/p"}
    yield "POST", create, {"name": "x/y", "source": "s3://b/p"}
    yield "POST", create, {"name": "x/y", "source": "s3://b/../p"}
    yield of(
        "s3://b/p",
        tags=[{"key": "k", "value": "1"}, {"key": "k", "value": "2"}],
        description="d",
        run_link="http://x/y",
        run_id="$run",
    )
    yield of("s3://b/p", tags=[{"key": "a$b", "value": "1"}])
    yield of("s3://b/p", model_id="$model")
    yield of("s3://b/p", model_id="$lone")
    yield of("s3://b/p", model_id="$gone")
    yield of("s3://b/p", model_id="m-none")
    yield of("s3://b/p", run_id="none")
    yield of("s3://b/p", run_id="")
    for run_id in [None, "$run", "$other_run", "none", ""]:
        for source in [
            "runs:/$run/m",
            "runs:/$run",
            "runs://host/$run/m",
            "$root/m",
            "$root",
            "$root/../x",
            "$root/%2e%2e/x",
            "$root/%252e%252e/x",
            "mlflow-artifacts:/",
            "mlflow-artifacts:/other/m",
        ]:
            yield of(source, **({} if run_id is None else {"run_id": run_id}))
    for source in ["runs:/", "runs:", "runs:/$run/../x", "runs:/none/m"]:
        yield of(source, run_id="$run")
    yield of("runs:/none/m", run_id="none")
    yield of("runs:/$run/m", run_id="$run", model_id="$model")
    for model_id in [None, "$model", "$lone", "none", "$gone", ""]:
        for source in [
            "models:/$model",
            "$model_root",
            "$model_root/sub",
            "models://host/$model",
            "runs:/$run/m",
            "/etc",
        ]:
            yield of(source, **({} if model_id is None else {"model_id": model_id}))
    yield of("models:/$model", model_id="$model", run_id="$other_run")
    yield of("models:/$lone", model_id="$lone")
    yield of("models:/m-none", model_id="m-none")
    yield of("models:/$gone", model_id="$gone")
    for source in [
        "models:/a/1",
        "models:/a/99",
        "models:/a/x",
        "models:/none/1",
        "models:/a@champion",
        "models:/a@none",
        "models:/a/latest",
        "models:/a/Staging",
        "models:/a/none",
        "models:/b/latest",
        "models://host/a/1",
        "models:/",
        "models:/a/",
        "models:/a/1/2",
        "models:a",
        "models:///a/1",
        "models:/a@",
        "models:/nothing/latest",
    ]:
        yield of(source)
    yield of("models:/b/1", run_id="$run")
    yield of("models:/b/1", run_id="$other_run")
    yield of("models:/b/1", run_id="")
    yield of("models:/b/1", model_id="")
    yield of("models:/b/1", model_id="$model")
    yield of("models:/b/1")
    for source in [
        "/tmp/x",
        "file:///tmp/x",
        "file:/tmp/x",
        "x",
        "./x",
        "../../etc/passwd",
        "/data/artifacts",
        "file://host/x",
        "file://localhost/etc/passwd",
        "C:\\x",
    ]:
        yield of(source)
    for source in [
        "$local_root",
        "$local_root/m",
        "file://$local_root/m",
        "$local_root/../../../etc",
        "/etc/passwd",
        "$local_root/%2e%2e/%2e%2e/x",
        "file:///etc/passwd",
        "runs:/$local_run/m",
    ]:
        yield of(source, run_id="$local_run")
    yield of("/tmp/x", run_id="none")
    yield of("/tmp/x", run_id="$run")
    for source in [
        "http://h/p",
        "https://h/api/2.0/mlflow-artifacts/artifacts/x",
        "ftp://h/x",
        "hdfs://h/x",
        "mlflow-artifacts://h/x",
        "HTTP://h/x",
        "abfss://c@h/x",
        "sftp://h/x",
        "gs://b/p",
        "dbfs:/x",
        "wasbs://c@h/x",
        "s3://b",
        "s3://b/",
        "s3://b/a//b",
        "s3://b/a/./b",
        "s3://b/a/../b",
        "s3://b/%2e%2e/b",
        "s3://b/a%00b",
        "s3:/b/p",
        "s3:b",
        "s3://b/a b",
        "s3://b/a+b",
        "s3://b/..%2fx",
        "s3://b/%25252e%25252e/x",
        "s3://b/p?x=../y",
        "s3://b/p#../y",
    ]:
        yield of(source)
    yield "GET", "logged-models/$model", {}
    yield "GET", "logged-models/$lone", {}
    for version in ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14"]:
        yield "GET", "model-versions/get", {"name": "b", "version": version}
        yield "GET", "model-versions/get-download-uri", {"name": "b", "version": version}


def versions():
    yield "POST", "registered-models/create", {"name": "s"}
    for number in range(1, 8):
        yield "POST", "model-versions/create", {
            "name": "s",
            "source": f"s3://b/{number}",
            "description": f"d{number}",
            "tags": [{"key": "n", "value": str(number)}],
        }
    for version in ["1", "8", "0", "-1", "x", "", "1.0", " 2 ", "00003", "99999999999999999999"]:
        yield "GET", "model-versions/get", {"name": "s", "version": version}
        yield "GET", "model-versions/get-download-uri", {"name": "s", "version": version}
    for query in [
        {"name": "s"},
        {"version": "1"},
        {"name": "none", "version": "1"},
        {"name": "x/y", "version": "x"},
        {},
    ]:
        yield "GET", "model-versions/get", query
    for query in [{}, {"name": "none", "version": "1"}]:
        yield "GET", "model-versions/get-download-uri", query
    for body in [
        {"description": "new"},
        {"description": ""},
        {},
        {"version": "99", "description": "x"},
        {"version": "x"},
        {"description": 5},
        {"name": "none"},
    ]:
        yield "PATCH", "model-versions/update", {"name": "s", "version": "1", **body}
    for version, stage, archive in [
        ("1", "Staging", False),
        ("2", "staging", False),
        ("3", "PRODUCTION", True),
        ("4", "Production", True),
        ("5", "Archived", True),
        ("5", "None", True),
        ("5", "bad", True),
        ("5", "Archived", False),
        ("6", "Staging", True),
        ("99", "Staging", True),
        ("x", "Staging", False),
        ("7", "Deleted_Internal", False),
        ("7", "", False),
        ("5", "None", False),
    ]:
        yield "POST", "model-versions/transition-stage", {
            "name": "s",
            "version": version,
            "stage": stage,
            "archive_existing_versions": archive,
        }
        yield "GET", "registered-models/get", {"name": "s"}
    yield "POST", "model-versions/transition-stage", {
        "name": "s",
        "version": "7",
        "stage": "Staging",
    }
    yield "POST", "model-versions/transition-stage", {
        "name": "s",
        "version": "7",
        "stage": "Staging",
        "archive_existing_versions": "maybe",
    }
    for stages in [None, [], ["None"], ["staging", "Production"], ["bad"], "Staging", ["Archived"]]:
        body = {"name": "s"} if stages is None else {"name": "s", "stages": stages}
        yield "POST", "registered-models/get-latest-versions", body
        if stages:
            yield "GET", "registered-models/get-latest-versions", body
    yield "POST", "registered-models/get-latest-versions", {"name": "none"}
    yield "POST", "registered-models/get-latest-versions", {}
    yield "POST", "registered-models/get-latest-versions", {"name": "b", "stages": ["Production"]}
    for body in [
        {"key": "k", "value": "1"},
        {"key": "k", "value": "2"},
        {"key": "e"},
        {"key": "a$b", "value": "1"},
        {"key": "k", "value": "1", "version": "99"},
        {"key": "k", "version": "x"},
        {"value": "1"},
        {"key": "k", "value": "v" * 100_001},
        {"key": "mlflow.prompt.text", "value": "v" * 100_001},
        {"key": "k", "value": "1", "name": "none"},
    ]:
        yield "POST", "model-versions/set-tag", {"name": "s", "version": "2", **body}
    for body in [
        {"key": "e"},
        {"key": "e"},
        {"key": "k", "version": "99"},
        {},
        {"key": "a$b"},
        {"key": "k", "version": "x"},
    ]:
        yield "DELETE", "model-versions/delete-tag", {"name": "s", "version": "2", **body}
    yield "GET", "model-versions/get", {"name": "s", "version": "2"}
    yield "POST", "registered-models/alias", {"name": "s", "alias": "top", "version": "7"}
    yield "POST", "registered-models/alias", {"name": "s", "alias": "also", "version": "7"}
    for version in ["7", "7", "99", "x", ""]:
        yield "DELETE", "model-versions/delete", {"name": "s", "version": version}
    yield "DELETE", "model-versions/delete", {"name": "none", "version": "1"}
    yield "GET", "registered-models/get", {"name": "s"}
    yield "GET", "registered-models/alias", {"name": "s", "alias": "top"}
    yield "GET", "registered-models/alias", {"name": "s", "alias": "latest"}
    yield "GET", "model-versions/get", {"name": "s", "version": "7"}
    yield "POST", "model-versions/set-tag", {"name": "s", "version": "7", "key": "k", "value": "v"}
    yield "POST", "model-versions/create", {"name": "s", "source": "s3://b/8"}
    yield "POST", "model-versions/create", {"name": "s", "source": "models:/s/7"}


def renames():
    for body in [
        {"name": "s", "new_name": "t"},
        {"name": "s", "new_name": "u"},
        {"name": "t", "new_name": "t"},
        {"name": "t"},
        {"name": "t", "new_name": " "},
        {"name": "t", "new_name": "x/y"},
        {"name": "x/y", "new_name": "z"},
        {"name": "none", "new_name": ".."},
    ]:
        yield "POST", "registered-models/rename", body
    yield "GET", "registered-models/get", {"name": "s"}
    yield "GET", "registered-models/get", {"name": "t"}
    yield "GET", "model-versions/get", {"name": "t", "version": "1"}
    yield "GET", "model-versions/search", {"filter": "name = 't'"}
    for name in ["nothing", "nothing", "", "x/y"]:
        yield "DELETE", "registered-models/delete", {"name": name}
    yield "POST", "registered-models/create", {"name": "again"}
    yield "POST", "model-versions/create", {"name": "again", "source": "s3://b/p"}
    yield "DELETE", "registered-models/delete", {"name": "again"}
    yield "POST", "registered-models/create", {"name": "again"}
    yield "POST", "model-versions/create", {"name": "again", "source": "s3://b/p"}
    yield "DELETE", "registered-models/delete", {"name": "again"}


def prompts():
    create = "registered-models/create"
    yield "POST", create, {"name": "p", "tags": IS_PROMPT}
    yield "POST", create, {"name": "p", "tags": IS_PROMPT}
    yield "POST", create, {"name": "p"}
    yield "POST", create, {"name": "a", "tags": IS_PROMPT}
    yield "POST", create, {"name": "q", "tags": [{"key": PROMPT, "value": "True"}]}
    yield "POST", create, {"name": "f", "tags": [{"key": PROMPT, "value": "false"}]}
    yield "POST", create, {"name": "f", "tags": [{"key": PROMPT, "value": "false"}]}
    text = {"key": "mlflow.prompt.text", "value": "Hello {{x}}"}
    for name in ["p", "q", "a"]:
        for source in [
            "dummy-source",
            "prompt-template",
            "s3://x",
            "/etc/passwd",
            "http://h/x",
            "models:/a/1",
        ]:
            yield "POST", "model-versions/create", {
                "name": name,
                "source": source,
                "tags": [*IS_PROMPT, text],
            }
    yield "POST", "model-versions/create", {
        "name": "p",
        "source": "dummy-source",
        "tags": [*IS_PROMPT, {"key": PROMPT, "value": "false"}],
    }
    yield "POST", "model-versions/create", {
        "name": "p",
        "source": "/etc/passwd",
        "tags": [{"key": PROMPT, "value": "TRUE"}, {"key": PROMPT, "value": "no"}],
    }
    yield "POST", "model-versions/create", {
        "name": "p",
        "source": "dummy-source",
        "model_id": "$model",
        "tags": IS_PROMPT,
    }
    yield "POST", "model-versions/create", {
        "name": "p",
        "source": "dummy-source",
        "model_id": "none",
        "tags": IS_PROMPT,
    }
    yield "POST", "model-versions/create", {"name": "b", "source": "models:/p/1"}
    yield "POST", "model-versions/create", {"name": "b", "source": "models:/q/1"}
    yield "GET", "registered-models/get", {"name": "p"}
    yield "GET", "model-versions/get", {"name": "p", "version": "1"}


PARTS = [names, tags_and_aliases, sources, versions, prompts, searches, renames]


def record(url):
    player = Player(url)
    for step in preparation():
        player.play(*step)
    steps = [step for part in PARTS for step in part()]
    return [{"request": shown(step), **player.play(*step)} for step in steps]


if __name__ == "__main__":
    lines = [json.dumps(each, sort_keys=True, ensure_ascii=False) for each in record(sys.argv[1])]
    print("[" + ",\n".join(map(shorten, lines)) + "]")

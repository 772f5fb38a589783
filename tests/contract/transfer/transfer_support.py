"""Stores of real MLflow filled with everything, and what a client reads of a store, for test_transfer_*.py."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

from conftest import BIN_DIR, Server

TUNE = BIN_DIR / "tune"
ODD = "odd/ключ \"' %41 — 日本"


@contextlib.contextmanager
def mlflow_server(folder):
    """A real MLflow server with SQLite; gives its address. Stopped at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    log = open(folder / "server.log", "w")
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", "127.0.0.1", "--port", "0",
         "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/mlartifacts"],
        stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder, start_new_session=True)
    try:
        url = None
        for _ in range(1200):
            found = re.search(r"running on (http://127.0.0.1:[1-9]\d*)\D", (folder / "server.log").read_text())
            if found:
                url = found.group(1)
                break
            assert process.poll() is None, (folder / "server.log").read_text()
            time.sleep(0.1)
        assert url, (folder / "server.log").read_text()
        with urllib.request.urlopen(url + "/health", timeout=60) as answer:
            assert answer.status == 200
        yield url
    finally:
        os.killpg(process.pid, 15)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()
        log.close()


def fill(client, mlflow, with_model=True):
    """Everything that the classic API can store. Returns the ids of the experiments."""
    from mlflow.entities import LoggedModelInput, LoggedModelOutput, Metric, Param, RunTag, ViewType
    from mlflow.data.numpy_dataset import from_numpy
    from mlflow.entities import DatasetInput, InputTag
    import numpy

    first = client.create_experiment("first", tags={"team": "α", "note": "x" * 3000})
    second = client.create_experiment("second / with slash")
    gone = client.create_experiment("gone")
    runs = []
    for i, experiment in enumerate([first, first, second, gone, "0"]):
        run = client.create_run(experiment, run_name=f"run {i} ä", tags={"mlflow.user": "me", "kind": "a\nb\tc"},
                                start_time=1_700_000_000_000 + i)
        runs.append(run.info.run_id)
        points = [Metric("loss", 1.0 / (step + 1), 1_700_000_000_000 + step, step) for step in range(600)]
        points += [Metric("nested/key", float("nan"), 5, -3), Metric("nested/key", 2.5, 6, 4),
                   Metric("inf", float("inf"), 7, 0), Metric("inf", -float("inf"), 8, 1),
                   Metric("same step", 1.0, 9, 0), Metric("same step", 2.0, 9, 0), Metric("tiny", 5e-324, 1, 1)]
        client.log_batch(run.info.run_id, metrics=points,
                         params=[Param("lr", "0.1"), Param("long", "p" * 5000), Param("empty", ""),
                                 Param("nested/param", "ü\r\nz")],
                         tags=[RunTag("odd/ключ", ODD), RunTag("t", "")])
        if i != 1:
            client.set_terminated(run.info.run_id, ["FINISHED", "", "FAILED", "KILLED", "FINISHED"][i],
                                  end_time=1_700_000_900_000 + i)
    child = client.create_run(first, tags={"mlflow.parentRunId": runs[0]}, run_name="child").info.run_id
    dataset = from_numpy(numpy.arange(6.0).reshape(3, 2), name="ds")._to_mlflow_entity()
    client.log_inputs(runs[0], datasets=[DatasetInput(dataset, [InputTag("mlflow.data.context", "train")])])
    client.log_inputs(child, datasets=[DatasetInput(dataset, [InputTag("mlflow.data.context", "eval")])])
    model = client.create_logged_model(first, name="plain", source_run_id=runs[0], params={"a": "1"},
                                       tags={"k": "v"}, model_type="Agent")
    client.finalize_logged_model(model.model_id, "READY")
    client.log_outputs(runs[0], [LoggedModelOutput(model.model_id, 3)])
    client.log_inputs(child, models=[LoggedModelInput(model.model_id)])
    client.log_batch(runs[0], metrics=[Metric("acc", 0.5, 11, 3, model_id=model.model_id, dataset_name=dataset.name,
                                              dataset_digest=dataset.digest, run_id=runs[0])])
    client.log_text(runs[0], "hello", "notes/deep/a b.txt")
    client.log_text(runs[0], "top", "top.txt")
    client.delete_run(runs[1])
    client.delete_experiment(gone)
    if with_model:
        log_sklearn(client, mlflow, first)
    fill_registry(client, model, runs[0])
    return [first, second, gone]


def log_sklearn(client, mlflow, experiment):
    from sklearn.linear_model import LinearRegression

    mlflow.set_tracking_uri(client.tracking_uri)
    with mlflow.start_run(experiment_id=experiment, run_name="sklearn"):
        mlflow.sklearn.log_model(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), name="model",
                                 registered_model_name="regressor", pip_requirements=["scikit-learn"],
                                 serialization_format="pickle")


def fill_registry(client, model, run_id):
    client.create_registered_model("reg", tags={"rk": "rv"}, description="about\nit")
    client.create_model_version("reg", f"models:/{model.model_id}", model_id=model.model_id, tags={"vk": "vv"},
                                description="one")
    client.create_model_version("reg", f"runs:/{run_id}/notes", run_id=run_id)
    client.create_model_version("reg", f"runs:/{run_id}/notes", run_id=run_id)
    client.transition_model_version_stage("reg", "1", "Production")
    client.set_registered_model_alias("reg", "champion", "1")
    client.delete_model_version("reg", "3")


def value_text(value):
    return repr(float(value))


def run_record(client, run):
    # MLflow's SQL store leaves model inputs out of what it finds; only runs/get answers them.
    inputs = client.get_run(run.info.run_id).inputs
    histories = {
        key: sorted((m.timestamp, m.step, value_text(m.value)) for m in client.get_metric_history(run.info.run_id, key))
        for key in run.data.metrics}
    info = run.info
    return {
        "info": (info.run_name, info.user_id, info.status, info.start_time, info.end_time, info.lifecycle_stage),
        "params": run.data.params, "tags": run.data.tags, "histories": histories,
        "latest": {key: value_text(value) for key, value in run.data.metrics.items()},
        "datasets": sorted(
            (d.dataset.name, d.dataset.digest, d.dataset.source_type, d.dataset.source, d.dataset.schema,
             d.dataset.profile, tuple(sorted((t.key, t.value) for t in d.tags)))
            for d in run.inputs.dataset_inputs),
        "model_inputs": sorted(m.model_id for m in inputs.model_inputs),
        "model_outputs": sorted((m.model_id, m.step) for m in run.outputs.model_outputs),
    }


def model_record(model):
    return {
        "info": (model.name, model.creation_timestamp, model.last_updated_timestamp, str(model.status),
                 model.model_type or "", model.source_run_id or "", model.status_message or ""),
        "params": model.params, "tags": model.tags,
        "metrics": sorted((m.key, value_text(m.value), m.timestamp, m.step, m.run_id or "", m.dataset_name or "",
                           m.dataset_digest or "") for m in model.metrics or []),
    }


def registry_record(client):
    models = {}
    for model in client.search_registered_models():
        versions = {}
        for version in client.search_model_versions(f"name = '{model.name}'"):
            version = client.get_model_version(model.name, version.version)
            versions[str(version.version)] = (
                version.creation_timestamp, version.last_updated_timestamp, version.description or "",
                version.current_stage, version.status, version.run_id or "", version.run_link or "",
                version.source if version.source.split(":")[0] in ("models", "runs") else "", version.tags,
                sorted(version.aliases))
        models[model.name] = (model.creation_timestamp, model.last_updated_timestamp, model.description or "",
                              model.tags, {k: str(v) for k, v in model.aliases.items()}, versions)
    return models


def artifacts_of(mlflow, client, uri, scratch):
    """{path: hash} of everything under an artifact URI."""
    target = scratch / hashlib.sha1(uri.encode()).hexdigest()
    target.mkdir(parents=True, exist_ok=True)
    try:
        found = pathlib.Path(mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=str(target),
                                                                 tracking_uri=client.tracking_uri))
    except Exception as error:  # a folder that nothing was logged to
        assert "No such" in str(error) or "not found" in str(error).lower() or "404" in str(error), error
        return {}
    return {str(path.relative_to(found)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(found.rglob("*")) if path.is_file()}


def read_all(client, mlflow=None, scratch=None, registry=True):
    """What a client reads; with `mlflow` and `scratch` the artifacts too."""
    from mlflow.entities import ViewType

    record = {"experiments": {}, "runs": {}, "models": {}}
    for experiment in client.search_experiments(view_type=ViewType.ALL):
        id = experiment.experiment_id
        tags = {key: value for key, value in experiment.tags.items() if not key.startswith("mlflow.experimentKind")}
        record["experiments"][id] = (experiment.name, experiment.lifecycle_stage, experiment.creation_time, tags)
        for run in client.search_runs([id], run_view_type=ViewType.ALL, max_results=1000):
            one = run_record(client, run)
            one["experiment"] = id
            if scratch:
                one["artifacts"] = artifacts_of(mlflow, client, run.info.artifact_uri, scratch)
            record["runs"][run.info.run_id] = one
        if experiment.lifecycle_stage != "active":
            continue
        for model in client.search_logged_models([id]):
            one = model_record(client.get_logged_model(model.model_id))
            if scratch:
                one["artifacts"] = artifacts_of(mlflow, client, model.artifact_location, scratch)
            record["models"][model.model_id] = one
    if registry:
        record["registry"] = registry_record(client)
    return record


def assert_same(theirs, ours):
    """Field by field, so that a difference names its place."""
    assert theirs.keys() == ours.keys()
    for kind in theirs:
        assert theirs[kind].keys() == ours[kind].keys(), kind
        for id, record in theirs[kind].items():
            if not isinstance(record, dict):
                assert record == ours[kind][id], (kind, id)
                continue
            for field, value in record.items():
                mine = ours[kind][id][field]
                if isinstance(value, dict) and isinstance(mine, dict):
                    odd = [key for key in value.keys() | mine.keys() if value.get(key) != mine.get(key)]
                    assert not odd, (kind, id, field, {key: (value.get(key), mine.get(key)) for key in odd})
                assert value == mine, (kind, id, field, value, mine)


def tune(*arguments, code=0, timeout=300, **more):
    done = subprocess.run([TUNE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, **more)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def tune_json(*arguments, code=0, **more):
    return json.loads(tune(*arguments, "--json", code=code, **more).stdout)


def tree_state(folder):
    """{path: (bytes hash, mtime, size)} of all files: to see that a source was only read."""
    state = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file() and path.suffix != ".log":
            status = path.stat()
            state[str(path)] = (hashlib.sha256(path.read_bytes()).hexdigest(), status.st_mtime_ns, status.st_size)
    return state


@contextlib.contextmanager
def client_of(data):
    """MLflow's client on a tune server of this folder."""
    from mlflow import MlflowClient

    server = Server(data)
    try:
        yield MlflowClient(server.url, registry_uri=server.url)
    finally:
        server.stop()

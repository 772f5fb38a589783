"""MlflowClient and the fluent API call by call: what the other files of this folder do not call."""

import pathlib
import time

import numpy
import pandas
import pytest
import requests
from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    LoggedModelInput,
    LoggedModelOutput,
    LoggedModelParameter,
    Metric,
    RunStatus,
)
from mlflow.exceptions import MlflowException


def test_runs_are_updated_and_have_parents(mlflow, client, experiment):
    parent = client.create_run(experiment).info.run_id
    child = client.create_run(experiment, tags={"mlflow.parentRunId": parent}).info.run_id
    assert client.get_parent_run(child).info.run_id == parent
    assert mlflow.get_parent_run(child).info.run_id == parent
    assert client.get_parent_run(parent) is None
    client.update_run(child, status="FAILED", name="renamed")
    info = client.get_run(child).info
    assert info.status == "FAILED" and info.run_name == "renamed"
    assert client.get_run(child).data.tags["mlflow.runName"] == "renamed"


def test_tags_of_experiments_are_removed(mlflow, client, experiment):
    client.set_experiment_tag(experiment, "a", "1")
    client.delete_experiment_tag(experiment, "a")
    assert client.get_experiment(experiment).tags == {}
    mlflow.set_experiment(experiment_id=experiment)
    mlflow.set_experiment_tags({"b": "2", "c": "3"})
    mlflow.delete_experiment_tag("b")
    assert client.get_experiment(experiment).tags == {"c": "3"}


def test_inputs_and_outputs_of_runs(client, experiment, run):
    model = client.create_logged_model(experiment, name="net", source_run_id=run, model_type="classifier",
                                       params={"depth": "2"}, tags={"team": "red"})
    dataset = DatasetInput(Dataset("iris", "d1", "local", "{}", schema='{"s": 1}', profile='{"n": 150}'),
                           [InputTag("mlflow.data.context", "train")])
    client.log_inputs(run, [dataset], [LoggedModelInput(model.model_id)])
    client.log_inputs(run, [dataset], [LoggedModelInput(model.model_id)])
    client.log_outputs(run, [LoggedModelOutput(model.model_id, 3)])
    client.log_outputs(run, [LoggedModelOutput(model.model_id, 3)])
    read = client.get_run(run)
    assert [each.dataset.name for each in read.inputs.dataset_inputs] == ["iris"]
    assert read.inputs.dataset_inputs[0].dataset.profile == '{"n": 150}'
    assert [each.model_id for each in read.inputs.model_inputs] == [model.model_id]
    assert [(each.model_id, each.step) for each in read.outputs.model_outputs] == [(model.model_id, 3)]
    client.log_model_params(model.model_id, {"late": "1"})
    assert client.get_logged_model(model.model_id).params == {"depth": "2", "late": "1"}


def test_fluent_inputs_outputs_and_model_params(mlflow, client, experiment):
    model = mlflow.initialize_logged_model(name="fluent", experiment_id=experiment)
    data = mlflow.data.from_numpy(numpy.arange(6.0).reshape(3, 2), targets=numpy.arange(3), name="grid")
    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_inputs(datasets=[data], contexts=["eval"], tags_list=[{"part": "a"}])
        mlflow.log_outputs(models=[LoggedModelOutput(model.model_id, 1)])
        mlflow.log_model_params({"k": "v"}, model_id=model.model_id)
    read = client.get_run(run.info.run_id)
    tags = {tag.key: tag.value for tag in read.inputs.dataset_inputs[0].tags}
    assert tags == {"mlflow.data.context": "eval", "part": "a"}
    assert client.get_logged_model(model.model_id).params == {"k": "v"}
    assert mlflow.last_active_run().info.run_id == run.info.run_id


@pytest.fixture
def data_frame():
    return pandas.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]})


def test_datasets_are_logged_found_and_filtered(mlflow, client, experiment, data_frame):
    train = mlflow.data.from_pandas(data_frame, name="train-set", targets="y")
    held_out = mlflow.data.from_numpy(numpy.zeros((4, 2)), name="held-out")
    with mlflow.start_run(experiment_id=experiment) as first:
        mlflow.log_input(train, context="training", tags={"split": "1"})
        mlflow.log_metric("loss", 0.5, dataset=train)
    with mlflow.start_run(experiment_id=experiment) as second:
        mlflow.log_input(held_out, context="testing")
    logged = client.get_run(first.info.run_id).inputs.dataset_inputs[0]
    assert logged.dataset.name == "train-set" and logged.dataset.digest == train.digest
    assert '"x"' in logged.dataset.schema and '"num_rows": 3' in logged.dataset.profile
    for text, expected in [("datasets.name = 'train-set'", first), ("dataset.context = 'testing'", second),
                           (f"datasets.digest = '{train.digest}'", first), ("datasets.name LIKE 'held%'", second)]:
        assert [run.info.run_id for run in client.search_runs([experiment], text)] == [expected.info.run_id], text
    assert mlflow.data.get_source(logged).to_dict() is not None


def test_models_are_found_by_metric_and_dataset(mlflow, client, experiment, data_frame):
    data = mlflow.data.from_pandas(data_frame, name="bench")
    other = mlflow.data.from_pandas(data_frame * 2, name="other")
    ids = []
    for i in range(4):
        with mlflow.start_run(experiment_id=experiment):
            model = mlflow.initialize_logged_model(name=f"net-{i}", tags={"i": str(i)}, params={"depth": str(i)})
            mlflow.log_metric("acc", i / 10, dataset=data, model_id=model.model_id)
            mlflow.log_metric("acc", 1 - i / 10, dataset=other, model_id=model.model_id)
            mlflow.finalize_logged_model(model.model_id, "READY")
            ids.append(model.model_id)

    def search(text=None, **options):
        found = mlflow.search_logged_models([experiment], text, output_format="list", **options)
        return [ids.index(model.model_id) for model in found]

    bench = [{"dataset_name": "bench", "dataset_digest": data.digest}]
    assert sorted(search("metrics.acc >= 0.2", datasets=bench)) == [2, 3]
    assert sorted(search("metrics.acc >= 0.9", datasets=[{"dataset_name": "other"}])) == [0, 1]
    assert search("params.depth = '2' AND tags.i = '2'") == [2]
    order = [{"field_name": "metrics.acc", "ascending": False, "dataset_name": "bench", "dataset_digest": data.digest}]
    assert search(order_by=order) == [3, 2, 1, 0]
    assert search("name LIKE 'net-%'", order_by=[{"field_name": "name", "ascending": True}], max_results=3) == [0, 1, 2]
    frame = mlflow.search_logged_models([experiment])
    assert len(frame) == 4 and set(frame["name"]) == {f"net-{i}" for i in range(4)}
    page = client.search_logged_models([experiment], max_results=3)
    rest = client.search_logged_models([experiment], max_results=3, page_token=page.token)
    assert len(page) == 3 and len(rest) == 1
    assert mlflow.last_logged_model().model_id == ids[3]


def test_the_active_model_takes_metrics(mlflow, client, experiment):
    mlflow.set_experiment(experiment_id=experiment)
    with mlflow.set_active_model(name="served") as active:
        assert mlflow.get_active_model_id() == active.model_id
        with mlflow.start_run():
            mlflow.log_metric("latency", 0.25)
    mlflow.clear_active_model()
    assert {metric.key: metric.value for metric in client.get_logged_model(active.model_id).metrics} == {"latency": 0.25}


def test_files_of_logged_models(mlflow, client, experiment, tmp_path):
    model = mlflow.initialize_logged_model(name="files", experiment_id=experiment)
    (tmp_path / "one.txt").write_text("1")
    (tmp_path / "tree/deep").mkdir(parents=True)
    (tmp_path / "tree/deep/two.txt").write_text("2")
    client.log_model_artifact(model.model_id, str(tmp_path / "one.txt"))
    client.log_model_artifacts(model.model_id, str(tmp_path / "tree"))
    assert sorted(each.path for each in client.list_logged_model_artifacts(model.model_id)) == ["deep", "one.txt"]
    local = mlflow.artifacts.download_artifacts(f"models:/{model.model_id}", dst_path=str(tmp_path / "back"))
    assert (pathlib.Path(local) / "deep/two.txt").read_text() == "2"


def test_streams_and_addresses_of_artifacts(mlflow, client, experiment, tmp_path):
    import io

    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_stream(io.BytesIO(b"abc"), "streams/s.bin")
        assert mlflow.get_artifact_uri("streams").endswith("/artifacts/streams")
        mlflow.log_text("later", "async.txt")
        mlflow.flush_artifact_async_logging()
    client.log_stream(run.info.run_id, io.BytesIO(b"def"), "streams/t.bin")
    assert [each.path for each in mlflow.artifacts.list_artifacts(run_id=run.info.run_id, artifact_path="streams")] == [
        "streams/s.bin", "streams/t.bin"]
    local = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="streams/t.bin", dst_path=str(tmp_path))
    assert pathlib.Path(local).read_bytes() == b"def"


def test_async_logging_keeps_order_and_loses_nothing(mlflow, client, experiment, monkeypatch):
    mlflow.config.enable_async_logging(True)
    try:
        with mlflow.start_run(experiment_id=experiment) as run:
            for step in range(600):
                mlflow.log_metric("loss", step * 0.5, step=step)
                if step % 50 == 0:
                    mlflow.log_param(f"p{step}", step)
                    mlflow.set_tag("last", str(step))
            mlflow.flush_async_logging()
    finally:
        mlflow.config.enable_async_logging(False)
    history = client.get_metric_history(run.info.run_id, "loss")
    assert sorted(point.step for point in history) == list(range(600))
    assert all(point.value == point.step * 0.5 for point in history)
    read = client.get_run(run.info.run_id)
    assert read.data.metrics["loss"] == 599 * 0.5
    assert len(read.data.params) == 12 and "last" in read.data.tags
    assert read.info.status == "FINISHED"


def test_system_metrics_are_logged(mlflow, client, experiment):
    pytest.importorskip("psutil")
    mlflow.set_system_metrics_sampling_interval(0.1)
    mlflow.set_system_metrics_samples_before_logging(1)
    mlflow.set_system_metrics_node_id("node-7")
    mlflow.enable_system_metrics_logging()
    wanted = {"system/node-7/cpu_utilization_percentage", "system/node-7/system_memory_usage_megabytes"}
    try:
        with mlflow.start_run(experiment_id=experiment) as run:
            deadline = time.monotonic() + 60
            while not wanted <= (names := set(client.get_run(run.info.run_id).data.metrics)):
                assert time.monotonic() < deadline, names
                time.sleep(0.1)  # the monitor is a thread that does not report when it has sampled
    finally:
        mlflow.disable_system_metrics_logging()
        mlflow.set_system_metrics_node_id(None)
        mlflow.set_system_metrics_sampling_interval(None)
        mlflow.set_system_metrics_samples_before_logging(None)


def test_extreme_numbers_come_back(client, run):
    values = [0.1, -2.5, 5e-324, 1.7976931348623157e308, 2**53 + 0.0, 1 / 3]
    client.log_batch(run, [Metric(f"m{i}", value, 1, 2**62 + i) for i, value in enumerate(values)])
    read = client.get_run(run).data.metrics
    assert [read[f"m{i}"] for i in range(len(values))] == values
    assert client.get_metric_history(run, "m0")[0].step == 2**62


def test_a_run_ends_in_each_way(mlflow, client, experiment):
    for status in ("FINISHED", "FAILED", "KILLED"):
        run = mlflow.start_run(experiment_id=experiment)
        mlflow.end_run(status)
        assert client.get_run(run.info.run_id).info.status == status
    assert RunStatus.is_terminated(RunStatus.from_string("KILLED"))
    with pytest.raises(MlflowException, match="not found"):
        mlflow.start_run(run_id="0" * 32)


def test_evaluation_of_a_model(mlflow, client, experiment, data_frame):
    """mlflow.evaluate logs its metrics, its tables and its dataset."""
    pytest.importorskip("sklearn")
    with mlflow.start_run(experiment_id=experiment) as run:
        data = data_frame.assign(prediction=[0, 1, 1])
        result = mlflow.models.evaluate(data=data, targets="y", predictions="prediction", model_type="classifier",
                                        evaluator_config={"log_explainer": False})
    read = client.get_run(run.info.run_id)
    assert read.data.metrics["accuracy_score"] == pytest.approx(2 / 3) == result.metrics["accuracy_score"]
    assert client.list_artifacts(run.info.run_id)


def test_optuna_keeps_its_study_here(mlflow, client, experiment):
    optuna = pytest.importorskip("optuna")
    from mlflow.optuna.storage import MlflowStorage

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(study_name="s", storage=MlflowStorage(experiment_id=experiment), direction="minimize")
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=4)
    assert len(study.trials) == 4 and all(trial.state.name == "COMPLETE" for trial in study.trials)
    again = optuna.load_study(study_name="s", storage=MlflowStorage(experiment_id=experiment))
    assert again.best_value == study.best_value
    assert len(client.search_runs([experiment])) >= 5


def test_models_are_registered_by_fluent_calls(mlflow, client, experiment):
    import uuid

    name = f"fluent-{uuid.uuid4().hex}"
    mlflow.set_experiment(experiment_id=experiment)
    model = mlflow.initialize_logged_model(name="net")
    mlflow.finalize_logged_model(model.model_id, "READY")
    version = mlflow.register_model(f"models:/{model.model_id}", name, tags={"a": "1"})
    assert version.version == "1" or version.version == 1
    mlflow.set_model_version_tag(name, "1", "b", "2")
    found = mlflow.search_model_versions(filter_string=f"name = '{name}'")
    assert [(each.name, each.tags) for each in found] == [(name, {"a": "1", "b": "2"})]
    assert [each.name for each in mlflow.search_registered_models(filter_string=f"name = '{name}'")] == [name]
    registrations = client.get_logged_model(model.model_id).tags["mlflow.modelVersions"]
    assert name in registrations


def test_page_tokens_of_another_search_of_logged_models(mlflow, client, experiment):
    """The sentences are those of MLflow's own token, which is asked here what it would say."""
    from mlflow.exceptions import MlflowException
    from mlflow.utils.search_utils import SearchLoggedModelsPaginationToken as Token

    for _ in range(3):
        mlflow.initialize_logged_model(name="m", experiment_id=experiment)
    other = client.create_experiment(f"other than {experiment}")
    order = [{"field_name": "name", "ascending": False}]
    whole = [{"field_name": "name", "ascending": False, "dataset_name": None, "dataset_digest": None}]
    token = client.search_logged_models([experiment], "name = 'm'", order_by=order, max_results=2).token
    made = Token([experiment], "name = 'm'", whole)
    for ids, text, orders, sent in (([other], "name = 'm'", whole, order), ([experiment, other], None, None, None),
                                    ([experiment], "name != 'm'", whole, order), ([experiment], None, whole, order),
                                    ([experiment], "name = 'm'", None, None)):
        with pytest.raises(MlflowException) as theirs:
            made.validate(ids, text, orders)
        with pytest.raises(MlflowException) as ours:
            client.search_logged_models(ids, text, order_by=sent, max_results=2, page_token=token)
        assert theirs.value.message in ours.value.message and ours.value.error_code == "INVALID_PARAMETER_VALUE"
    for strange in ("???", "aGVsbG8=", "e30=", "W10=", "é", "x" * 2000):
        with pytest.raises(MlflowException, match="Invalid page token: ") as refused:
            client.search_logged_models([experiment], page_token=strange)
        assert refused.value.error_code == "INVALID_PARAMETER_VALUE" and len(refused.value.message) < 900
    assert len(client.search_logged_models([experiment], "name = 'm'", order_by=order, max_results=2, page_token=token)) == 1


def test_datasets_of_too_many_experiments_are_counted_before_they_are_read(server):
    for ids in (["0"] * 21, ["no id"] * 21):
        answer = requests.post(server.url + "/ajax-api/2.0/mlflow/experiments/search-datasets", json={"experiment_ids": ids})
        assert answer.status_code == 400 and answer.json()["message"] == (
            "SearchDatasets request cannot specify more than 20 experiment_ids. Received 21 experiment_ids.")


def test_inputs_of_the_largest_size(server, client, run):
    """What MLflow's own limits allow at most, in one request; one more byte of each is refused by name."""
    from mlflow.entities import Dataset, DatasetInput, InputTag
    from mlflow.exceptions import MlflowException
    from mlflow.utils import validation

    def inputs(**more):
        sizes = {"name": validation.MAX_DATASET_NAME_SIZE, "digest": validation.MAX_DATASET_DIGEST_SIZE,
                 "source": validation.MAX_DATASET_SOURCE_SIZE, "schema": validation.MAX_DATASET_SCHEMA_SIZE,
                 "profile": validation.MAX_DATASET_PROFILE_SIZE}
        fields = {name: "x" * (size + more.get(name, 0)) for name, size in sizes.items()}
        return [DatasetInput(Dataset(source_type="local", **fields),
                             [InputTag("k" * validation.MAX_INPUT_TAG_KEY_SIZE, "v" * validation.MAX_INPUT_TAG_VALUE_SIZE)])]

    client.log_inputs(run, inputs())
    stored = client.get_run(run).inputs.dataset_inputs[0].dataset
    assert len(stored.profile) == 16_777_215 and len(stored.schema) == 1_048_575 and len(stored.source) == 65_535
    for name in ("name", "digest", "source", "schema", "profile"):
        with pytest.raises(MlflowException, match=f"'?{name}'?.* exceeds the maximum length"):
            client.log_inputs(run, inputs(**{name: 1}))
    limit = 20 << 20
    address = server.url + "/api/2.0/mlflow/runs/log-inputs"
    body = b'{"run_id": "' + run.encode() + b'"'
    at_limit = body + b" " * (limit - len(body) - 1) + b"}"
    headers = {"Content-Type": "application/json"}
    assert requests.post(address, data=at_limit, headers=headers).status_code == 200
    beyond = requests.post(address, data=at_limit + b" ", headers=headers)
    assert beyond.status_code == 413 and str(limit) in beyond.json()["message"]

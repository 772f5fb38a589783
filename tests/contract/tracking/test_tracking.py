"""What training scripts do, with the real client."""

import math
import time

import numpy
import pytest
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException


def test_nested_runs_and_everything_that_is_logged(mlflow, client, experiment):
    with mlflow.start_run(experiment_id=experiment, run_name="parent", description="what for") as parent:
        mlflow.log_param("optimizer", "adam")
        mlflow.log_params({"lr": 0.1, "layers": [1, 2]})
        mlflow.log_metric("loss", 1.5, step=1)
        mlflow.log_metric("loss", 0.5, step=2)
        mlflow.log_metrics({"a": 1, "b": 2.5}, step=7)
        mlflow.set_tag("team", "red")
        mlflow.set_tags({"x": 1, "ünïcode": "日本"})
        with mlflow.start_run(experiment_id=experiment, nested=True) as child:
            mlflow.log_metric("loss", 0.25)
    read = client.get_run(parent.info.run_id)
    assert read.info.status == "FINISHED"
    assert read.info.run_name == "parent"
    assert read.info.end_time >= read.info.start_time > 1.6e12
    assert read.data.params == {"optimizer": "adam", "lr": "0.1", "layers": "[1, 2]"}
    assert read.data.metrics == {"loss": 0.5, "a": 1.0, "b": 2.5}
    assert read.data.tags["team"] == "red"
    assert read.data.tags["ünïcode"] == "日本"
    assert read.data.tags["mlflow.note.content"] == "what for"
    assert read.data.tags["mlflow.runName"] == "parent"
    inner = client.get_run(child.info.run_id)
    assert inner.data.tags["mlflow.parentRunId"] == parent.info.run_id
    found = client.search_runs([experiment], f"tags.mlflow.parentRunId = '{parent.info.run_id}'")
    assert [each.info.run_id for each in found] == [child.info.run_id]


def test_a_failed_block_marks_the_run_failed(mlflow, client, experiment):
    with pytest.raises(ZeroDivisionError):
        with mlflow.start_run(experiment_id=experiment) as run:
            1 / 0
    assert client.get_run(run.info.run_id).info.status == "FAILED"


def test_a_run_is_resumed(mlflow, client, run):
    client.set_terminated(run, "KILLED")
    with mlflow.start_run(run_id=run):
        mlflow.log_metric("again", 1)
    read = client.get_run(run)
    assert read.info.status == "FINISHED"
    assert read.data.metrics == {"again": 1.0}


def test_values_that_are_not_finite(client, run):
    for step, value in enumerate([math.nan, math.inf, -math.inf]):
        client.log_metric(run, f"m{step}", value, step=step)
    client.log_batch(run, [Metric("batch", math.nan, 1, 1), Metric("batch", math.inf, 2, 2)])
    metrics = client.get_run(run).data.metrics
    assert math.isnan(metrics["m0"])
    assert metrics["m1"] == 1.7976931348623157e308
    assert metrics["m2"] == -1.7976931348623157e308
    history = client.get_metric_history(run, "batch")
    assert math.isnan(history[0].value) and history[1].value > 1e308


def test_numpy_values(mlflow, experiment, client):
    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_metric("f32", numpy.float32(0.5))
        mlflow.log_metric("i64", numpy.int64(7))
        mlflow.log_params({"array": numpy.array([1, 2])})
    assert client.get_run(run.info.run_id).data.metrics == {"f32": 0.5, "i64": 7.0}


def test_batches_of_the_largest_size(client, run):
    metrics = [Metric(f"m{i}", i, 1, i) for i in range(1000)]
    client.log_batch(run, metrics=metrics)
    client.log_batch(run, params=[Param(f"p{i}", str(i)) for i in range(100)])
    client.log_batch(run, tags=[RunTag(f"t{i}", str(i)) for i in range(100)])
    data = client.get_run(run).data
    assert len(data.metrics) == 1000 and data.metrics["m999"] == 999
    assert len(data.params) == 100 and data.tags["t99"] == "99"


def test_histories_are_paged_in_order(client, run):
    for begin in range(0, 30_000, 1000):
        client.log_batch(run, [Metric("m", i * 0.5, 1000 + i, i) for i in range(begin, begin + 1000)])
    history = client.get_metric_history(run, "m")
    assert [point.step for point in history] == list(range(30_000))
    assert history[-1].value == 29_999 * 0.5
    assert client.get_metric_history(run, "none") == []


def test_a_repeated_metric_is_one_metric(client, run):
    for _ in range(3):
        client.log_metric(run, "m", 1.0, timestamp=5, step=1)
    assert len(client.get_metric_history(run, "m")) == 1
    client.log_metric(run, "m", 2.0, timestamp=5, step=1)
    assert len(client.get_metric_history(run, "m")) == 2
    assert client.get_run(run).data.metrics == {"m": 2.0}


def test_metrics_logged_out_of_order_show_the_latest(client, run):
    client.log_batch(run, [Metric("m", 3, 30, 3), Metric("m", 1, 10, 1), Metric("m", 2, 20, 2)])
    assert client.get_run(run).data.metrics == {"m": 3.0}


def test_asynchronous_logging(mlflow, client, experiment):
    with mlflow.start_run(experiment_id=experiment) as run:
        for step in range(300):
            mlflow.log_metric("m", step, step=step, synchronous=False)
        mlflow.log_params({"p": 1}, synchronous=False)
        mlflow.flush_async_logging()
    assert len(client.get_metric_history(run.info.run_id, "m")) == 300
    assert client.get_run(run.info.run_id).data.params == {"p": "1"}


def test_dataset_inputs(mlflow, client, experiment):
    import pandas

    frame = pandas.DataFrame({"a": [1, 2], "b": [3.0, 4.0]})
    dataset = mlflow.data.from_pandas(frame, name="numbers", targets="b")
    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_input(dataset, context="training", tags={"k": "v"})
        mlflow.log_input(dataset, context="training")
        mlflow.log_metric("on", 1.0, dataset=dataset)
    inputs = client.get_run(run.info.run_id).inputs.dataset_inputs
    assert [each.dataset.name for each in inputs] == ["numbers"]
    assert inputs[0].dataset.digest == dataset.digest
    assert "training" in [tag.value for tag in inputs[0].tags]
    found = client.search_runs([experiment], "datasets.name = 'numbers'")
    assert [each.info.run_id for each in found] == [run.info.run_id]


def test_deleting_and_restoring(client, experiment, run):
    client.delete_run(run)
    assert client.get_run(run).info.lifecycle_stage == "deleted"
    assert client.search_runs([experiment]) == []
    assert len(client.search_runs([experiment], run_view_type=ViewType.DELETED_ONLY)) == 1
    with pytest.raises(MlflowException, match="must be in the 'active' state"):
        client.log_metric(run, "m", 1)
    client.restore_run(run)
    client.set_tag(run, "t", "1")
    client.delete_tag(run, "t")
    client.delete_experiment(experiment)
    assert client.get_experiment(experiment).lifecycle_stage == "deleted"
    client.restore_experiment(experiment)
    assert client.get_run(run).info.lifecycle_stage == "active"


def test_experiments(client, mlflow):
    name = f"named-{time.time_ns()}"
    created = client.create_experiment(name, tags={"k": "v"})
    assert client.get_experiment_by_name(name).experiment_id == created
    assert client.get_experiment_by_name(name + "x") is None
    assert mlflow.set_experiment(name).experiment_id == created
    client.set_experiment_tag(created, "k", "w")
    client.rename_experiment(created, name + " renamed")
    read = client.get_experiment(created)
    assert read.name == name + " renamed" and read.tags == {"k": "w"}
    assert read.artifact_location == f"mlflow-artifacts:/{created}"
    found = client.search_experiments(filter_string=f"name LIKE '{name}%'")
    assert [each.experiment_id for each in found] == [created]
    pages = [client.create_experiment(f"{name}-{i}") for i in range(5)]
    first = client.search_experiments(
        max_results=3, order_by=["experiment_id ASC"], filter_string=f"name LIKE '{name}-%'"
    )
    rest = client.search_experiments(
        max_results=3,
        order_by=["experiment_id ASC"],
        filter_string=f"name LIKE '{name}-%'",
        page_token=first.token,
    )
    assert [each.experiment_id for each in [*first, *rest]] == pages and not rest.token


@pytest.fixture(scope="module")
def table(request):
    """Ten runs with known values, in an experiment of their own."""
    import mlflow

    server = request.getfixturevalue("server")
    mlflow.set_tracking_uri(server.url)
    client = mlflow.MlflowClient()
    experiment = client.create_experiment(f"table-{time.time_ns()}")
    ids = []
    for i in range(10):
        run = client.create_run(experiment, run_name=f"run-{i}", start_time=1000 + i)
        ids.append(run.info.run_id)
        client.log_metric(ids[-1], "loss", i / 10, step=i)
        client.log_metric(ids[-1], "val/acc 1", 100 - i)
        client.log_param(ids[-1], "opt", "adam" if i % 2 else "sgd")
        client.set_tag(ids[-1], "fold", str(i % 3))
        if i < 5:
            client.set_terminated(ids[-1], "FINISHED", end_time=2000 + i)
    client.log_metric(ids[9], "loss", math.nan, step=99)
    return client, experiment, ids


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", range(10)),
        ("metrics.loss < 0.3", [0, 1, 2]),
        ("metrics.loss >= 0.75", [8]),
        ("metrics.loss = 0.5", [5]),
        ("metrics.loss != 0.5", [0, 1, 2, 3, 4, 6, 7, 8, 9]),
        ("metrics.`val/acc 1` > 97.5", [0, 1, 2]),
        ('metrics."val/acc 1" <= 92', [8, 9]),
        ("params.opt = 'adam'", [1, 3, 5, 7, 9]),
        ("params.opt != 'adam' AND metrics.loss > 0.5", [6, 8]),
        ("params.opt LIKE 'a%'", [1, 3, 5, 7, 9]),
        ("params.opt ILIKE 'SG%' and tags.fold = '0'", [0, 6]),
        ("tags.fold = \"2\"", [2, 5, 8]),
        ("tag.fold LIKE '%1'", [1, 4, 7]),
        ("attributes.status = 'FINISHED'", [0, 1, 2, 3, 4]),
        ("attribute.status != 'FINISHED'", [5, 6, 7, 8, 9]),
        ("status = 'RUNNING'", [5, 6, 7, 8, 9]),
        ("attributes.start_time >= 1007", [7, 8, 9]),
        ("start_time < 1003 AND end_time > 2000", [1, 2]),
        ("run_name LIKE 'run-%' AND run_name ILIKE '%-4'", [4]),
        ("tags.none = 'x'", []),
        ("metrics.none > 0", []),
    ],
)
def test_search_filters(table, text, expected):
    client, experiment, ids = table
    found = client.search_runs([experiment], text)
    assert sorted(ids.index(run.info.run_id) for run in found) == sorted(expected)


def test_search_by_a_list_of_ids(table):
    client, experiment, ids = table
    found = client.search_runs([experiment], f"attributes.run_id IN ('{ids[1]}', '{ids[3]}', 'none')")
    assert sorted(run.info.run_id for run in found) == sorted([ids[1], ids[3]])


@pytest.mark.parametrize(
    "order, expected",
    [
        (["metrics.loss ASC"], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (["metrics.loss DESC"], [8, 7, 6, 5, 4, 3, 2, 1, 0, 9]),
        (["metrics.`val/acc 1`"], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        (["params.opt ASC", "metrics.loss DESC"], [7, 5, 3, 1, 9, 8, 6, 4, 2, 0]),
        (["tags.fold DESC", "start_time ASC"], [2, 5, 8, 1, 4, 7, 0, 3, 6, 9]),
        (["attributes.start_time DESC"], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        (["end_time ASC"], [0, 1, 2, 3, 4, 9, 8, 7, 6, 5]),
        ([], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
    ],
)
def test_search_order(table, order, expected):
    client, experiment, ids = table
    whole = client.search_runs([experiment], order_by=order)
    assert [ids.index(run.info.run_id) for run in whole] == expected
    paged, token = [], None
    while True:
        page = client.search_runs([experiment], order_by=order, max_results=3, page_token=token)
        paged += [ids.index(run.info.run_id) for run in page]
        token = page.token
        if not token:
            break
    assert paged == expected


@pytest.mark.parametrize(
    "text",
    [
        "metrics.loss",
        "metrics.loss >",
        "metrics.loss = 'text'",
        "params.opt = 5",
        "params.opt > 'a'",
        "unknown.x = 1",
        "status = 'x' OR",
        "attributes.nothing = 'x'",
        "'; DROP TABLE runs; --",
        "params.opt = 'unterminated",
    ],
)
def test_search_refuses_invalid_filters(table, text):
    client, experiment, _ = table
    with pytest.raises(MlflowException) as refused:
        client.search_runs([experiment], text)
    assert refused.value.error_code == "INVALID_PARAMETER_VALUE"
    assert client.search_runs([experiment], max_results=1)


def test_search_into_pandas(table, mlflow):
    _, experiment, ids = table
    frame = mlflow.search_runs([experiment], order_by=["start_time ASC"])
    assert list(frame["run_id"]) == ids
    assert list(frame["metrics.loss"])[:9] == [i / 10 for i in range(9)]
    assert math.isnan(frame["metrics.loss"][9])
    assert frame["params.opt"][1] == "adam" and frame["tags.fold"][5] == "2"


def test_search_over_many_pages(mlflow, client, experiment):
    for i in range(30):
        client.create_run(experiment, start_time=i)
    frame = mlflow.search_runs([experiment], max_results=25)
    assert len(frame) == 25
    everything, token = [], None
    while True:
        page = client.search_runs([experiment], max_results=7, page_token=token)
        everything += [run.info.run_id for run in page]
        token = page.token
        if not token:
            break
    assert len(set(everything)) == len(everything) == 30


@pytest.mark.parametrize(
    "call, code, text",
    [
        (lambda c, r: c.get_run("nope"), "RESOURCE_DOES_NOT_EXIST", "Run with id=nope not found"),
        (lambda c, r: c.get_experiment("12345"), "RESOURCE_DOES_NOT_EXIST", "No Experiment with id=12345"),
        (lambda c, r: c.log_metric(r, "a//b", 1), "INVALID_PARAMETER_VALUE", "Invalid value"),
        (lambda c, r: c.delete_tag(r, "none"), "RESOURCE_DOES_NOT_EXIST", "No tag with name: none"),
        (lambda c, r: c.create_experiment("Default"), "RESOURCE_ALREADY_EXISTS", "already exists"),
        (lambda c, r: c.set_tag(r, "k" * 251, "v"), "INVALID_PARAMETER_VALUE", "exceeds"),
        (lambda c, r: c.search_runs(["0"], max_results=50001), "INVALID_PARAMETER_VALUE", "50001"),
        (lambda c, r: c.get_logged_model("m-none"), "RESOURCE_DOES_NOT_EXIST", "m-none"),
    ],
)
def test_errors_reach_the_script(client, run, call, code, text):
    with pytest.raises(MlflowException, match=text) as refused:
        call(client, run)
    assert refused.value.error_code == code


def test_params_are_immutable(client, run):
    client.log_param(run, "p", "1")
    client.log_param(run, "p", "1")
    with pytest.raises(MlflowException, match="Changing param values is not allowed"):
        client.log_param(run, "p", "2")
    with pytest.raises(MlflowException, match="old_value"):
        client.log_batch(run, params=[Param("q", "1"), Param("p", "3")])
    assert client.get_run(run).data.params == {"p": "1"}

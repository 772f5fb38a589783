"""Searches beyond MLflow's, over HTTP: OR and NOT, extrema, chosen fields, JSON lines."""

import http.client
import json
import socket

import pytest

RUNS = 100


@pytest.fixture(scope="module")
def experiment(server):
    """100 runs with a metric that falls and rises again; the id of their experiment."""
    import mlflow
    from mlflow.entities import Metric, Param

    client = mlflow.MlflowClient(server.url)
    experiment_id = client.create_experiment("beyond")
    for number in range(RUNS):
        run = client.create_run(experiment_id, start_time=number + 1)
        points = [Metric("loss", value, 1, step) for step, value in enumerate((number + 2, number, number + 1))]
        client.log_batch(run.info.run_id, points, [Param("parity", "odd" if number % 2 else "even")])
    return experiment_id


@pytest.fixture
def found(server, experiment):
    """found(filter, order_by) -> the numbers of the runs."""
    import mlflow

    client = mlflow.MlflowClient(server.url)

    def search(text, order_by=("start_time",)):
        runs = client.search_runs([experiment], text, order_by=list(order_by), max_results=1000)
        return [run.info.start_time - 1 for run in runs]

    return search


def lines_of(server, body):
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
    connection.request("POST", "/api/2.0/mlflow/runs/search", json.dumps(body), headers)
    return connection, connection.getresponse()


def test_the_stock_client_can_say_or_and_not(found):
    assert found("metrics.loss = 1 OR metrics.loss = 100") == [0, 99]
    assert found("(metrics.loss < 3 OR metrics.loss > 99) AND NOT params.parity = 'odd'") == [0]


def test_extrema_of_the_whole_history(found, server, experiment):
    assert found("metrics.loss.min = 7") == [7]
    assert found("metrics.loss.max <= 3") == [0, 1]
    assert found("metrics.loss.last <= 2", ["metrics.loss.min DESC"]) == [1, 0]
    with pytest.raises(Exception, match="tune.metric_goal.loss"):
        found("metrics.loss.best = 7")
    import mlflow

    mlflow.MlflowClient(server.url).set_experiment_tag(experiment, "tune.metric_goal.loss", "min")
    assert found("metrics.loss.best = 7") == [7]


def test_json_lines_hold_all_runs(server, experiment):
    body = {"experiment_ids": [experiment], "order_by": ["metrics.loss"], "fields": ["metrics.*"]}
    connection, response = lines_of(server, body)
    assert response.status == 200
    assert response.getheader("Content-Type") == "application/x-ndjson"
    runs = [json.loads(line) for line in response.read().decode().splitlines()]
    assert [run["info"]["start_time"] for run in runs] == list(range(1, RUNS + 1))
    assert all([metric["key"] for metric in run["data"]["metrics"]] == ["loss"] for run in runs)
    assert all("params" not in run["data"] for run in runs)
    connection.close()


def test_json_lines_refuse_with_an_ordinary_answer(server, experiment):
    connection, response = lines_of(server, {"experiment_ids": [experiment], "filter": "bogus"})
    assert response.status == 400
    assert json.loads(response.read())["error_code"] == "INVALID_PARAMETER_VALUE"
    connection.close()


def test_clients_that_read_slowly_or_leave_cost_nothing(server, experiment):
    before = server.memory_kb()
    body = json.dumps({"experiment_ids": [experiment]}).encode()
    head = (
        "POST /api/2.0/mlflow/runs/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Accept: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    for _ in range(40):  # more than may stream at a time: the places of those that left are free again
        with socket.create_connection(("127.0.0.1", server.port)) as one:
            one.sendall(head + body)
            assert one.recv(15).startswith(b"HTTP/1.1 ")
    slow = socket.create_connection(("127.0.0.1", server.port))
    slow.sendall(head + body)
    text = b""
    while not text.endswith(b"0\r\n\r\n"):
        piece = slow.recv(2_000)
        assert piece
        text += piece
    assert text.count(b'"run_id"') == RUNS
    assert server.falls_to_kb(before + 30_000)

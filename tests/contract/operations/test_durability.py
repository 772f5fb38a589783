"""What was answered is kept: kill -9 under load, a full disk, restarts."""

import json
import signal
import threading
import time

import pytest
import requests


def post(session, server, path, body):
    return session.post(f"{server.url}/api/2.0/mlflow/{path}", json=body, timeout=30)


def create_run(server, experiment="0"):
    with requests.Session() as session:
        answer = post(session, server, "runs/create", {"experiment_id": experiment})
        assert answer.status_code == 200, answer.text
        return answer.json()["run"]["info"]["run_id"]


def history(server, run, key):
    with requests.Session() as session:
        answer = session.get(f"{server.url}/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key={key}")
        return {point["step"] for point in answer.json().get("metrics", [])}


def test_kill_under_load_loses_nothing_that_was_answered(own_server):
    server = own_server()
    runs = [create_run(server) for _ in range(8)]
    answered = {run: set() for run in runs}
    uploaded = set()
    enough = threading.Event()

    def write(run, kind):
        step = 0
        with requests.Session() as session:
            try:
                while True:
                    if kind == "metric":
                        sent = {step}
                        answer = post(session, server, "runs/log-metric",
                                      {"run_id": run, "key": "m", "value": step, "timestamp": 1, "step": step})
                    elif kind == "batch":
                        sent = set(range(step, step + 50))
                        answer = post(session, server, "runs/log-batch", {"run_id": run, "metrics": [
                            {"key": "m", "value": s, "timestamp": 1, "step": s} for s in sent]})
                    else:
                        sent = {step}
                        answer = session.put(f"{server.url}/api/2.0/mlflow-artifacts/artifacts/{run}/{step}.txt",
                                             data=str(step) * 1000, timeout=30)
                    if answer.status_code != 200:
                        return
                    if kind == "upload":
                        uploaded.add((run, step))
                    else:
                        answered[run] |= sent
                    step = max(sent) + 1
                    if sum(map(len, answered.values())) > 3000 and len(uploaded) > 20:
                        enough.set()
            except requests.RequestException:
                return

    kinds = ["metric"] * 4 + ["batch"] * 3 + ["upload"]
    threads = [threading.Thread(target=write, args=pair) for pair in zip(runs, kinds)]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    server.kill()
    for thread in threads:
        thread.join()
    again = own_server()
    for run, kind in zip(runs, kinds):
        if kind != "upload":
            kept = history(again, run, "m")
            assert answered[run] <= kept
            if kind == "batch":
                assert len(kept) % 50 == 0, "a batch is there whole or not at all"
    for run, step in uploaded:
        text = requests.get(f"{again.url}/api/2.0/mlflow-artifacts/artifacts/{run}/{step}.txt").text
        assert text == str(step) * 1000
    listed = requests.get(f"{again.url}/api/2.0/mlflow-artifacts/artifacts?path={runs[-1]}").json()["files"]
    assert all(each["path"].endswith(".txt") for each in listed), "no half-written file shows"


def test_a_stopped_server_goes_on_where_it_was(own_server):
    server = own_server()
    run = create_run(server)
    with requests.Session() as session:
        assert post(session, server, "runs/set-tag", {"run_id": run, "key": "k", "value": "v"}).status_code == 200
    server.stop()
    again = own_server()
    tags = requests.get(f"{again.url}/api/2.0/mlflow/runs/get?run_id={run}").json()["run"]["data"]["tags"]
    assert {"key": "k", "value": "v"} in tags


def test_a_running_request_is_answered_before_the_end(own_server):
    """SIGTERM while uploads and writes are under way: no answer is lost, no connection is reset."""
    server = own_server()
    run = create_run(server)
    results = []

    def write():
        with requests.Session() as session:
            for step in range(100_000):
                try:
                    answer = post(session, server, "runs/log-metric",
                                  {"run_id": run, "key": "m", "value": 1, "timestamp": 1, "step": step})
                except requests.ConnectionError:
                    return
                results.append((step, answer.status_code))
                if answer.status_code != 200:
                    return

    thread = threading.Thread(target=write)
    thread.start()
    while len(results) < 50:
        time.sleep(0.001)
    server.process.send_signal(signal.SIGTERM)
    thread.join()
    assert server.process.wait(120) == 0
    again = own_server()
    kept = history(again, run, "m")
    assert {step for step, status in results if status == 200} <= kept


def test_a_full_disk_is_an_error_and_not_the_end(own_server):
    """The process may not write files beyond 4 MB; the system answers as it does on a full disk."""
    server = own_server(file_bytes_max=4 << 20)
    run = create_run(server)
    base = f"{server.url}/api/2.0/mlflow-artifacts/artifacts/{run}"
    assert requests.put(f"{base}/small", data=b"x" * 1000).status_code == 200
    refused = requests.put(f"{base}/large", data=b"x" * (6 << 20))
    assert refused.status_code == 429 and refused.json()["error_code"] == "RESOURCE_EXHAUSTED"
    assert requests.get(f"{base}/large").status_code == 404
    answered, failed = set(), 0
    with requests.Session() as session:
        step = 0
        while failed < 3 and step < 2_000_000:
            steps = range(step, step + 1000)
            answer = post(session, server, "runs/log-batch", {"run_id": run, "metrics": [
                {"key": "m", "value": (s * 2654435761 % 1000003) / 7, "timestamp": 1 + s * 977 % 100_000, "step": s}
                for s in steps]})
            if answer.status_code == 200:
                answered |= set(steps)
            else:
                failed += 1
                assert answer.json()["error_code"] in ("RESOURCE_EXHAUSTED", "TEMPORARILY_UNAVAILABLE"), answer.text
            step += 1000
    assert failed == 3, "the limit was never reached"
    assert server.is_alive()
    assert requests.get(f"{server.url}/health").text == "OK"
    assert requests.get(f"{base}/small").text == "x" * 1000
    assert answered <= history(server, run, "m")
    server.kill()
    again = own_server()
    assert answered <= history(again, run, "m")
    with requests.Session() as session:
        assert post(session, again, "runs/set-tag", {"run_id": run, "key": "k", "value": "v"}).status_code == 200


def test_two_servers_on_one_folder(own_server, tmp_path):
    first = own_server()
    with pytest.raises(AssertionError, match=str(first.process.pid)):
        own_server()
    assert first.is_alive()


def test_a_port_in_use(own_server, tmp_path):
    import subprocess

    from conftest import server_command

    first = own_server()
    other = subprocess.run(server_command(tmp_path / "other", first.port), capture_output=True, text=True, timeout=120)
    assert other.returncode != 0
    assert "port is in use" in other.stdout + other.stderr


def test_a_folder_that_cannot_be_written(tmp_path):
    import subprocess

    from conftest import server_command

    (tmp_path / "file").write_text("in the way")
    result = subprocess.run(server_command(tmp_path / "file" / "data", 0), capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert "file" in result.stdout + result.stderr


def test_retried_requests_change_nothing(own_server):
    """The client retries POSTs after time-outs: the second one must be harmless."""
    server = own_server()
    run = create_run(server)
    calls = [
        ("runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 5, "step": 1}),
        ("runs/log-parameter", {"run_id": run, "key": "p", "value": "1"}),
        ("runs/set-tag", {"run_id": run, "key": "t", "value": "1"}),
        ("runs/log-batch", {"run_id": run, "metrics": [{"key": "b", "value": 1, "timestamp": 1, "step": 1}],
                            "params": [{"key": "q", "value": "2"}], "tags": [{"key": "u", "value": "3"}]}),
        ("runs/outputs", {"run_id": run, "models": [{"model_id": "m-1", "step": 0}]}),
        ("runs/log-inputs", {"run_id": run, "datasets": [{"dataset": {"name": "d", "digest": "1", "source_type": "s",
                                                                     "source": "x"}}]}),
        ("runs/update", {"run_id": run, "status": "FINISHED", "end_time": 9}),
    ]
    with requests.Session() as session:
        for path, body in calls:
            assert post(session, server, path, body).status_code == 200
        before = session.get(f"{server.url}/api/2.0/mlflow/runs/get?run_id={run}").json()
        for path, body in calls:
            assert post(session, server, path, body).status_code == 200, path
        assert session.get(f"{server.url}/api/2.0/mlflow/runs/get?run_id={run}").json() == before
    assert len(history(server, run, "m")) == 1 and len(json.dumps(before)) > 100

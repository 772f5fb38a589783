"""Keys for retries, names of deleted experiments, garbage collection, backup and restore: through the real programs."""

import json
import pathlib
import subprocess
import threading
import time
import uuid

import pytest
import requests

from conftest import BIN_DIR

TUNE = BIN_DIR / "tune"
needs_tune = pytest.mark.skipif(not TUNE.exists(), reason="needs the program tune")


def post(server, path, body, **headers):
    return requests.post(f"{server.url}/api/2.0/{path}", json=body, headers={**server.credentials, **headers}, timeout=30)


def create_run(server, experiment="0"):
    return post(server, "mlflow/runs/create", {"experiment_id": experiment}).json()["run"]["info"]["run_id"]


def log_points(server, run, count, key="m"):
    for begin in range(0, count, 1000):
        answer = post(server, "mlflow/runs/log-batch", {"run_id": run, "metrics": [
            {"key": key, "value": s, "timestamp": s, "step": s} for s in range(begin, min(begin + 1000, count))]})
        assert answer.status_code == 200, answer.text


def history(server, run, key="m"):
    url = f"{server.url}/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key={key}"
    return requests.get(url, timeout=30).json().get("metrics", [])


def tune(*words, code=0):
    done = subprocess.run([str(TUNE), *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def wait_for_job(server, state):
    """The long-poll: each answer brings news."""
    while state["job"]["is_running"]:
        after = state["job"]["version"]
        state = requests.get(f"{server.url}/api/2.0/tune/job?after={after}", timeout=60).json()
        assert state["job"]["version"] > after
    return state["job"]


def test_a_key_makes_a_retried_create_one_run_also_after_kill_9(own_server):
    server = own_server()
    body = {"experiment_id": "0", "start_time": 1700000000000}
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = post(server, "mlflow/runs/create", body, **key)
    server.kill()
    again = own_server()
    second = post(again, "mlflow/runs/create", body, **key)
    assert first.text == second.text and second.headers["Idempotent-Replayed"] == "true"
    found = post(again, "mlflow/runs/search", {"experiment_ids": ["0"], "max_results": 10}).json()
    assert len(found["runs"]) == 1
    other = post(again, "mlflow/runs/create", {"experiment_id": "0"}, **key)
    assert other.status_code == 400 and "was used for another request" in other.json()["message"]


def test_many_at_once_with_one_key_are_one(own_server):
    server = own_server()
    barrier = threading.Barrier(8)
    texts = []

    def create():
        barrier.wait()
        texts.append(post(server, "mlflow/runs/create", {"experiment_id": "0"}, **{"Idempotency-Key": "one"}).text)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 8 and len(set(texts)) == 1


def test_the_name_of_a_deleted_experiment_is_free(client, mlflow):
    name = f"experiment-{uuid.uuid4().hex}"
    first = client.create_experiment(name)
    client.delete_experiment(first)
    assert client.get_experiment_by_name(name).lifecycle_stage == "deleted"
    with pytest.raises(mlflow.MlflowException, match="deleted experiment"):
        mlflow.set_experiment(name)
    second = client.create_experiment(name)
    assert second != first
    assert client.get_experiment_by_name(name).experiment_id == second
    assert mlflow.set_experiment(name).experiment_id == second
    with pytest.raises(mlflow.MlflowException, match="its name .* is used by experiment") as refused:
        client.restore_experiment(first)
    assert refused.value.error_code == "RESOURCE_ALREADY_EXISTS"
    client.rename_experiment(second, name + "-2")
    client.restore_experiment(first)
    assert client.get_experiment_by_name(name).experiment_id == first


def test_gc_over_rest_removes_for_good(own_server):
    server = own_server()
    kept, gone = create_run(server), create_run(server)
    log_points(server, kept, 3000)
    log_points(server, gone, 3000)
    put = requests.put(f"{server.url}/api/2.0/mlflow-artifacts/artifacts/0/{gone}/artifacts/f.txt", data=b"x")
    assert put.status_code == 200
    post(server, "mlflow/runs/delete", {"run_id": gone})
    young = wait_for_job(server, post(server, "tune/gc", {}).json())
    assert young["result"]["runs"] == 0, "30 days are the default"
    dry = wait_for_job(server, post(server, "tune/gc", {"older_than_ms": 0, "dry_run": True}).json())
    assert dry["result"]["runs"] == 1 and dry["result"]["metric_points"] == 3000
    assert requests.get(f"{server.url}/api/2.0/mlflow/runs/get?run_id={gone}").status_code == 200
    done = wait_for_job(server, post(server, "tune/gc", {"older_than_ms": 0}).json())
    assert done["result"]["runs"] == 1 and done["result"]["metric_points"] == 3000
    assert done["result"]["artifact_folders"] == 1
    assert requests.get(f"{server.url}/api/2.0/mlflow/runs/get?run_id={gone}").status_code == 404
    assert not (server.data / "artifacts" / "0" / gone).exists()
    assert len(history(server, kept)) == 3000


@pytest.mark.parametrize("body, status", [
    ({"older_than_ms": -1}, 400), ({"older_than_ms": "30d"}, 400), ({"run_ids": "x"}, 400), ({"run_ids": [1.5]}, 400),
    ({"experiment_ids": ["x"]}, 400), ({"dry_run": 1}, 400), ([], 400), ({"run_ids": ["a"] * 1001}, 400),
])
def test_bad_gc_requests_are_refused(server, body, status):
    assert post(server, "tune/gc", body).status_code == status


def test_gc_of_what_is_not_deleted_is_an_error_of_the_job(own_server):
    server = own_server()
    run = create_run(server)
    job = wait_for_job(server, post(server, "tune/gc", {"run_ids": [run]}).json())
    assert job["error"]["error_code"] == "INVALID_PARAMETER_VALUE" and run in job["error"]["message"]
    job = wait_for_job(server, post(server, "tune/gc", {"experiment_ids": [77]}).json())
    assert job["error"]["error_code"] == "RESOURCE_DOES_NOT_EXIST"


@needs_tune
def test_gc_on_the_command_line_with_and_without_a_server(own_server):
    server = own_server()
    runs = [create_run(server) for _ in range(3)]
    for run in runs:
        post(server, "mlflow/runs/delete", {"run_id": run})
    answer = json.loads(tune("gc", "--data", server.data, "--run-ids", runs[0], "--json").stdout)
    assert answer["runs"] == 1
    assert "would remove 0 runs" in tune("gc", "--data", server.data, "--dry-run").stdout
    server.stop()
    assert "removed 2 runs" in tune("gc", "--data", server.data, "--older-than", "0s").stdout
    assert "soon" in tune("gc", "--data", server.data, "--older-than", "soon", code=2).stderr
    assert runs[0] in tune("gc", "--data", server.data, "--run-ids", runs[0], code=1).stderr


@needs_tune
def test_gc_that_is_killed_goes_on_the_next_time(own_server, tmp_path):
    server = own_server()
    kept = create_run(server)
    log_points(server, kept, 2000)
    gone = [create_run(server) for _ in range(40)]
    for run in gone:
        log_points(server, run, 3000, key=f"k-{run[:4]}")
        post(server, "mlflow/runs/delete", {"run_id": run})
    state = post(server, "tune/gc", {"older_than_ms": 0}).json()
    while state["job"]["phase"] == "" and state["job"]["is_running"]:
        state = requests.get(f"{server.url}/api/2.0/tune/job?after={state['job']['version']}", timeout=60).json()
    server.kill()
    again = own_server()
    job = wait_for_job(again, post(again, "tune/gc", {"older_than_ms": 0}).json())
    assert "error" not in job
    for run in gone:
        assert requests.get(f"{again.url}/api/2.0/mlflow/runs/get?run_id={run}").status_code == 404
    assert len(history(again, kept)) == 2000
    nothing = wait_for_job(again, post(again, "tune/gc", {"older_than_ms": 0}).json())
    assert nothing["result"]["metric_points"] == 0


@needs_tune
def test_backup_under_load_and_restore(own_server, tmp_path):
    server = own_server()
    runs = [create_run(server) for _ in range(4)]
    answered = {run: 0 for run in runs}
    over = threading.Event()

    def write(run):
        with requests.Session() as session:
            while not over.is_set():
                begin = answered[run]
                answer = session.post(f"{server.url}/api/2.0/mlflow/runs/log-batch", json={"run_id": run, "metrics": [
                    {"key": "m", "value": s, "timestamp": s, "step": s} for s in range(begin, begin + 50)]}, timeout=30)
                assert answer.status_code == 200
                answered[run] = begin + 50

    threads = [threading.Thread(target=write, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    while min(answered.values()) < 500:
        time.sleep(0.01)
    requests.put(f"{server.url}/api/2.0/mlflow-artifacts/artifacts/0/{runs[0]}/artifacts/f.txt", data=b"hello")
    before = dict(answered)
    file = tmp_path / "one.backup"
    written = json.loads(tune("backup", file, "--data", server.data, "--with-artifacts", "--json").stdout)
    assert written["artifacts"] == 1 and written["size_bytes"] == file.stat().st_size
    job = wait_for_job(server, post(server, "tune/backups", {}).json())
    assert "error" not in job, job
    over.set()
    for thread in threads:
        thread.join()
    name = job["result"]["file"]
    fetched = tmp_path / "two.backup"
    fetched.write_bytes(requests.get(f"{server.url}/api/2.0/tune/backups/{name}", headers=server.credentials).content)
    server.kill()
    for backup in (file, fetched):
        data = tmp_path / "restored" / backup.stem
        tune("restore", backup, "--data", data)
        tune("restore", backup, "--data", data, code=1)
        tune("restore", backup, "--data", data, "--force")
        from conftest import Server
        other = Server(data)
        for run in runs:
            points = history(other, run)
            assert len(points) >= before[run] and len(points) % 50 == 0
        other.stop()
    kept = tmp_path / "restored" / "one" / "artifacts" / "0" / runs[0] / "artifacts" / "f.txt"
    assert kept.read_bytes() == b"hello"


def test_backups_of_the_server_are_listed_fetched_and_deleted(own_server):
    server = own_server()
    base = f"{server.url}/api/2.0/tune/backups"
    assert requests.get(base).json() == {"backups": []}
    job = wait_for_job(server, post(server, "tune/backups", {"with_artifacts": True}).json())
    name = job["result"]["file"]
    assert (server.data / "backups" / name).exists()
    assert [each["name"] for each in requests.get(base).json()["backups"]] == [name]
    assert requests.get(f"{base}/{name}").status_code == 401, "the whole database"
    session = requests.Session()
    session.headers.update(server.credentials)
    part = session.get(f"{base}/{name}", headers={"Range": "bytes=0-15"})
    assert part.status_code == 206 and part.content == b"tune-backup.json"
    assert requests.delete(f"{base}/{name}").status_code == 401
    assert session.delete(f"{base}/{name}").status_code == 200
    assert session.delete(f"{base}/{name}").status_code == 404
    for hostile in ("..%2Ftune.db", "%2e%2e%2ftune.db", "tune.db", "tune-..%2F.backup", "tune-1.backup%00", "x" * 300):
        assert session.get(f"{base}/{hostile}").status_code == 404, hostile
        assert session.delete(f"{base}/{hostile}").status_code == 404, hostile
    assert (server.data / "tune.db").exists()


@needs_tune
def test_what_is_no_backup_is_refused(tmp_path):
    (tmp_path / "x").write_text("not a backup")
    refused = tune("restore", tmp_path / "x", "--data", tmp_path / "d", code=2)
    assert "is not a backup made by `tune backup`" in refused.stderr
    assert not (tmp_path / "d" / "tune.db").exists()
    assert "no database of tune" in tune("backup", tmp_path / "y", "--data", tmp_path / "none", code=1).stderr
    assert not (tmp_path / "y").exists()

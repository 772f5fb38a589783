"""Alerts on runs: rules over REST and the command line, dead clients, events for the page and webhooks."""

import json
import math
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import requests

from conftest import BIN_DIR
from webhook_receiver import Receiver

pytestmark = pytest.mark.skipif(not (BIN_DIR / "tune").exists(), reason="needs the program tune")


def add(server, **rule):
    answer = requests.post(f"{server.url}/api/2.0/tune/alerts", json=rule, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()["alert"]


def alert(server, *words):
    done = subprocess.run([str(BIN_DIR / "tune"), "alert", *words, "--server", server.url], capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


class Events:
    """The page's stream of live events."""

    def __init__(self, server, topic):
        self.answer = requests.get(f"{server.url}/api/ui/events?topics={topic}", stream=True, timeout=60)
        assert self.answer.status_code == 200, self.answer.text

    def wait_for(self, kind):
        name = None
        for line in self.answer.iter_lines(chunk_size=1, decode_unicode=True):
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: ") and name == kind:
                return json.loads(line[6:])
        raise AssertionError("the stream ended")


def test_nan_marks_the_run_and_notifies_the_page_and_the_webhook(own_server):
    import mlflow

    server = own_server(more=("--webhook-allow-private", "--webhook-allow-http"))
    client = mlflow.MlflowClient(tracking_uri=server.url)
    receiver = Receiver()
    requests.post(f"{server.url}/api/2.0/tune/webhooks", timeout=30, json={
        "name": "alerts", "url": receiver.url, "events": [{"entity": "RUN", "action": "ALERTED"}]})
    add(server, kind="nan")
    run = client.create_run("0").info.run_id
    events = Events(server, f"run:{run}")
    client.log_metric(run, "loss", 0.5, step=1)
    client.log_metric(run, "loss", math.nan, step=2)
    told = events.wait_for("alert")
    assert told == {"run_id": run, "experiment_id": "0", "kind": "nan", "message": "loss is NaN at step 2"}
    assert client.get_run(run).data.tags["tune.alert.nan"] == "loss is NaN at step 2"
    body = receiver.bodies(1)[0]
    assert (body["entity"], body["action"]) == ("run", "alerted")
    assert body["data"] == told
    receiver.close()


def wait_for_end(client, run, seconds=60):
    """The run when it runs no more."""
    deadline = time.monotonic() + seconds
    while (found := client.get_run(run)).info.status == "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def test_a_dead_client_leaves_no_running_run(own_server):
    import mlflow

    server = own_server()
    client = mlflow.MlflowClient(tracking_uri=server.url)
    add(server, kind="silence", seconds=2)
    script = (
        "import mlflow, os, sys\n"
        f"mlflow.set_tracking_uri({server.url!r})\n"
        "run = mlflow.start_run()\n"
        "mlflow.log_metric('m', 1)\n"
        "print(run.info.run_id, flush=True)\n"
        "sys.stdin.read()\n"
    )
    victim = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    run = victim.stdout.readline().strip()
    assert len(run) == 32
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    found = wait_for_end(client, run)
    assert found.info.status == "KILLED" and found.info.end_time is not None
    said = re.fullmatch(r"no write for (\d+) s; the run was ended as KILLED", found.data.tags["tune.alert.silence"])
    assert said and int(said.group(1)) >= 2, found.data.tags


def test_a_run_that_works_is_left_alone(own_server):
    import mlflow

    server = own_server()
    client = mlflow.MlflowClient(tracking_uri=server.url)
    add(server, kind="silence", seconds=10)  # the worker below writes fifty times as often
    parent = client.create_run("0").info.run_id
    child = client.create_run("0", tags={"mlflow.parentRunId": parent}).info.run_id
    silent = client.create_run("0").info.run_id
    events = Events(server, f"run:{silent}")
    stop = threading.Event()

    def work():
        step = 0
        while not stop.wait(0.2):
            client.log_metric(child, "m", step, step=step)
            step += 1

    worker = threading.Thread(target=work)
    worker.start()
    try:
        if client.get_run(silent).info.status == "RUNNING":  # else the event was before the subscription
            assert events.wait_for("alert")["kind"] == "silence"
        assert client.get_run(silent).info.status == "KILLED"
        assert client.get_run(child).info.status == "RUNNING"
        assert client.get_run(parent).info.status == "RUNNING", "its child's writes are its own"
    finally:
        stop.set()
        worker.join()


def test_kill_9_of_the_server_keeps_rules_and_silence(own_server):
    import mlflow

    server = own_server()
    client = mlflow.MlflowClient(tracking_uri=server.url)
    add(server, kind="silence", seconds=2, experiment_id="0")
    add(server, kind="plateau", metric="loss", points=3)
    silent = client.create_run("0").info.run_id
    flat = client.create_run(client.create_experiment("noisy")).info.run_id  # no silence ends it while the server is away
    for step in range(3):
        client.log_metric(flat, "loss", 1.0, timestamp=step, step=step)
    server.kill()
    again = own_server()
    client = mlflow.MlflowClient(tracking_uri=again.url)
    assert len(requests.get(f"{again.url}/api/2.0/tune/alerts", timeout=30).json()["alerts"]) == 2
    events = Events(again, f"run:{flat}")
    client.log_metric(flat, "loss", 1.0, timestamp=3, step=3)
    assert events.wait_for("alert")["message"].startswith("loss has not improved by more than 0.0 in 3 points")
    quiet = Events(again, f"run:{silent}")
    if client.get_run(silent).info.status == "RUNNING":
        quiet.wait_for("alert")
    assert client.get_run(silent).info.status == "KILLED"


def test_the_command_line(own_server):
    server = own_server()
    assert alert(server, "ls")[:2] == (0, f"no alerts in {server.url}\n")
    code, out, _ = alert(server, "add", "nan", "--json")
    first = json.loads(out)
    assert code == 0 and first["kind"] == "nan"
    code, out, _ = alert(server, "add", "plateau", "-m", "val:loss:max", "--points", "20", "--min-delta", "0.01",
                         "--experiment", "0", "--json")
    second = json.loads(out)
    assert code == 0 and (second["metric"], second["goal"], second["points"]) == ("val:loss", "max", 20)
    code, out, _ = alert(server, "add", "silence", "--after", "10m")
    assert code == 0 and "no write for 600 s" in out
    code, out, _ = alert(server, "ls")
    assert code == 0 and first["alert_id"] in out and "any metric is NaN or infinite" in out
    assert len(json.loads(alert(server, "ls", "--json")[1])["alerts"]) == 3
    assert alert(server, "rm", first["alert_id"])[0] == 0
    code, _, err = alert(server, "rm", first["alert_id"])
    assert code == 1 and "no alert with id" in err
    code, _, err = alert(server, "add", "plateau", "--points", "3")
    assert code != 0 and "'metric' of an alert" in err
    code, _, err = alert(server, "add", "silence")
    assert code != 0 and "'seconds' of an alert" in err
    assert alert(server, "add", "sometimes")[0] == 2
    assert len(json.loads(alert(server, "ls", "--json")[1])["alerts"]) == 2


def test_bad_rules_are_refused(own_server):
    server = own_server()
    for rule in ({}, {"kind": "x"}, {"kind": "silence"}, {"kind": "silence", "seconds": 0},
                 {"kind": "nan", "points": 1},
                 {"kind": "plateau", "metric": "m"}, {"kind": "nan", "experiment_id": "x"}):
        answer = requests.post(f"{server.url}/api/2.0/tune/alerts", json=rule, timeout=30)
        assert answer.status_code == 400 and answer.json()["error_code"] == "INVALID_PARAMETER_VALUE", rule
    answer = requests.post(f"{server.url}/api/2.0/tune/alerts", data='{"kind": "nan"}', timeout=30,
                           headers={"Content-Type": "text/plain"})
    assert answer.status_code == 400 and "Content-Type" in answer.json()["message"]
    unknown = {"kind": "nan", "experiment_id": "999"}
    answer = requests.post(f"{server.url}/api/2.0/tune/alerts", json=unknown, timeout=30)
    assert answer.status_code == 404
    for i in range(100):
        add(server, kind="nan")
    assert requests.post(f"{server.url}/api/2.0/tune/alerts", json={"kind": "nan"}, timeout=30).status_code == 429
    assert requests.delete(f"{server.url}/api/2.0/tune/alerts/nosuch", timeout=30).status_code == 404

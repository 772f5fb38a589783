"""Scripts as people have them: with set_experiment, with another tracking URI, with a login of their own. And what an
attempt's credential, which makes the first of these work, keeps out."""

import contextlib
import json
import pathlib
import socket
import time

import mlflow
import pytest
import requests

from agent_support import PYTHON, TRIAL, Farm, wait_for

# Each trial names an experiment in another way; nothing else in the script knows of tune.
NAMING = """
import os
import mlflow
way = int(os.environ["TUNE_TRIAL"])
if way == 0:
    mlflow.set_experiment("mine")
elif way == 1:
    mlflow.set_experiment(experiment_id="0")
elif way == 2:
    os.environ["MLFLOW_EXPERIMENT_NAME"] = "mine"
else:
    try:
        made = mlflow.create_experiment("mine")
    except mlflow.exceptions.MlflowException:
        made = mlflow.get_experiment_by_name("mine").experiment_id
    mlflow.set_experiment(experiment_id=made)
with mlflow.start_run():
    mlflow.log_metric("loss", way)
with mlflow.start_run(run_name="second"):  # a run of its own, in the experiment that it set
    mlflow.log_metric("loss", -1)
"""

# After one that logs here, another tracking URI in place of the server: as it is, for a folder with MLflow's leave, and as a
# run of its own.
ELSEWHERE = """
import os
import mlflow
way = int(os.environ["TUNE_TRIAL"])
if way > 1:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
if way == 3:
    del os.environ["MLFLOW_RUN_ID"], os.environ["MLFLOW_EXPERIMENT_ID"]
if way > 0:
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "1"
    mlflow.set_tracking_uri(os.environ["ELSEWHERE"])
with mlflow.start_run():
    mlflow.log_metric("loss", 1)
"""


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        yield made


def script(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(text)
    return [PYTHON, str(path)]


def test_set_experiment_leads_to_the_studys(farm, tmp_path):
    farm.create("s", script(tmp_path, NAMING), 4)
    farm.start_agent(slots=2)
    trials = farm.wait_for_end("s")
    assert [(trial["state"], trial["value"]) for trial in trials] == [("complete", way) for way in range(4)], trials
    client = mlflow.MlflowClient(farm.url)
    assert {experiment.name for experiment in client.search_experiments()} == {"s", "Default"}, "none was made"
    asked = [client.get_run(trial["run_id"]).data.tags.get("tune.requested_experiment") for trial in trials]
    assert asked == ["mine", "id 0", "mine", "mine"]
    runs = client.search_runs([farm.study("s")["experiment_id"]])
    assert sorted(run.info.run_name for run in runs).count("second") == 4
    assert len(runs) == 1 + 4 + 4  # the study, its trials, their second runs
    assert not client.search_runs(["0"])


@pytest.mark.parametrize("kind", ["folder", "database", "server"])
def test_another_tracking_uri_is_named_as_the_cause(farm, tmp_path, kind):
    with contextlib.ExitStack() as stack:
        uri = {"folder": "file:./elsewhere", "database": f"sqlite:///{tmp_path}/elsewhere.db"}.get(kind)
        if uri is None:
            (tmp_path / "other").mkdir()
            other = stack.enter_context(Farm(tmp_path / "other"))
            uri = other.url
        farm.create("s", script(tmp_path, ELSEWHERE), 4, working_dir=str(tmp_path), env={"ELSEWHERE": uri})
        farm.start_agent(slots=1)
        here, *others = farm.wait_for_end("s")
    assert here["state"] == "complete"
    reasons = [trial["reason"] for trial in others]
    assert ("The filesystem tracking backend" if kind == "folder" else "not found") in reasons[0]
    assert "not found" in reasons[1]
    for reason in reasons[:2]:
        assert "exit code 1" in reason and "the script sets another tracking URI" in reason
    assert "metric 'loss' never arrived" in reasons[2] and "take mlflow.set_tracking_uri out" in reasons[2]


def test_a_server_that_nobody_reaches_is_named(farm, tmp_path):
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        farm.create("s", script(tmp_path, ELSEWHERE), 2, env={"ELSEWHERE": nobody})
        farm.start_agent(slots=1)
        here, lost = farm.wait_for_end("s")
    assert here["state"] == "complete" and lost["state"] == "failed"
    assert f"unless {nobody} is this server, the script sets another tracking URI" in lost["reason"], lost["reason"]


def test_a_file_that_is_missing_is_not_blamed_on_the_tracking_uri(farm, tmp_path):
    source = """import os
raise FileNotFoundError(f"/models/{os.environ['MLFLOW_RUN_ID']}/model.pt not found")
"""
    farm.create("s", script(tmp_path, source), 1)
    farm.start_agent(slots=1)
    [trial] = farm.wait_for_end("s")
    assert "model.pt not found" in trial["reason"] and "tracking URI" not in trial["reason"]


def lease(farm, agent):
    farm.post("tune/agents/register", {"agent_id": agent, "slots": 1})
    answer = farm.post(f"tune/agents/{agent}/lease", {"free_slots": 1, "wait_ms": 20_000, "wants_tokens": True})
    return answer["leases"][0]


def log(farm, run_id, value, token=None):
    return requests.post(
        farm.url + "/api/2.0/mlflow/runs/log-metric", timeout=60,
        json={"run_id": run_id, "key": "loss", "value": value, "timestamp": time.time_ns() // 10**6},
        headers={"Authorization": "Bearer " + token} if token else {})


def test_the_holder_of_a_lost_lease_cannot_decide_the_trial(farm):
    farm.create("s", ["true"], 1)
    old = lease(farm, "a")
    assert log(farm, old["run_id"], 3, old["token"]).status_code == 200
    farm.post("tune/agents/register", {"agent_id": "a", "slots": 1})  # has forgotten its attempt, which is lost
    current = lease(farm, "b")
    assert (current["run_id"], current["attempt"]) == (old["run_id"], 2)
    refused = log(farm, old["run_id"], -999, old["token"])
    assert refused.status_code == 409 and refused.json()["error_code"] == "RESOURCE_CONFLICT", refused.text
    assert "attempt 1 of run" in refused.json()["message"]
    assert log(farm, old["run_id"], -999).status_code == 409
    assert log(farm, old["run_id"], 0.5, current["token"]).status_code == 200
    farm.server.kill()
    farm.start_server()
    assert log(farm, old["run_id"], -999, old["token"]).status_code == 409
    assert log(farm, old["run_id"], 0.25, current["token"]).status_code == 200
    held = {"run_id": current["run_id"], "attempt": 2}
    farm.post("tune/agents/register", {"agent_id": "b", "slots": 1, "running": [held]})
    farm.post(f"tune/agents/b/attempts/{current['run_id']}/2/finish", {"request_id": "f", "outcome": "done"})
    trial = farm.wait_for_end("s")[0]
    assert (trial["state"], trial["value"]) == ("complete", 0.25)


def test_the_credential_lies_on_no_disk_and_outlives_the_agent(farm, tmp_path):
    farm.create("s", [PYTHON, "-c", TRIAL], 1, env=farm.gate(0))
    farm.start_agent(slots=1)
    environment = pathlib.Path(f"/proc/{farm.trial_process(0)}/environ").read_bytes().split(b"\0")
    token = next(item for item in environment if item.startswith(b"MLFLOW_TRACKING_TOKEN=")).partition(b"=")[2]
    assert token.startswith(b"tune-attempt.")
    secret = token.rpartition(b".")[2]
    record = next((farm.state_dir() / "attempts").glob("*/attempt.json"))
    assert record.stat().st_mode & 0o777 == 0o600
    assert json.loads(record.read_text())["lease"]["run_id"].encode() in token
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert record in files and any(path.name == "tune.db" for path in files)
    assert [path for path in files if secret in path.read_bytes()] == []
    farm.agents["agent"].kill()
    farm.start_agent(slots=1)
    wait_for(lambda: "adopted 1 running" in (farm.folder / "agent.log").read_text(), "the agent's adoption")
    run_id = farm.trials("s")[0]["run_id"]
    assert log(farm, run_id, 1, token.decode()).status_code == 200
    farm.gate(None)
    assert farm.wait_for_end("s")[0]["state"] == "complete"
    assert log(farm, run_id, 1, token.decode()).status_code == 409


def test_a_login_of_the_users_own_is_passed_on(farm, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "of-a-proxy")
    farm.create("s", ["sh", "-c", """test "$MLFLOW_TRACKING_TOKEN" = of-a-proxy && echo 'tune: {"loss": 1}'"""], 1)
    farm.start_agent(slots=1)
    assert farm.wait_for_end("s")[0]["state"] == "complete"

"""The credentials of attempts that clients ask for themselves, and what a trial's own `tune` may do."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from study_support import OK, ROOT, TUNE, call, run_arguments, server, wait_until

STUDY = {"name": "s", "metric": {"name": "loss", "goal": "min"}, "space": {"x": {"float": [0, 1]}},
         "budget": {"trials": 3}}


def log(url, run_id, value, token=None, key="loss"):
    """The status of a log-metric, which MLflow's client would send."""
    body = json.dumps({"run_id": run_id, "key": key, "value": value, "timestamp": 1, "step": 0}).encode()
    headers = {"Content-Type": "application/json", **({"Authorization": "Bearer " + token} if token else {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(url + "/api/2.0/mlflow/runs/log-metric", body, headers),
                                    timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def ask(url, **body):
    return call(url, "/api/2.0/tune/studies/s/ask", body)[1]["trials"][0]


def trials(url):
    return call(url, "/api/2.0/tune/studies/s/trials")[1]["trials"]


def test_what_a_lost_attempt_logs_is_refused(tmp_path):
    with server(tmp_path) as (_, url):
        call(url, "/api/2.0/tune/studies", STUDY)
        first = ask(url, lease_ttl_ms=300)
        run_id = first["run_id"]
        assert first["token"].startswith(f"tune-attempt.{run_id}.1.")
        assert log(url, run_id, 0.5) == 200, "so far only this attempt can have sent it"
        assert log(url, run_id, 0.5, first["token"]) == 200
        assert log(url, run_id, -999) == 409, "it sends its credential"
        wait_until(lambda: trials(url)[0]["state"] != "running", "the lease's end")
        second = ask(url, lease_ttl_ms=60_000)
        assert (second["run_id"], second["attempt"]) == (run_id, 2) and second["token"] != first["token"]
        for key in ("loss", "anything"):
            assert log(url, run_id, -999, first["token"], key) == 409
        assert log(url, run_id, -999) == 409, "it may come from the lost attempt"
        assert log(url, run_id, 0.25, second["token"]) == 200
        call(url, "/api/2.0/tune/studies/s/tell", {"number": 0, "attempt": 2})
        trial = trials(url)[0]
        assert (trial["state"], trial["value"]) == ("complete", 0.25)
        assert log(url, run_id, -999, second["token"]) == 409, "it is over"


def test_a_repeated_ask_gives_a_new_credential(tmp_path):
    with server(tmp_path) as (process, url):
        call(url, "/api/2.0/tune/studies", STUDY)
        first, again = ask(url, request_id="one"), ask(url, request_id="one")
        assert (first["number"], first["attempt"]) == (again["number"], again["attempt"])
        assert log(url, first["run_id"], 1, first["token"]) == 409 and log(url, first["run_id"], 1, again["token"]) == 200
        waiting = call(url, "/api/2.0/tune/studies/s/enqueue", {"params": {"x": 0.5}})[1]
        assert "token" not in waiting, "nobody runs it yet"
        process.kill()
        process.wait()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "tune-data").rglob("*") if path.is_file())
    assert again["token"].rpartition(".")[2].encode() not in stored, "its hash is what is kept"
    with server(tmp_path) as (_, url):
        assert log(url, first["run_id"], 1, again["token"]) == 200, "it outlives the server"


def test_the_python_clients_trial_has_its_token(tmp_path):
    script = ("import sys, tune_client as t\n"
              "trial = t.load_study('s', server=sys.argv[1]).ask()\n"
              "print(trial.token)\n")
    with server(tmp_path) as (_, url):
        call(url, "/api/2.0/tune/studies", STUDY)
        done = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python")})
        assert done.stdout.startswith("tune-attempt."), done.stderr


# With the stock client: what is the trial's own goes as ever, what is another's is refused.
SCRIPT = """
import os, sys
import mlflow
from mlflow.exceptions import MlflowException
other, client = sys.argv[1], mlflow.MlflowClient()
mlflow.set_experiment("mine")
with mlflow.start_run() as run:
    mlflow.log_metric("loss", 0.5)
    mlflow.log_text("hello", "note.txt")
    mlflow.log_input(mlflow.data.from_numpy(__import__("numpy").zeros(3)), context="train")
    with mlflow.start_run(nested=True) as child:
        mlflow.log_metric("inner", 1)
        mlflow.log_text("hello", "note.txt")
        with mlflow.start_run(nested=True):
            mlflow.log_param("depth", 2)
    model = mlflow.create_external_model(name="net")
    mlflow.set_logged_model_tags(model.model_id, {"kind": "net"})
    mlflow.log_metric("score", 1, model_id=model.model_id)
    client.create_registered_model("digits")
    client.create_model_version("digits", f"models:/{model.model_id}", run_id=run.info.run_id, model_id=model.model_id)
with mlflow.start_run() as second:
    mlflow.log_metric("later", 1)
client.delete_run(child.info.run_id)
refused = 0
for call in (lambda: client.log_metric(other, "note", 1), lambda: client.set_tag(other, "a", "b"),
             lambda: client.log_text(other, "hello", "note.txt"), lambda: client.delete_run(other),
             lambda: client.set_experiment_tag(run.info.experiment_id, "a", "b"),
             lambda: client.delete_experiment(run.info.experiment_id), lambda: client.delete_registered_model("digits"),
             lambda: client.create_run("0")):
    try:
        call()
    except (MlflowException, OSError) as error:
        assert "is none of these" in str(error) or "403" in str(error), error
        refused += 1
print(run.info.run_id, child.info.run_id, second.info.run_id, refused)
"""


@pytest.mark.parametrize("flags", [(), ("--host", "0.0.0.0", "--insecure-no-tls")], ids=["loopback", "beyond"])
def test_a_script_writes_what_is_its_trials(tmp_path, flags):
    with server(tmp_path, *flags) as (_, printed):
        url = printed.replace("0.0.0.0", "127.0.0.1")
        call(url, "/api/2.0/tune/studies", STUDY)
        own, other = ask(url), ask(url)
        environment = {**os.environ, "MLFLOW_TRACKING_URI": url, "MLFLOW_TRACKING_TOKEN": own["token"],
                       "MLFLOW_RUN_ID": own["run_id"], "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
        done = subprocess.run([sys.executable, "-c", SCRIPT, other["run_id"]], capture_output=True, text=True,
                              timeout=200, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        run, child, second, refused = done.stdout.split()[-4:]
        assert run == own["run_id"] and refused == "8"
        for made in (child, second):
            tags = call(url, f"/api/2.0/mlflow/runs/get?run_id={made}")[1]["run"]["data"]["tags"]
            assert {"key": "mlflow.parentRunId", "value": run} in tags
        untouched = call(url, f"/api/2.0/mlflow/runs/get?run_id={other['run_id']}")[1]["run"]
        assert untouched["info"]["lifecycle_stage"] == "active" and not untouched["data"].get("metrics")


TRIAL = """
import json, os, subprocess, sys
import tune_client
url, tune = os.environ["MLFLOW_TRACKING_URI"], sys.argv[1]
def run(*words):
    return subprocess.run([tune, *words], capture_output=True, text=True, timeout=100)
looked = run("ls", "--server", url)
changed = [run(verb, "s", "--server", url) for verb in ("pause", "stop")]
try:
    tune_client.load_study("s", server=url).ask()
    asked = "it asked"
except tune_client.TuneError as error:
    asked = str(error.status)
# A study of its own, in a folder of its own: there it is the owner.
inner = run("run", "-n", "2", "-m", "y:min", "--port", "0", "--study", "inner", "--data", "inner", "x=0..1", "--",
            "sh", "-c", 'echo "tune: {\\\\"y\\\\": {x}}"')
json.dump({"looked": looked.returncode, "changed": [c.returncode for c in changed], "said": changed[0].stderr,
           "asked": asked, "inner": inner.returncode, "inner_said": inner.stderr}, open("found.json", "w"))
print('tune: {"loss": 1}')
"""


def test_a_trial_is_not_the_owner(tmp_path):
    """`tune` within a trial goes by the credential of the attempt, not by the token that lies in the owner's folder."""
    (tmp_path / "trial.py").write_text(TRIAL)
    done = subprocess.run([TUNE, *map(str, run_arguments([sys.executable, tmp_path / "trial.py", TUNE], trials=1))],
                          cwd=tmp_path, capture_output=True, text=True, timeout=200,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python"), "TUNE_RUNTIME_DIR": ""})
    assert done.returncode == OK, done.stderr
    found = json.loads(next(tmp_path.rglob("found.json")).read_text())
    assert found["looked"] == 0 and 0 not in found["changed"], found
    assert found["asked"] == "403" and "attempt" in found["said"], found
    assert found["inner"] == 0, found

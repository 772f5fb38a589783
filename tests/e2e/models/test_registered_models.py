"""`register`: the model of a study's best trial becomes a version, exactly once; and other studies start from it."""

import os
import subprocess
import sys

import mlflow
import pytest

from agent_support import PYTHON, Farm, wait_for
from study_support import OK, USAGE, start, tune, tune_json
from trainer_support import TRAINER, digits, train, write_digits

LEAVES = """
import json, os, pathlib
x = json.loads(os.environ["TUNE_PARAMS"])["x"]
folder = pathlib.Path(os.environ["TUNE_MODEL_DIR"])
folder.mkdir()
(folder / "MLmodel").write_text("flavors:\\n  mine:\\n    x: %r\\n" % x)
print('tune: {"loss": %r, "step": 1}' % x)
"""

# Not a word of ours: a script that logs its model through MLflow.
OWN = """
import json, os, sys
import mlflow
from sklearn.dummy import DummyRegressor
x = float(sys.argv[1])
with mlflow.start_run():
    mlflow.log_metric("loss", x)
    mlflow.sklearn.log_model(DummyRegressor(strategy="constant", constant=x).fit([[0]], [x]), name="mine")
"""


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        yield made


def versions(farm, name="winner"):
    return sorted(mlflow.MlflowClient(farm.url).search_model_versions(f"name = '{name}'"), key=lambda v: int(v.version))


def wait_for_registration(farm, study="s"):
    farm.wait_for_end(study)
    return wait_for(lambda: farm.study(study).get("registered"), "the registration")


def test_tune_run_registers_and_says_so(tmp_path):
    words = ["run", "-n", 4, "-m", "loss:min", "--port", 0, "--study", "s", "--seed", 7, "--register", "winner", "x=0..1",
             "--", PYTHON, "-c", LEAVES]
    done = tune(*words, cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    shown = tune_json("show", "s", cwd=tmp_path)
    best = shown["study"]["best"]
    assert f"The model of trial {best['number']} is registered as winner version 1" in done.stdout
    assert shown["study"]["registered"]["version"] == 1
    # The same command again has nothing to do, and makes no second version.
    again = tune(*words, cwd=tmp_path)
    assert again.returncode == OK and "registered as winner version 1" in again.stdout
    # More trials with a better one: the next version.
    more = tune(*[40 if word == 4 else word for word in words], cwd=tmp_path)
    assert more.returncode == OK, more.stderr
    later = tune_json("show", "s", cwd=tmp_path)["study"]
    assert later["best"]["number"] != best["number"], "or this test shows nothing"
    assert later["registered"] == {"name": "winner", "version": 2, "trial": later["best"]["number"],
                                   "model_id": later["registered"]["model_id"]}


def test_the_version_points_at_the_best_trials_model(farm):
    farm.start_agent()
    farm.create("s", [PYTHON, "-c", LEAVES], trials=5, register="winner")
    registered = wait_for_registration(farm)
    best = farm.study("s")["best"]
    version, = versions(farm)
    assert version.run_id == best["run_id"] and version.source == f"models:/{registered['model_id']}"
    assert version.status == "READY" and version.tags["tune.study"] == "s"
    client = mlflow.MlflowClient(farm.url)
    model = client.get_logged_model(registered["model_id"])
    assert model.source_run_id == best["run_id"] and '"winner"' in model.tags["mlflow.modelVersions"]
    parent = client.get_run(farm.study("s")["run_id"])
    assert parent.data.tags["tune.registered"] == "winner/1"


def test_a_model_that_the_script_logged_itself(farm):
    farm.start_agent()
    farm.create("s", [PYTHON, "-c", OWN, "{x}"], trials=2, register="winner")
    wait_for_registration(farm)
    version, = versions(farm)
    assert version.run_id == farm.study("s")["best"]["run_id"]
    mlflow.set_tracking_uri(farm.url)
    assert mlflow.pyfunc.load_model("models:/winner/1").predict([[0]]) == pytest.approx(farm.study("s")["best"]["value"])


def test_nothing_to_register_is_said(farm):
    farm.start_agent()
    farm.create("s", ["echo", 'tune: {"loss": {x}}'], trials=2, register="winner")
    registered = wait_for_registration(farm)
    assert "logged no model" in registered["error"] and "version" not in registered
    assert versions(farm) == []


def test_exactly_once_over_restarts(farm):
    """The server is killed around the end of each study; versions and studies agree afterwards."""
    farm.start_agent()
    for number in range(6):
        name = f"s{number}"
        farm.create(name, [PYTHON, "-c", LEAVES], trials=2, register=f"winner-{number}")
        # From the first moment at which all trials have ended, each time a little later.
        wait_for(lambda name=name: farm.study(name)["counts"]["complete"] == 2, "both trials")
        for _ in range(number):
            farm.study(name)
        farm.server.kill()
        farm.start_server()
    for number in range(6):
        registered = wait_for_registration(farm, f"s{number}")
        assert registered.get("version") == 1, registered
        version, = versions(farm, f"winner-{number}")
        assert version.run_id == farm.study(f"s{number}")["best"]["run_id"]


def test_a_registered_model_is_the_start_of_another_study(farm, tmp_path):
    data = write_digits(tmp_path / "digits", train_count=800)
    farm.start_agent(slots=1)
    train_command = [str(TRAINER), "train", f"--data={data}", "--width=32", "{args}"]
    common = {"space": {"lr": "1e-3..1e-2:log"}, "metric": {"name": "val_loss", "goal": "minimize"}, "trials": 1}
    farm.create("first", [*train_command, "--epochs=8"], register="digits", **common)
    registered = wait_for_registration(farm, "first")
    client = mlflow.MlflowClient(farm.url)
    client.set_registered_model_alias("digits", "champion", registered["version"])
    folder = tmp_path / "champion"
    subprocess.run([PYTHON, "-m", "mlflow", "artifacts", "download", "-u", "models:/digits@champion", "-d", str(folder)],
                   check=True, env={**os.environ, "MLFLOW_TRACKING_URI": farm.url}, capture_output=True, timeout=120)
    farm.create("second", [*train_command, "--epochs=1", f"--init-from={folder}"], **common)
    trial, = farm.wait_for_end("second")
    assert trial["state"] == "complete", trial["reason"]
    # By its names, which the agent resolves: nobody has to fetch it.
    names = ["models:/digits@champion", f"models:/digits/{registered['version']}", f"models:/{registered['model_id']}"]
    for number, words in enumerate([[f"--init-from={names[0]}"], ["--init-from", names[1]], [f"--init-from={names[2]}"]]):
        farm.create(f"named-{number}", [*train_command, "--epochs=1", *words], **common)
        named, = farm.wait_for_end(f"named-{number}")
        assert (named["state"], named["value"]) == ("complete", trial["value"]), named["reason"]
        assert names[number] in wait_for(lambda: farm.artifact(named, "logs/agent.log"), "the agent's log")
    farm.create("pooled", [str(TRAINER), "pool", f"--data={data}", "--width=32", "--epochs=1", f"--init-from={names[0]}"],
                resources={"pool": 2}, **common)
    pooled, = farm.wait_for_end("pooled")
    assert (pooled["state"], pooled["value"]) == ("complete", trial["value"]), pooled["reason"]
    farm.create("scratch", [*train_command, "--epochs=1"], **common)
    scratch, = farm.wait_for_end("scratch")
    assert trial["value"] < scratch["value"] / 2, "what was learnt was taken along"
    log = wait_for(lambda: farm.artifact(trial, "logs/stderr.log"), "the log")
    assert "starts from" in log and "6 tensors taken" in log


@pytest.mark.parametrize("uri, words", [("models:/nothing@champion", "nothing"), ("models:/nothing/3", "nothing"),
                                        ("models:/nothing", "neither models:/NAME/VERSION nor models:/NAME@ALIAS")])
def test_a_model_that_is_not_there(farm, uri, words):
    farm.start_agent(slots=1)
    farm.create("s", [PYTHON, "-c", "pass", f"--init-from={uri}"], trials=1)
    wait_for(lambda: farm.trials("s") and farm.trials("s")[0]["state"] == "failed", "the refusal")
    trial, = farm.trials("s")
    assert trial["attempt"] == 1 and uri in trial["reason"] and words in trial["reason"], trial["reason"]


def test_bad_values(tmp_path):
    command = ["-n", 1, "-m", "loss:min", "--port", 0, "x=0..1", "--", "true"]
    done = tune("run", "--register", "a/b", *command, cwd=tmp_path)
    assert done.returncode == USAGE
    assert "register: expected the name of a registered model, without '/' and ':'" in done.stderr
    (tmp_path / "study.yaml").write_text(
        "study: s\nmetric: [{name: a, goal: min}, {name: b, goal: min}]\nspace: {x: 0..1}\nregister: m\ncommand: 'true'\n")
    done = tune("run", "study.yaml", "-n", 1, "--port", 0, cwd=tmp_path)
    assert done.returncode == USAGE
    assert "several objectives has no single best trial" in done.stderr

"""A model that a trial leaves becomes one logged model of its run, whatever is killed meanwhile; and stock MLflow loads it."""

import json
import os
import pathlib
import sys

import mlflow
import numpy as np
import pytest

from agent_support import PYTHON, Farm, wait_for
from models.models_support import cross_entropy, make_torch_work, predict
from trainer_support import TRAINER, digits, write_digits

SKLEARN = """
import json, os
import mlflow, numpy
from sklearn.linear_model import LinearRegression
x = json.loads(os.environ["TUNE_PARAMS"])["x"]
model = LinearRegression().fit(numpy.array([[0.0], [1.0]]), numpy.array([0.0, x]))
mlflow.sklearn.save_model(model, os.environ["TUNE_MODEL_DIR"])
print('tune: {"loss": %r, "step": 1}' % x)
"""

# Any program may leave a model; this one is of `BYTES`, so that its upload takes a while.
PLAIN = """
import json, os, pathlib, sys
x = json.loads(os.environ["TUNE_PARAMS"])["x"]
folder = pathlib.Path(os.environ["TUNE_MODEL_DIR"])
(folder / "data").mkdir(parents=True)
(folder / "data" / "first.txt").write_text(str(x))
with open(folder / "data" / "weights.bin", "wb") as file:
    for i in range(int(os.environ.get("MEGABYTES", 1))):
        file.write(bytes([i % 251]) * 1000000)
(folder / "MLmodel").write_text("flavors:\\n  mine:\\n    data: data\\nmodel_id: not-this\\nrun_id: null\\n")
print('tune: {"loss": %r, "step": 3}' % x, flush=True)
sys.exit(int(os.environ.get("CODE", 0)))
"""


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        yield made


def models_of(farm, experiment_id=None):
    """As the server's search gives them, of all runs."""
    experiment = experiment_id or farm.study("s")["experiment_id"]
    return farm.post("mlflow/logged-models/search", {"experiment_ids": [experiment]}).get("models", [])


def files_of(farm, model):
    """{path: size} on the disk of the server."""
    root = next((farm.folder / "data").glob(f"**/models/{model['info']['model_id']}/artifacts"))
    return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}


def test_a_trained_model_is_logged_and_loaded_by_stock_mlflow(farm, tmp_path):
    torch_works = make_torch_work(tmp_path / "data")
    data = write_digits(tmp_path / "digits", train_count=400)
    farm.start_agent()
    farm.create("s", [str(TRAINER), "train", f"--data={data}", "--epochs=3", "--width=16", "{args}"], trials=2,
                space={"lr": "1e-3..1e-1:log"}, metric={"name": "val_loss", "goal": "minimize"})
    trials = farm.wait_for_end("s")
    client = mlflow.MlflowClient(farm.url)
    mlflow.set_tracking_uri(farm.url)
    found = mlflow.search_logged_models(experiment_ids=[farm.study("s")["experiment_id"]], output_format="list")
    assert len(found) == 2
    images, labels = digits()
    for trial in trials:
        assert trial["state"] == "complete"
        run = client.get_run(trial["run_id"])
        output, = run.outputs.model_outputs
        model, = [each for each in found if each.model_id == output.model_id]
        assert model.status.value == "READY" and model.source_run_id == trial["run_id"] and model.name == "model"
        assert float(model.params["lr"]) == pytest.approx(trial["params"]["lr"])
        # The metrics of the epoch whose weights these are.
        history = {metric.step: metric.value for metric in client.get_metric_history(trial["run_id"], "val_loss")}
        best = min(history, key=history.get)
        metrics = {metric.key: metric for metric in model.metrics}
        assert metrics["val_loss"].value == history[best] and metrics["val_loss"].step == best == output.step
        made = predict(f"models:/{model.model_id}", images[1437:], tmp_path, torch_works, uri=farm.url)
        for flavor in ("pytorch", "pyfunc"):
            assert cross_entropy(made[flavor], labels[1437:]) == pytest.approx(history[best], rel=1e-5)
        assert str(made["run"]) == trial["run_id"]
        # What the trial's run showed to its study was not changed by the copy.
        assert len(client.get_metric_history(trial["run_id"], "val_loss")) == 3
        assert trial["value"] in history.values()


def test_any_program_may_leave_a_model(farm):
    farm.start_agent()
    farm.create("s", [PYTHON, "-c", SKLEARN], trials=1)
    trial, = farm.wait_for_end("s")
    assert trial["state"] == "complete", trial["reason"]
    model, = models_of(farm)
    assert model["info"]["status"] == "LOGGED_MODEL_READY"
    mlflow.set_tracking_uri(farm.url)
    loaded = mlflow.pyfunc.load_model(f"models:/{model['info']['model_id']}")
    assert loaded.predict(np.array([[1.0]])) == pytest.approx(trial["params"]["x"])
    assert loaded.metadata.model_id == model["info"]["model_id"] and loaded.metadata.run_id == trial["run_id"]


@pytest.mark.parametrize("code, state", [(10, "pruned"), (1, "failed"), (0, "complete")])
def test_only_a_complete_trial_logs_its_model(farm, code, state):
    farm.start_agent()
    farm.create("s", [PYTHON, "-c", PLAIN], trials=1, env={"CODE": str(code)}, stop_after_failures=0)
    trial, = farm.wait_for_end("s")
    assert trial["state"] == state
    assert len(models_of(farm)) == (1 if state == "complete" else 0)


def test_a_file_that_is_no_mlmodel_costs_the_trial_nothing(farm):
    farm.start_agent()
    program = PLAIN.replace(chr(34) + "flavors:", chr(34) + "{flavors")
    farm.create("s", [PYTHON, "-c", program], trials=1)
    trial, = farm.wait_for_end("s")
    assert trial["state"] == "complete" and models_of(farm) == []
    log = wait_for(lambda: farm.artifact(trial, "logs/agent.log"), "the agent's log")
    assert "its model was not logged: the file MLmodel is not what MLflow writes" in log


def pending(farm):
    return [model for model in models_of(farm) if model["info"]["status"] == "LOGGED_MODEL_PENDING"]


def check_one_whole_model(farm, megabytes):
    trial, = farm.wait_for_end("s")
    assert trial["state"] == "complete" and trial["attempt"] == 1
    model, = models_of(farm)
    assert model["info"]["status"] == "LOGGED_MODEL_READY"
    assert files_of(farm, model)["data/weights.bin"] == megabytes * 1_000_000
    mlmodel = next((farm.folder / "data").glob(f"**/models/{model['info']['model_id']}/artifacts/MLmodel")).read_text()
    assert f"model_id: {model['info']['model_id']}\n" in mlmodel and f"run_id: {trial['run_id']}\n" in mlmodel
    assert "not-this" not in mlmodel
    run = farm.run(trial["run_id"])
    assert [each["model_id"] for each in run["outputs"]["model_outputs"]] == [model["info"]["model_id"]]


MEGABYTES = 400


@pytest.mark.parametrize("victim", ["agent", "server", "both"])
def test_killed_while_the_model_is_uploaded(farm, victim):
    farm.start_agent(slots=1)
    farm.create("s", [PYTHON, "-c", PLAIN], trials=1, env={"MEGABYTES": str(MEGABYTES)})
    wait_for(lambda: pending(farm), "a model that is on its way")
    if victim != "server":
        farm.agents["agent"].kill()
    if victim != "agent":
        farm.server.kill()
        farm.start_server()
    model, = models_of(farm)
    assert model["info"]["status"] == "LOGGED_MODEL_PENDING", "what is not whole is not READY"
    if victim != "server":
        farm.start_agent(slots=1)
    check_one_whole_model(farm, MEGABYTES)


def test_an_agent_that_is_stopped_logs_it_first(farm):
    farm.start_agent(slots=1)
    farm.create("s", [PYTHON, "-c", PLAIN], trials=1, env={"MEGABYTES": str(MEGABYTES)})
    wait_for(lambda: pending(farm), "a model that is on its way")
    farm.agents["agent"].stop()
    check_one_whole_model(farm, MEGABYTES)


POOL = """
import json, pathlib, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "finish":
        break
    if request["op"] != "run":
        continue
    who = {"trial": request["trial"], "attempt": request["attempt"]}
    folder = pathlib.Path(request["model_dir"])
    (folder / "data").mkdir(parents=True)
    with open(folder / "data" / "weights.bin", "wb") as file:
        for i in range(%d):
            file.write(bytes([i %% 251]) * 1000000)
    (folder / "MLmodel").write_text("flavors:\\n  mine:\\n    data: data\\nmodel_id: not-this\\n")
    print(json.dumps({"event": "metrics", **who, "values": {"loss": request["parameters"]["x"], "step": 1}}), flush=True)
    print(json.dumps({"event": "ended", **who, "exit_code": 0}), flush=True)
""" % MEGABYTES


def test_the_agent_of_a_pool_is_killed_while_a_model_is_uploaded(farm):
    farm.start_agent(slots=1)
    farm.create("s", [PYTHON, "-c", POOL], trials=1, resources={"pool": 1})
    wait_for(lambda: pending(farm), "a model that is on its way")
    farm.agents["agent"].kill()
    farm.start_agent(slots=1)
    check_one_whole_model(farm, MEGABYTES)
    wait_for(lambda: not list(farm.state_dir().glob("pool-trials/*")), "the trial is forgotten")


def test_a_trial_of_a_pool(farm, tmp_path):
    data = write_digits(tmp_path / "digits", train_count=300)
    farm.start_agent(slots=1)
    farm.create("s", [str(TRAINER), "pool", f"--data={data}", "--epochs=2", "--width=8"], trials=6,
                space={"lr": "1e-3..1e-1:log"}, metric={"name": "val_loss", "goal": "minimize"}, resources={"pool": 3})
    trials = farm.wait_for_end("s")
    assert {trial["state"] for trial in trials} == {"complete"}
    models = models_of(farm)
    assert sorted(model["info"]["source_run_id"] for model in models) == sorted(trial["run_id"] for trial in trials)
    assert {model["info"]["status"] for model in models} == {"LOGGED_MODEL_READY"}
    # Nothing of it stays on the agent's disk.
    wait_for(lambda: not list(farm.state_dir().glob("pool-trials/*")), "the trials are forgotten")

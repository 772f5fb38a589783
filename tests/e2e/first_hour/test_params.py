"""What the tuner wrote as a trial's params is never in the way of what the trial's own script logs."""

import json

import mlflow
import pytest

from agent_support import PYTHON, Farm

# How people read what tune gives them, and what they log of it.
FROM_TUNE_PARAMS = """
import json, os, mlflow
params = json.loads(os.environ["TUNE_PARAMS"])
with mlflow.start_run():
    mlflow.log_params(params)
    mlflow.log_metric("loss", 1.0)
"""

FROM_ARGUMENTS = """
import argparse, mlflow
parser = argparse.ArgumentParser()
parser.add_argument("--bootstrap", type=lambda text: text.lower() == "true")
parser.add_argument("--lr", type=float)
parser.add_argument("--depth", type=float)          # an int of the space, read as a float
parser.add_argument("--code")
parser.add_argument("--layers", type=lambda text: json.loads(text) if text else None)
import json
args = parser.parse_args()
with mlflow.start_run():
    mlflow.log_params(vars(args))
    mlflow.log_metric("loss", 1.0)
"""

AUTOLOG = """
import json, os, mlflow, numpy
from sklearn.ensemble import RandomForestClassifier
params = json.loads(os.environ["TUNE_PARAMS"])
mlflow.sklearn.autolog(log_models=False, log_datasets=False)
with mlflow.start_run():
    data = numpy.random.RandomState(0).rand(40, 4)
    forest = RandomForestClassifier(bootstrap=params["bootstrap"], max_depth=params["depth"], n_estimators=2)
    forest.fit(data, data[:, 0] > 0.5)
    mlflow.log_metric("loss", 1.0)
"""

SPACE = {
    "bootstrap": {"choice": [True, False]},
    "lr": {"float": [1e-6, 1e-5], "log": True},
    "depth": {"int": [2, 5]},
    "code": {"choice": ["007", "1e3"]},
    "layers": {"choice": [[64, 32], [8]]},
    "nothing": {"choice": [None, "none"]},
}


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        yield made


def run(farm, tmp_path, source, trials=3, **more):
    path = tmp_path / "train.py"
    path.write_text(source)
    farm.create("s", [PYTHON, str(path), *more.pop("arguments", [])], trials, space=SPACE, **more)
    farm.start_agent(slots=1)
    ended = farm.wait_for_end("s")
    assert [trial["state"] for trial in ended] == ["complete"] * trials, [trial.get("reason") for trial in ended]
    client = mlflow.MlflowClient(farm.url)
    return [(trial, client.get_run(trial["run_id"]).data.params) for trial in ended]


def test_tune_params_are_logged_as_they_are(farm, tmp_path):
    for trial, logged in run(farm, tmp_path, FROM_TUNE_PARAMS):
        assert logged == {name: str(value) for name, value in trial["params"].items()}


def test_arguments_are_logged_in_the_script_s_own_words(farm, tmp_path):
    arguments = ["--bootstrap={bootstrap}", "--lr={lr}", "--depth={depth}", "--code={code}", "--layers={layers}"]
    for trial, logged in run(farm, tmp_path, FROM_ARGUMENTS, arguments=arguments):
        params = trial["params"]
        assert logged["bootstrap"] == str(params["bootstrap"]) and logged["code"] == params["code"]
        assert logged["depth"] == str(float(params["depth"])), "the script's words win"
        assert isinstance(params["depth"], int), "the tuner keeps its exact value"
        assert json.loads(logged["layers"]) == params["layers"] and float(logged["lr"]) == params["lr"]
        assert logged["nothing"] == str(params["nothing"]), "what the script does not log stays"


def test_autolog_loses_no_param(farm, tmp_path):
    for trial, logged in run(farm, tmp_path, AUTOLOG, trials=2):
        assert {"criterion", "max_features", "n_estimators", "min_samples_leaf"} <= set(logged), logged
        assert logged["bootstrap"] == str(trial["params"]["bootstrap"])


def test_what_the_script_logged_itself_stays_mlflow_s(farm, tmp_path):
    """A param of the script's own, and one that it has logged once, cannot change: that is MLflow's rule."""
    source = FROM_TUNE_PARAMS.replace('    mlflow.log_metric("loss", 1.0)', """    mlflow.log_param("own", 1)
    mlflow.log_param("depth", "first")
    refused = 0
    for name in ("own", "depth"):
        try:
            mlflow.log_param(name, "second")
        except mlflow.exceptions.MlflowException as error:
            assert "Changing param values is not allowed" in str(error)
            refused += 1
    mlflow.log_metric("loss", refused)""").replace("    mlflow.log_params(params)\n", "")
    for trial, logged in run(farm, tmp_path, source, trials=1):
        assert trial["value"] == 2 and logged["own"] == "1" and logged["depth"] == "first"

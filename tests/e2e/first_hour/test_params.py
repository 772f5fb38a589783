"""What the tuner wrote as a trial's params is never in the way of what the trial's own script logs."""

import json

import mlflow
import pytest

from agent_support import PYTHON, Farm
from study_support import OK, call, server, tune

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
    mlflow.set_tag("all", json.dumps({name: str(value) for name, value in forest.get_params().items()}))
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
    client = mlflow.MlflowClient(farm.url)
    for trial, logged in run(farm, tmp_path, AUTOLOG, trials=2):
        all_params = json.loads(client.get_run(trial["run_id"]).data.tags["all"])
        assert len(all_params) > 15 and all_params["bootstrap"] == str(trial["params"]["bootstrap"])
        assert {name: logged.get(name) for name in all_params} == all_params


def test_a_script_under_tune_run_logs_its_arguments_in_an_experiment_of_its_own_naming(tmp_path):
    """What people type, with what their scripts say."""
    (tmp_path / "train.py").write_text(FROM_ARGUMENTS.replace("with mlflow", 'mlflow.set_experiment("mine")\nwith mlflow', 1).replace(
        '    mlflow.log_metric("loss", 1.0)', '    mlflow.log_metric("loss", args.lr)'))
    done = tune("run", "--study", "s", "-n", 4, "-m", "loss:min", "-j", 2, "--port", 0, "bootstrap=true,false", "lr=1e-6..1e-5:log",
                "depth=2..5:int", "code=007,1e3", "--", PYTHON, "train.py", "{args}", cwd=tmp_path)
    assert done.returncode == OK and "4/4 trials" in done.stdout, done.stdout + done.stderr
    with server(tmp_path) as (_, url):
        client = mlflow.MlflowClient(url)
        assert {experiment.name for experiment in client.search_experiments()} == {"s", "Default"}
        trials = call(url, "/api/2.0/tune/studies/s/trials")[1]["trials"]
        for trial in trials:
            assert trial["state"] == "complete", trial["reason"]
            params, logged = trial["params"], client.get_run(trial["run_id"]).data.params
            assert logged["bootstrap"] == str(params["bootstrap"]) and logged["layers"] == "None", "argparse's"
            assert logged["depth"] == str(float(params["depth"])) and float(logged["lr"]) == params["lr"] == trial["value"]
            assert logged["code"] == str(params["code"])


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


def test_a_retry_may_say_otherwise_what_the_first_attempt_logged(farm, tmp_path):
    """A host, a start time: the script's own params, which each attempt sets for itself."""
    source = """
import json, os, sys, mlflow
with mlflow.start_run():
    mlflow.log_params(json.loads(os.environ["TUNE_PARAMS"]))
    mlflow.log_params({"host": "host-" + os.environ["TUNE_ATTEMPT"], "same": 1})
    if os.environ["TUNE_ATTEMPT"] == "1":
        sys.exit("a bad node")
    mlflow.log_metric("loss", 1.0)
"""
    for trial, logged in run(farm, tmp_path, source, trials=2, retry={"max": 1, "on": ["failed"]}):
        assert trial["attempt"] == 2 and logged["host"] == "host-2" and logged["same"] == "1"
        # Afterwards the run is as any other of MLflow's.
        for name in ("host", "depth"):
            with pytest.raises(mlflow.exceptions.MlflowException, match="Changing param values is not allowed"):
                mlflow.MlflowClient(farm.url).log_param(trial["run_id"], name, "other")


def test_what_a_script_did_not_log_cannot_be_changed_once_its_trial_has_ended(farm, tmp_path):
    source = 'print(\'tune: {"loss": 1.0}\')'
    for trial, logged in run(farm, tmp_path, source, trials=1):
        with pytest.raises(mlflow.exceptions.MlflowException, match="Changing param values is not allowed"):
            mlflow.MlflowClient(farm.url).log_param(trial["run_id"], "depth", "other")
        assert mlflow.MlflowClient(farm.url).get_run(trial["run_id"]).data.params == logged

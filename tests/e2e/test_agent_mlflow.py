"""An unmodified MLflow script as a trial: it continues the trial's run, and is pruned with no code change."""

import mlflow
import pytest

from agent_support import PYTHON, Farm, wait_for

# What a user's script looks like: nothing in it knows of tune.
SCRIPT = """
import argparse, itertools, time
import mlflow
import numpy
from sklearn.linear_model import SGDClassifier
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
options = parser.parse_args()
mlflow.sklearn.autolog(log_models=False, log_datasets=False)
with mlflow.start_run():
    data = numpy.random.RandomState(0).rand(60, 4)
    SGDClassifier(alpha=1e-4 + options.x).fit(data, data[:, 0] > 0.5)
    for step in %(steps)s:
        mlflow.log_metric("loss", options.x + 1 / (step + 1), step=step)
    mlflow.set_tag("mine", "yes")
"""


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        yield made


def script(tmp_path, steps):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT % {"steps": steps})
    return [PYTHON, str(path), "{args}"]


def test_continues_the_run(farm, tmp_path):
    farm.create("s", script(tmp_path, "range(5)"), 2)
    farm.start_agent(slots=2)
    trials = farm.wait_for_end("s")
    assert [trial["state"] for trial in trials] == ["complete"] * 2
    client = mlflow.MlflowClient(farm.url)
    experiment = farm.study("s")["experiment_id"]
    runs = client.search_runs([experiment])
    assert len(runs) == 3  # the study and its two trials: the script made no run of its own
    for trial in trials:
        run = client.get_run(trial["run_id"])
        assert run.info.status == "FINISHED"
        assert run.data.tags["mine"] == "yes"
        assert run.data.tags["mlflow.parentRunId"] == farm.study("s")["run_id"]
        assert run.data.tags["estimator_name"] == "SGDClassifier"  # autolog wrote here, too
        assert float(run.data.params["x"]) == pytest.approx(trial["params"]["x"])
        assert len(farm.history(trial["run_id"])) == 5
        assert trial["value"] == pytest.approx(trial["params"]["x"] + 1 / 5)


def test_pruned_without_a_change(farm, tmp_path):
    # A bad one ends by being pruned only.
    farm.create("s", script(tmp_path, "itertools.count() if options.x > 0.5 else range(5)"), 3,
                initial=[{"x": 0.25}, {"x": 0.75}, {"x": 0.125}], pruner={"type": "median", "startup": 1, "warmup": 1})
    farm.start_agent(slots=1)
    trials = farm.wait_for_end("s")
    assert [trial["state"] for trial in trials] == ["complete", "pruned", "complete"]
    run = mlflow.MlflowClient(farm.url).get_run(trials[1]["run_id"])
    assert run.info.status == "KILLED"
    assert run.data.tags["tune.state"] == "pruned"
    wait_for(lambda: "pruned" in (farm.artifact(trials[1], "logs/agent.log") or ""), "the agent's remarks")


def test_logs_are_artifacts_of_the_run(farm):
    farm.create("s", ["sh", "-c", "echo 'tune: {\"loss\": 1}'; echo oops >&2"], 1)
    farm.start_agent(slots=1)
    trial = farm.wait_for_end("s")[0]
    client = mlflow.MlflowClient(farm.url)
    def names():
        return sorted(item.path for item in client.list_artifacts(trial["run_id"], "logs"))

    wait_for(lambda: names() == ["logs/stderr.log", "logs/stdout.log"], "both logs")
    assert farm.artifact(trial, "logs/stderr.log") == "oops\n"


def test_files_that_a_trial_leaves_are_artifacts_of_the_run(farm):
    script = ("import os, pathlib\n"
              "folder = pathlib.Path(os.environ['TUNE_ARTIFACT_DIR'])\n"
              "(folder / 'deep').mkdir()\n"
              "(folder / 'deep' / 'a b.txt').write_text('left')\n"
              "(folder / 'link').symlink_to('/etc/passwd')\n"
              "print('tune: {\"loss\": 1}')\n")
    farm.create("s", [PYTHON, "-c", script], 1)
    farm.start_agent(slots=1)
    trial = farm.wait_for_end("s")[0]
    assert trial["state"] == "complete", trial
    assert wait_for(lambda: farm.artifact(trial, "deep/a%20b.txt"), "the artifact") == "left"
    assert farm.artifact(trial, "link") is None

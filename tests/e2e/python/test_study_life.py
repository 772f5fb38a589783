"""A study is renamed, removed and brought back; one whose experiment an MLflow client deleted says so."""

import mlflow
import pytest

import tune_client
from study_support import OK, REPORT, USAGE, call, run_arguments, server, study_of, trials_of, tune, tune_json, wait_until

SPACE = {"x": {"float": [0, 1]}}


@pytest.fixture
def url(tmp_path):
    with server(tmp_path) as (_, address):
        yield address


def runs_of(url, study, view="ACTIVE_ONLY"):
    body = {"experiment_ids": [study["experiment_id"]], "run_view_type": view}
    return call(url, "/api/2.0/mlflow/runs/search", body)[1].get("runs", [])


def test_rename_remove_and_restore_on_the_command_line(tmp_path):
    assert tune(*run_arguments(REPORT, trials=3), cwd=tmp_path).returncode == OK
    before = trials_of(tmp_path)
    assert tune("rename", "s", "digits", "--data", "tune-data", cwd=tmp_path).returncode == OK
    assert "there is no study 's'" in tune("show", "s", "--data", "tune-data", cwd=tmp_path).stderr
    assert trials_of(tmp_path, "digits") == before
    more = tune(*run_arguments(REPORT, trials=4, study="digits"), cwd=tmp_path)
    assert more.returncode == OK and "resumes after 3 trials" in more.stderr
    assert tune("rm", "digits", "--data", "tune-data", cwd=tmp_path).returncode == OK
    assert tune_json("ls", "--data", "tune-data", cwd=tmp_path)["studies"] == []
    missing = tune("restore", "--study", "s", "--data", "tune-data", cwd=tmp_path)
    assert missing.returncode != OK and "those that can be restored: 'digits'" in missing.stderr
    back = tune("restore", "--study", "digits", "--data", "tune-data", cwd=tmp_path)
    assert back.returncode == OK and "digits is completed" in back.stdout, back.stderr
    assert len(trials_of(tmp_path, "digits")) == 4


def test_over_rest_and_python(url):
    study = tune_client.create_study("s", space=SPACE, metric="loss", trials=5, server=url)
    trial = study.ask()
    with pytest.raises(tune_client.TuneError, match="trials of study 's' are running") as running:
        study.rename("t")
    assert running.value.status == 409
    trial.tell(0.5)
    assert study.rename("t")["name"] == "t" and study.name == "t" and study.best_value == 0.5
    assert call(url, "/api/2.0/tune/studies/s")[0] == 404
    info = study.info()
    assert call(url, f"/api/2.0/mlflow/experiments/get?experiment_id={info['experiment_id']}")[1][
        "experiment"]["name"] == "t"
    # What is a run's own follows after the answer.
    wait_until(lambda: {tag["value"] for run in runs_of(url, info) for tag in run["data"]["tags"]
                        if tag["key"] == "tune.study"} == {"t"}, "the new name in all runs")
    held = study.ask()
    study.delete()
    assert call(url, "/api/2.0/tune/studies")[1]["studies"] == []
    wait_until(lambda: runs_of(url, info) == [] and len(runs_of(url, info, "DELETED_ONLY")) == 3, "the removal of the runs")
    # The name is free, and so the old one cannot come back under it.
    other = tune_client.create_study("t", space=SPACE, metric="loss", server=url)
    with pytest.raises(tune_client.TuneError, match="frees the name"):
        tune_client.restore_study("t", url)
    other.rename("u")
    again = tune_client.restore_study("t", url)
    assert again.best_value == 0.5
    wait_until(lambda: len(runs_of(url, info)) == 4, "all runs, with the other study's, of the same experiment")
    assert again.info()["state"] == "paused"
    assert [t.state for t in again.trials] == ["complete", "cancelled"]
    del held


def test_a_removed_study_s_attempt_may_write_nothing(url):
    study = tune_client.create_study("s", space=SPACE, metric="loss", server=url)
    trial = study.ask()
    study.delete()
    with pytest.raises(tune_client.TuneError):
        trial.tell(0.5)


def test_a_deleted_experiment_is_shown_and_every_verb_says_what_to_do(tmp_path, url):
    study = tune_client.create_study("s", space=SPACE, metric="loss", trials=5, server=url)
    study.ask().tell(0.5)
    client = mlflow.MlflowClient(url)
    client.delete_experiment(study.info()["experiment_id"])
    wait_until(lambda: study_of(url)["status"] == "deleted", "the deletion is seen")
    assert "deleted" in tune("ls", "--server", url, cwd=tmp_path).stdout
    shown = tune("show", "s", "--server", url, cwd=tmp_path).stdout
    assert "s is deleted" in shown and "`tune restore --study s` brings it back" in shown
    said = "the experiment of study 's' was deleted by an MLflow client. `tune restore --study s` brings both back"
    run = run_arguments(REPORT, trials=5)
    run[1:1] = ["--server", url]
    for words in (["pause", "s", "--server", url], ["resume", "s", "--server", url], ["stop", "s", "--server", url],
                  ["ask", "s", "--server", url], ["enqueue", "s", "x=0.5", "--server", url], run):
        done = tune(*words, cwd=tmp_path)
        assert done.returncode == USAGE and said in done.stderr, (words, done.stderr)
        assert "could not be written" not in done.stderr
    assert tune("restore", "--study", "s", "--server", url, cwd=tmp_path).returncode == OK
    assert study_of(url)["status"] == "running"
    trial = study.ask()
    trial.tell(0.25)
    assert study.best_value == 0.25 and len(study.trials) == 2


def test_a_client_that_died_leaves_no_study_running(tmp_path):
    with server(tmp_path, "--lease-ttl", "2s", "--heartbeat", "1s") as (_, url):
        study = tune_client.create_study("s", space=SPACE, metric="loss", server=url)
        assert study.info()["status"] == "running"
        call(url, "/api/2.0/tune/studies/s/ask", {"lease_ttl_ms": 1000})  # by one who never comes back
        assert study.info()["status"] == "running"
        wait_until(lambda: study_of(url)["status"] == "interrupted", "nobody works on it any more")
        assert study_of(url)["counts"]["running"] == 0
        assert study.ask(wait=False) is not None, "it goes on with whoever comes"
        assert study_of(url)["status"] == "running"


def test_mlflows_tools_see_that_a_client_is_gone_with_a_lease_and_without(tmp_path):
    with server(tmp_path, "--lease-ttl", "600ms", "--heartbeat", "300ms") as (_, url):
        study = tune_client.create_study("s", space=SPACE, metric="loss", server=url)
        client = mlflow.MlflowClient(url)

        def shown():
            return study_of(url)["status"], client.get_run(study.info()["run_id"]).info.status

        call(url, "/api/2.0/tune/studies/s/ask", {"lease_ttl_ms": 5000})
        assert shown() == ("running", "RUNNING")
        wait_until(lambda: shown() == ("interrupted", "SCHEDULED"), "its lease has ended")
        call(url, "/api/2.0/tune/studies/s/ask", {})  # the same trial, this time for ever
        wait_until(lambda: shown() == ("running", "RUNNING"), "somebody has it")
        wait_until(lambda: shown() == ("interrupted", "SCHEDULED"), "twenty lease times of silence")
        [trial] = study.trials
        assert trial.state == "running", "it stays with who has it"
        assert "start its client again to continue" in tune("show", "s", "--server", url, cwd=tmp_path).stdout
        assert call(url, "/api/2.0/tune/studies/s/tell", {"number": 0, "value": 0.5})[0] == 200, "it was only slow"
        held = study.ask()
        wait_until(lambda: shown() == ("running", "RUNNING"), "somebody works on it again")
        held.tell(0.5)

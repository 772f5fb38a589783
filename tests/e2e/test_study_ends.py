"""What ends a study besides its trials, what it begins with, and going on with another space, from the command line."""

import json

import optuna
import pytest

from study_support import FAILED, OK, REPORT, TIME, USAGE, end_all_of, run_arguments, trials_of, tune, tune_json

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    yield
    end_all_of(tmp_path)


def run(cwd, *more, command=REPORT, trials=60, code=OK, **rest):
    arguments = run_arguments(command, trials=trials, **rest)
    split = arguments.index("--")
    done = tune(*arguments[:split], *more, *arguments[split:], cwd=cwd)
    assert done.returncode == code, done.stderr + done.stdout
    return done


def study_of_folder(cwd, name="s"):
    return tune_json("show", name, "--data", "tune-data", cwd=cwd)["study"]


def test_the_target_ends_it_and_is_reported(tmp_path):
    done = run(tmp_path, "--target", "0.5")
    assert "the target of 0.5 is reached" in done.stdout
    study = study_of_folder(tmp_path)
    assert study["ended_by"] == "target" and study["best"]["value"] <= 0.5 and study["trials"] < 60
    again = run(tmp_path, "--target", "0.5")
    assert "the target of 0.5 is reached" in again.stdout
    assert study_of_folder(tmp_path)["trials"] == study["trials"], "the same command runs nothing more"


def test_no_progress_ends_it_and_is_reported(tmp_path):
    done = run(tmp_path, "--no-progress", 4, command=["echo", 'tune: {"loss": 1}'])
    assert "no progress in" in done.stdout
    study = study_of_folder(tmp_path)
    assert study["ended_by"] == "no_progress" and 5 <= study["counts"]["complete"] <= 8


def test_cost_ends_it_with_the_code_of_a_budget(tmp_path):
    # 1 is left: a trial that would use up all of it is asked to stop, which may be before it ends or after.
    (tmp_path / "study.yaml").write_text(
        "study: s\nmetric: loss\nspace: {x: 0..1}\nsampler: {type: random, seed: 1}\n"
        "budget: {parallel: 2, cost: {metric: dollars, max: 11}}\n"
        "command: [sh, -c, 'echo ''tune: {\"loss\": {x}, \"dollars\": 2}''']\n")
    done = tune("run", "study.yaml", "--port", 0, cwd=tmp_path)
    assert done.returncode == TIME, done.stderr
    assert "cost budget" in done.stdout
    shown = tune_json("show", "s", "--data", "tune-data", cwd=tmp_path)
    assert shown["study"]["ended_by"] == "cost"
    assert shown["study"]["cost"] == sum(t["cost"] for t in shown["trials"]) == 10
    assert shown["study"]["counts"]["complete"] == 5


def test_a_finite_space_with_reuse_runs_each_point_once(tmp_path):
    (tmp_path / "study.yaml").write_text(
        "study: s\nmetric: loss\nspace: {x: {choice: [1, 2, 3]}}\nbudget: {trials: 12, parallel: 1}\n"
        "sampler: {type: tpe, seed: 1, startup: 2, duplicates: reuse}\n"
        "command: [sh, -c, 'echo {x} >> ran; echo ''tune: {\"loss\": {x}}''']\n")
    done = tune("run", "study.yaml", "--port", 0, cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    ran = (tmp_path / "ran").read_text().split()
    assert len(ran) == len(set(ran)), "no point runs twice"
    trials = trials_of(tmp_path)
    for trial in trials:
        assert trial["value"] == trial["params"]["x"]
        if "reused_from" in trial:
            assert trials[trial["reused_from"]]["params"] == trial["params"]
            assert trial["reason"] == f"not run: trial {trial['reused_from']} had the same point"
    assert len([t for t in trials if "reused_from" not in t]) == len(ran)


@pytest.mark.parametrize("kind", ["study", "json", "optuna"])
def test_a_warm_start_from_a_study_and_from_files(tmp_path, kind):
    if kind == "optuna":
        earlier = optuna.create_study(study_name="old", storage=f"sqlite:///{tmp_path}/old.db")
        earlier.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=9)
        best, source = earlier.best_params["x"], "old.db"
    else:
        run(tmp_path, trials=9, study="old")
        best = study_of_folder(tmp_path, "old")["best"]["params"]["x"]
        source = "old"
        if kind == "json":
            shown = tune("show", "old", "--data", "tune-data", "--json", cwd=tmp_path)
            (tmp_path / "old.json").write_text(shown.stdout)
            source = "old.json"
    done = run(tmp_path, "--warm-start", source, trials=4, jobs=1, parameters=("x=0..1", "y=0..1"))
    assert "'y' is new and is left to the sampler" in done.stderr
    trials = trials_of(tmp_path)
    assert trials[0]["params"]["x"] == best
    assert len(trials) == 4 and all(t["state"] == "complete" for t in trials)
    missing = run(tmp_path, "--warm-start", "nobody", study="other", code=FAILED)
    assert "nobody" in missing.stderr


def test_a_changed_space_is_named_and_can_be_extended(tmp_path):
    run(tmp_path, trials=4)
    refused = run(tmp_path, trials=8, parameters=("x=0..2", "y=1..5:int"), code=USAGE)
    assert "space.x is" in refused.stderr and "space.y is new" in refused.stderr and "--extend" in refused.stderr
    no_init = run(tmp_path, "--extend", trials=8, parameters=("x=0..2", "y=1..5:int"), code=USAGE)
    assert "space.y" in no_init.stderr and "init" in no_init.stderr
    forgotten = run(tmp_path, "--extend", trials=8, parameters=("y==3",), command=["true"], code=USAGE)
    assert "trial 0" in forgotten.stderr and "space.x" in forgotten.stderr and "is gone" in forgotten.stderr
    assert all("x" in trial["params"] for trial in trials_of(tmp_path)), "nothing was lost"
    (tmp_path / "study.yaml").write_text(json.dumps({
        "study": "s", "metric": "loss", "budget": {"trials": 8, "parallel": 2}, "command": REPORT,
        "sampler": {"type": "tpe", "seed": 7}, "space": {"x": {"float": [0, 2]}, "y": {"int": [1, 5], "init": 3}}}))
    extended = tune("run", "study.yaml", "--extend", "--port", 0, cwd=tmp_path)
    assert extended.returncode == OK, extended.stderr
    trials = trials_of(tmp_path)
    assert len(trials) == 8 and [t["params"]["y"] for t in trials[:4]] == [3] * 4
    replay = tune_json("replay", "s", "--data", "tune-data", cwd=tmp_path)
    assert replay["compared"] == 8 and replay["differing"] == 0
    text = tune("replay", "s", "--data", "tune-data", cwd=tmp_path)
    assert text.returncode == OK and "8 suggestions repeated, 0 differ" in text.stdout

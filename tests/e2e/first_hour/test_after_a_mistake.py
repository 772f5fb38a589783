"""A script that fails is mended, and the same command goes on: what a user does in the first hour."""

import os
import signal
import sys

import mlflow
import pytest

from study_support import (NO_TRIAL, OK, REPORT, USAGE, end_all_of, run_arguments, server, start,
                           study_of, trials_of, tune, tune_json, wait_until)

BROKEN = """
import sys
print("reading the data", file=sys.stderr)
import no_module_of_this_name
"""
MENDED = """
import sys
print('tune: {"loss": %s}' % sys.argv[1])
"""
COMMAND = [sys.executable, "train.py", "{x}"]


# Fails in trial 0; the second one waits to be killed.
BREAKS_THEN_WAITS = """
import os, signal
if os.environ["TUNE_TRIAL"] == "0":
    raise KeyError("a mistake")
open("waits", "w").close()
signal.pause()
"""


def start_and_wait(arguments, folder):
    """The `tune run`, once the script has made the file `waits`."""
    process = start(*arguments, cwd=folder)
    try:
        wait_until((folder / "waits").exists, "the script's file")
    except BaseException:
        process.kill()
        raise
    return process


@pytest.mark.parametrize("jobs", [1, 4])
def test_the_same_command_goes_on_once_the_script_is_mended(tmp_path, jobs):
    (tmp_path / "train.py").write_text(BROKEN)
    arguments = run_arguments(COMMAND, trials=8, jobs=jobs)
    broken = tune(*arguments, cwd=tmp_path)
    assert broken.returncode == NO_TRIAL, broken.stderr
    assert "3 trials in a row failed alike before any succeeded" in broken.stdout
    assert "  ModuleNotFoundError: No module named 'no_module_of_this_name'\n" in broken.stdout
    assert "  reading the data\n" in broken.stdout, "the last lines of its log"
    assert "Fix the program and run the same command again" in broken.stdout
    tried = trials_of(tmp_path)
    assert 3 <= len(tried) < 8, "the rest was not begun"
    assert tune_json("show", "s", "--data", "tune-data", cwd=tmp_path)["study"]["ended_by"] == "failures"

    (tmp_path / "train.py").write_text(MENDED)
    mended = tune(*arguments, cwd=tmp_path)
    assert mended.returncode == OK, mended.stdout + mended.stderr
    assert "failed before any succeeded and do not count" in mended.stderr
    assert "8/8 trials" in mended.stdout
    trials = trials_of(tmp_path)
    complete = [trial["params"]["x"] for trial in trials if trial["state"] == "complete"]
    assert len(complete) == 8, "the whole budget"
    assert {trial["params"]["x"] for trial in tried} <= set(complete), "what failed is tried again"
    replay = tune_json("replay", "s", "--data", "tune-data", cwd=tmp_path)
    assert replay["differing"] == 0 and replay["given"] == len(tried)


def test_a_budget_smaller_than_the_limit_is_given_back(tmp_path):
    (tmp_path / "train.py").write_text(BROKEN)
    arguments = run_arguments(COMMAND, trials=2)
    assert tune(*arguments, cwd=tmp_path).returncode == NO_TRIAL
    (tmp_path / "train.py").write_text(MENDED)
    mended = tune(*arguments, cwd=tmp_path)
    assert mended.returncode == OK and "2/2 trials" in mended.stdout


def test_without_a_limit_all_are_tried_and_count(tmp_path):
    (tmp_path / "train.py").write_text(BROKEN)
    arguments = run_arguments(COMMAND, trials=5)
    arguments[1:1] = ["--stop-after-failures", 0]
    for _ in range(2):
        done = tune(*arguments, cwd=tmp_path)
        assert done.returncode == NO_TRIAL and "5/5 trials" in done.stdout
    assert len(trials_of(tmp_path)) == 5


def test_killed_after_a_failure_and_before_any_success(tmp_path):
    (tmp_path / "train.py").write_text(BREAKS_THEN_WAITS)
    arguments = run_arguments(COMMAND, trials=4, jobs=1)
    process = start_and_wait(arguments, tmp_path)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    end_all_of(tmp_path)
    [failed, _] = trials_of(tmp_path)
    (tmp_path / "train.py").write_text(MENDED)
    mended = tune(*arguments, cwd=tmp_path)
    assert mended.returncode == OK, mended.stdout + mended.stderr
    assert "1 trial failed before any succeeded and does not count" in mended.stderr and "4/4 trials" in mended.stdout
    complete = [trial["params"]["x"] for trial in trials_of(tmp_path) if trial["state"] == "complete"]
    assert len(complete) == 4 and failed["params"]["x"] in complete
    assert tune_json("replay", "s", "--data", "tune-data", cwd=tmp_path)["differing"] == 0


def test_failures_before_the_first_success_of_one_run_use_up_no_budget(tmp_path):
    (tmp_path / "train.py").write_text("""
import os, sys
if int(os.environ["TUNE_TRIAL"]) < 2:
    raise [KeyError, ValueError][int(os.environ["TUNE_TRIAL"])]("unlike")
print('tune: {"loss": %s}' % sys.argv[1])
""")
    done = tune(*run_arguments(COMMAND, trials=3, jobs=1), cwd=tmp_path)
    assert done.returncode == OK and "3/3 trials" in done.stdout, done.stdout + done.stderr
    assert [trial["state"] for trial in trials_of(tmp_path)] == ["failed"] * 2 + ["complete"] * 3
    for number in range(5):
        assert f"  #{number} " in done.stderr, "each end is told"


def test_the_value_of_a_categorical_in_the_message_does_not_hide_that_failures_are_alike(tmp_path):
    (tmp_path / "train.py").write_text("import sys\nraise KeyError(sys.argv[1])\n")
    done = tune("run", "-n", 9, "-m", "loss:min", "-j", 1, "--port", 0, "--study", "s", "opt=adam,sgd,lion,lamb", "--",
                sys.executable, "train.py", "{opt}", cwd=tmp_path)
    assert done.returncode == NO_TRIAL and "3 trials in a row failed alike" in done.stdout, done.stdout + done.stderr
    assert len(trials_of(tmp_path)) == 3


def test_a_run_whose_experiment_is_deleted_ends_and_says_so(tmp_path):
    (tmp_path / "train.py").write_text(MENDED + """
import os, signal
if os.environ["TUNE_TRIAL"] == "1" and not os.path.exists("waits"):
    open("waits", "w").close()
    signal.pause()
""")
    arguments = run_arguments(COMMAND, trials=4, jobs=1)
    process = start_and_wait(arguments, tmp_path)
    try:
        url = next(line for line in process.stderr if "http://" in line).split()[-1].removesuffix("/s/s")
        mlflow.MlflowClient(url).delete_experiment(study_of(url)["experiment_id"])
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == USAGE, said
    assert "the experiment of study 's' was deleted by an MLflow client. `tune restore --study s` brings both back" in said
    assert tune("restore", "--study", "s", cwd=tmp_path).returncode == OK
    done = tune(*arguments, cwd=tmp_path)
    assert done.returncode == OK and "4/4 trials" in done.stdout, done.stdout + done.stderr


def test_killed_between_the_failures_and_the_rest(tmp_path):
    (tmp_path / "train.py").write_text(BROKEN)
    arguments = run_arguments(COMMAND, trials=6, jobs=1)
    assert tune(*arguments, cwd=tmp_path).returncode == NO_TRIAL
    # Mended; killed while the second trial of the second run waits at the gate.
    (tmp_path / "train.py").write_text("""
import os, sys
if os.environ["TUNE_TRIAL"] == "4" and not os.path.exists("gate"):
    open("waits", "w").close()
    import signal; signal.pause()
print('tune: {"loss": %s}' % sys.argv[1])
""")
    process = start(*arguments, cwd=tmp_path)
    try:
        wait_until((tmp_path / "waits").exists, "the fifth trial")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        end_all_of(tmp_path)
    looked = tune_json("show", "s", "--data", "tune-data", cwd=tmp_path)["study"]
    assert looked["excused"] == 3
    assert looked["state"] == "running" and looked["status"] == "interrupted", "nobody works on it"
    assert "interrupted" in tune("ls", "--data", "tune-data", cwd=tmp_path).stdout
    assert "run its command again" in tune("show", "s", "--data", "tune-data", cwd=tmp_path).stdout
    (tmp_path / "gate").touch()
    done = tune(*arguments, cwd=tmp_path)
    assert done.returncode == OK and "6/6 trials" in done.stdout, done.stdout + done.stderr
    trials = trials_of(tmp_path)
    assert [trial["state"] for trial in trials].count("complete") == 6
    assert len(trials) == 9, "three failed, and each was tried again once"
    assert tune_json("replay", "s", "--data", "tune-data", cwd=tmp_path)["differing"] == 0


@pytest.mark.parametrize("metric, parameters, differs", [
    ("loss:max", ("x=0..1",), "goal is max, was min"),
    ("accuracy:max", ("x=0..1",), "metric is 'accuracy', was 'loss'"),
    ("loss:min", ("x=0..2",), "space.x is "),
])
def test_a_corrected_study_replaces_one_of_which_nothing_is_complete(tmp_path, metric, parameters, differs):
    (tmp_path / "train.py").write_text(BROKEN)
    assert tune(*run_arguments(COMMAND, trials=3, jobs=1), cwd=tmp_path).returncode == NO_TRIAL
    (tmp_path / "train.py").write_text(MENDED.replace("loss", metric.split(":")[0]))
    arguments = run_arguments(COMMAND, trials=3, parameters=parameters)
    arguments[arguments.index("loss:min")] = metric
    done = tune(*arguments, cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    assert "study s: replaces the earlier study, in which no trial completed" in done.stderr and differs in done.stderr
    assert [trial["state"] for trial in trials_of(tmp_path)] == ["complete"] * 3
    with server(tmp_path) as (_, url):
        assert study_of(url)["status"] == "completed"


def test_a_study_with_results_is_not_replaced_and_the_ways_out_are_said(tmp_path):
    assert tune(*run_arguments(REPORT, trials=2), cwd=tmp_path).returncode == OK
    done = tune(*run_arguments(REPORT, trials=2, parameters=("x=0..2",)), cwd=tmp_path)
    assert done.returncode == USAGE
    assert "space.x is" in done.stderr and "--extend" in done.stderr
    assert "a name of its own (--study NEW), or remove this one first (`tune rm s`, study.delete() in Python)." in done.stderr
    assert "`tune restore --study s`" in tune("rm", "s", "--data", "tune-data", cwd=tmp_path).stdout
    assert tune(*run_arguments(REPORT, trials=2, parameters=("x=0..2",)), cwd=tmp_path).returncode == OK
    assert all(trial["state"] == "complete" for trial in trials_of(tmp_path))

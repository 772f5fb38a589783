"""Population based training with real processes: the example by `tune run` and by the Python client, killed and resumed."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

from agent_support import Farm, wait_for
from study_support import (OK, ROOT, call, end_all_of, read_lines_until, server, start, study_of, trials_of, tune,
                           tune_json)

EXAMPLE = ROOT / "examples" / "pbt"
MEMBERS, INTERVAL, MAX = 8, 5, 30

# A member that needs no libraries: its checkpoint is the sum of what it has learnt. Trials from the number in the file
# GATE on wait, before or after they leave their checkpoint, until that is another one or gone: who kills them is in time.
MEMBER = """
import json, os, pathlib, time
number = int(os.environ["TUNE_TRIAL"])
def is_held():
    try:
        return number >= int(pathlib.Path(os.environ["GATE"]).read_text())
    except FileNotFoundError:
        return False
while number % 2 == 0 and is_held():
    time.sleep(0.01)
x = json.loads(os.environ["TUNE_PARAMS"])["x"]
own, parent = os.environ["TUNE_CHECKPOINT_DIR"], os.environ.get("TUNE_RESUME_FROM")
learnt = json.loads(pathlib.Path(parent, "learnt").read_text()) if parent else []
assert len(learnt) == int(os.environ["TUNE_STEP_FROM"]), (learnt, os.environ["TUNE_STEP_FROM"])
assert bool(parent) == bool("TUNE_PARENT" in os.environ)
while len(learnt) < int(os.environ["TUNE_STEP_TO"]):
    learnt.append(x)
pathlib.Path(own, "learnt").write_text(json.dumps(learnt))
while number % 2 == 1 and is_held():
    time.sleep(0.01)
print("tune: " + json.dumps({"loss": -sum(learnt), "step": len(learnt)}))
"""
STUDY = {"version": 1, "study": "s", "command": [sys.executable, "-c", MEMBER], "metric": {"name": "loss", "take": "last"},
         "space": {"x": {"float": [0.1, 1]}}, "budget": {"parallel": 3}, "env": {"GATE": "gate"},
         "sampler": {"type": "pbt", "seed": 1, "population": 4, "interval": 2, "max": 10}}


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    yield
    end_all_of(tmp_path)


def check_lineages(trials):
    """Who continues whom, and from which step to which."""
    by_number = {trial["number"]: trial for trial in trials}
    for trial in trials:
        parent = by_number.get(trial["parent"])
        assert (trial["generation"] == 0) == (parent is None)
        if parent is not None:
            assert parent["number"] < trial["number"] and parent["state"] == "complete"
            assert parent["steps"][1] == trial["steps"][0] and parent["generation"] + 1 == trial["generation"]
            if parent["member"] == trial["member"]:
                continue
            is_at_bound = parent["params"] in ({"x": 0.1}, {"x": 1})  # of STUDY: a step beyond it ends there
            assert is_at_bound or parent["params"] != trial["params"], "who takes another's place explores"


def check_sums(trials):
    """Each MEMBER added up what its ancestors learnt: no checkpoint was lost, or taken for another's."""
    by_number = {trial["number"]: trial for trial in trials}
    for trial in trials:
        sum_of, at = 0, trial
        while at is not None:
            sum_of += at["params"]["x"] * (at["steps"][1] - at["steps"][0])
            at = by_number.get(at["parent"])
        assert trial["value"] == pytest.approx(-sum_of)


def checkpoints_left(folder):
    return {int(path.name) for path in folder.glob("**/checkpoints/*/*") if path.name.isdecimal()}


def final_checkpoints(trials):
    """Of the last trial of each member, and of the best one."""
    last = {trial["member"]: trial["number"] for trial in trials}
    best = min(trials, key=lambda trial: (trial["value"], trial["number"]))
    return {*last.values(), best["number"]}


def test_the_example_by_tune_run(tmp_path):
    done = tune("run", EXAMPLE / "study.yaml", "--data", tmp_path / "data", "--port", 0, cwd=ROOT)
    assert done.returncode == OK, done.stdout + done.stderr
    trials = tune_json("show", "pbt", "--data", tmp_path / "data", cwd=ROOT)["trials"]
    assert {trial["state"] for trial in trials} == {"complete"}
    # As many as members and intervals, less those that were skipped by copying one that was ahead.
    assert 3 * MEMBERS < len(trials) <= MEMBERS * MAX // INTERVAL
    check_lineages(trials)
    last = {trial["member"]: trial["steps"][1] for trial in trials}
    assert last == dict.fromkeys(range(MEMBERS), MAX)

    best = tune_json("best", "pbt", "--data", tmp_path / "data", cwd=ROOT)
    lineage = best["lineage"]
    assert lineage[0]["steps"] == [0, INTERVAL] and lineage[-1]["number"] == best["number"]
    assert best["value"] == min(trial["value"] for trial in trials)
    first = [trial["value"] for trial in trials if trial["generation"] == 0]
    assert best["value"] < 0.1 and min(first) > 0.1, "checkpoints were continued"
    assert len({json.dumps(trial["params"]) for trial in trials}) > MEMBERS, "parameters were explored"
    said = tune("best", "pbt", "--data", tmp_path / "data", cwd=ROOT).stdout
    assert "Training history:" in said and f"0..{INTERVAL}" in said and "Run it again" not in said


def test_the_example_by_the_python_client(tmp_path):
    with server(tmp_path) as (_, url):
        done = subprocess.run([sys.executable, EXAMPLE / "client.py", url, "3"], capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        study = study_of(url, "pbt-client")
        assert study["state"] == "completed" and study["ended_by"] == "steps"
        trials = call(url, "/api/2.0/tune/studies/pbt-client/trials?max_results=1000")[1]["trials"]
        check_lineages(trials)
        assert f"trial {study['best']['number']}: val_loss" in done.stdout and f"epochs 0 to {INTERVAL}" in done.stdout
        assert call(url, "/api/2.0/tune/studies/pbt-client/replay")[1]["differing"] == 0


def set_gate(folder, number):
    (folder / "gate.new").write_text(str(number))
    os.replace(folder / "gate.new", folder / "gate")


def kill_at(number, cwd):
    """Runs study.json and kills server and agent at once when trials from `number` on stand in their middle."""
    set_gate(cwd, number)
    process = start("run", "study.json", "--port", "0", cwd=cwd)
    try:
        read_lines_until(process, f"#{number - 1} ")
        assert process.poll() is None, "the next ones wait"
    finally:
        process.kill()
        process.communicate(timeout=60)


def run_to_the_end(cwd):
    """The trials of study.json, which are whole whatever came before."""
    (cwd / "gate").unlink()
    done = tune("run", "study.json", "--port", 0, cwd=cwd)
    assert done.returncode == OK, done.stdout + done.stderr
    trials = trials_of(cwd)
    assert {trial["state"] for trial in trials} == {"complete"}, [trial for trial in trials if trial["reason"]]
    check_lineages(trials)
    check_sums(trials)
    return trials


def test_kill_9_in_the_middle_and_the_lineages_are_whole(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps(STUDY))
    kill_at(10, tmp_path)
    trials = run_to_the_end(tmp_path)
    assert {trial["steps"][1] for trial in trials if trial["value"] == min(t["value"] for t in trials)} == {10}


# A member that in the last half waits until there are few enough checkpoints: they go a moment after the end of a trial.
COUNTING = MEMBER + """
while number >= 24 and len(list(pathlib.Path(own).parent.iterdir())) > ENOUGH:
    time.sleep(0.01)
"""


def test_checkpoints_that_nobody_continues_are_removed(tmp_path):
    members, generations = 4, 12
    sampler = {**STUDY["sampler"], "max": 2 * generations}
    # The members', the best one's, those of the three that run and their parents'.
    enough = 2 * members + 4
    study = {**STUDY, "command": [sys.executable, "-c", COUNTING.replace("ENOUGH", str(enough))], "sampler": sampler}
    (tmp_path / "study.json").write_text(json.dumps(study))
    for number in (6, 12, 18):  # trials resume, are lost, continue their parents again
        kill_at(number, tmp_path)
    trials = run_to_the_end(tmp_path)
    assert len(trials) > 24 > enough and max(trial["generation"] for trial in trials) == generations - 1
    assert checkpoints_left(tmp_path) == final_checkpoints(trials)


def test_servers_agents_and_trials_are_killed_and_every_parent_is_there(tmp_path):
    sampler = {**STUDY["sampler"], "max": 30}
    with Farm(tmp_path) as farm:
        farm.create("s", [sys.executable, "-c", MEMBER], metric=STUDY["metric"], space=STUDY["space"], sampler=sampler,
                    budget=STUDY["budget"], env=farm.gate(3))
        farm.start_agent()
        for turn, number in enumerate(range(3, 30, 3)):
            wait_for(lambda: farm.study("s")["counts"]["complete"] == number, "all before those that wait")
            if turn % 3 == 0:
                farm.server.kill()
                farm.start_server()
            elif turn % 3 == 1:
                farm.agents["agent"].kill()
                farm.start_agent()
            else:
                for supervisor in wait_for(farm.supervisors, "a trial that runs"):  # their trials are lost and run again
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(supervisor, signal.SIGKILL)
            farm.gate(number + 3)
        farm.gate(None)
        trials = farm.wait_for_end("s")
        assert {trial["state"] for trial in trials} == {"complete"}, [trial for trial in trials if trial["reason"]]
        assert max(trial["attempt"] for trial in trials) > 1, "the test must interrupt something"
        check_lineages(trials)
        check_sums(trials)
        wait_for(lambda: checkpoints_left(tmp_path) == final_checkpoints(trials), "the last removals")


def test_a_command_that_leaves_no_checkpoint_is_reported(tmp_path):
    study = {**STUDY, "command": ["sh", "-c", "echo 'tune: {\"loss\": 1}'"], "budget": {"trials": 8, "parallel": 1}}
    (tmp_path / "study.json").write_text(json.dumps(study))
    done = tune("run", "study.json", "--port", 0, cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    trials = trials_of(tmp_path)
    assert [trial["state"] for trial in trials] == ["complete"] * 4 + ["failed"] * 4
    assert "the command must write one to TUNE_CHECKPOINT_DIR" in trials[4]["reason"]

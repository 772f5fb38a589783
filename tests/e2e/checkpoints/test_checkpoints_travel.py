"""A trial goes on from its checkpoint on another machine: a real server, and agents with a state folder each."""

import json
import os
import pathlib
import pickle
import re
import signal
import sys

import pytest
import requests

from agent_support import Farm, lives, wait_for

STEPS = 40

# An ordinary script: it pickles what it has into the checkpoint folder, and says which steps it did. Without a gate it
# runs through; else it waits at the step in the gate's file until that is gone, where whoever kills it finds it.
PICKLER = """
import json, os, pathlib, pickle, time
folder = pathlib.Path(os.environ["TUNE_CHECKPOINT_DIR"])
def load(path):
    try:
        return pickle.loads(path.read_bytes())
    except FileNotFoundError:
        return {"step": 0, "weight": 0.0, "seen": []}
own, parent = folder / "deep" / "state.pkl", os.environ.get("TUNE_RESUME_FROM")
state = load(own)
x = json.loads(os.environ["TUNE_PARAMS"])["x"]
while state["step"] < %d:
    try:
        held = int(pathlib.Path(os.environ["GATE"]).read_text())
    except (KeyError, FileNotFoundError):
        held = -1
    if state["step"] == held:
        time.sleep(0.01)
        continue
    state["weight"] += x * (state["step"] + 1)
    state["seen"].append((int(os.environ["TUNE_ATTEMPT"]), state["step"]))
    state["step"] += 1
    own.parent.mkdir(exist_ok=True)
    (folder / "new.tmp").write_bytes(pickle.dumps(state))
    os.replace(folder / "new.tmp", own)
    print("tune: " + json.dumps({"loss": state["weight"], "step": state["step"]}), flush=True)
print("did", json.dumps(state["seen"]))
""" % STEPS


def manifests(farm, trial, path="checkpoints"):
    known = requests.get(f"{farm.url}/api/2.0/mlflow/runs/get", params={"run_id": trial["run_id"]}, timeout=60)
    if known.status_code == 404:  # a trial is shown a moment before its run is on the disk
        return []
    folder = farm.run(trial["run_id"])["info"]["artifact_uri"].partition(":")[2].lstrip("/") + "/" + path
    answer = requests.get(f"{farm.url}/api/2.0/mlflow-artifacts/artifacts", params={"path": folder}, timeout=60)
    files = answer.json().get("files", []) if answer.ok else []
    return sorted(file["path"].rpartition("/")[2] for file in files if "manifest-" in file["path"])


def stored_files(farm, trial):
    """On the disk of the server."""
    return next((farm.folder / "data").glob(f"**/{trial['run_id']}/artifacts/checkpoints"))


def stored_step(farm, trial):
    """The step in the last stored checkpoint; -1: there is none."""
    names = manifests(farm, trial)
    if not names:
        return -1
    manifest = json.loads(farm.artifact(trial, "checkpoints/" + names[-1]) or '{"files": []}')
    for file in manifest["files"]:
        if file["path"] == "deep/state.pkl":
            path = stored_files(farm, trial) / "files" / file["sha256"]
            if path.exists():
                return pickle.loads(path.read_bytes())["step"]
    return -1


def shared_step(root):
    """The same in a shared folder, whose files may go while one looks."""
    try:
        manifest = max(root.glob("*/manifest-*"))
        (file,) = json.loads(manifest.read_text())["files"]
        return pickle.loads((manifest.parent / "files" / file["sha256"]).read_bytes())["step"]
    except (FileNotFoundError, ValueError):
        return -1


def kill_machine(farm, name):
    """The agent and all that it started: a machine that is gone."""
    farm.agents[name].kill()
    for pid in farm.supervisors(name):
        os.kill(pid, signal.SIGKILL)
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(farm.state_dir(name)).encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            continue


def only_trial(farm, name="s"):
    return wait_for(lambda: [t for t in farm.trials(name) if t["state"] == "running"], "the trial runs")[0]


def did(farm, trial):
    """Which attempt did which step; the log comes a moment after the end."""
    line = wait_for(lambda: re.search("^did (.*)\n", farm.artifact(trial, "logs/stdout.log") or "", re.MULTILINE), "the whole log")
    return json.loads(line[1])


@pytest.mark.parametrize("store", ["artifacts", "shared folder"])
def test_a_machine_is_gone_and_another_goes_on(tmp_path, store):
    settings = {"every": "100ms"}
    if store == "shared folder":
        settings["store"] = f"file://{tmp_path / 'shared'}"
    with Farm(tmp_path, lease_ttl="2s") as farm:
        farm.start_agent("one", slots=1)
        farm.create("s", [sys.executable, "-c", PICKLER], trials=1, env=farm.gate(17), checkpoints=settings)
        trial = only_trial(farm)
        if store == "artifacts":
            wait_for(lambda: stored_step(farm, trial) == 17, "the checkpoint of step 17")
            assert len(manifests(farm, trial)) <= 2 and len(list((stored_files(farm, trial) / "files").iterdir())) <= 2
        else:
            wait_for(lambda: shared_step(tmp_path / "shared") == 17, "the checkpoint of step 17")
        kill_machine(farm, "one")
        farm.gate(None)
        farm.start_agent("two", slots=1)
        (trial,) = farm.wait_for_end("s")
        assert trial["state"] == "complete"
        steps = did(farm, trial)
        assert [step for _, step in steps] == list(range(STEPS)), "each step once: from the exact one on"
        assert {attempt for attempt, _ in steps[:17]} == {1} and {attempt for attempt, _ in steps[17:]} == {2}
        x = trial["params"]["x"]
        curve = [sum(x * (i + 1) for i in range(step)) for step in range(1, STEPS + 1)]
        assert [value for _, value in farm.history(trial["run_id"])] == pytest.approx(curve)
        wait_for(lambda: "resumes from the stored checkpoint" in (farm.artifact(trial, "logs/agent.log") or ""), "a log that says so")
        # By default nothing is left of a trial that has ended for good.
        assert manifests(farm, trial) == [] and not list((tmp_path).glob("shared/*/manifest-*"))


def test_a_preempted_trial_takes_its_last_step_along(tmp_path):
    """Stored when the attempt ends, whatever the interval is; and so is one that its agent was killed over."""
    with Farm(tmp_path) as farm:
        farm.start_agent("one", slots=1)
        farm.create("s", [sys.executable, "-c", PICKLER], trials=1, env=farm.gate(9),
                    checkpoints={"every": "1h", "after": "keep"})
        trial = only_trial(farm)
        wait_for(lambda: len(farm.history(trial["run_id"])) == 9, "nine steps")
        farm.agents["one"].process.send_signal(signal.SIGTERM)
        assert farm.agents["one"].process.wait(60) == 0
        assert stored_step(farm, trial) == 9
        # Its second attempt: the agent is killed, the trial ends meanwhile, and a new agent on the same folder reports it.
        farm.gate(21)
        farm.start_agent("two", slots=1)
        wait_for(lambda: len(farm.history(trial["run_id"])) == 21, "21 steps")
        (supervisor,) = farm.supervisors("two")
        farm.agents["two"].kill()
        os.kill(supervisor, signal.SIGTERM)
        wait_for(lambda: not lives(supervisor), "the end of the trial")
        # What ended it was no order of an agent: a failure, of which the study allows one.
        farm.gate(None)
        farm.start_agent("two", slots=1)
        (trial,) = farm.wait_for_end("s")
        assert stored_step(farm, trial) >= 21


def test_a_machine_that_was_left_takes_what_is_newer(tmp_path):
    """one, two, one: the first machine's own folder is older by then."""
    with Farm(tmp_path) as farm:
        farm.start_agent("one", slots=1)
        farm.create("s", [sys.executable, "-c", PICKLER], trials=1, env=farm.gate(5), checkpoints={"every": "1h"})
        trial = only_trial(farm)
        for name, step, more in (("one", 5, 12), ("two", 12, 30), ("one", 30, None)):
            wait_for(lambda step=step: len(farm.history(trial["run_id"])) == step, f"{step} steps")
            farm.agents[name].process.send_signal(signal.SIGTERM)
            assert farm.agents[name].process.wait(60) == 0
            farm.gate(more)
            farm.start_agent("two" if name == "one" else "one", slots=1)
        (trial,) = farm.wait_for_end("s")
        steps = did(farm, trial)
        assert [step for _, step in steps] == list(range(STEPS))
        assert [attempt for attempt, _ in steps] == [1] * 5 + [2] * 7 + [3] * 18 + [4] * 10


@pytest.mark.parametrize("damage", ["file", "manifest", "half uploaded"])
def test_a_damaged_set_falls_back_and_says_so(tmp_path, damage):
    with Farm(tmp_path, lease_ttl="2s") as farm:
        farm.start_agent("one", slots=1)
        farm.create("s", [sys.executable, "-c", PICKLER], trials=1, env=farm.gate(6),
                    checkpoints={"every": "100ms", "after": "keep"})
        trial = only_trial(farm)
        wait_for(lambda: stored_step(farm, trial) == 6, "the checkpoint of step 6")
        farm.gate(11)
        wait_for(lambda: stored_step(farm, trial) == 11, "the checkpoint of step 11")
        wait_for(lambda: len(manifests(farm, trial)) == 2, "two sets")
        kill_machine(farm, "one")
        folder, newest = stored_files(farm, trial), manifests(farm, trial)[-1]
        (file,) = json.loads((folder / newest).read_text())["files"]
        if damage == "file":
            (folder / "files" / file["sha256"]).write_bytes(b"damaged")
        elif damage == "manifest":
            (folder / newest).write_text("{")
        else:
            (folder / "files" / file["sha256"]).unlink()
        farm.gate(None)
        farm.start_agent("two", slots=1)
        (trial,) = farm.wait_for_end("s")
        assert trial["state"] == "complete"
        steps = did(farm, trial)
        assert [step for _, step in steps] == list(range(STEPS)) and steps[11] == [2, 11]
        assert 6 <= [attempt for attempt, _ in steps].index(2) < 11, "from the set before"
        wait_for(lambda: "cannot be used" in (farm.artifact(trial, "logs/agent.log") or ""), "a log that says so")


def test_local_checkpoints_stay_here(tmp_path):
    with Farm(tmp_path) as farm:
        farm.start_agent("one", slots=1)
        farm.create("s", [sys.executable, "-c", PICKLER], trials=1, checkpoints={"store": "local", "after": "keep"})
        (trial,) = farm.wait_for_end("s")
        assert manifests(farm, trial) == []
        assert not list(farm.state_dir("one").glob("checkpoint-state/*"))


@pytest.mark.parametrize("settings, said", [
    ({"store": "s3://bucket/x"}, "no client for object stores"),
    ({"store": "somewhere"}, "expected auto, artifacts, local or a folder"),
    ({"every": "1ms"}, "100ms or more"), ({"keep": 0}, "keep"), ({"after": "burn"}, "after")])
def test_wrong_settings_say_what_is_right(tmp_path, settings, said):
    with Farm(tmp_path) as farm, pytest.raises(AssertionError, match=said):
        farm.create("s", ["true"], checkpoints=settings)

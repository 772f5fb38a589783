"""A study of a higher priority takes the place of a lower one, with a real server, agents and processes."""

import json
import os
import subprocess

import pytest

from agent_support import PYTHON, TRIAL, TUNE, Farm, wait_for

# As TRIAL, but told to end it ends at its checkpoint, which it writes after each step anyway.
QUICK = 'import json; print("tune: " + json.dumps({"loss": 1.0}))'


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        yield made


def verb(farm, *words):
    done = subprocess.run([TUNE, *words, "--server", farm.url], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "TUNE_TOKEN": (farm.folder / "data" / "token").read_text().strip()})
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_state(farm, name, state):
    return [trial for trial in farm.trials(name) if trial["state"] == state]


def test_a_higher_priority_takes_a_place_and_the_trial_goes_on(farm):
    env = farm.gate(0)  # every trial stops in the middle
    farm.create("low", [PYTHON, "-c", TRIAL], 4, env=env)
    farm.start_agent(slots=2)
    wait_for(lambda: len(by_state(farm, "low", "running")) == 2, "two trials")
    for number in (0, 1):
        farm.trial_process(number)
    wait_for(lambda: all(len(farm.history(trial["run_id"])) == 5 for trial in by_state(farm, "low", "running")),
             "both in the middle")

    farm.create("high", [PYTHON, "-c", QUICK], 1)
    assert wait_for(lambda: [study for study in farm.get("tune/queue")["studies"] if study["study"] == "high"],
                    "high in the queue")[0]["waits_for"]
    assert farm.study("high")["counts"]["running"] == 0, "equal priorities wait"
    assert json.loads(verb(farm, "priority", "high", "7", "--json"))["priority"] == 7
    assert farm.wait_for_end("high")[0]["state"] == "complete"

    stopped = wait_for(lambda: [trial for trial in farm.trials("low") if trial["ran_ms"] > 0 or trial["attempt"] > 1],
                       "the one that made room")
    assert len(stopped) == 1, "no more than needed"
    wait_for(lambda: farm.trials("low")[stopped[0]["number"]]["attempt"] == 2, "its next attempt")
    farm.gate(None)
    trials = farm.wait_for_end("low")
    assert [trial["state"] for trial in trials] == ["complete"] * 4, "the budget is exact, nothing failed"
    assert sorted(trial["attempt"] for trial in trials) == [1, 1, 1, 2]
    for trial in trials:  # each step once: it went on from its checkpoint
        assert [step for step, _ in farm.history(trial["run_id"])] == list(range(12))


def test_a_quota_holds_and_is_lifted(farm):
    env = farm.gate(0)
    user = farm.create("s", [PYTHON, "-c", TRIAL], 3, env=env)["user"]
    verb(farm, "quota", "set", user, "--slots", "1")
    farm.start_agent(slots=3)
    wait_for(lambda: by_state(farm, "s", "running"), "the first trial")
    listed = json.loads(verb(farm, "quota", "ls", "--json"))["users"]
    assert [(one["user"], one["quota"]["slots"], one["quota"]["gpus"]) for one in listed] == [(user, 1, None)]
    queue = farm.get("tune/queue")["studies"][0]
    assert queue["waits_for"] == f"user '{user}' holds 1 of the 1 places that the quota allows, and a trial takes 1"
    farm.server.kill()
    farm.start_server()
    assert json.loads(verb(farm, "quota", "ls", "--json"))["users"][0]["quota"]["slots"] == 1, "it is on disk"
    wait_for(lambda: len(farm.get("tune/queue")["agents"]) == 1, "the agent again")
    assert len(by_state(farm, "s", "running")) == 1
    verb(farm, "quota", "rm", user)
    wait_for(lambda: len(by_state(farm, "s", "running")) == 3, "all of them")
    farm.gate(None)
    assert [trial["state"] for trial in farm.wait_for_end("s")] == ["complete"] * 3

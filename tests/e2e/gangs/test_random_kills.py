"""Ranks, supervisors, agents and the server of trials on two agents are killed at random, alone and together: every
trial ends once, with the value of an undisturbed one, and nothing is left running or taken."""

import contextlib
import os
import random
import signal
import time

from agent_support import PYTHON, TUNE, Farm, Process, lives, wait_for
from gangs.gang_scripts import STEPS

ROUNDS = int(os.environ.get("TUNE_KILL_ROUNDS", 12))
NAMES = ("a", "b")
TRIALS = max(4, ROUNDS // 3)


def start_agent(farm, name):
    farm.agents[name] = Process(
        [TUNE, "agent", "--server", farm.url, "--state", str(farm.folder / name), "--slots", "2", "--no-gpus"],
        farm.folder / (name + ".log"))


def processes(farm):
    """Of all attempts so far."""
    found = []
    for path in farm.folder.glob("ran-*"):
        with contextlib.suppress(ValueError):  # it is being written
            found.append(int(path.read_text()))
    return found


def strike(farm, chance):
    """Kills something, or two things."""
    for victim in chance.sample(["rank", "supervisor", "agent", "server"], chance.choice([1, 1, 2])):
        if victim == "server":
            farm.server.kill()
            farm.start_server()
        elif victim == "agent":
            name = chance.choice(NAMES)
            farm.agents[name].kill()
            start_agent(farm, name)
        else:
            with contextlib.suppress(OSError, IndexError, ValueError):  # what is struck may be gone
                pids = [pid for pid in processes(farm) if lives(pid)] if victim == "rank" else \
                    farm.supervisors(chance.choice(NAMES))
                os.kill(chance.choice(pids), signal.SIGKILL)


def test_random_kills(tmp_path):
    chance = random.Random(ROUNDS)
    with Farm(tmp_path, lease_ttl="4s") as farm:
        script = tmp_path / "trial.py"
        script.write_text(STEPS)
        for name in NAMES:
            start_agent(farm, name)
        farm.create("s", [PYTHON, str(script)], trials=TRIALS, resources={"nproc": 2, "nnodes": 2},
                    env={"FOLDER": str(tmp_path)}, retry={"max": 100, "on": ["failed", "oom"]}, stop_after_failures=0)
        for _ in range(ROUNDS):
            if farm.study("s")["state"] == "completed":
                break
            time.sleep(chance.uniform(0.1, 1.5))  # the moment of the blow
            strike(farm, chance)
        trials = farm.wait_for_end("s")
        assert [trial["state"] for trial in trials] == ["complete"] * TRIALS
        for trial in trials:
            assert abs(trial["value"] - ((trial["params"]["x"] - 0.3) ** 2 + 0.1)) < 1e-12
        wait_for(lambda: not any(map(lives, processes(farm))), "the end of all processes")
        wait_for(lambda: all(agent["free_slots"] == agent["slots"] and not agent["leases"]
                             for agent in farm.get("tune/queue")["agents"]), "free places")
        for name in NAMES:
            wait_for(lambda name=name: not list((farm.state_dir(name) / "attempts").iterdir()), "an empty folder")

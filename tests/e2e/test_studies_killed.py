"""Study after study while the server, the agent and the supervisors of trials are killed with -9 at random moments: each ends
with exactly its budget, no metric whose log-metric was answered is lost, and what counts was logged by the attempt that ended
the trial. TUNE_KILLED_STUDIES sets how many (default 3; 100 take about ten minutes)."""

import collections
import contextlib
import os
import random
import signal
import time

from agent_support import PYTHON, Farm, wait_for

STUDIES = int(os.environ.get("TUNE_KILLED_STUDIES", "3"))
TRIALS = 6
STEPS = 4
KILLS = 3

# Logs as a client of MLflow does: again until it is answered. What was answered is noted beside the server, in one write
# a line. Its loss names the attempt, so that the value of the trial shows which attempt was counted.
TRIAL = f"""
import http.client, json, os, sys, time, urllib.error, urllib.request
run, attempt, number = (os.environ[name] for name in ("MLFLOW_RUN_ID", "TUNE_ATTEMPT", "TUNE_TRIAL"))
book = os.open(os.environ["BOOK"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
address = os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric"
headers = {{"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"]}}
def log(key, value, step):
    body = {{"run_id": run, "key": key, "value": value, "step": step, "timestamp": int(attempt)}}
    while True:
        try:
            request = urllib.request.Request(address, json.dumps(body).encode(), headers)
            urllib.request.urlopen(request, timeout=30).read()
            return os.write(book, f"{{run}} {{attempt}} {{key}} {{step}} {{value}}\\n".encode())
        except urllib.error.HTTPError as error:
            if error.code == 409:
                os.write(book, f"{{run}} {{attempt}} refused {{step}} 0\\n".encode())
                sys.exit(3)
            if error.code not in (429, 500, 503):
                raise
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.02)
for step in range({STEPS}):
    log("seen", 100 * int(attempt) + step, step)
    time.sleep(1 if (number, attempt) == ("2", "1") else 0.04)  # one that may outlive its lease
log("loss", int(number) + int(attempt) / 1000, 0)
"""


def kill_running_supervisors(farm):
    """Of every trial that runs: at least one attempt ends with this."""
    for pid in wait_for(farm.supervisors, "a trial that runs"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_one(farm, draw):
    victim = draw.choice(["server", "agent", "supervisor", "supervisor", "server and agent"])
    if "server" in victim:
        farm.server.kill()
    if "agent" in victim:
        farm.agents["agent"].kill()
        time.sleep(draw.choice([0, 0, 2.5]))  # longer than a lease lives: its trials are given anew
    if victim == "supervisor":
        for pid in farm.supervisors()[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if "server" in victim:
        farm.start_server()
    if "agent" in victim:
        farm.start_agent()
    return victim


def answered(book):
    """{run: [(attempt, key, step, value)]} of what the trials were told is stored; and the writes that were refused."""
    lines = [line.split() for line in book.read_text().splitlines()] if book.exists() else []
    stored = collections.defaultdict(list)
    for run, attempt, key, step, value in lines:
        if key != "refused":
            stored[run].append((int(attempt), key, int(step), float(value)))
    return stored, sum(line[2] == "refused" for line in lines)


def check(farm, name, stored):
    trials = farm.wait_for_end(name)
    assert [trial["number"] for trial in trials] == list(range(TRIALS)), "exactly the budget"
    assert {trial["state"] for trial in trials} == {"complete"}, [trial for trial in trials if trial["state"] != "complete"]
    for trial in trials:
        assert trial["value"] == trial["number"] + trial["attempt"] / 1000, ("another attempt was counted", trial)
        there = {key: set(farm.history(trial["run_id"], key)) for key in ("seen", "loss")}
        for attempt, key, step, value in stored[trial["run_id"]]:
            assert (step, value) in there[key], ("answered and lost", trial, attempt, key, step)
        own = {100 * trial["attempt"] + step for step in range(STEPS)}
        assert own <= {value for _, value in there["seen"]}
        assert max(value for _, value in there["seen"]) < 100 * (trial["attempt"] + 1), "nobody runs after the end"
    return sum(trial["attempt"] - 1 for trial in trials)


def test_studies_while_everything_is_killed(tmp_path):
    draw = random.Random(int(os.environ.get("TUNE_KILLED_SEED", "11")))
    book, script = tmp_path / "answered", tmp_path / "trial.py"
    script.write_text(TRIAL)
    victims, repeated = collections.Counter(), 0
    with Farm(tmp_path / "farm", lease_ttl="2s") as farm:
        farm.start_agent()
        for i in range(STUDIES):
            farm.create(f"s{i}", [PYTHON, str(script)], TRIALS, env={"BOOK": str(book)})
            if i == 0:
                kill_running_supervisors(farm)
            for kill in range(KILLS):
                # In the middle: after its share of the trials, and then at a random moment.
                wait_for(lambda: farm.study(f"s{i}")["counts"]["complete"] >= kill * TRIALS // (KILLS + 1), "progress")
                time.sleep(draw.uniform(0, 0.5))
                victims[kill_one(farm, draw)] += 1
            farm.wait_for_end(f"s{i}")
            repeated += check(farm, f"s{i}", answered(book)[0])
        farm.server.kill()
        farm.start_server()
        stored, refused = answered(book)
        for i in range(STUDIES):
            check(farm, f"s{i}", stored)
    print(f"{STUDIES} studies, killed: {dict(victims)}, attempts that were lost: {repeated}, writes refused: {refused}")
    assert len(stored) == STUDIES * TRIALS and repeated > 0, "the test must interrupt something"

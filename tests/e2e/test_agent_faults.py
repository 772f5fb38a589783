"""kill -9 of the server, the agent, the supervisor and the trial: the result equals the uninterrupted one."""

import os
import signal
import subprocess

import pytest

from agent_support import PYTHON, TRIAL, TUNE, Farm, lives, outcome, wait_for

COMMAND = [PYTHON, "-c", TRIAL]
TRIALS = 8


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    with Farm(tmp_path_factory.mktemp("undisturbed")) as farm:
        farm.create("s", COMMAND, TRIALS)
        farm.start_agent()
        result = outcome(farm, farm.wait_for_end("s"))
    assert [trial[1] for trial in result] == ["complete"] * TRIALS
    assert all(len(trial[4]) == 12 for trial in result)
    return result


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        yield made


def test_an_agent_outlives_the_reader_of_its_log(farm):
    """As an agent whose engine was killed: it still stops its trials when it is told to."""
    farm.create("s", COMMAND, TRIALS, env=farm.gate(1))
    agent = subprocess.Popen([TUNE, "agent", "--server", farm.url, "--state", str(farm.folder / "piped"), "--slots", "1", "--no-gpus"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(lambda: farm.starts(1), "trial 1 runs")
    agent.stdout.close()
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0
    assert not any((farm.folder / "piped" / "attempts").iterdir())


def in_the_middle(farm):
    """Gives the turn when a trial or four have ended and the next ones stand in their middle."""
    farm.create("s", COMMAND, TRIALS, env=farm.gate(1))
    farm.start_agent()
    for enough, more in ((1, 4), (4, None)):
        wait_for(lambda: farm.study("s")["counts"]["complete"] >= enough, f"{enough} ended trials")
        wait_for(lambda: farm.starts(enough), f"trial {enough} runs")
        yield
        farm.gate(more)


def test_server_killed(farm, undisturbed):
    for _ in in_the_middle(farm):
        farm.server.kill()
        farm.start_server()
    trials = farm.wait_for_end("s")
    assert outcome(farm, trials) == undisturbed
    # One process each. It may be the second attempt: a server that is killed between the commit of a lease and its
    # answer leases the trial again, for the agent does not hold it.
    assert [farm.starts(trial["number"]) for trial in trials] == [[trial["attempt"]] for trial in trials]


def test_agent_killed(farm, undisturbed):
    for _ in in_the_middle(farm):
        farm.agents["agent"].kill()
        farm.start_agent()
    trials = farm.wait_for_end("s")
    assert outcome(farm, trials) == undisturbed
    # What was running was adopted, not run again. (A trial that was leased while the agent died never began: its
    # second attempt is its first process.)
    log = (farm.folder / "agent.log").read_text()
    assert "adopted" in log


def test_server_and_agent_killed(farm, undisturbed):
    for _ in in_the_middle(farm):
        farm.server.kill()
        farm.agents["agent"].kill()
        farm.start_agent()
        farm.start_server()
    assert outcome(farm, farm.wait_for_end("s")) == undisturbed


def test_nothing_is_left_of_ended_attempts(farm):
    farm.create("s", COMMAND, 4)
    farm.start_agent()
    farm.wait_for_end("s")
    wait_for(lambda: not list((farm.state_dir() / "attempts").iterdir()), "an empty folder of attempts")


def test_trial_killed(farm):
    farm.create("s", COMMAND, 2, env=farm.gate(0))
    farm.start_agent(slots=1)
    os.kill(farm.trial_process(0), signal.SIGKILL)
    farm.gate(None)
    first = wait_for(lambda: next((t for t in farm.trials("s") if t["state"] == "failed"), None), "a failed trial")
    assert first["number"] == 0
    assert "SIGKILL" in first["reason"]
    second = farm.wait_for_end("s")[1]
    assert second["state"] == "complete"


def test_trial_killed_and_retried(farm):
    farm.create("s", COMMAND, 1, env=farm.gate(0), retry={"max": 1, "on": ["failed"]})
    farm.start_agent(slots=1)
    pid = farm.trial_process(0)
    wait_for(lambda: any(trial["attempt"] == 1 and len(farm.history(trial["run_id"])) >= 3
                         for trial in farm.trials("s")), "three steps")
    os.kill(pid, signal.SIGKILL)
    farm.gate(None)
    trial = farm.wait_for_end("s")[0]
    assert (trial["state"], trial["attempt"]) == ("complete", 2)
    # It went on from its checkpoint: each step is there, none but the interrupted one twice.
    steps = [step for step, _ in farm.history(trial["run_id"])]
    assert sorted(set(steps)) == list(range(12))
    assert len(steps) <= 13
    wait_for(lambda: "done" in (farm.artifact(trial, "logs/stdout.log") or ""), "the log of the second attempt")
    assert "SIGKILL" in farm.artifact(trial, "logs/attempt-1/agent.log")


def test_supervisor_killed(farm):
    farm.create("s", COMMAND, 1, env=farm.gate(0))
    farm.start_agent(slots=1)
    trial_pid = farm.trial_process(0)
    [supervisor] = farm.supervisors()
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not lives(trial_pid), "the trial's end")
    farm.gate(None)
    trial = farm.wait_for_end("s")[0]
    assert (trial["state"], trial["attempt"]) == ("complete", 2)


def test_a_dead_agents_trials_go_to_another(tmp_path):
    with Farm(tmp_path, lease_ttl="5s") as farm:
        farm.create("s", COMMAND, 2, env=farm.gate(0))
        farm.start_agent("first", slots=2)
        pids = [farm.trial_process(0), farm.trial_process(1)]
        farm.agents["first"].kill()
        for supervisor in farm.supervisors("first"):
            os.kill(supervisor, signal.SIGKILL)  # as if the machine were gone
        for pid in pids:
            wait_for(lambda: not lives(pid), "the end of the trial")
        farm.gate(None)
        farm.start_agent("second", slots=2)
        trials = farm.wait_for_end("s")  # after the lease's time to live
        assert [trial["state"] for trial in trials] == ["complete"] * 2
        assert [trial["attempt"] for trial in trials] == [2, 2]


def test_an_agent_stopped_by_a_signal_ends_its_trials(farm):
    farm.create("s", COMMAND, 2, env=farm.gate(0))
    farm.start_agent(slots=2)
    pids = [farm.trial_process(0), farm.trial_process(1)]
    farm.agents["agent"].stop()
    assert not any(lives(pid) for pid in pids)
    assert farm.study("s")["counts"]["running"] == 0
    assert farm.study("s")["counts"]["queued"] == 2

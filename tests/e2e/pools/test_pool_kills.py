"""kill -9 of a pool, of its agent and of the server: attempts are lost, trials and results are not. At random, with other
studies beside it: ../checkpoints/test_random_kills.py."""

import os
import signal

import pytest

from agent_support import lives, outcome, wait_for

TRIALS = 12


def undisturbed(farm):
    farm.create_pool("undisturbed", trials=TRIALS)
    return outcome(farm, farm.wait_for_end("undisturbed"))


@pytest.fixture
def expected(farm):
    """What undisturbed trials end with. Of `s`, two trials are complete now, and four wait with five steps behind them that the
    server knows."""
    farm.start_agent(slots=1)
    result = undisturbed(farm)
    farm.put("gate", 2)
    farm.create_pool("s", trials=TRIALS)
    wait_for(lambda: [len(farm.history(t["run_id"])) for t in farm.trials("s")] == [12, 12, 5, 5, 5, 5],
             "trials in the middle")
    return result


def finish(farm, expected):
    (farm.folder / "gate").unlink()
    trials = farm.wait_for_end("s")
    assert outcome(farm, trials) == expected
    assert farm.study("s")["counts"]["complete"] == TRIALS


def test_a_killed_pool(farm, expected):
    for pid in farm.pools():
        os.kill(pid, signal.SIGKILL)
    finish(farm, expected)


def test_a_killed_supervisor(farm, expected):
    pools = farm.pools()
    for pid in farm.supervisors(of="pools"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(lives(pid) for pid in pools), "the end of the pool")
    finish(farm, expected)


def test_a_killed_agent_ends_its_pools_and_gives_their_attempts_back(farm, expected):
    pools = farm.pools()
    assert pools
    farm.agents["agent"].kill()
    wait_for(lambda: not any(lives(pid) for pid in pools), "the end of the pool")
    farm.start_agent(slots=1)
    finish(farm, expected)


def test_what_a_pool_said_before_its_agent_was_killed_is_not_lost(farm, expected):
    """The agent is stopped while four trials go on to their ends, which only their supervisor's file hears of."""
    agent = farm.agents["agent"]
    agent.process.send_signal(signal.SIGSTOP)
    (farm.folder / "gate").unlink()

    runs = [trial["run_id"] for trial in farm.trials("s")]

    def have_ended():
        logs = [log.read_text() for log in (farm.state_dir() / "pools").glob("*/stdout.log")]
        ends = [line for log in logs for line in log.splitlines() if '"ended"' in line]
        return all(any(run in line for line in ends) for run in runs)

    wait_for(have_ended, "the ends of the first six trials")
    agent.kill()
    farm.start_agent(slots=1)
    assert outcome(farm, farm.wait_for_end("s")) == expected
    assert [farm.attempts(number) for number in range(6)] == [[1, 1]] * 6, "what had ended ran again"


def test_a_killed_server(farm, expected):
    pools = farm.pools()
    farm.server.kill()
    farm.start_server()
    finish(farm, expected)
    assert all(farm.attempts(number)[-1:] == [1] for number in range(2)), "nothing ran again"
    assert set(farm.pools()) <= set(pools)

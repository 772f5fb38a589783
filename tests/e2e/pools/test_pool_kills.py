"""kill -9 of a pool, of its agent and of the server: attempts are lost, trials and results are not."""

import contextlib
import os
import random
import signal
import time

from agent_support import lives, outcome, wait_for

TRIALS = 12
ROUNDS = int(os.environ.get("TUNE_KILL_ROUNDS", 6))


def supervisors(farm):
    found = []
    for folder in (farm.state_dir() / "pools").glob("*"):
        with contextlib.suppress(OSError):  # it is just starting or ending
            found.append(int(os.readlink(folder / "owner").split()[0]))
    return found


def undisturbed(farm):
    farm.create_pool("undisturbed", trials=TRIALS)
    return outcome(farm, farm.wait_for_end("undisturbed"))


def middle(farm):
    """Two trials are complete, and four wait with five steps behind them that the server knows."""
    farm.put("gate", 2)
    farm.create_pool("s", trials=TRIALS)
    wait_for(lambda: [len(farm.history(t["run_id"])) for t in farm.trials("s")] == [12, 12, 5, 5, 5, 5],
             "trials in the middle")


def finish(farm, expected):
    (farm.folder / "gate").unlink()
    trials = farm.wait_for_end("s")
    assert outcome(farm, trials) == expected
    assert farm.study("s")["counts"]["complete"] == TRIALS


def test_a_killed_pool(farm):
    farm.start_agent(slots=1)
    expected = undisturbed(farm)
    middle(farm)
    for pid in farm.pools():
        os.kill(pid, signal.SIGKILL)
    finish(farm, expected)


def test_a_killed_supervisor(farm):
    farm.start_agent(slots=1)
    expected = undisturbed(farm)
    middle(farm)
    pools = farm.pools()
    for pid in supervisors(farm):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(lives(pid) for pid in pools), "the end of the pool")
    finish(farm, expected)


def test_a_killed_agent_ends_its_pools_and_gives_their_attempts_back(farm):
    farm.start_agent(slots=1)
    expected = undisturbed(farm)
    middle(farm)
    pools = farm.pools()
    assert pools
    farm.agents["agent"].kill()
    wait_for(lambda: not any(lives(pid) for pid in pools), "the end of the pool")
    farm.start_agent(slots=1)
    finish(farm, expected)


def test_a_killed_server(farm):
    farm.start_agent(slots=1)
    expected = undisturbed(farm)
    middle(farm)
    pools = farm.pools()
    farm.server.kill()
    farm.start_server()
    finish(farm, expected)
    assert all(farm.attempts(number)[-1:] == [1] for number in range(2)), "nothing ran again"
    assert set(farm.pools()) <= set(pools) or not farm.pools()


def test_random_kills(farm):
    """Pools, supervisors, the agent and the server, alone and together. What a killed agent had not sent of its pools
    and a killed supervisor had not read is lost with it, so a curve may lack a step; it never has one twice, nor a
    wrong one, and every trial ends once."""
    chance = random.Random(5)
    farm.start_agent(slots=2)
    expected = undisturbed(farm)
    farm.put("gate", TRIALS)
    # A trial that lost two attempts runs alone, and the end of its process is then its own.
    farm.create_pool("s", trials=TRIALS, retry={"max": 1000, "on": ["failed"]})
    for _ in range(ROUNDS):
        time.sleep(chance.uniform(0.05, 0.4))  # a random moment, which is the point
        for victim in chance.sample(["pool", "supervisor", "agent", "server"], chance.choice([1, 1, 2])):
            if victim == "server":
                farm.server.kill()
                farm.start_server()
            elif victim == "agent":
                farm.agents["agent"].kill()
                farm.start_agent(slots=2)
            else:
                for pid in (farm.pools() if victim == "pool" else supervisors(farm))[:1]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
    (farm.folder / "gate").unlink()
    ended = outcome(farm, farm.wait_for_end("s"))
    assert [trial[:3] for trial in ended] == [trial[:3] for trial in expected]
    for (*_, value, history), (*_, whole) in zip(ended, expected):
        assert set(history) <= set(whole) and len(set(history)) == len(history)
        assert value == min(loss for _, loss in history)

"""Studies whose trials run beside others in one process, with a real server, agent and pool."""

import re

from agent_support import PYTHON, ROOT, Farm, outcome, wait_for
from pools.pool_scripts import PROCESS

DOCUMENT = ROOT / "docs" / "pools.md"


def test_results_are_those_of_processes(farm):
    """Values, histories, logs and states; sixteen trials in one process of the agent's only place."""
    farm.start_agent(slots=1)
    farm.create_pool("pooled", trials=16, size=8)
    pooled = farm.wait_for_end("pooled")
    assert [trial["state"] for trial in pooled] == ["complete"] * 16
    (farm.folder / "process.py").write_text(PROCESS)
    farm.create("single", [PYTHON, str(farm.folder / "process.py")], trials=16, env={"FOLDER": str(farm.folder)})
    single = farm.wait_for_end("single")
    assert outcome(farm, pooled) == outcome(farm, single)
    assert len(list(farm.folder.glob("pool-*"))) == 1, "one process for all of them"
    wait_for(lambda: farm.artifact(pooled[3], "logs/stdout.log") == f"trial {pooled[3]['number']}\n", "its log")
    tags = [{tag["key"] for tag in farm.run(trials[0]["run_id"])["data"]["tags"]} for trials in (pooled, single)]
    assert tags[1] - tags[0] <= {"tune.max_rss_kb", "tune.peak_memory_bytes", "tune.cpu_ms"}


def test_an_idle_pool_ends(farm):
    farm.start_agent(slots=1)
    farm.create_pool("s", trials=2)
    farm.wait_for_end("s")
    wait_for(lambda: not farm.pools(), "the end of a pool without trials")
    wait_for(lambda: not any((farm.state_dir() / "pools").iterdir()), "what it left is removed")


def test_many_at_once_and_no_more(farm):
    """An agent with two places runs two processes of four trials."""
    farm.put("gate", 0)
    farm.start_agent(slots=2)
    farm.create_pool("s", trials=20, size=4)
    wait_for(lambda: farm.study("s")["counts"]["running"] == 8, "eight running trials")
    agent, = farm.get("tune/queue")["agents"]
    assert agent["free_slots"] == 0
    assert len({lease["pool"] for lease in agent["leases"]}) == 2
    wait_for(lambda: len(farm.pools()) == 2, "two processes")
    (farm.folder / "gate").unlink()
    assert [trial["state"] for trial in farm.wait_for_end("s")] == ["complete"] * 20


PRUNER = {"type": "threshold", "upper": 0.3, "warmup": 3}


def numbers_to_prune(farm):
    """Of the trials of every study of eight trials here: they depend on the sampler's seed alone."""
    farm.create_pool("look", trials=8, size=8)
    trials = farm.wait_for_end("look")
    for path in farm.folder.glob("starts-*"):
        path.unlink()
    bad = [trial["number"] for trial in trials if (trial["params"]["x"] - 0.3) ** 2 + 0.25 > 0.3]
    assert 0 < len(bad) < 8
    return bad


def test_pruned_trials_leave_their_neighbours_alone(farm):
    farm.start_agent(slots=1)
    bad = numbers_to_prune(farm)
    farm.put("gate", 0)
    farm.create_pool("s", trials=8, size=8, pruner=PRUNER)
    wait_for(lambda: farm.study("s")["counts"]["pruned"] == len(bad), "the pruned trials")
    assert farm.study("s")["counts"]["running"] == 8 - len(bad)
    (farm.folder / "gate").unlink()
    trials = farm.wait_for_end("s")
    assert [trial["number"] for trial in trials if trial["state"] == "pruned"] == bad
    assert [farm.attempts(number) for number in range(8)] == [[1]] * 8


def test_a_deaf_trial_takes_its_pool_with_it_and_loses_no_other(farm):
    farm.start_agent(slots=1)
    bad = numbers_to_prune(farm)
    farm.put("gate", 0)
    farm.put("deaf", bad[0])
    farm.create_pool("s", trials=8, size=8, pruner=PRUNER, grace="500ms")
    wait_for(lambda: any(trial["number"] == bad[0] and trial["state"] == "pruned" for trial in farm.trials("s")),
             "the end of the deaf trial")
    (farm.folder / "gate").unlink()
    trials = farm.wait_for_end("s")
    assert [trial["number"] for trial in trials if trial["state"] == "pruned"] == bad
    for trial in trials:
        if trial["state"] == "complete":
            # The second one begins again where the pool was gone before it could say that it had begun.
            assert set(farm.attempts(trial["number"])) == {1, 2}
            assert sorted({step for step, _ in farm.history(trial["run_id"])}) == list(range(12))


def test_a_trial_that_ends_its_process_fails_alone(farm):
    """It is found out in two lost attempts, runs alone and fails; its neighbours complete. A step comes twice where the
    process ended between a neighbour's report and its checkpoint."""
    for name, words in (("killer", "SIGSEGV"), ("exits", "exit code 7")):
        farm.put(name, 5)
        if not farm.agents:
            farm.start_agent(slots=2)
        farm.create_pool(name, trials=8)
        trials = farm.wait_for_end(name)
        assert [trial["state"] for trial in trials] == ["complete"] * 5 + ["failed"] + ["complete"] * 2
        assert words in trials[5]["reason"]
        assert trials[5]["attempt"] == 3, "two beside others, one alone"
        for trial in trials:
            if trial["number"] != 5:
                steps = [step for step, _ in farm.history(trial["run_id"])]
                assert sorted(set(steps)) == list(range(12))
        (farm.folder / name).unlink()
        for path in farm.folder.glob("starts-*"):
            path.unlink()


def test_a_command_that_is_no_pool(farm):
    farm.start_agent(slots=1)
    farm.create("s", ["/no/such/program"], trials=8, resources={"pool": 4})
    wait_for(lambda: farm.study("s")["state"] == "stopped", "the study's end")
    assert any("/no/such/program" in trial["reason"] for trial in farm.trials("s"))
    farm.create("t", ["/bin/false"], trials=8, resources={"pool": 4})
    wait_for(lambda: farm.study("t")["state"] == "stopped", "the study's end")
    assert any("exit code 1" in trial["reason"] for trial in farm.trials("t"))


def test_the_example_of_the_documents(tmp_path):
    """What a reader copies runs as it stands."""
    program = tmp_path / "pool.py"
    example, = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert len(example.splitlines()) <= 36
    program.write_text(example)
    with Farm(tmp_path) as farm:
        farm.start_agent(slots=1)
        farm.create("s", [PYTHON, str(program)], trials=12, resources={"pool": 6})
        trials = farm.wait_for_end("s")
    assert [trial["state"] for trial in trials] == ["complete"] * 12
    assert all(abs(trial["value"] - (trial["params"]["x"] - 0.3) ** 2) < 0.011 for trial in trials)

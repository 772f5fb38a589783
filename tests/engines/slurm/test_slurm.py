"""The engine `slurm` on a real Slurm."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from launching import FAILED, OK, TUNE, USAGE, Scene, free_port, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster import check_quiet, is_installed, running_cluster  # noqa: F401 (the fixture `slurm`)

pytestmark = pytest.mark.skipif(not is_installed(), reason="Slurm is not installed: setup.sh installs it for the tests")


@pytest.fixture
def scene(slurm, tmp_path):
    slurm.clear()
    with Scene(tmp_path, **slurm.environment) as scene:
        scene.engines(cluster={"type": "slurm", "partition": "gpu", "agents": 2, "cpus": 1, "slots": 1, "poll": "300ms"})
        yield scene


def with_settings(scene, **settings):
    engines = json.loads((scene.folder / "engines.yaml").read_text())
    engines["cluster"].update(settings)
    scene.engines(**engines)


def agent_logs(scene):
    return "".join(path.read_text() for path in (scene.home / ".tune" / "agents" / "logs").glob("*.log"))


def start_study(scene, trials=6, running=2, **more):
    """A study of which so many trials have begun and wait for the gate; the process and its words."""
    scene.gate.touch()
    words = ["run", "--port", free_port(), "--on", "cluster", *scene.study(trials, **more)]
    run = scene.start(*words)
    wait_for(lambda: len(scene.starts()) >= running, f"{running} trials that run; {run.output}")
    return run, words


def test_a_study_runs_on_array_jobs_and_nothing_is_left(scene, slurm):
    run, _ = start_study(scene)
    jobs = slurm.jobs()
    assert len(jobs) == 2 and all(re.match(r"\d+_\d+$", job[0]) for job in jobs), jobs
    assert all(re.match(r"tune:tune-s-[0-9a-f]{8}:s$", job[4]) for job in jobs), "the comment names the study"
    scene.gate.unlink()
    assert run.wait(60) == OK, run.output.read_text()
    scene.check_whole(6)
    assert len(scene.starts()) == 6
    check_quiet(scene, slurm)


def test_pending_agents_say_why(scene, slurm):
    with_settings(scene, agents=5, cpus=2)
    run, _ = start_study(scene, running=3, trials=7)
    wait_for(lambda: b"3 agents running, 2 pending: partition gpu is full (" in run.output.read_bytes(), "the reason")
    shown = scene.tune_json("agents", "ls", "--on", "cluster")["agents"]
    assert [agent["reason"][:21] for agent in shown if agent["state"] == "pending"] == ["partition gpu is full"] * 2
    assert {agent["host"] for agent in shown if agent["state"] == "running"} == {"n1", "n2", "n3"}
    scene.gate.unlink()
    assert run.wait(60) == OK
    scene.check_whole(7)
    check_quiet(scene, slurm)


def test_arrays_are_cut_at_the_clusters_limit(scene, slurm):
    with_settings(scene, agents=5)  # MaxArraySize is 3
    run, _ = start_study(scene, running=5, trials=5)
    assert len({job[0].split("_")[0] for job in slurm.jobs()}) == 2
    scene.gate.unlink()
    assert run.wait(60) == OK
    scene.check_whole(5)
    check_quiet(scene, slurm)


def test_agents_know_their_cores_and_gpus(scene, slurm):
    with_settings(scene, agents=3, gpus=1)
    run, _ = start_study(scene, running=3, trials=3)
    wait_for(lambda: agent_logs(scene).count("slurm job") == 3, "three agents")
    given = re.findall(r"slurm job \d+_\d on (n\d): 1 core, GPUs (\d)", agent_logs(scene))
    assert len(set(given)) == 3, "no GPU was given twice: " + agent_logs(scene)
    scene.gate.unlink()
    assert run.wait(60) == OK
    check_quiet(scene, slurm)


def test_a_requeue_costs_no_trial_and_no_failure(scene, slurm):
    run, _ = start_study(scene)
    victim = slurm.jobs()[0][0]
    slurm.run("scontrol", "requeue", victim)
    wait_for(lambda: len(scene.starts()) >= 3, "the trial's next attempt")
    scene.gate.unlink()
    assert run.wait(90) == OK, run.output.read_text()
    trials = scene.check_whole(6)
    assert sum(trial["attempt"] for trial in trials) == 7, "one attempt was taken away"
    assert "restarted 1 time" in agent_logs(scene)
    check_quiet(scene, slurm)


def test_preemption_by_a_higher_partition_costs_nothing(scene, slurm):
    run, _ = start_study(scene)
    slurm.run("sbatch", "--partition=high", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap=sleep 2")
    wait_for(lambda: b"pending" in run.output.read_bytes(), "that agents wait")
    wait_for(lambda: len(scene.starts()) >= 4, "the trials' next attempts")
    scene.gate.unlink()
    assert run.wait(90) == OK, run.output.read_text()
    trials = scene.check_whole(6)
    assert all(trial["state"] == "complete" for trial in trials)
    check_quiet(scene, slurm)


def test_a_slurmd_that_is_killed_leaves_the_budget_exact(scene, slurm):
    run, _ = start_study(scene)
    node = slurm.jobs()[0][3]
    slurm.kill(f"slurmd-{node}")
    # Slurm gives the node up and starts its agents again elsewhere, while the first ones may live on: twins.
    wait_for(lambda: any(line.startswith(node) and "down" in line for line in
                         slurm.run("sinfo", "-h", "-N", "-o", "%n|%N|%T").replace("|", " ").splitlines() or [""])
             or "down" in slurm.run("sinfo", "-h", "-n", node, "-o", "%T"), "the loss of the node")
    wait_for(lambda: all(job[1] == "RUNNING" and job[3] != node for job in slurm.jobs()) and len(slurm.jobs()) == 2,
             "agents elsewhere")
    scene.gate.unlink()
    assert run.wait(90) == OK, run.output.read_text()
    scene.check_whole(6)
    slurm.start_node(node)  # ends what it finds of jobs that are gone
    check_quiet(scene, slurm)


def test_before_the_wall_clock_agents_give_back(scene, slurm):
    with_settings(scene, time_limit="5s", notice="55s")  # Slurm's limits are minutes
    run, _ = start_study(scene)
    wait_for(lambda: len(scene.starts()) >= 3, "an attempt after the first was given back")
    scene.gate.unlink()
    assert run.wait(120) == OK, run.output.read_text()
    scene.check_whole(6)
    check_quiet(scene, slurm)


def test_a_gang_is_one_job_of_several_nodes(scene, slurm):
    with_settings(scene, nodes=2)
    run, _ = start_study(scene)
    jobs = slurm.jobs()
    assert len(jobs) == 1 and jobs[0][3] == "n[1-2]", jobs
    wait_for(lambda: b"2 agents running" in run.output.read_bytes(), "both agents of the gang")
    scene.gate.unlink()
    assert run.wait(60) == OK
    scene.check_whole(6)
    check_quiet(scene, slurm)


def test_inside_an_allocation_agents_are_its_steps(scene, slurm):
    words = ["salloc", "--nodes=2", "--ntasks-per-node=1", TUNE, "run", "--port", "0", "--on", "cluster", *scene.study(6)]
    done = subprocess.run([str(word) for word in words], cwd=scene.folder, env=scene.environment, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == OK, done.stderr
    scene.check_whole(6)
    assert not [job for job in slurm.jobs("-t", "all") if "_" in job[0]
                and int(job[0].split("_")[0]) > int(re.search(r"allocation (\d+)", done.stderr)[1])]
    check_quiet(scene, slurm)


def in_allocation(scene, *words, nodes=2):
    return scene.start_program("salloc", f"--nodes={nodes}", "--ntasks-per-node=1", "--cpus-per-task=1", *words)


def test_steps_without_room_wait_and_are_not_asked_for_again(scene, slurm):
    with_settings(scene, agents=5)
    scene.gate.touch()
    run = in_allocation(scene, TUNE, "run", "--port", "0", "--on", "cluster", *scene.study(6))
    wait_for(lambda: b"2 agents running, 3 pending: the allocation has no room for it yet" in run.output.read_bytes(), "the reason")
    folder, = (scene.home / ".tune" / "agents").glob("steps-*")
    wait_for(lambda: run.output.read_bytes().count(b"\n") > 0 and len(scene.starts()) == 2, "two trials that run")
    assert len(list(folder.glob("*.lock"))) == 5
    scene.gate.unlink()
    assert run.wait(60) == OK, run.output.read_text()
    scene.check_whole(6)
    assert len(list(folder.glob("*.log"))) == 5, "a step was asked for again while it waited"
    check_quiet(scene, slurm)


def test_steps_that_fail_at_once_are_given_up_with_their_output(scene, slurm):
    with_settings(scene, setup="echo no module called cuda >&2\nexit 3", agents=1)
    run = in_allocation(scene, TUNE, "run", "--port", "0", "--on", "cluster", *scene.study(4))
    assert run.wait(60) != OK
    text = run.output.read_text()
    assert "3 agents in a row ended at once (exit code 3)" in text and "no module called cuda" in text
    check_quiet(scene, slurm)


def test_a_launcher_that_was_killed_finds_its_agents_again(scene, slurm):
    first, words = start_study(scene)
    first.kill()
    first.wait()
    before = {job[0] for job in slurm.jobs()}
    second = scene.start(*words)
    wait_for(lambda: b"2 agents running" in second.output.read_bytes(), "the agents of the first")
    scene.gate.unlink()
    assert second.wait(60) == OK, second.output.read_text()
    assert len(before) == 2
    scene.check_whole(6)
    check_quiet(scene, slurm)


def test_agents_down_ends_what_a_killed_launcher_left(scene, slurm):
    run, _ = start_study(scene)
    run.kill()
    run.wait()
    scene.gate.unlink()
    assert scene.tune_json("agents", "down", "--on", "cluster", "--kill")["ended"] == 2
    check_quiet(scene, slurm)


def test_agents_that_fail_at_once_are_given_up_with_their_output(scene, slurm):
    with_settings(scene, setup="echo no module called cuda >&2; exit 3", agents=1)
    done = scene.tune("run", "--port", 0, "--on", "cluster", *scene.study(2))
    assert done.returncode == FAILED
    assert "3 agents in a row ended at once (failed (NonZeroExitCode))" in done.stderr
    assert "no module called cuda" in done.stderr
    check_quiet(scene, slurm)


@pytest.mark.parametrize("settings, sentence", [
    ({"partition": "nosuch"}, "Slurm has no partition 'nosuch'; it has: gpu high far"),
    ({"partition": "far"}, "can only be reached from this machine, not from the nodes of Slurm (far-away, ...)"),
    ({"gpus": 4}, "no node of partition gpu has 4 GPUs; the most is 2"),
    ({"agents": 4, "nodes": 4}, "a gang of 4 agents needs as many nodes; partition gpu has 3 nodes for it"),
    ({"cpus": 64}, "has 0 nodes for it"),
    ({"account": "nosuch", "sbatch": ["--constraint=nosuch"]}, "Slurm refuses these agents: sbatch:"),
    ({"qos": 3}, "qos: expected"),
])
def test_what_would_wait_for_ever_is_refused_at_once(scene, slurm, settings, sentence):
    with_settings(scene, **settings)
    done = scene.tune("run", "--port", 0, "--on", "cluster", *scene.study(2))
    assert done.returncode in (FAILED, USAGE)
    assert sentence in done.stderr
    assert not slurm.jobs()


def test_a_machine_without_slurm_and_an_old_one_are_refused(scene, slurm):
    bare = scene.folder / "bare"
    bare.mkdir()
    words = ["run", "--port", 0, "--on", "cluster", *scene.study(2)]
    assert "there is no `sbatch` here" in scene.tune(*words, PATH=str(bare)).stderr
    old = bare / "sbatch"
    old.write_text("#!/bin/sh\necho slurm 17.11.2\n")
    old.chmod(0o755)
    assert "Slurm slurm 17.11.2 is not supported" in scene.tune(*words, PATH=f"{bare}:{os.environ['PATH']}").stderr

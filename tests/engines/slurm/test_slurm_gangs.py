"""Trials on two machines (`--nnodes 2`) on a real Slurm: torch's DDP over nodes of one job."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gangs import finish, gang_words, processes_with, start_gang_study, torch_setup, wait_for_ranks
from launching import FAILED, OK, TUNE, USAGE, Scene, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster import check_quiet, is_installed, running_cluster  # noqa: F401 (the fixture `slurm`)

pytestmark = pytest.mark.skipif(not is_installed(), reason="Slurm is not installed: setup.sh installs it for the tests")


@pytest.fixture
def scene(slurm, tmp_path, absent_cuda):
    slurm.clear()
    with Scene(tmp_path, **slurm.environment) as scene:
        scene.settings = {"type": "slurm", "partition": "gpu", "agents": 2, "cpus": 1, "slots": 1, "poll": "300ms",
                          "setup": torch_setup(absent_cuda)}
        scene.engines(cluster=scene.settings)
        yield scene


def test_both_agents_are_one_job_and_the_ranks_meet(scene, slurm):
    run, _ = start_gang_study(scene, "--on", "cluster")
    jobs = slurm.jobs()
    assert len(jobs) == 1 and jobs[0][3] == "n[1-2]", "one job of two nodes, without a word about gangs in the settings"
    trials = finish(scene, run)
    assert [trial["attempt"] for trial in trials] == [1, 1]
    assert sorted(scene.starts()) == ["0.1.0", "0.1.1", "1.1.0", "1.1.1"]
    check_quiet(scene, slurm)


def test_a_killed_agent_ends_its_gang_which_runs_again(scene, slurm):
    run, _ = start_gang_study(scene, "--on", "cluster")
    before, = slurm.jobs()
    agent, = processes_with(scene, "SLURMD_NODENAME=n2", b"agent")
    os.kill(agent, signal.SIGKILL)
    wait_for_ranks(scene, attempt=2)
    after, = slurm.jobs()
    assert after[0] != before[0], "another job: the rest of the gang did not hold its node"
    trials = finish(scene, run)
    assert [trial["attempt"] for trial in trials] == [2, 1]
    check_quiet(scene, slurm)


@pytest.mark.parametrize("verb", ["requeue", "cancel"])
def test_a_job_that_is_taken_away_costs_no_trial(scene, slurm, verb):
    run, _ = start_gang_study(scene, "--on", "cluster")
    (job, *_), = slurm.jobs()
    slurm.run(*(["scontrol", "requeue", job] if verb == "requeue" else ["scancel", job]))
    wait_for_ranks(scene, attempt=2)
    trials = finish(scene, run)
    assert [(trial["state"], trial["attempt"]) for trial in trials] == [("complete", 2), ("complete", 1)]
    check_quiet(scene, slurm)


def test_a_node_that_is_lost_costs_no_trial(scene, slurm):
    run, _ = start_gang_study(scene, "--on", "cluster")
    # As a machine that is switched off: slurmd and all that ran there.
    for pid in [slurm.pid("slurmd-n2"), *processes_with(scene, "SLURMD_NODENAME=n2")]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for_ranks(scene, attempt=2)
    trials = finish(scene, run)
    assert [trial["attempt"] for trial in trials] == [2, 1]
    slurm.start_node("n2")
    check_quiet(scene, slurm)


def test_more_nodes_than_there_are_are_refused_at_once(scene, slurm):
    scene.engines(cluster={**scene.settings, "agents": 8})
    done = scene.tune("run", "--port", 0, "--on", "cluster", *gang_words(scene, nnodes=4))
    assert done.returncode in (FAILED, USAGE)
    assert "a gang of 4 agents needs as many nodes; partition gpu has 3 nodes for it" in done.stderr
    assert not slurm.jobs()


def test_agents_one_by_one_where_the_settings_say_so(scene, slurm):
    scene.engines(cluster={**scene.settings, "nodes": 1, "agents": 3})
    run, _ = start_gang_study(scene, "--on", "cluster")
    assert len(slurm.jobs()) == 2, "a third one would have no second for its trial"
    finish(scene, run)
    check_quiet(scene, slurm)


def test_steps_of_an_allocation_are_a_gang_too(scene, slurm):
    words = ["salloc", "--nodes=2", "--ntasks-per-node=1", TUNE, "run", "--port", "0", "--on", "cluster", *gang_words(scene)]
    done = subprocess.run([str(word) for word in words], cwd=scene.folder, env=scene.environment, capture_output=True,
                          text=True, timeout=180)
    assert done.returncode == OK, done.stderr
    scene.check_whole(2)
    check_quiet(scene, slurm)

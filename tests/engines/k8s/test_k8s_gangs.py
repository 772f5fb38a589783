"""Trials on two machines (`--nnodes 2`) as a JobSet, against the API server of the tests: nothing here has run on a cluster."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gangs import finish, gang_words, torch_setup, wait_for_ranks
from launching import FAILED, USAGE, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from test_k8s import KubeScene, certificate  # noqa: F401


@pytest.fixture
def scene(tmp_path, certificate, absent_cuda):  # noqa: F811
    with KubeScene(tmp_path) as scene:
        scene.serve(certificate)
        scene.url = scene.server()
        scene.settings(server=scene.url, setup=torch_setup(absent_cuda))
        yield scene
        scene.cluster.stop()
        scene.api.shutdown()


def start_study(scene):
    scene.gate.touch()
    run = scene.start("run", "--server", scene.url, "--on", "farm", *gang_words(scene))
    wait_for_ranks(scene, attempt=1)
    return run


def test_both_pods_are_one_jobset_and_the_ranks_meet(scene):
    run = start_study(scene)
    [jobset] = scene.cluster.objects["jobsets"].values()
    assert not scene.cluster.objects["jobs"]
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"] == 2
    trials = finish(scene, run)
    assert [trial["attempt"] for trial in trials] == [1, 1]
    scene.check_quiet()


@pytest.mark.parametrize("how", ["evict", "kill"])
def test_a_pod_that_is_lost_ends_the_gang_which_runs_again(scene, how):
    run = start_study(scene)
    name = list(scene.cluster.processes)[1]
    getattr(scene.cluster, how)(name)
    wait_for_ranks(scene, attempt=2)
    assert len(scene.cluster.objects["jobsets"]) == 1
    trials = finish(scene, run)
    assert [trial["attempt"] for trial in trials] == [2, 1]
    scene.check_quiet()


def test_a_gang_that_no_node_has_room_for_says_so(scene):
    scene.cluster.room = 1
    run = scene.start("run", "--server", scene.url, "--on", "farm", *gang_words(scene))
    wait_for(lambda: b"no node has room: 0/2 nodes are available" in run.output.read_bytes(), "the reason")
    run.terminate()
    assert run.wait(60) == 130
    scene.check_quiet()


def test_a_cluster_without_jobset_is_refused_at_once(scene):
    scene.cluster.has_jobset = False
    done = scene.tune("run", "--server", scene.url, "--on", "farm", *gang_words(scene))
    assert done.returncode in (FAILED, USAGE)
    assert "the cluster has no JobSet" in done.stderr and "say 'nodes: 1'" in done.stderr
    assert not scene.cluster.objects["jobs"] and not scene.cluster.objects["jobsets"]

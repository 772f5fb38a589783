"""Trials on two machines (`--nnodes 2`) through a real sshd: torch's DDP over two hosts, which are names of this machine."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gangs import finish, gang_words, start_gang_study, torch_setup, wait_for_ranks
from launching import FAILED, USAGE, Scene, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sshd import SSHD, Sshd

pytestmark = pytest.mark.skipif(not SSHD, reason="sshd is not installed: setup.sh installs it for the tests")


@pytest.fixture
def scene(tmp_path, absent_cuda):
    with Scene(tmp_path) as scene:
        scene.remote_home = tmp_path / "far"
        scene.remote_home.mkdir(mode=0o700)
        scene.sshd = Sshd(tmp_path, scene.remote_home)
        scene.sshd.start()
        scene.settings = {"type": "ssh", "hosts": ["one", "two"], "ssh_config": str(scene.sshd.config), "agents": 2, "slots": 1,
                          "poll": "300ms", "setup": torch_setup(absent_cuda)}
        scene.engines(lab=scene.settings)
        try:
            yield scene
        finally:
            scene.sshd.stop()


def check_quiet(scene):
    scene.check_nothing_left()
    wait_for(lambda: not list(scene.runtime.glob("ssh-*")) and not scene.sshd.sessions(), "the end of all connections")


def agents_of(scene, host):
    """ "PID START-TIME" of the host's agent; empty while none has said so."""
    return [text for file in scene.remote_home.glob(f".tune/agents/tune-s-*/{host}-0/pid") if (text := file.read_text().strip())]


def processes_of(scene, host):
    """The agent of a host and all that it started."""
    folder, = scene.remote_home.glob(f".tune/agents/tune-s-*/{host}-0")
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def test_the_ranks_of_two_hosts_meet(scene):
    run, _ = start_gang_study(scene, "--on", "lab")
    own = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()
    assert pathlib.Path(f"{scene.journal}.address").read_text() == (own or ["127.0.0.1"])[0], "an address that others reach"
    trials = finish(scene, run)
    assert [trial["attempt"] for trial in trials] == [1, 1]
    assert sorted(scene.starts()) == ["0.1.0", "0.1.1", "1.1.0", "1.1.1"]
    check_quiet(scene)


def test_a_killed_agent_is_started_again_and_its_rank_runs_on(scene):
    run, _ = start_gang_study(scene, "--on", "lab")
    before, = agents_of(scene, "two")
    os.kill(int(before.split()[0]), signal.SIGKILL)
    wait_for(lambda: [each for each in agents_of(scene, "two") if each != before], "its successor")
    trials = finish(scene, run)
    assert [trial["attempt"] for trial in trials] == [1, 1]
    check_quiet(scene)


def test_a_host_that_is_lost_ends_the_gang_which_runs_again(scene):
    run, _ = start_gang_study(scene, "--on", "lab")
    for pid in processes_of(scene, "two"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for_ranks(scene, attempt=2)
    trials = finish(scene, run)
    assert [trial["attempt"] for trial in trials] == [2, 1]
    check_quiet(scene)


def test_too_few_hosts_are_refused_at_once(scene):
    scene.engines(lab={**scene.settings, "hosts": ["one"], "agents": 4})
    done = scene.tune("run", "--port", 0, "--on", "lab", *gang_words(scene))
    assert done.returncode in (FAILED, USAGE)
    assert "a gang of 2 agents does not fit 1 host with 1 agent each" in done.stderr
    scene.check_nothing_left()

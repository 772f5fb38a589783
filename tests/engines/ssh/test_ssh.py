"""The engine `ssh` through a real sshd: two names of this machine are its hosts."""

import hashlib
import json
import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from launching import FAILED, OK, TUNE, USAGE, Scene, free_port, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sshd import SSHD, Sshd

pytestmark = pytest.mark.skipif(not SSHD, reason="sshd is not installed: setup.sh installs it for the tests")


@pytest.fixture
def scene(tmp_path):
    with Scene(tmp_path) as scene:
        scene.remote_home = tmp_path / "far"
        scene.remote_home.mkdir(mode=0o700)
        scene.sshd = Sshd(tmp_path, scene.remote_home)
        scene.sshd.start()
        scene.engines(lab={"type": "ssh", "hosts": ["one", "two"], "ssh_config": str(scene.sshd.config),
                           "agents": 2, "slots": 1, "poll": "300ms"})
        try:
            yield scene
        finally:
            scene.sshd.stop()


def with_settings(scene, **settings):
    engines = json.loads((scene.folder / "engines.yaml").read_text())
    engines["lab"].update(settings)
    scene.engines(**engines)


def group_folder(scene):
    [folder] = (scene.remote_home / ".tune" / "agents").glob("tune-s-*")
    return folder


def start_study(scene, trials=6, running=2):
    scene.gate.touch()
    words = ["run", "--port", free_port(), "--on", "lab", *scene.study(trials)]
    run = scene.start(*words)
    wait_for(lambda: len(scene.starts()) >= running, f"{running} trials that run; {run.output}")
    return run, words


def connections(scene):
    """The master connections that live."""
    return list(scene.runtime.glob("ssh-*"))


def check_quiet(scene):
    scene.check_nothing_left()
    wait_for(lambda: not connections(scene) and not scene.sshd.sessions(), "the end of all connections")


def test_a_study_runs_on_two_hosts_and_nothing_is_left(scene):
    run, _ = start_study(scene)
    folder = group_folder(scene)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["one-0", "two-0"]
    assert (folder / "token").stat().st_mode & 0o777 == 0o600
    scene.gate.unlink()
    assert run.wait(90) == OK, run.output.read_text()
    scene.check_whole(6)
    assert not (folder / "token").exists()
    copies = list((scene.remote_home / ".cache" / "tune" / "bin").iterdir())
    digest = hashlib.sha256(pathlib.Path(TUNE).read_bytes()).hexdigest()
    assert [copy.name for copy in copies] == [digest[:12]] and (copies[0] / "tune").read_bytes() == \
        pathlib.Path(TUNE).read_bytes()
    check_quiet(scene)


def test_a_session_that_is_killed_comes_back_at_the_same_port(scene):
    run, _ = start_study(scene)
    port = (group_folder(scene) / "one.port").read_text()
    scene.sshd.kill_sessions()
    scene.gate.unlink()
    assert run.wait(90) == OK, run.output.read_text()
    assert (group_folder(scene) / "one.port").read_text() == port
    scene.check_whole(6)
    assert len(scene.starts()) == 6, "no trial was run twice"
    check_quiet(scene)


def test_hosts_that_go_away_are_waited_for(scene):
    run, _ = start_study(scene)
    scene.sshd.stop()
    wait_for(lambda: b"pending: host one: " in run.output.read_bytes(), "that they cannot be reached")
    scene.sshd.start()
    scene.gate.unlink()
    assert run.wait(90) == OK, run.output.read_text()
    scene.check_whole(6)
    check_quiet(scene)


def test_an_agent_that_is_killed_is_started_again_and_takes_over(scene):
    run, _ = start_study(scene)
    pid = int((group_folder(scene) / "one-0" / "pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: int(((group_folder(scene) / "one-0" / "pid").read_text().split() or [pid])[0]) != pid
             if (group_folder(scene) / "one-0" / "pid").exists() else False, "its successor")
    scene.gate.unlink()
    assert run.wait(90) == OK, run.output.read_text()
    scene.check_whole(6)
    assert len(scene.starts()) == 6, "the successor took over the trial that ran on"
    check_quiet(scene)


def test_a_launcher_that_was_killed_finds_its_agents_again(scene):
    first, words = start_study(scene)
    pids = {path.read_text() for path in group_folder(scene).glob("*/pid")}
    first.kill()
    first.wait()
    wait_for(lambda: not connections(scene), "the end of its connections")
    second = scene.start(*words)
    wait_for(lambda: b"2 agents running" in second.output.read_bytes(), "the agents of the first")
    assert {path.read_text() for path in group_folder(scene).glob("*/pid")} == pids
    scene.gate.unlink()
    assert second.wait(90) == OK, second.output.read_text()
    scene.check_whole(6)
    check_quiet(scene)


def test_agents_up_ls_and_down(scene):
    url = scene.server()
    words = ["--on", "lab", "--server", url]
    # Without a launcher that stays there is no tunnel: the server must be reachable by itself.
    refused = scene.tune("agents", "up", *words)
    assert refused.returncode != OK and "needs a launcher that stays" in refused.stderr
    with_settings(scene, server=url, tunnel="no")
    assert scene.tune_json("agents", "up", *words)["started"] == 2
    shown = scene.tune_json("agents", "ls", "--on", "lab")["agents"]
    assert [(agent["host"], agent["state"]) for agent in shown] == [("one", "running"), ("two", "running")]
    done = scene.tune("run", "--no-agent", "--server", url, *scene.study(4))
    assert done.returncode == OK, done.stderr
    scene.check_whole(4, data=scene.folder / "data")
    assert scene.tune_json("agents", "down", *words)["ended"] == 2
    check_quiet(scene)


def test_a_failing_agent_shows_its_log(scene):
    with_settings(scene, setup="echo no module called cuda >&2\nexit 3", agents=1)
    done = scene.tune("run", "--port", 0, "--on", "lab", *scene.study(2))
    assert done.returncode == FAILED
    assert "3 agents in a row ended at once (exit code 3)" in done.stderr
    assert "no module called cuda" in done.stderr
    check_quiet(scene)


@pytest.mark.parametrize("settings, sentence", [
    ({"hosts": ["one", "nosuch"]}, "host nosuch: ssh: Could not resolve hostname nosuch.invalid"),
    ({"hosts": ["stranger"]}, "Permission denied (publickey"),
    ({"hosts": []}, "'hosts' is missing"),
    ({"hosts": ["-oProxyCommand=true"]}, "is not the name of a host"),
    ({"tunnel": "no"}, "can only be reached from this machine"),
    ({"program": "~/nowhere/tune"}, "`tune` does not run there; host one: "),
    ({"agents": 5, "nodes": 5}, "a gang of 5 agents does not fit 2 hosts with 1 agent each"),
    ({"ssh_config": "/nowhere"}, "/nowhere"),
])
def test_what_cannot_work_is_refused_at_once(scene, settings, sentence):
    with_settings(scene, **settings)
    done = scene.tune("run", "--port", 0, "--on", "lab", *scene.study(2))
    assert done.returncode in (FAILED, USAGE)
    assert sentence in done.stderr
    assert scene.starts() == []
    scene.check_nothing_left()

"""The engine `exec`: agents by a script of the site, here the one of the examples."""

import json
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from launching import FAILED, OK, ROOT, USAGE, Scene, free_port, wait_for

SITE = ROOT / "examples" / "own_engine" / "site.sh"


@pytest.fixture
def scene(tmp_path):
    with Scene(tmp_path) as scene:
        scene.engines(site={"type": "exec", "script": str(SITE), "same_host": True, "agents": 2, "slots": 1,
                            "poll": "200ms"})
        yield scene


def with_settings(scene, **settings):
    engines = json.loads((scene.folder / "engines.yaml").read_text())
    engines["site"].update(settings)
    scene.engines(**engines)


def test_a_study_runs_on_it_and_nothing_is_left(scene):
    done = scene.tune("run", "--port", 0, "--on", "site", *scene.study(8))
    assert done.returncode == OK, done.stderr
    scene.check_whole(8)
    assert len(scene.starts()) == 8
    scene.check_nothing_left()
    assert scene.tune_json("agents", "ls", "--on", "site")["agents"]
    assert {agent["state"] for agent in scene.tune_json("agents", "ls", "--on", "site")["agents"]} == {"ended"}
    tokens = json.loads((scene.folder / "tune-data" / "tokens.json").read_text())
    assert tokens == [], "the agents' token outlived them"
    assert not list((scene.home / ".tune" / "agents").glob("*.token"))


def test_the_study_file_names_its_engine(scene):
    (scene.folder / "study.yaml").write_text(
        "study: s\nmetric: loss:min\nspace: {x: 0..1}\nbudget: {trials: 3}\n"
        "engine: {on: site, agents: 1}\ncommand: [sh, -c, 'echo \"tune: {\\\"loss\\\": {x}}\"']\n")
    done = scene.tune("run", "study.yaml", "--port", 0)
    assert done.returncode == OK, done.stderr
    scene.check_whole(3)
    assert len(scene.tune_json("agents", "ls", "--on", "site")["agents"]) == 1


def test_progress_says_what_waits_and_why(scene):
    with_settings(scene, agents=3, env={"SITE_ROOM": 1})
    scene.gate.touch()
    run = scene.start("run", "--port", 0, "--on", "site", *scene.study(4))
    wait_for(lambda: b"1 agent running, 2 pending: the site has room for 1" in run.output.read_bytes(), "the reason")
    waiting = [agent for agent in scene.tune_json("agents", "ls")["agents"] if agent["state"] == "pending"]
    assert [agent["reason"] for agent in waiting] == ["the site has room for 1"] * 2
    scene.gate.unlink()
    assert run.wait(60) == OK
    scene.check_whole(4)
    scene.check_nothing_left()


def test_a_launcher_that_was_killed_finds_its_agents_again(scene):
    scene.gate.touch()
    words = ["run", "--port", free_port(), "--on", "site", *scene.study(6)]
    first = scene.start(*words)
    wait_for(lambda: len(scene.starts()) == 2, "two trials that run")
    first.kill()
    first.wait()
    agents = {agent["id"] for agent in scene.tune_json("agents", "ls", "--on", "site")["agents"]}
    assert len(agents) == 2
    second = scene.start(*words)
    wait_for(lambda: b"2 agents running" in second.output.read_bytes(), "the agents of the first")
    scene.gate.unlink()
    assert second.wait(60) == OK, second.output.read_text()
    assert {agent["id"] for agent in scene.tune_json("agents", "ls", "--on", "site")["agents"]} == agents
    scene.check_whole(6)
    scene.check_nothing_left()


def run_again_after_ctrl_c(scene, words):
    """The same command once more, after it was interrupted with two trials that ran, and nothing was left of it."""
    first = scene.start(*words)
    wait_for(lambda: len(scene.starts()) == 2, "two trials that run")
    first.send_signal(signal.SIGINT)
    assert first.wait(60) == 130, first.output.read_text()
    scene.check_nothing_left()
    scene.gate.unlink()
    return scene.tune(*words)


def test_ctrl_c_ends_the_agents_and_the_same_command_goes_on(scene):
    scene.gate.touch()
    words = ["run", "--port", free_port(), "--on", "site", *scene.study(6)]
    second = run_again_after_ctrl_c(scene, words)
    assert second.returncode == OK, second.stderr
    scene.check_whole(6)


# Saves what it has when it is asked to end, which takes several looks of the launcher, and continues from there.
SAVING = """
echo "$TUNE_TRIAL.$TUNE_ATTEMPT" >> "$JOURNAL"
saved="$TUNE_CHECKPOINT_DIR/saved"
trap 'sleep 3 & wait $!; echo done > "$saved"; exit 11' TERM
while [ -e "$GATE" ]; do sleep 0.05; done
[ -s "$saved" ] && echo "tune: {\\"loss\\": $1}"
"""


def test_trials_have_their_grace_to_save_however_often_the_launcher_looks(scene):
    (scene.folder / "trial.sh").write_text(SAVING)
    scene.gate.touch()
    words = ["run", "--port", free_port(), "--on", "site", *scene.study(2)]
    second = run_again_after_ctrl_c(scene, words)
    assert second.returncode == OK, second.stderr  # a trial without its checkpoint reports nothing and fails
    scene.check_whole(2)
    assert sorted(scene.starts()) == ["0.1", "0.2", "1.1", "1.2"]


def test_drained_agents_take_no_more_trials_and_end_those_they_have(scene):
    url = scene.server()
    scene.gate.touch()
    scene.tune_json("agents", "up", "--on", "site", "--server", url)
    run = scene.start("run", "--no-agent", "--server", url, *scene.study(4))
    wait_for(lambda: len(scene.starts()) == 2, "two trials that run")
    down = scene.start("agents", "down", "--drain", "--server", url)
    wait_for(lambda: all(b"no more trials are taken" in log.read_bytes()
                         for log in (scene.home / ".tune" / "agents" / "site").glob("*.log")), "the agents' word")
    scene.gate.unlink()
    assert down.wait(60) == OK, down.output.read_text()
    assert sorted(scene.starts()) == ["0.1", "1.1"], "a trial was given back or one more was taken"
    scene.tune_json("agents", "up", "--on", "site", "--server", url)
    assert run.wait(60) == OK
    assert {trial["attempt"] for trial in scene.check_whole(4, data=scene.folder / "data")} == {1}
    scene.tune_json("agents", "down", "--server", url)
    scene.check_nothing_left()


def test_agents_up_down_and_ls(scene):
    url = scene.server()
    assert scene.tune_json("agents", "up", "--on", "site", "--server", url)["started"] == 2
    assert scene.tune_json("agents", "up", "--on", "site", "--server", url)["started"] == 0
    done = scene.tune("run", "--no-agent", "--server", url, *scene.study(4))
    assert done.returncode == OK, done.stderr
    scene.check_whole(4, data=scene.folder / "data")
    assert scene.tune_json("agents", "down", "--server", url)["ended"] == 2
    scene.check_nothing_left()
    assert scene.tune_json("agents", "down", "--server", url)["ended"] == 0
    assert scene.tune_json("token", "ls", "--server", url)["tokens"] == []


def test_kill_ends_agents_with_their_trials(scene):
    url = scene.server()
    scene.gate.touch()
    scene.tune_json("agents", "up", "--on", "site", "--server", url)
    run = scene.start("run", "--no-agent", "--server", url, *scene.study(4))
    wait_for(lambda: len(scene.starts()) == 2, "two trials that run")
    scene.tune_json("agents", "down", "--kill", "--server", url)
    scene.gate.unlink()
    scene.tune_json("agents", "up", "--on", "site", "--server", url)
    assert run.wait(60) == OK
    trials = scene.check_whole(4, data=scene.folder / "data")
    assert sum(trial["attempt"] for trial in trials) == len(scene.starts())
    scene.tune_json("agents", "down", "--server", url)
    scene.check_nothing_left()


def test_agents_that_fail_at_once_are_given_up_with_their_output(scene):
    with_settings(scene, setup="echo no module called cuda >&2\nexit 3", agents=1)
    done = scene.tune("run", "--port", 0, "--on", "site", *scene.study(4))
    assert done.returncode == FAILED
    assert "3 agents in a row ended at once (exit code 3)" in done.stderr
    assert "no module called cuda" in done.stderr
    scene.check_nothing_left()


@pytest.mark.parametrize("settings, sentence", [
    ({"same_host": False}, "can only be reached from this machine"),
    ({"script": "/nowhere.sh"}, "'/nowhere.sh' is not there or not executable"),
    ({"scrip": "x"}, "did you mean 'script'"),
    ({"agents": 0}, "agents: expected"),
    ({"type": "slrm"}, "did you mean 'slurm'"),
    ({"nodes": 3}, "a gang of 3 agents does not fit the bound of 2 agents"),
    ({"program": "/nowhere/tune"}, "'/nowhere/tune' cannot be run here"),
    ({"token_file": "/nowhere/token"}, "cannot read the token /nowhere/token"),
])
def test_bad_settings_are_refused_before_anything_runs(scene, settings, sentence):
    with_settings(scene, **settings)
    done = scene.tune("run", "--port", 0, "--on", "site", *scene.study(2))
    assert done.returncode in (FAILED, USAGE)
    assert sentence in done.stderr
    assert scene.starts() == []


def test_an_engine_that_there_is_not_is_named(scene):
    done = scene.tune("run", "--port", 0, "--on", "sit", *scene.study(2))
    assert done.returncode == USAGE
    assert "there is no engine 'sit'; did you mean 'site'? Known: site, exec, k8s, slurm, ssh" in done.stderr


def test_the_sites_own_refusal_is_shown(scene):
    script = scene.folder / "full.sh"
    script.write_text("#!/bin/sh\necho 'no queue for you' >&2\nexit 1\n")
    script.chmod(0o755)
    with_settings(scene, script=str(script))
    done = scene.tune("run", "--port", 0, "--on", "site", *scene.study(2))
    assert done.returncode != OK
    assert "no queue for you (check)" in done.stderr


@pytest.mark.parametrize("wanted, sentence", [
    ("budget: {trials: 3, gpus_per_trial: 2}", "a trial takes 2 GPUs, and an agent has 0: raise 'gpus' of the engine"),
    ("resources: {gpus: 1, nproc: 4}", "a trial takes 4 GPUs, and an agent has 0: raise 'gpus' of the engine"),
    ("resources: {nnodes: 3}", "a trial takes 3 agents, and there are at most 2: raise 'agents' of the engine"),
])
def test_a_trial_that_needs_more_than_agents_have_is_refused_at_once(scene, wanted, sentence):
    (scene.folder / "study.yaml").write_text(
        f"study: s\nmetric: loss:min\nspace: {{x: 0..1}}\n{wanted}\nengine: site\ncommand: ['true']\n")
    done = scene.tune("run", "study.yaml", "--port", 0)
    assert done.returncode != OK
    assert sentence in done.stderr


def test_a_trial_on_two_machines_has_two_agents(scene):
    (scene.folder / "study.yaml").write_text(
        "study: s\nmetric: loss:min\nspace: {x: 0..1}\nbudget: {trials: 2}\nresources: {nnodes: 2}\n"
        "engine: {on: site, slots: 4}\n"
        "command: [sh, -c, 'echo \"$RANK of $WORLD_SIZE\" >> ranks; echo \"tune: {\\\"loss\\\": {x}}\"']\n"
        f"working_dir: {scene.folder}\n")
    done = scene.tune("run", "study.yaml", "--port", 0)
    assert done.returncode == OK, done.stderr
    scene.check_whole(2)
    assert sorted((scene.folder / "ranks").read_text().splitlines()) == ["0 of 2"] * 2 + ["1 of 2"] * 2
    scene.check_nothing_left()


def test_a_token_that_others_can_read_or_that_expired_is_refused(scene):
    url = scene.server()
    token = scene.folder / "token"
    token.write_text(scene.tune_json("token", "create", "--scope", "agent", "--server", url)["secret"])
    token.chmod(0o644)
    with_settings(scene, token_file=str(token))
    words = ["agents", "up", "--on", "site", "--server", url]
    assert "can be read by others" in scene.tune(*words).stderr
    token.chmod(0o600)
    assert scene.tune_json(*words)["started"] == 2
    scene.tune_json("agents", "down", "--server", url)
    made = scene.tune_json("token", "create", "--scope", "agent", "--expires", "1s", "--server", url)
    token.write_text(made["secret"])
    token.chmod(0o600)
    wait_for(lambda: "it may have expired" in scene.tune(*words).stderr, "the end of the token")
    scene.tune_json("agents", "down", "--server", url)  # those that were started while it was good
    scene.check_nothing_left()

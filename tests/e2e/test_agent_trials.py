"""What trials may do to an agent, with the real server: bad commands, stubborn processes, floods of output."""

import json
import subprocess

import pytest

from agent_support import PYTHON, TRIAL, TUNE, Farm, Process, free_port, lives, outcome, wait_for


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        yield made


def end_of(farm, command, **more):
    farm.create("s", command, 1, **more)
    farm.start_agent(slots=1)
    return farm.wait_for_end("s")[0]


def test_command_not_found(farm):
    trial = end_of(farm, ["trian", "--now"])
    assert trial["state"] == "failed"
    assert trial["reason"].startswith("command not found: 'trian' is not in PATH")


def test_scrape(farm):
    trial = end_of(farm, ["sh", "-c", "for i in 3 2 1; do echo epoch: loss=$i; done"], scrape=["loss"])
    assert (trial["state"], trial["value"]) == ("complete", 1)
    assert farm.history(trial["run_id"]) == [(0, 3), (1, 2), (2, 1)]


def test_stubborn_trial_is_stopped(farm):
    script = ("import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
              "if os.fork() == 0:\n    os.setsid()\n"
              "open(os.environ['TUNE_CHECKPOINT_DIR'] + '/%d' % os.getpid(), 'w')\n"
              "print('tune: {\"loss\": 1}', flush=True)\ntime.sleep(1000)\n")
    farm.create("s", [PYTHON, "-c", script], 1, grace="300ms")
    farm.start_agent(slots=1)
    pids = wait_for(lambda: [int(path.name) for path in farm.state_dir().glob("checkpoints/**/*")
                             if path.is_file()][1:] and
                    [int(path.name) for path in farm.state_dir().glob("checkpoints/**/*") if path.is_file()],
                    "both processes")
    assert all(lives(pid) for pid in pids)
    farm.post("tune/studies/s/stop", {})
    trial = wait_for(lambda: next((t for t in farm.trials("s") if t["state"] == "cancelled"), None), "its end")
    assert trial["number"] == 0
    assert not any(lives(pid) for pid in pids)


def test_time_out(farm):
    trial = end_of(farm, ["sleep", "1000"], timeout="200ms")
    assert trial["state"] == "failed"
    assert "timeout" in trial["reason"]


def test_metric_that_never_comes(farm):
    trial = end_of(farm, ["true"])
    assert trial["state"] == "failed"
    assert "loss" in trial["reason"]


def test_flood_of_output(farm):
    script = ("import os\nfor i in range(20000):\n"
              "    os.write(1, b'tune: {\"loss\": %d, \"step\": %d}\\n' % (20000 - i, i))\n"
              "os.write(1, b'x' * 3000000)\n")
    trial = end_of(farm, [PYTHON, "-c", script])
    assert (trial["state"], trial["value"]) == ("complete", 1)
    log = wait_for(lambda: (farm.artifact(trial, "logs/stdout.log") or "").endswith("xxx") and
                   farm.artifact(trial, "logs/stdout.log"), "the whole log")
    assert log.count("\n") == 20000
    assert len(log) > 3000000


def test_what_a_trial_used_is_on_its_run(farm):
    trial = end_of(farm, [PYTHON, "-c", "x = bytearray(50 << 20)\nprint('tune: {\"loss\": 1}')"])
    run = farm.run(trial["run_id"])
    tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
    assert run["info"]["status"] == "FINISHED"
    assert int(tags["tune.max_rss_kb"]) > 50 << 10
    assert int(tags["tune.wall_ms"]) > 0


# ---- tune run: the agent within the server's process ----


def run_command(folder, port, *more):
    return [TUNE, "run", "--json", "-q", "--data", str(folder), "--port", str(port), "-n", "8", "-j", "3",
            "--seed", "7", "--sampler", "random", "-m", "loss:min", "--study", "s", "x=0..1", *more,
            "--", PYTHON, "-c", TRIAL]


def read_result(folder):
    """What a `tune run` left in its folder, read through a server."""
    farm = Farm(folder.parent)
    farm.server = Process([TUNE, "server", "--port", str(farm.port), "--data", str(folder)], folder.parent / "look.log")
    wait_for(farm.answers, "an answer of the server")
    try:
        return outcome(farm, farm.trials("s"))
    finally:
        farm.server.stop()


@pytest.mark.parametrize("same_port", [True, False])
def test_run_killed_and_run_again(tmp_path, same_port):
    """On the same port the running trials are adopted; on another they are ended and run again."""
    plain = tmp_path / "plain" / "data"
    plain.parent.mkdir()
    subprocess.run(run_command(plain, free_port()), check=True, timeout=120, capture_output=True)
    data = tmp_path / "killed" / "data"
    data.parent.mkdir()
    port = free_port()
    first = subprocess.Popen(run_command(data, port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pids = wait_for(lambda: sorted(data.glob("agents/*/checkpoints/**/pid"))[3:], "a fourth trial") and [
        int(path.read_text()) for path in data.glob("agents/*/checkpoints/**/pid") if path.read_text()]
    first.kill()
    first.wait()
    again = subprocess.run(run_command(data, port if same_port else free_port()), timeout=120, capture_output=True,
                           text=True)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)
    expected, got = read_result(plain), read_result(data)
    if same_port:
        assert got == expected
    else:  # the steps that were being taken at the kill may be there twice
        assert [(*trial[:4], sorted(set(trial[4]))) for trial in got] == expected
    assert not any(lives(pid) for pid in pids)

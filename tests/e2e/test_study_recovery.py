"""Interrupts, kill -9 of everything, two servers, full and foreign folders."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

from study_support import (FAILED, INTERRUPTED, OK, TUNE, call, credentials, end_all_of, free_port, read_lines_until, run_arguments,
                           server, start, study_of, trials_of, tune, wait_until)

# Each start leaves a line, so that what ran twice is seen.
SLOW = ["sh", "-c", "echo $TUNE_TRIAL >> starts; sleep 0.2; echo 'tune: {\"loss\": {x}}'"]


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    yield
    end_all_of(tmp_path)


def params_of(trials):
    return [trial["params"] for trial in trials]


def parent_status(folder):
    """The status of the study's own run, as any client of the store reads it."""
    done = tune("export", "exported", cwd=folder)
    assert done.returncode == OK, done.stderr
    with contextlib.closing(sqlite3.connect(folder / "exported" / "mlflow.db")) as db:
        (status,), = db.execute("SELECT status FROM runs WHERE run_uuid NOT IN "
                                "(SELECT run_uuid FROM tags WHERE key = 'mlflow.parentRunId')")
    shutil.rmtree(folder / "exported")
    return status


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(tmp_path):
    # From the fourth on they wait for a file that comes after the interrupt.
    script = "until [ $TUNE_TRIAL -lt 3 ] || [ -e go ]; do sleep 0.05; done; echo 'tune: {\"loss\": {x}}'"
    arguments = run_arguments(["sh", "-c", script], trials=8)
    process = start(*arguments, cwd=tmp_path)
    read_lines_until(process, "#2 ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, err
    assert "run again" in err and "run the same command to continue" in out
    trials = trials_of(tmp_path)
    assert 3 <= len(trials) < 8
    assert not any(t["state"] == "running" for t in trials), "running ones wait again"
    assert parent_status(tmp_path) == "SCHEDULED", "MLflow's clients see that nobody works on it"
    (tmp_path / "go").touch()
    again = tune(*arguments, cwd=tmp_path)
    assert again.returncode == OK, again.stderr
    trials = trials_of(tmp_path)
    assert len(trials) == 8 and {t["state"] for t in trials} == {"complete"}
    assert parent_status(tmp_path) == "FINISHED"


def test_the_second_ctrl_c_ends_a_script_that_ignores_sigterm(tmp_path):
    process = start(*run_arguments(["sh", "-c", "trap '' TERM; echo up >> up; sleep 1000 & wait; sleep 1000"], trials=2),
                    cwd=tmp_path)
    wait_until(lambda: (tmp_path / "up").exists(), "the trial runs")
    process.send_signal(signal.SIGINT)
    read_lines_until(process, "stopping")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED


def test_kill_9_and_rerun_end_as_if_nothing_had_happened(tmp_path):
    plain = tmp_path / "plain"
    killed = tmp_path / "killed"
    for folder in (plain, killed):
        folder.mkdir()
    # Those from the number in the file `gate` on wait, so that the kill meets one in its middle.
    script = "until [ $TUNE_TRIAL -lt $(cat gate) ]; do sleep 0.05; done; echo 'tune: {\"loss\": {x}}'"
    arguments = run_arguments(["sh", "-c", script], trials=14, jobs=1)
    (plain / "gate").write_text("14")
    assert tune(*arguments, cwd=plain).returncode == OK
    for held in (4, 8, 14):
        (killed / "new").write_text(str(held))
        (killed / "new").rename(killed / "gate")
        if held == 14:
            break
        process = start(*arguments, cwd=killed)
        read_lines_until(process, f"#{held - 1} ")
        process.kill()
        process.communicate()
    done = tune(*arguments, cwd=killed)
    assert done.returncode == OK, done.stderr
    expected = trials_of(plain)
    trials = trials_of(killed)
    assert len(trials) == 14, "exactly the budget"
    assert {t["state"] for t in trials} == {"complete"}
    assert params_of(trials) == params_of(expected)
    assert [t["value"] for t in trials] == [t["value"] for t in expected]
    end_all_of(killed)


def test_kill_9_of_the_server_loses_nothing(tmp_path):
    port = free_port()
    options = ["--heartbeat", "500ms", "--lease-ttl", "10s"]
    process = start("server", "--port", port, *options, cwd=tmp_path)
    url = read_lines_until(process, "listening on", "stdout")[0].split("listening on ")[1].split()[0]
    held = ["sh", "-c", "echo $TUNE_TRIAL >> starts; until [ $TUNE_TRIAL -lt 3 ] || [ -e go ]; do sleep 0.05; done; "
                        "echo 'tune: {\"loss\": {x}}'"]
    run = start("run", "-n", 10, "-m", "loss", "-j", 2, "--server", url, "--study", "s", "x=0..1", "--", *held,
                cwd=tmp_path)
    wait_until(lambda: study_of(url).get("counts", {}).get("complete", 0) >= 3, "three trials are complete")
    wait_until(lambda: "3" in (tmp_path / "starts").read_text().split(), "the next one runs")
    process.kill()
    process.communicate()
    (tmp_path / "go").touch()
    with server(tmp_path, *options, port=port) as (_, url):
        _, err = run.communicate(timeout=120)
        assert run.returncode == OK, err
        study = study_of(url)
        assert study["trials"] == 10
        assert study["counts"]["complete"] == 10
    starts = sorted(map(int, (tmp_path / "starts").read_text().split()))
    assert starts == list(range(10)), "a restart of the server loses no lease"


def test_kill_9_of_an_agent_runs_its_trial_again_elsewhere(tmp_path):
    options = ["--heartbeat", "500ms", "--lease-ttl", "5s"]
    command = ["sh", "-c", "echo $TUNE_ATTEMPT >> attempts; [ $TUNE_ATTEMPT = 1 ] && sleep 1000; "
                           "echo 'tune: {\"loss\": {x}}'"]
    with server(tmp_path, *options) as (_, url):
        run = start("run", "-n", 1, "-m", "loss", "--server", url, "--no-agent", "--study", "s", "x=0..1", "--", *command,
                    cwd=tmp_path)
        first = start("agent", "--server", url, "--slots", 1, "--state", "first", cwd=tmp_path)
        wait_until(lambda: (tmp_path / "attempts").exists(), "the trial runs")
        first.kill()
        first.communicate()
        second = start("agent", "--server", url, "--slots", 1, "--state", "second", cwd=tmp_path)
        _, err = run.communicate(timeout=60)
        assert run.returncode == OK, err
        trial = call(url, "/api/2.0/tune/studies/s/trials")[1]["trials"][0]
        assert trial["state"] == "complete" and trial["attempt"] == 2
        second.terminate()
        second.communicate(timeout=60)


def test_pause_stop_and_resume_from_another_shell(tmp_path):
    with server(tmp_path) as (_, url):
        run = start("run", "-n", 5000, "-m", "loss", "-j", 2, "--server", url, "--study", "s", "x=0..1", "--", *SLOW,
                    cwd=tmp_path)
        wait_until(lambda: study_of(url).get("counts", {}).get("complete", 0) >= 1, "a trial is complete")
        assert tune("pause", "s", "--server", url, cwd=tmp_path).returncode == OK
        wait_until(lambda: study_of(url)["counts"]["running"] == 0, "the running ones have ended")
        paused = study_of(url)["trials"]
        assert tune("resume", "s", "--server", url, cwd=tmp_path).returncode == OK
        wait_until(lambda: study_of(url)["trials"] > paused, "trials start again")
        assert tune("stop", "s", "--server", url, cwd=tmp_path).returncode == OK
        _, err = run.communicate(timeout=60)
        assert run.returncode == OK, err
        study = study_of(url)
        assert study["state"] == "stopped" and study["counts"]["running"] == 0


def test_two_servers_cannot_share_a_folder(tmp_path):
    with server(tmp_path) as (process, _):
        second = tune("server", "--port", 0, cwd=tmp_path)
        assert second.returncode == FAILED
        assert str(process.pid) in second.stderr and "tune-data" in second.stderr


def test_a_server_reports_that_its_port_is_in_use(tmp_path):
    with server(tmp_path) as (_, url):
        port = url.rsplit(":", 1)[1]
        second = tune("server", "--port", port, "--data", "other", cwd=tmp_path)
        assert second.returncode == FAILED
        assert port in second.stderr and "in use" in second.stderr


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for verb in (["server", "--port", "0"], ["run", "-m", "loss", "x=0..1"]):
        done = tune(*verb, "--data", "file/data", *(["--", "true"] if verb[0] == "run" else []), cwd=tmp_path)
        assert done.returncode == FAILED
        assert "file/data" in done.stderr
    if os.geteuid() != 0:
        (tmp_path / "read-only").mkdir(mode=0o500)
        done = tune("server", "--port", 0, "--data", "read-only/data", cwd=tmp_path)
        assert done.returncode == FAILED and "read-only" in done.stderr


def test_a_folder_of_a_newer_version_is_refused(tmp_path):
    with server(tmp_path):
        pass
    with sqlite3.connect(tmp_path / "tune-data" / "tune.db") as data:
        data.execute("INSERT INTO schema_version SELECT max(version) + 1, 0 FROM schema_version")
    data.close()
    for verb in (["server", "--port", 0], ["ls", "--data", "tune-data"]):
        done = tune(*verb, cwd=tmp_path)
        assert done.returncode == FAILED
        assert "newer" in done.stderr


def test_verbs_say_where_they_looked(tmp_path):
    done = tune("ls", "--data", "nowhere", cwd=tmp_path)
    assert done.returncode == FAILED and "nowhere" in done.stderr
    done = tune("ls", "--server", "http://127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == FAILED and "127.0.0.1:1" in done.stderr
    assert not (tmp_path / "nowhere").exists()


def test_sigterm_drains_the_server(tmp_path):
    with server(tmp_path) as (process, url):
        call(url, "/api/2.0/tune/agents/register", {"agent_id": "a"})
        poll = subprocess.Popen(
            [sys.executable, "-c",
             "import sys, urllib.request as u\n"
             "r = u.Request(sys.argv[1] + '/api/2.0/tune/agents/a/lease', data=b'{\"wait_ms\": 30000}',\n"
             "              headers={'Content-Type': 'application/json', 'Authorization': sys.argv[2]})\n"
             "print('asking', flush=True)\nprint(u.urlopen(r, timeout=60).read().decode())", url,
             credentials(url)["Authorization"]],
            stdout=subprocess.PIPE, text=True)
        assert poll.stdout.readline() == "asking\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == OK
        poll.communicate(timeout=60)
    assert not (tmp_path / "tune-data" / "server.json").exists()


def test_help_needs_no_folder_and_no_network(tmp_path):
    for verb in ([], ["run"], ["server"], ["agent"], ["ls"], ["show"], ["best"], ["stop"], ["resume"], ["pause"], ["plan"]):
        done = subprocess.run([TUNE, *verb, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert done.returncode == OK and "Usage" in done.stdout
    assert not any(tmp_path.iterdir())

"""Leases of clients/python/tune_client: clients that are killed, stopped, or silent for long, against a real server."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading

import pytest

import tune_client as tune
from study_support import ROOT, call, read_lines_until, server, study_of, wait_until

SPACE = {"x": {"float": [-1, 1]}}

# Prints which trial it has, and ends it when it reads a line.
CLIENT = """
import sys
sys.path.insert(0, sys.argv[1])
import tune_client as tune
def objective(trial):
    print("has", trial.number, trial.attempt, flush=True)
    if not sys.stdin.readline():
        raise SystemExit("the test is gone")
    study._keeper.lease_s = 60.0  # the next trial is not to be lost, too
    return 1.0
study = tune.load_study(sys.argv[2], server=sys.argv[3], lease_s=float(sys.argv[4]))
study.optimize(objective)
print("done", flush=True)
"""


def create(url, name, trials, **more):
    return tune.create_study(name, space=SPACE, metric="loss", trials=trials, server=url, sampler="random", **more)


def hurry(study):
    """Its leases are of a minute, and renewed as often as those of 0.3 s: no slow machine loses one."""
    plain = study._call

    def asks_for_a_minute(path, body, **more):
        return plain(path, {**body, "lease_ttl_ms": 60_000} if path == "/ask" else body, **more)

    study._call, study._keeper.lease_s = asks_for_a_minute, 0.3
    return study


def client(url, study, lease_s):
    command = [sys.executable, "-c", CLIENT, ROOT / "clients" / "python", study, url, str(lease_s)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def trial_of(url, study, number):
    return call(url, f"/api/2.0/tune/studies/{study}/trials/{number}")[1]


def count_calls(study, path, enough):
    """An event that is set when the study has made `enough` calls of `path` that were answered."""
    reached = threading.Event()
    made = []
    plain = study._connection.call

    def counted(called, *arguments, **named):
        answer = plain(called, *arguments, **named)
        if called.endswith(path):
            made.append(answer)
            if len(made) >= enough:
                reached.set()
        return answer

    study._connection.call = counted
    return reached


def test_a_client_that_is_killed_holds_up_nobody(url):
    study = create(url, "killed", 4)
    with client(url, "killed", lease_s=1) as killed:
        assert killed.stdout.readline() == "has 0 1\n"
        killed.send_signal(signal.SIGKILL)
    ran = []

    def objective(trial):
        ran.append((trial.number, trial.attempt))
        return trial.params["x"]

    study.optimize(objective)
    assert sorted(ran) == [(0, 2), (1, 1), (2, 1), (3, 1)], "the budget, each once, the lost one again"
    info = study.info()
    assert info["state"] == "completed" and info["counts"]["complete"] == 4 and info["trials"] == 4
    status, late = call(url, "/api/2.0/tune/studies/killed/tell", {"number": 0, "attempt": 1, "value": -9})
    assert status == 409 and "trial 0 of study 'killed' is not running: it is complete" in late["message"]
    assert study.best_value > -9


def test_a_silent_objective_keeps_its_trial(url):
    study = create(url, "silent", 1, lease_s=4.5)
    # Four renewals are longer than a lease.
    renewed = count_calls(study, "/renew", 4)
    study.optimize(lambda trial: float(renewed.wait(60)))
    [trial] = study.trials()
    assert (trial["state"], trial["value"], trial["attempt"]) == ("complete", 1.0, 1)
    wait_until(lambda: study._keeper._thread is None, "the thread ends with the last trial")


def test_a_client_that_was_stopped_goes_on_without_its_trial(url):
    study = create(url, "stopped", 2)
    with client(url, "stopped", lease_s=1) as stopped:
        assert stopped.stdout.readline() == "has 0 1\n"
        stopped.send_signal(signal.SIGSTOP)
        wait_until(lambda: trial_of(url, "stopped", 0)["state"] == "queued", "the lease ends")
        reason = trial_of(url, "stopped", 0)["reason"]
        assert "its client on" in reason and "has been silent for 1s" in reason
        with study.ask() as trial:
            assert (trial.number, trial.attempt) == (0, 2)
            stopped.send_signal(signal.SIGCONT)
            stopped.stdin.write("\n\n")
            stopped.stdin.flush()
            assert stopped.stdout.readline() == "has 1 1\n"
            trial.tell(0.5)
        out, err = stopped.communicate(timeout=60)
        assert out == "done\n" and stopped.returncode == 0, err
        assert "trial 0 is no longer this client's" in err
    assert [t["value"] for t in study.trials()] == [0.5, 1.0]


def test_losing_a_trial_is_an_error_in_ones_own_loop(url):
    study = create(url, "lost", 3, lease_s=0.3)
    study._keeper.keep = lambda trials: None  # as if this process were stopped after the ask
    trial = study.ask()
    wait_until(lambda: trial_of(url, "lost", 0)["state"] == "queued", "the lease ends")
    assert not trial.stopping
    other = tune.load_study("lost", server=url).ask()
    assert (other.number, other.attempt) == (0, 2)
    for say in (lambda: trial.report(1.0, step=1), lambda: trial.tell(1.0)):
        with pytest.raises(tune.Lost, match="attempt 1 of trial 0 of study 'lost' is over; attempt 2 is running") as lost:
            say()
        assert lost.value.status == 409
    assert trial.stopping
    with trial:
        pass  # nothing is reported of it, and nothing is raised
    other.tell(2.0)
    assert trial_of(url, "lost", 0)["value"] == 2.0


def test_a_renewal_hears_that_the_trial_should_stop(url):
    study = hurry(create(url, "stop", 2))
    trial = study.ask()
    assert not trial.stopping
    study.stop()
    wait_until(lambda: trial.stopping, "a renewal")
    assert trial.should_stop(1.0, step=1)
    trial.tell(1.0)  # late, not wrong
    assert trial.ended and not trial.stopping


def test_a_trial_that_is_dropped_is_tried_again(url):
    study = create(url, "dropped", 1, lease_s=0.3)
    study.ask()
    gc.collect()
    again = tune.load_study("dropped", server=url).ask()
    assert (again.number, again.attempt) == (0, 2)
    again.tell(1.0)


def test_a_lease_outlives_its_server(tmp_path):
    with server(tmp_path) as (_, url):
        study = hurry(create(url, "restart", 1))
        trial = study.ask()
        port = int(url.rsplit(":", 1)[1])
    with server(tmp_path, port=port) as (_, url):
        assert count_calls(study, "/renew", 6).wait(60), "renewals go on with the server that follows"
        assert trial_of(url, "restart", 0)["attempt"] == 1
        trial.tell(1.0)
        assert study_of(url, "restart")["state"] == "completed"


def test_a_fork_renews_its_own_trials_only(url):
    study = hurry(create(url, "forked", 2))
    mine = study.ask()
    child = os.fork()
    if child == 0:
        try:
            with study.ask() as trial:
                renewed = count_calls(study, "/renew", 6)
                held = [kept.number for kept in study._keeper._trials]
                trial.tell(float(renewed.wait(60) and held == [1]))
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    mine.tell(0.5)
    assert [(t["attempt"], t["value"]) for t in study.trials()] == [(1, 0.5), (1, 1.0)]


def test_a_trial_can_be_sent_to_another_process(url):
    study = create(url, "sent", 1)
    trial = study.ask()
    copy = pickle.loads(pickle.dumps(trial))
    assert copy.params == trial.params
    copy.tell(1.0)
    assert trial_of(url, "sent", 0)["state"] == "complete"


def test_no_lease_is_a_choice(url):
    study = create(url, "none", 1, lease_s=0)
    trial = study.ask()
    assert not study._keeper._trials and study._keeper._thread is None
    assert trial_of(url, "none", trial.number)["state"] == "running"
    status, _ = call(url, "/api/2.0/tune/studies/none/tell", {"number": 0, "state": "cancelled"})
    assert status == 200, "without a lease a trial can be ended by its number alone"
    for bad in (-1, float("nan"), 0.0001, 1e9):
        with pytest.raises(ValueError, match="lease_s must be 0"):
            tune.load_study("none", server=url, lease_s=bad)

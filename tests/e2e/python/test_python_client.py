"""clients/python/tune_client against a real server."""

import math
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import tune_client as tune
from study_support import OK, free_port, server, start, study_of, wait_until
from tune_client import _server

SPACE = {"x": {"float": [-1, 1]}, "k": {"choice": ["a", "b"]}}


def create(url, name, trials=10, **more):
    return tune.create_study(name, space=SPACE, metric="loss", trials=trials, server=url, **more)


def test_optimize_runs_the_budget_and_knows_the_best(url):
    study = create(url, "optimize", 12)
    study.optimize(lambda trial: trial.params["x"] ** 2)
    info = study.info()
    assert info["state"] == "completed" and info["counts"]["complete"] == 12
    trials = list(study.trials())
    assert [t["number"] for t in trials] == list(range(12))
    assert study.best_value == min(t["value"] for t in trials)
    assert study.best_params["x"] ** 2 == study.best_value
    assert study.ask() is None


def test_threads_share_the_budget(url):
    study = create(url, "threads", 20)
    gate = threading.Barrier(4, timeout=60)

    def objective(trial):
        if trial.number < 4:
            gate.wait()  # four at once, or the test fails
        return trial.params["x"]

    study.optimize(objective, jobs=4)
    assert study.info()["counts"]["complete"] == 20


def test_pruned_failed_and_cancelled(url):
    study = create(url, "ends", 8, pruner={"type": "threshold", "upper": 5})

    def objective(trial):
        if trial.number == 0:
            trial.report(9, step=1)
            raise AssertionError("not reached")
        if trial.number == 1:
            raise ValueError("bad luck")
        if trial.number == 2:
            raise KeyboardInterrupt
        return math.nan if trial.number == 3 else 1.0

    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective, catch=[ValueError])
    study.optimize(objective)
    trials = list(study.trials())
    assert [t["state"] for t in trials[:5]] == ["pruned", "failed", "cancelled", "failed", "complete"]
    assert "bad luck" in trials[1]["reason"]
    with pytest.raises(ValueError, match="once"):
        create(url, "raises", 5).optimize(lambda trial: (_ for _ in ()).throw(ValueError("once")))


def test_ask_and_tell_with_the_loop_in_ones_own_hands(url):
    study = create(url, "loop", 5)
    study.enqueue({"x": 0.5})
    seen = []
    while trial := study.ask():
        with trial:
            for step in range(3):
                trial.report(trial.params["x"] + step, step)
        seen.append(trial.params["x"])
    assert 0.5 in seen and len(seen) == 5
    for listed in study.trials(with_intermediate=True):
        assert [step for step, _ in listed["intermediate"]] == [0, 1, 2]
    assert {t["value"] for t in study.trials()} == set(seen), "the best of the reported values counts"


def test_ask_waits_while_the_study_allows_no_more(url):
    study = create(url, "parallel", 3, budget={"parallel": 1})
    first = study.ask()
    assert study.ask(wait=False) is None
    asked, found = [], []
    waits = threading.Event()
    plain = study._connection.call

    def watched(path, *arguments, **named):
        if "wait_ms=" in path:
            waits.set()  # it got the answer that there is no trial now, and asks to be notified of the next change
        answer = plain(path, *arguments, **named)
        if path.endswith("/ask"):
            asked.append(len(answer["trials"]))
        return answer

    study._connection.call = watched
    thread = threading.Thread(target=lambda: found.append(study.ask()))
    thread.start()
    assert waits.wait(60)
    assert asked == [0] and not found and thread.is_alive(), "it waits"
    first.tell(1.0)
    thread.join(60)
    assert found and found[0].number == 1
    assert asked == [0, 1], "it asked again after the change, and did not poll"


def test_catch_is_a_class_or_several(url):
    def objective(trial):
        if trial.number == 0:
            return 1 / 0
        if trial.number == 1:
            raise KeyError("k")
        return 1.0

    study = create(url, "catch", 3)
    study.optimize(objective, trials=1, catch=ZeroDivisionError)
    study.optimize(objective, catch={ZeroDivisionError, KeyError})
    assert [t["state"] for t in study.trials()] == ["failed", "failed"] + ["complete"] * 3, "what failed first uses up no budget"
    for bad in (5, "ValueError", [ValueError()], int):
        with pytest.raises(TypeError):
            study.optimize(objective, catch=bad)


def test_an_objective_without_a_return_does_not_use_up_the_budget(url, capfd):
    study = create(url, "forgotten", 20)
    with pytest.raises(tune.TuneError, match="no value for 3 trials in a row, the last being 2; does it lack a `return`"):
        study.optimize(lambda trial: None)
    assert study.info()["counts"]["failed"] == 3 and study.info()["trials"] == 3
    said = capfd.readouterr().err
    assert said.count("tune_client: the objective gave no value for trial 0, which failed; does it lack a `return`?") == 1
    assert said.count("\n") == 1
    study.optimize(lambda trial: None if trial.number % 3 else 1.0)  # now and then is no slip of the pen
    assert study.info()["state"] == "completed"
    jobs = create(url, "forgotten-jobs", 20)
    with pytest.raises(tune.TuneError, match="no value for 3 trials in a row"):
        jobs.optimize(lambda trial: None, jobs=4)
    assert jobs.info()["trials"] <= 3 + 4


def test_a_metric_is_the_cost(url):
    budget = {"cost": {"metric": "dollars", "max": 6}}
    study = tune.create_study("dollars", space=SPACE, metric="loss", budget=budget, server=url)

    def objective(trial):
        trial.report(1.5, step=1, metric="dollars")
        if trial.number % 2:
            return 1.0
        trial.tell(1.0, cost=2)

    study.optimize(objective)
    info = study.info()
    assert (info["state"], info["ended_by"], info["cost"]) == ("completed", "cost", 5.5)
    assert [t["cost"] for t in study.trials()] == [2, 1.5, 2], "less than one more is left"


def test_costs_alone_are_no_value(url, capfd):
    study = tune.create_study("only-dollars", space=SPACE, metric="loss", server=url,
                              budget={"trials": 1, "cost": {"metric": "dollars", "max": 6}})
    study.optimize(lambda trial: trial.report(1.5, step=1, metric="dollars"))
    [trial] = study.trials()
    assert trial["state"] == "failed" and "no value was given, and none was reported" in trial["reason"]
    assert "gave no value for trial 0" in capfd.readouterr().err
    with pytest.raises(tune.TuneError, match="no budget of cost by a metric"):
        create(url, "no-dollars", 1).ask().tell(1.0, cost=2)


def test_a_second_client_keeps_what_it_leaves_out(url):
    first = create(url, "joined", 7, sampler="qmc", pruner="median", command=["true"], timeout="1h")
    before = first.info()
    assert create(url, "joined", trials=None).info() == {**before, "version": before["version"] + 1}
    after = create(url, "joined", 9, sampler="random").info()
    assert after["budget"]["trials"] == 9 and after["sampler"]["type"] == "random"
    assert after["pruner"]["type"] == "median" and after["command"] == ["true"]
    assert after["sampler"]["seed"] == before["sampler"]["seed"]


@pytest.fixture
def ctrl_c():
    """Ctrl-C is KeyboardInterrupt, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_the_threads_and_cancels_their_trials(url, ctrl_c):
    study = create(url, "interrupted")
    both_run, release, threads = threading.Barrier(3, timeout=60), threading.Event(), []
    was_heard = threading.Event()

    def objective(trial):
        threads.append(threading.current_thread())
        both_run.wait()
        assert release.wait(60) and trial.stopping
        return 1.0

    def press():
        both_run.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        while not was_heard.wait(20):  # Python may sleep over one that comes just before it waits
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective, jobs=2)
    was_heard.set()
    assert [(t["state"], t["reason"]) for t in study.trials()] == [("cancelled", "KeyboardInterrupt")] * 2
    release.set()
    for thread in threads:
        thread.join(60)
    assert study.info()["trials"] == 2, "a thread went on after Ctrl-C"


class Scalar:
    """As numpy's numbers and arrays."""

    def __init__(self, value):
        self.value = value

    def tolist(self):
        return self.value

    def __float__(self):
        return float(self.value)


def test_numbers_of_numpy_are_numbers(url):
    study = tune.create_study("numpy", space={"x": {"float": [Scalar(0), 1]}}, metric="loss", trials=Scalar(2),
                              server=url, budget=None)
    study.enqueue({"x": Scalar(0.5)})
    trial = study.ask()
    assert trial.params == {"x": 0.5}
    trial.report(Scalar(2.5), step=Scalar(3))
    trial.tell(Scalar(1.5))
    assert study.best_value == 1.5
    with pytest.raises(TypeError, match="is a set, which JSON has no form for"):
        study.enqueue({"x": {1}})


@pytest.mark.parametrize("words", [{"jobs": 0}, {"jobs": -1}, {"trials": -1}])
def test_counts_that_are_none_are_refused(url, words):
    with pytest.raises(ValueError, match="jobs must be at least 1 and trials at least 0"):
        create(url, "counts").optimize(lambda trial: 1.0, **words)


@pytest.mark.parametrize("address", ["127.0.0.1:5000", "sqlite:///mlflow.db", "file:///tmp/mlruns", "databricks"])
def test_a_bad_address_is_reported_at_once(address, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    monkeypatch.delenv("TUNE_SERVER", raising=False)
    with pytest.raises(tune.TuneError, match="is no address of a server.*http://.*TUNE_SERVER"):
        tune.load_study("s")


def test_errors_say_what_to_do(url):
    with pytest.raises(tune.TuneError) as missing:
        tune.load_study("nowhere", server=url)
    assert missing.value.status == 404 and missing.value.code == "RESOURCE_DOES_NOT_EXIST"
    with pytest.raises(tune.TuneError, match="space.x"):
        tune.create_study("bad", space={"x": {"float": [1, 0]}}, metric="m", server=url)
    trial = create(url, "twice", 2).ask()
    trial.tell(1.0)
    with pytest.raises(tune.TuneError) as again:
        trial.tell(2.0)
    assert again.value.status == 409
    with pytest.raises(tune.TuneError, match="is `tune server` running there"):
        _server.Server("http://127.0.0.1:9").call("/studies", retry_for_s=0)


class Clock:
    """Time that advances by sleeping only, whatever a machine does meanwhile; for this thread, others may still renew."""

    def __init__(self):
        self.now_s = 1000.0
        self.owner = threading.get_ident()

    def monotonic(self):
        return self.now_s if threading.get_ident() == self.owner else time.monotonic()

    def sleep(self, time_s):
        if threading.get_ident() != self.owner:
            return time.sleep(time_s)
        self.now_s += time_s


def test_without_a_server_it_says_so_and_gives_up_soon(capfd, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_server, "time", clock)
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(tune.TuneError, match="Connection refused; is `tune server` running there.*TUNE_SERVER"):
        create(url, "nowhere")
    assert clock.now_s == pytest.approx(1010)
    [said] = capfd.readouterr().err.splitlines()
    assert f"waiting for the server at {url}, 10 s at most" in said and "Connection refused" in said


def test_half_an_answer_is_asked_for_again(tmp_path):
    """As of a server that is killed in the middle of it."""
    whole = b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{"name": "half"}'
    cut = [len(whole) - 5, whole.index(b"\r\n") + 9, 9, 0]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def answer():
            for length in [*cut, len(whole)]:
                with listener.accept()[0] as connection:
                    connection.recv(65536)
                    connection.sendall(whole[:length])

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        study = tune.load_study("half", server=f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join(60)
    assert study.name == "half"


def test_a_server_that_starts_a_little_later_is_waited_for(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(_server, "_FIRST_CONTACT_S", 60.0)
    port = free_port()
    made = []
    thread = threading.Thread(target=lambda: made.append(create(f"http://127.0.0.1:{port}", "late", 1)))
    thread.start()
    said = wait_until(lambda: capfd.readouterr().err, "it says that it waits")
    assert "waiting for the server" in said
    with server(tmp_path, port=port) as (_, url):
        thread.join(60)
        made[0].optimize(lambda trial: 1.0)
        assert study_of(url, "late")["state"] == "completed"


def test_a_server_that_is_killed_and_comes_back_loses_nothing(tmp_path):
    """kill -9 in the middle; the client continues with the server that follows on the same port."""
    with server(tmp_path) as (process, url):
        port = int(url.rsplit(":", 1)[1])
        study = create(url, "killed", 30)
        told = []

        def objective(trial):
            if trial.number in (5, 17):
                holder[0].send_signal(signal.SIGKILL)
                holder[0].wait()
                holder[0] = start("server", "--port", port, cwd=tmp_path)
                assert "listening" in holder[0].stdout.readline()
            told.append(trial.number)
            return trial.params["x"]

        holder = [process]
        study.optimize(objective)
        info = study_of(url, "killed")
        assert info["state"] == "completed" and info["counts"]["complete"] == 30
        assert sorted(told) == list(range(30)), "each was run once"
        holder[0].send_signal(signal.SIGTERM)
        assert holder[0].wait(60) == OK


def test_the_folder_needs_nothing_but_python(url, tmp_path):
    """A copy of it, with -S and -I: no site packages, no environment."""
    shutil.copytree(pathlib.Path(tune.__file__).parent, tmp_path / "tune_client")
    code = ("import sys; sys.path.insert(0, %r); import tune_client as t; "
            "study = t.create_study('bare', space={'x': {'float': [0, 1]}}, metric='m', trials=2, "
            "server=%r); study.optimize(lambda trial: trial.params['x']); print(t.__file__, study.best_value)"
            % (str(tmp_path), url))
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    path, value = done.stdout.split()
    assert path.startswith(str(tmp_path)) and 0 <= float(value) <= 1


def test_several_objectives_and_a_constraint(url):
    study = tune.create_study("several", space={"x": {"float": [0, 1]}}, metric=["low:min", "high:max"], trials=12,
                              constraints=[{"name": "ms", "max": 0.75}], sampler="random", server=url)

    def objective(trial):
        x = trial.params["x"]
        trial.report(x, step=0, metric="ms")
        return [x, x] if trial.number else [x, float("-inf")]

    study.optimize(objective)
    trials = list(study.trials())
    feasible = [t["number"] for t in trials if t["params"]["x"] <= 0.75 and t["number"] > 0]
    front = [t["number"] for t in study.best_trials]
    assert set(feasible) <= set(front) and study.best_trial is None  # x against x: none dominates another
    assert all(t["violation"] == max(0, t["params"]["x"] - 0.75) and t["constraints"]["ms"] == t["params"]["x"] for t in trials)
    assert trials[0]["values"][1] == "-Infinity" and trials[1]["values"] == [trials[1]["params"]["x"]] * 2
    with pytest.raises(tune.TuneError, match="compares trials by one value"):
        tune.create_study("pruned", space=SPACE, metric=["a", "b"], sampler="random", pruner="median", server=url)

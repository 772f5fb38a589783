"""hyperopt.fmin with TuneTrials, and our own fmin, against a real server with real worker processes."""

import os
import signal
import subprocess
import sys
import threading
import time

import hyperopt
import numpy
import pytest
from conftest import BIN_DIR, CLIENTS, is_alive, wait_for
from hyperopt import STATUS_FAIL, STATUS_OK, fmin, hp, rand, tpe
from hyperopt.early_stop import no_progress_loss

import tune_client
from tune_client import TuneError, TuneTrials, load_study

SPACE = {"x": hp.uniform("x", -5, 5),
         "shape": hp.choice("shape", [{"kind": "flat"}, {"kind": "bowl", "depth": hp.quniform("depth", 0, 10, 2)}]),
         "color": hp.choice("color", ["red", "blue"])}


def plain(point):
    return (point["x"] - 1) ** 2 + point["shape"].get("depth", 3)


def run(function, url, evals, parallelism=2, **more):
    """(trials, what fmin returned)."""
    options = {name: more.pop(name) for name in ("pruner", "study", "timeout", "loss_threshold", "engine") if name in more}
    trials = TuneTrials(parallelism=parallelism, server=url, **options)
    more = {"algo": rand.suggest, "rstate": numpy.random.default_rng(3), "verbose": False, **more}
    return trials, fmin(function, more.pop("space", SPACE), max_evals=evals, trials=trials, **more)


def call(url, path, body=None):
    from tune_client._server import Server

    import json
    import urllib.request
    server = Server(url)
    request = urllib.request.Request(url + path, headers=server.headers, data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def test_what_fmin_gives_is_hyperopts(url):
    trials, best = run(plain, url, 12)
    assert trials.argmin == best and set(best) >= {"x", "shape", "color"}
    assert len(trials) == 12 == trials.count_successful_trials() == trials.count_total_trials()
    assert [result["status"] for result in trials.results] == [STATUS_OK] * 12
    assert trials.best_trial["result"]["loss"] == min(trials.losses())
    for document in trials.trials:
        values = {name: found[0] for name, found in document["misc"]["vals"].items() if found}
        assert ("depth" in values) == (values["shape"] == 1), "only what the choice switches on"
        assert plain(hyperopt.space_eval(SPACE, values)) == pytest.approx(document["result"]["loss"])
        assert document["state"] == hyperopt.JOB_STATE_DONE and document["book_time"] <= document["refresh_time"]


def test_the_points_are_those_of_hyperopts_own_loop(url):
    ours, _ = run(plain, url, 30, parallelism=1, algo=tpe.suggest, rstate=numpy.random.default_rng(5), max_queue_len=1)
    assert sorted(ours.tids) == list(range(30))
    theirs = hyperopt.Trials()
    fmin(plain, SPACE, algo=rand.suggest, max_evals=12, trials=theirs, rstate=numpy.random.default_rng(3), verbose=False)
    again, _ = run(plain, url, 12)
    assert again.vals["x"] == theirs.vals["x"] and again.vals["depth"] == theirs.vals["depth"]
    in_order = sorted(again.trials, key=lambda document: document["tid"])
    assert [document["result"]["loss"] for document in in_order] == pytest.approx(theirs.losses())


def test_results_keep_their_objects_and_attachments(url):
    def objective(point):
        return {"loss": numpy.float32(point["x"]), "status": STATUS_OK, "array": numpy.arange(3), "pid": os.getpid(),
                "attachments": {"blob": b"12"}}

    trials, _ = run(objective, url, 6)
    assert all((result["array"] == [0, 1, 2]).all() for result in trials.results)
    assert len({result["pid"] for result in trials.results}) == 2, "two processes, each for several trials"
    assert os.getpid() not in {result["pid"] for result in trials.results}
    assert trials.trial_attachments(trials.trials[0])["blob"] == b"12"


def test_runs_are_nested_and_hold_the_point(url, monkeypatch):
    import mlflow

    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)

    def objective(point):
        import mlflow
        mlflow.log_metric("inside", point["x"])  # no start_run: it is the trial's run
        return plain(point)

    mlflow.set_tracking_uri(url)
    try:
        mlflow.set_experiment("hyperopt-users")
        with mlflow.start_run() as main:
            trials, _ = run(objective, url, 4)
        client = mlflow.MlflowClient()
        info = load_study(trials.study_name, url).info()
        assert client.get_run(info["run_id"]).data.tags["mlflow.parentRunId"] == main.info.run_id
        shown = client.get_run(main.info.run_id).data
        assert shown.tags["tune.study"] == trials.study_name and shown.metrics["best_loss"] == pytest.approx(min(trials.losses()))
        for document in trials.trials:
            kept = client.get_run(document["misc"]["run_id"])
            assert kept.data.tags["mlflow.parentRunId"] == info["run_id"] and kept.info.status == "FINISHED"
            assert kept.data.metrics["inside"] == pytest.approx(document["misc"]["vals"]["x"][0])
            assert kept.data.metrics["loss"] == pytest.approx(document["result"]["loss"])
            assert kept.data.params["color"] == ["red", "blue"][document["misc"]["vals"]["color"][0]], "the option, not its index"
    finally:
        mlflow.set_tracking_uri(None)


def test_trials_that_raise_fail_alone(url):
    def objective(point):
        if point["color"] == "red":
            raise KeyError("no such color")
        return {"status": STATUS_FAIL} if point["x"] < 0 else plain(point)

    trials, _ = run(objective, url, 16)
    failed = [document for document in trials._dynamic_trials if document["state"] == hyperopt.JOB_STATE_ERROR]
    assert len(failed) == trials.count_failed_trials() > 0 and len(trials) == 16 - len(failed)
    assert all("KeyError" in kind and "no such color" in trace for kind, trace in (one["misc"]["error"] for one in failed))
    assert STATUS_FAIL in trials.statuses() and trials.best_trial["misc"]["vals"]["x"][0] >= 0
    states = [trial["state"] for trial in load_study(trials.study_name, url).trials]
    assert states.count("complete") == sum(status == STATUS_OK for status in trials.statuses())


def test_intermediate_metrics_stop_what_falls_behind(url):
    def objective(point):
        for step in range(1, 6):
            tune_client.report(point["x"], step)
        return point["x"]

    trials, best = run(objective, url, 12, parallelism=1, space={"x": hp.uniform("x", 0, 1)},
                       pruner={"type": "median", "startup": 2, "warmup": 0})
    pruned = [document for document in trials.trials if document["result"].get("pruned")]
    assert pruned and all(document["result"]["status"] == STATUS_FAIL for document in pruned)
    assert best["x"] == min(trials.vals["x"])
    shown = {trial.number: trial for trial in load_study(trials.study_name, url).trials(with_intermediate=True)}
    assert all(shown[document["misc"]["tune_number"]].state == "pruned" for document in pruned)
    assert len(shown[trials.best_trial["misc"]["tune_number"]].intermediate_values) == 5


def hang(point):
    while True:
        time.sleep(0.1)


def test_a_timeout_cancels_what_runs_and_leaves_no_process(url, tmp_path):
    def objective(point):
        (tmp_path / str(os.getpid())).touch()
        (tmp_path / str(subprocess.Popen(["sleep", "1000"]).pid)).touch()
        return hang(point)

    trials = TuneTrials(parallelism=2, timeout=25, server=url)
    with pytest.raises(TuneError, match="no evaluation tasks"):
        fmin(objective, SPACE, algo=rand.suggest, max_evals=5, trials=trials, verbose=False, rstate=numpy.random.default_rng(1))
    assert trials.fmin_cancelled_reason == "fmin run timeout" and trials.count_cancelled_trials() == 3
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert len(pids) == 4 and not any(map(is_alive, pids)), "nothing is left running"
    info = load_study(trials.study_name, url).info()
    assert info["state"] == "stopped" and info["counts"]["running"] == info["counts"]["queued"] == 0


def test_a_good_loss_and_lack_of_progress_end_it(url):
    trials, _ = run(lambda point: abs(point["x"]), url, 500, loss_threshold=2.0)
    assert trials.best_trial["result"]["loss"] < 2 and len(trials) < 100
    trials, _ = run(lambda point: 1.0, url, 500, early_stop_fn=no_progress_loss(5))
    assert trials.fmin_cancelled_reason == "early stopping condition" and len(trials) < 50


def test_fmin_goes_on_with_the_same_trials(url):
    trials, _ = run(plain, url, 4)
    fmin(plain, SPACE, algo=tpe.suggest, max_evals=9, trials=trials, rstate=numpy.random.default_rng(1), verbose=False)
    assert len(trials) == 9 == load_study(trials.study_name, url).info()["trials"]
    assert len(set(trials.tids)) == 9


def test_a_killed_worker_costs_no_trial(url, tmp_path):
    def objective(point):
        flag = tmp_path / "killed"
        if not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(point)

    trials, _ = run(objective, url, 6)
    assert trials.count_successful_trials() == 6 and trials.count_failed_trials() == 0


def test_an_objective_that_kills_its_process_fails(url):
    def objective(point):
        if point["color"] == "red":
            os.kill(os.getpid(), signal.SIGSEGV)
        return plain(point)

    trials, _ = run(objective, url, 3)
    assert trials.count_failed_trials() >= 1 and trials.count_total_trials() == 3
    [failed, *_] = [document for document in trials._dynamic_trials if document["state"] == hyperopt.JOB_STATE_ERROR]
    assert "died, 3 times" in failed["misc"]["error"][1]


DRIVER = """
import os, pathlib, sys, time
from hyperopt import fmin, hp, rand
from tune_client import TuneTrials

FOLDER = pathlib.Path(sys.argv[3])

def objective(point):
    (FOLDER / f"pid-{os.getpid()}").touch()
    with open(FOLDER / "starts", "a") as starts:
        print(point["x"], file=starts)
    while len((FOLDER / "starts").read_text().split()) >= 4 and not (FOLDER / "go").exists():
        time.sleep(0.02)
    return point["x"]

if __name__ == "__main__":
    trials = TuneTrials(parallelism=2, server=sys.argv[1], study=sys.argv[2])
    fmin(objective, {"x": hp.uniform("x", 0, 1)}, algo=rand.suggest, max_evals=10, trials=trials, verbose=False)
    print(len(trials), trials.count_total_trials(), len(set(trials.tids)), flush=True)
"""


def test_a_driver_that_is_killed_goes_on_where_it_was(url, tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, script, url, "killed-driver", tmp_path]
    first = subprocess.Popen(command, start_new_session=True)
    wait_for(lambda: (tmp_path / "starts").exists() and len((tmp_path / "starts").read_text().split()) >= 4, "trials in the middle")
    first.kill()
    first.wait()
    pids = [int(path.name[4:]) for path in tmp_path.glob("pid-*")]
    wait_for(lambda: not any(map(is_alive, pids)), "the workers' end, after that of their driver")
    (tmp_path / "go").touch()
    second = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert second.stdout.split() == ["10", "10", "10"], second.stdout + second.stderr
    info = load_study("killed-driver", url).info()
    assert info["counts"]["complete"] == 10 == info["trials"] and info["state"] == "completed"


def test_a_study_that_is_stopped_on_the_page_ends_fmin(url, tmp_path):
    def objective(point):
        (tmp_path / "runs").touch()
        return hang(point)

    trials = TuneTrials(parallelism=1, server=url)

    def stop():
        wait_for((tmp_path / "runs").exists, "the first trial")
        load_study(trials.study_name, url).stop()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(TuneError, match="no evaluation tasks"):
        fmin(objective, SPACE, algo=rand.suggest, max_evals=5, trials=trials, verbose=False)
    stopper.join()
    assert trials.fmin_cancelled_reason == "the study was stopped"


def test_without_a_server_one_runs_meanwhile(tmp_path):
    script = tmp_path / "alone.py"
    script.write_text("from hyperopt import fmin, hp, tpe\nfrom tune_client import TuneTrials\n"
                      "print(fmin(lambda x: x ** 2, hp.uniform('x', -1, 1), algo=tpe.suggest, max_evals=3, verbose=False,"
                      " trials=TuneTrials(parallelism=1)))\n")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False,
                          env={**os.environ, "PYTHONPATH": str(CLIENTS), "TUNE_BIN_DIR": str(BIN_DIR)})
    assert done.returncode == 0 and "'x'" in done.stdout, done.stderr
    if "no server is configured" in done.stderr:  # nothing listened on port 5000
        assert (tmp_path / "tune-data").is_dir()


def test_bad_input_is_refused_with_a_sentence(url):
    with pytest.raises(ValueError, match="engine is one of"):
        TuneTrials(engine="slurm")
    with pytest.raises(ValueError, match="pass_expr_memo_ctrl"):
        run(plain, url, 1, pass_expr_memo_ctrl=True)
    with pytest.raises(TuneError, match="cannot be sent"):
        lock = threading.Lock()
        run(lambda point: lock.locked(), url, 1)
    trials, _ = run(plain, url, 1)
    with pytest.raises(TuneError, match="another space"):
        run(plain, url, 2, space={"y": hp.uniform("y", 0, 1)}, study=trials.study_name)
    with pytest.raises(RuntimeError, match="no trial runs here"):
        tune_client.report(1.0, 1)


def test_our_fmin_takes_hyperopts_spaces(url):
    space = {"lr": hp.loguniform("lr", numpy.log(1e-4), numpy.log(1e-1)), "n": hp.uniformint("n", 1, 8),
             "w": hp.lognormal("w", 0, 1), "model": hp.pchoice("model", [(0.3, {"k": 0}), (0.7, {"k": hp.randint("k", 2, 5)})])}
    seen = []

    def objective(point):
        seen.append(point)
        return abs(numpy.log(point["lr"])) + point["n"] + point["model"]["k"]

    best = tune_client.fmin(objective, space, algo=tpe.suggest, max_evals=15, server=url, study="ours",
                            points_to_evaluate=[{"lr": 0.01, "n": 8, "w": 1.0, "model": 0}])
    assert len(seen) == 15 and seen[0] == {"lr": 0.01, "n": 8, "w": 1.0, "model": {"k": 0}}
    assert all(1e-4 <= point["lr"] <= 0.1 and point["n"] in range(1, 9) and point["model"]["k"] in (0, 2, 3, 4) for point in seen)
    point = hyperopt.space_eval(space, best)
    assert objective(point) == min(objective(one) for one in seen[:15])
    assert load_study("ours", url).info()["sampler"]["preset"] == "hyperopt"
    evaluated = tune_client.fmin(plain, SPACE, "random", max_evals=200, server=url, parallelism=2, loss_threshold=4.0,
                                 return_argmin=False)
    assert plain(evaluated) <= 4.0
    with pytest.raises(ValueError, match="algo is the name of a sampler"):
        tune_client.fmin(plain, SPACE, hyperopt.anneal.suggest, max_evals=1, server=url)

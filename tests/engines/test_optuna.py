"""TuneStorage and TuneSampler under Optuna's own API, from one process and from several."""

import math
import os
import pickle
import signal
import subprocess
import sys

import optuna
import pytest
from conftest import wait_for
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

import tune_client as tune
from tune_client.optuna import TuneSampler, TuneStorage

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    """Of Optuna's documentation: define-by-run, with conditions, reports and attributes."""
    x = trial.suggest_float("x", -10, 10)
    kind = trial.suggest_categorical("kind", ["flat", "bowl", None])
    depth = trial.suggest_int("depth", 1, 9, step=2) if kind == "bowl" else 0
    trial.set_user_attr("note", {"pid": os.getpid()})
    for step in range(3):
        trial.report((x - 2) ** 2 + depth + 3 - step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return (x - 2) ** 2 + depth


def same(ours, theirs):
    """What an Optuna user can see of two trials, times aside."""
    for field in ("number", "state", "values", "params", "distributions", "user_attrs", "system_attrs", "intermediate_values"):
        assert getattr(ours, field) == getattr(theirs, field), field


def test_a_study_is_what_optunas_own_storage_makes_of_it(url):
    storages = [TuneStorage(url), optuna.storages.InMemoryStorage()]
    studies = [optuna.create_study(study_name="same", storage=storage, sampler=optuna.samplers.TPESampler(seed=3),
                                   pruner=optuna.pruners.MedianPruner(n_startup_trials=3)) for storage in storages]
    for study in studies:
        study.enqueue_trial({"x": 2.5, "kind": "bowl"}, user_attrs={"why": "a guess"})
        study.optimize(objective, n_trials=14)
        study.set_user_attr("owner", "me")
    ours, theirs = studies
    assert {trial.state for trial in ours.trials} >= {TrialState.COMPLETE, TrialState.PRUNED}
    for one, other in zip(ours.trials, theirs.trials, strict=True):
        same(one, other)
        assert one.datetime_complete >= one.datetime_start
    assert ours.best_value == theirs.best_value and ours.best_params == theirs.best_params
    again = optuna.load_study(study_name="same", storage=TuneStorage(url))
    for one, other in zip(again.trials, theirs.trials, strict=True):
        same(one, other)
    assert again.user_attrs == {"owner": "me"} and again.best_trial.number == theirs.best_trial.number


def test_runs_show_what_optuna_has(url):
    study = optuna.create_study(study_name="shown", storage=TuneStorage(url), direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    known = tune.load_study("shown", url)
    assert known.best_value == study.best_value and known.direction == "maximize"
    server = known._connection
    for trial in known.trials:
        data = server.call(f"/api/2.0/mlflow/runs/get?run_id={trial.run_id}")["run"]["data"]
        assert float(next(each["value"] for each in data["params"] if each["key"] == "x")) == trial.value


def test_states_and_values_of_all_kinds(url):
    study = optuna.create_study(study_name="kinds", storage=TuneStorage(url))

    def fail(trial):
        raise ValueError("bad")

    study.optimize(fail, n_trials=1, catch=ValueError)
    study.optimize(lambda trial: math.inf, n_trials=1)
    study.optimize(lambda trial: math.nan, n_trials=1)
    distribution = FloatDistribution(0, 1)
    study.add_trial(optuna.trial.create_trial(params={"x": 0.5}, distributions={"x": distribution}, value=0.25,
                                              intermediate_values={1: 0.5, 4: 0.3}, user_attrs={"a": [1]}))
    trials = optuna.load_study(study_name="kinds", storage=TuneStorage(url)).trials
    assert [trial.state.name for trial in trials] == ["FAIL", "COMPLETE", "FAIL", "COMPLETE"]
    assert trials[1].value == math.inf and trials[3].intermediate_values == {1: 0.5, 4: 0.3} and trials[3].user_attrs == {"a": [1]}
    trial = study.ask()
    study.tell(trial, 1.0)
    with pytest.raises(ValueError, match="Cannot tell a COMPLETE trial"):
        study.tell(trial, 2.0)
    with pytest.raises(optuna.exceptions.UpdateFinishedTrialError):
        study._storage.set_trial_user_attr(trial._trial_id, "late", 1)
    two = optuna.create_study(study_name="two", storage=TuneStorage(url), directions=["minimize", "maximize"])
    two.optimize(lambda each: (each.suggest_float("x", 0, 1), each.params["x"]), n_trials=5)
    assert len(two.best_trials) == 5 and two.trials[2].values == [two.trials[2].params["x"]] * 2


def test_names_and_lists_of_studies(url):
    storage = TuneStorage(url)
    study = optuna.create_study(study_name="named", storage=storage)
    with pytest.raises(optuna.exceptions.DuplicatedStudyError):
        optuna.create_study(study_name="named", storage=TuneStorage(url))
    assert optuna.create_study(study_name="named", storage=storage, load_if_exists=True)._study_id == study._study_id
    tune.create_study("not-optunas", space={"x": {"float": [0, 1]}}, metric="loss", server=url)
    names = optuna.study.get_all_study_names(TuneStorage(url))
    assert "named" in names and "not-optunas" not in names
    with pytest.raises(KeyError):
        optuna.load_study(study_name="absent", storage=storage)
    optuna.delete_study(study_name="named", storage=storage)
    assert "named" not in optuna.study.get_all_study_names(storage)


def test_it_can_be_pickled(url):
    storage = pickle.loads(pickle.dumps(TuneStorage(url)))
    assert storage.create_new_study([optuna.study.StudyDirection.MINIMIZE], "pickled") > 0


WORKER = """
import os, sys, time
import optuna
from tune_client.optuna import TuneStorage
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.load_study(study_name=sys.argv[2], storage=TuneStorage(sys.argv[1], lease_s=float(sys.argv[3])))
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    print("has", trial.number, x, flush=True)
    if sys.argv[4:] == ["hang"]:
        time.sleep(1000)
    return x
study.optimize(objective, n_trials=None if sys.argv[4:] == ["hang"] else int(sys.argv[4]))
"""


def test_what_came_in_place_of_another_waits_for_who_has_it(url):
    """The server gives the oldest trial that waits, whichever is wanted."""
    ours, other = TuneStorage(url), TuneStorage(url)
    study = optuna.create_study(study_name="instead", storage=ours)
    for i in range(4):
        study.enqueue_trial({"x": i / 8})
    ids = [trial._trial_id for trial in ours.get_all_trials(study._study_id)]
    assert other.set_trial_state_values(ids[0], TrialState.RUNNING)
    assert not ours.set_trial_state_values(ids[0], TrialState.RUNNING)  # 1 came
    assert not ours.set_trial_state_values(ids[3], TrialState.RUNNING)  # 2 came
    waiting = [trial.number for trial in ours.get_all_trials(study._study_id, states=(TrialState.WAITING,))]
    assert waiting == [1, 2, 3]
    assert [trial.number for trial in other.get_all_trials(study._study_id, states=(TrialState.WAITING,))] == [3]
    assert [study.ask().number for _ in range(3)] == waiting and study.ask().number == 4


def test_several_processes_work_on_one_study(url):
    study = optuna.create_study(study_name="several", storage=TuneStorage(url))
    for i in range(4):
        study.enqueue_trial({"x": i / 8})
    command = [sys.executable, "-c", WORKER, url, "several", "60", "6"]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [line.split() for worker in workers for line in worker.communicate(timeout=200)[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0] * 3
    numbers = [int(number) for _, number, _ in told]
    assert sorted(numbers) == list(range(18)), "each trial once, also those that were enqueued"
    trials = study.trials
    assert {trial.state for trial in trials} == {TrialState.COMPLETE} and [trial.params["x"] for trial in trials[:4]] == [0, 1 / 8, 1 / 4, 3 / 8]
    assert {trial.number: trial.value for trial in trials} == {int(number): float(x) for _, number, x in told}


def test_a_trial_whose_process_dies_is_run_again_with_its_parameters(url):
    study = optuna.create_study(study_name="dies", storage=TuneStorage(url))
    worker = subprocess.Popen([sys.executable, "-c", WORKER, url, "dies", "1", "hang"], stdout=subprocess.PIPE, text=True)
    _, number, x = worker.stdout.readline().split()
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    wait_for(lambda: study.trials[int(number)].state == TrialState.WAITING, "the end of its lease")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    [trial] = study.trials
    assert trial.number == int(number) and trial.value == float(x)


SPACE = {"lr": FloatDistribution(1e-5, 1e-1, log=True), "layers": IntDistribution(1, 7, step=2), "opt": CategoricalDistribution(["a", "b"])}


def suggested(trial):
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 7, step=2)
    return abs(math.log10(lr) + 3) + layers + (trial.suggest_categorical("opt", ["a", "b"]) == "b") + trial.suggest_float("free", 0, 0.01)


def test_the_server_suggests(url):
    study = optuna.create_study(study_name="suggested", sampler=TuneSampler(SPACE, {"type": "tpe", "seed": 3}, server=url))
    study.enqueue_trial({"lr": 1e-3, "layers": 1, "opt": "a"})
    study.optimize(suggested, n_trials=12)
    known = tune.load_study("suggested", url)
    complete = {tuple(sorted(trial.params.items())): trial.value for trial in known.trials if trial.state == "complete"}
    assert len(complete) == 12 and known.info()["sampler"]["seed"] == 3
    for trial in study.trials:
        point = {name: value for name, value in trial.params.items() if name != "free"}
        assert complete[tuple(sorted(point.items()))] == pytest.approx(trial.value)
    assert known.best_value == pytest.approx(study.best_value)


def test_a_range_that_is_not_declared_is_refused(url):
    study = optuna.create_study(study_name="refused", sampler=TuneSampler(SPACE, server=url))
    with pytest.raises(ValueError, match="make them equal"):
        study.optimize(lambda trial: trial.suggest_float("lr", 1e-6, 1e-1, log=True), n_trials=1)
    with pytest.raises(TypeError, match="distributions"):
        TuneSampler({"x": 3})


def test_mlflows_own_storage_works_on_our_server(url):
    """mlflow.optuna.storage.MlflowStorage, which logs a study as runs, as its documentation has it."""
    import mlflow
    from mlflow.optuna.storage import MlflowStorage

    mlflow.set_tracking_uri(url)
    try:
        experiment = mlflow.create_experiment("optuna-by-mlflow")
        study = optuna.create_study(study_name="by-mlflow", storage=MlflowStorage(experiment_id=experiment))
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
        assert len(study.trials) == 1 and study.best_value == min(trial.value for trial in study.trials)
    finally:
        mlflow.set_tracking_uri(None)

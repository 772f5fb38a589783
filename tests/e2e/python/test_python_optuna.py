"""Optuna's names in clients/python/tune_client: the same objective under Optuna and under ours, and where they differ."""

import datetime
import math
import pickle
import threading
import time
import warnings

import optuna
import pytest

import tune_client as tune
from study_support import call
from tune_client import TrialState

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = {
    "lr": {"float": [1e-5, 0.1], "log": True},
    "momentum": {"float": [0, 0.9], "step": 0.3},
    "layers": {"int": [1, 7], "step": 2},
    "opt": {"choice": ["sgd", "adam", None]},
}


def suggested(trial):
    """The space in Optuna's words."""
    return {
        "lr": trial.suggest_float("lr", 1e-5, 0.1, log=True),
        "momentum": trial.suggest_float("momentum", 0, 1, step=0.3),  # Optuna takes the grid's last value, 0.9
        "layers": trial.suggest_int("layers", 1, 8, step=2),
        "opt": trial.suggest_categorical("opt", (None, "sgd", "adam")),
    }


def create(url, name, **more):
    return tune.create_study(study_name=name, storage=url, space=more.pop("space", SPACE), **{"direction": "minimize", **more})


def test_an_objective_of_optuna_runs_as_it_is(url):
    def objective_of(module):
        def objective(trial):
            point = suggested(trial)
            assert point == trial.params
            for step in range(3):
                trial.report(point["lr"] * step, step)
                if trial.should_prune():
                    raise module.TrialPruned()
            if trial.number == 1:
                raise module.TrialPruned()
            if trial.number == 2:
                raise ArithmeticError("bad luck")
            return point["lr"]

        return objective

    seen = {}

    def run(module, study):
        def note(finished, trial):
            assert finished is study
            seen.setdefault(module, []).append((trial.number, trial.state.name, trial.value is None))

        study.optimize(objective_of(module), n_trials=6, catch=(ArithmeticError,), callbacks=[note])
        return study

    ours = run(tune, create(url, "same-objective", sampler={"type": "random", "seed": 1}))
    theirs = run(optuna, optuna.create_study(direction="minimize", sampler=optuna.samplers.RandomSampler(seed=1)))
    assert seen[tune] == seen[optuna]
    assert [state for _, state, _ in seen[tune]] == ["COMPLETE", "PRUNED", "FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
    assert [t.state.name for t in ours.trials] == [t.state.name for t in theirs.trials]
    frame, known = ours.trials_dataframe(), theirs.trials_dataframe()
    assert sorted(frame.columns) == sorted(known.columns)
    assert list(frame["state"]) == list(known["state"]) and list(frame["number"]) == list(known["number"])
    for column in ("number", "value", "duration", "datetime_start", "datetime_complete", "params_lr", "params_layers"):
        assert frame[column].dtype.kind == known[column].dtype.kind, column
    complete = frame[frame["state"] == "COMPLETE"]
    assert (complete["value"] == complete["params_lr"]).all() and complete["value"].min() == ours.best_value
    lr = ours.trials[1].params["lr"]
    assert ours.trials[1].intermediate_values == {0: 0, 1: lr, 2: 2 * lr}


def test_the_best_and_the_listed_trials_have_optunas_names(url):
    study = create(url, "names", n_trials=4, sampler="random")
    before = datetime.datetime.now()
    study.optimize(lambda trial: math.inf if trial.number == 3 else trial.params["lr"] + 1)
    assert study.study_name == study.name == "names"
    assert (study.direction, study.directions, study.metric_names) == ("minimize", ["minimize"], ["value"])
    best = study.best_trial
    assert best.value == study.best_value == min(t.value for t in study.trials)
    assert best.params == study.best_params == best["params"]
    assert best.state is TrialState.COMPLETE and best.values == [best.value]
    assert before <= best.datetime_start.replace(microsecond=0) + datetime.timedelta(seconds=1)
    assert best.duration == best.datetime_complete - best.datetime_start >= datetime.timedelta(0)
    assert study.best_trials == [best] and best.run_id == best["run_id"]
    assert len(study.trials) == 4 and study.trials[-1].number == 3 and [t.number for t in study.trials[1:3]] == [1, 2]
    assert study.trials[-1].value == math.inf
    with pytest.raises(IndexError, match="no trial 4: the study has 4 trials"):
        study.trials[4]
    assert study.get_trials(states=[TrialState.COMPLETE]) == list(study.trials("complete")) == list(study.trials)
    assert list(study.trials(TrialState.FAIL)) == []
    again = pickle.loads(pickle.dumps(best))
    assert again == best and again.duration == best.duration and again.intermediate_values == {0: best.value}


def test_states_are_the_words_of_the_server_too():
    assert TrialState.COMPLETE == "complete" and str(TrialState.FAIL) == "failed"
    assert TrialState.FAILED is TrialState.FAIL and TrialState.QUEUED is TrialState.WAITING
    theirs = {state.name for state in optuna.trial.TrialState}
    assert theirs <= set(TrialState.__members__)
    assert {state.name for state in TrialState if state.is_finished()} == {"COMPLETE", "PRUNED", "FAIL", "CANCELLED"}


def test_directions_are_goals(url):
    both = create(url, "directions", direction=None, directions=["minimize", "maximize"], n_trials=3, sampler="random")
    both.optimize(lambda trial: [trial.params["lr"], trial.params["layers"]])
    assert both.directions == ["minimize", "maximize"] and both.metric_names == ["values_0", "values_1"]
    with pytest.raises(ValueError, match="has 2 objectives; use study.directions"):
        both.direction
    frame = both.trials_dataframe()
    assert list(frame["values_values_0"]) == list(frame["params_lr"]) and "value" not in frame
    assert all(t.values == [t.params["lr"], t.params["layers"]] for t in both.trials)
    assert both.best_trial is None and both.best_trials[0].state == "complete"
    theirs = create(url, "enum", direction=optuna.study.StudyDirection.MAXIMIZE, metric="auc")
    assert theirs.info()["metric"]["name"] == "auc" and theirs.direction == "maximize"
    named = create(url, "named", direction=None, directions=["maximize", "minimize"], metric=["auc", "ms"])
    assert named.metric_names == ["auc", "ms"] and named.directions == ["maximize", "minimize"]


def test_what_cannot_be_meant_is_said(url):
    for words, error, sentence in (
        ({"direction": "up"}, ValueError, "a direction is \"minimize\" or \"maximize\", found 'up'"),
        ({"direction": "minimize", "goal": "min"}, ValueError, "goal, direction and directions mean the same"),
        ({"direction": None}, TypeError, "what is it measured by"),
        ({"direction": None, "directions": ["minimize"], "metric": ["a", "b"]}, ValueError,
         "one direction a metric: found 2 metrics and 1 direction$"),
        ({"metric": {"name": "a", "take": "last"}}, ValueError, "metric is a name, or a list of names"),
        ({"trials": 3, "n_trials": 4}, ValueError, "trials=3 and n_trials=4 mean the same"),
        ({"name": "other"}, ValueError, "name='other' and study_name='faulty' mean the same"),
        ({"sampler": optuna.samplers.TPESampler()}, TypeError, "sampler is a name or a mapping.*found a TPESampler"),
        ({"pruner": optuna.pruners.MedianPruner()}, TypeError, "pruner is a name or a mapping.*found a MedianPruner"),
        ({"storage": "sqlite:///optuna.db"}, tune.TuneError, "'sqlite:///optuna.db' is no address of a server"),
    ):
        with pytest.raises(error, match=sentence):
            tune.create_study(**{"study_name": "faulty", "storage": url, "space": SPACE, "direction": "minimize", **words})
    with pytest.raises(TypeError, match="a study needs a name"):
        tune.create_study(space=SPACE, direction="minimize", server=url)
    with pytest.raises(TypeError, match="which study"):
        tune.load_study(server=url)
    assert call(url, "/api/2.0/tune/studies/faulty")[0] == 404, "nothing was made"


def test_load_if_exists(url):
    first = create(url, "exists", load_if_exists=False, n_trials=5)
    with pytest.raises(tune.TuneError, match="'exists' exists on http.*load_if_exists=True resumes it") as taken:
        create(url, "exists", load_if_exists=False, n_trials=7)
    assert taken.value.code == "RESOURCE_ALREADY_EXISTS"
    assert first.info()["budget"]["trials"] == 5, "and nothing was changed"
    assert create(url, "exists", load_if_exists=True).info()["study_id"] == first.info()["study_id"]
    assert tune.load_study(study_name="exists", storage=url).info()["budget"]["trials"] == 5


def test_a_suggestion_that_is_not_declared_says_what_to_declare(url):
    space = {**SPACE, "decay": {"float": [0, 1], "when": {"opt": "sgd"}}, "warm": {"lognormal": [0.1, 1], "high": 1}}
    study = create(url, "declared", space=space, sampler="random")
    study.enqueue_trial({"opt": "adam"})
    trial = study.ask()
    with pytest.raises(ValueError) as missing:
        trial.suggest_int("units", 16, 512, log=True)
    assert str(missing.value) == (
        "trial.suggest_int('units', ...): study 'declared' has no parameter 'units'. A space is declared when the study is "
        "created: space={'units': {'int': [16, 512], 'log': True}, ...}")
    for suggest, asked in (
        (lambda: trial.suggest_float("lr", 1e-5, 0.1), "'float': [1e-05, 0.1]}"),
        (lambda: trial.suggest_float("lr", 1e-4, 0.1, log=True), "'float': [0.0001, 0.1], 'log': True"),
        (lambda: trial.suggest_int("lr", 1, 2), "'int': [1, 2]"),
        (lambda: trial.suggest_int("layers", 1, 7), "'int': [1, 7]}"),
        (lambda: trial.suggest_categorical("opt", ["sgd", "adam"]), "'choice': ['sgd', 'adam']"),
        (lambda: trial.suggest_categorical("lr", ["sgd"]), "'choice': ['sgd']"),
    ):
        with pytest.raises(ValueError) as differs:
            suggest()
        assert "the study declares" in str(differs.value) and f"this call asks for {{{asked.rstrip('}')}" in str(differs.value)
    with pytest.raises(ValueError, match="it is switched off in trial 0, for the space says when={'opt': 'sgd'}"):
        trial.suggest_float("decay", 0, 1)
    declared = study.info()["space"]["warm"]
    low, high = declared.get("float", (0, 1)) if "float" in declared else declared["int"]
    assert trial.suggest_float("warm", low, high) == trial.params["warm"], "a prior is the declaration's own affair"
    trial.tell(0.5)


def test_categories_keep_their_types(url):
    choices = [True, 1, "1", None, 2.5, (64, 64)]
    study = create(url, "types", space={"c": {"choice": [*choices[:-1], [64, 64]]}}, sampler="grid")
    found = []
    study.optimize(lambda trial: found.append(trial.suggest_categorical("c", choices)) or 1.0)
    assert sorted(map(repr, found)) == sorted(map(repr, choices))


def test_callbacks_see_each_trial_and_can_stop_the_study(url):
    study = create(url, "callbacks", sampler="random")
    seen, threads = [], set()

    def stop_at_five(finished, trial):
        seen.append((trial.number, trial.state, trial.value))
        threads.add(threading.get_ident())
        if len(seen) == 5:
            finished.stop()

    study.optimize(lambda trial: float(trial.number), callbacks=[stop_at_five])
    assert seen == [(n, TrialState.COMPLETE, float(n)) for n in range(5)]
    assert study.info()["state"] == "stopped" and threads == {threading.get_ident()}

    study.resume()
    with pytest.raises(LookupError, match="a callback's own"):
        study.optimize(lambda trial: 1.0, callbacks=[lambda *_: (_ for _ in ()).throw(LookupError("a callback's own"))])
    assert len(study.trials) == 6
    with pytest.raises(TypeError, match="callbacks must be functions"):
        study.optimize(lambda trial: 1.0, callbacks=[5])


def test_timeout_begins_no_further_trial(url):
    study = create(url, "timeout", sampler="random")
    first = threading.Event()

    def objective(trial):
        first.set()
        deadline_s = time.monotonic() + 0.2
        while time.monotonic() < deadline_s:  # longer than the timeout, whatever the machine does
            pass
        return 1.0

    study.optimize(objective, timeout=0.1)
    assert first.is_set() and len(study.trials) == 1
    study.optimize(objective, timeout=0)
    assert len(study.trials) == 1
    waits = create(url, "timeout-waits", budget={"parallel": 1}, sampler="random")
    held = waits.ask()
    waits.optimize(objective, timeout=0.1)  # returns, though no trial is given out
    assert len(waits.trials) == 1
    held.tell(1.0)
    with pytest.raises(ValueError, match="timeout must be at least 0"):
        study.optimize(objective, timeout=-1)


def test_enqueue_trial_and_ask_and_tell(url):
    study = create(url, "enqueued", n_trials=4, sampler="random")
    study.enqueue_trial({"lr": 0.01, "opt": None})
    study.enqueue_trial({"lr": 0.01}, skip_if_exists=True)
    assert len(study.trials) == 1 and study.trials[0].state is TrialState.WAITING
    study.enqueue_trial({"lr": 0.02}, skip_if_exists=True)
    trial = study.ask()
    assert trial.params["lr"] == 0.01 and trial.params["opt"] is None
    assert study.tell(trial, 2.0).value == 2.0
    trial = study.ask()
    assert trial.params["lr"] == 0.02
    assert study.tell(trial, state=TrialState.PRUNED).state is TrialState.PRUNED
    assert [t.state.name for t in study.trials] == ["COMPLETE", "PRUNED"]
    study.optimize(lambda trial: 1.0, n_jobs=-1)
    assert study.info()["state"] == "completed" and len(study.trials) == 4


def test_should_prune_knows_what_was_reported(url):
    study = create(url, "prune", n_trials=2, pruner={"type": "threshold", "upper": 5}, sampler="random")
    trial = study.ask()
    assert not trial.should_stop(1.0, step=1) and not trial.should_prune()
    assert trial.should_stop(9.0, step=2) and trial.should_prune()
    with trial:
        raise tune.TrialPruned
    [listed] = study.trials
    assert listed.state is TrialState.PRUNED and listed.intermediate_values == {1: 1.0, 2: 9.0}
    assert not trial.should_prune(), "it has ended"


def test_a_frame_has_what_is_asked_for(url, monkeypatch):
    study = create(url, "frame", n_trials=2, sampler="random")
    study.optimize(lambda trial: [trial.report(2.0, step) for step in range(2)] and 1.0)
    frame = study.trials_dataframe(attrs=("number", "run_id", "intermediate_values"))
    assert list(frame.columns) == ["number", "run_id", "intermediate_values"]
    assert list(frame["intermediate_values"]) == [{0: 2.0, 1: 1.0}] * 2
    with pytest.raises(ValueError, match="trials have no 'color'; they have datetime_complete, "):
        study.trials_dataframe(attrs=("color",))
    assert list(create(url, "frame-of-none").trials_dataframe()) == [
        "number", "value", "datetime_start", "datetime_complete", "duration", "state"]
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="trials_dataframe needs pandas: pip install pandas"):
        study.trials_dataframe()


def test_three_failures_alike_are_told_at_the_end_of_optimize(url, capsys):
    study = create(url, "alike", n_trials=9, sampler="random")

    def objective(trial):
        raise ArithmeticError(f"bad luck of {trial.params['lr']}")

    assert study.optimize(objective, catch=ArithmeticError) is study
    assert len(study.trials) == 3
    said = capsys.readouterr().err
    last = study.trials[-1].reason
    assert last.startswith("ArithmeticError: bad luck of ") and last in said
    assert "study 'alike' was stopped: 3 trials in a row failed alike before any succeeded" in said
    assert "Mend the objective and call optimize again" in said
    study.optimize(lambda trial: trial.params["lr"])
    assert "was stopped" not in capsys.readouterr().err
    assert study.info()["counts"]["complete"] == 9, "the whole budget"


@pytest.mark.parametrize("again", [True, False])
def test_failures_before_the_first_success_use_up_no_budget(url, again):
    name = f"mended-{again}"
    study = create(url, name, n_trials=5, sampler="random")

    def broken(trial):
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        study.optimize(broken)
    assert study.info()["state"] == "running"
    failed = study.trials[0].params
    if again:  # the script is started again; else a notebook goes on with the study it has
        study = create(url, name, n_trials=5, sampler="random")
        assert study.info()["excused"] == 1
    study.optimize(lambda trial: trial.params["lr"])
    info = study.info()
    assert (info["state"], info["counts"]["complete"], info["excused"]) == ("completed", 5, 1)
    if again:
        assert failed in [trial.params for trial in study.trials("complete")], "it is tried again"


def test_a_corrected_study_replaces_one_of_which_nothing_is_complete(url, capsys):
    first = create(url, "corrected", sampler="random").info()["study_id"]
    assert create(url, "corrected", sampler="random").info()["study_id"] == first
    wider = {**SPACE, "lr": {"float": [1e-6, 0.1], "log": True}}
    with pytest.raises(tune.TuneError, match="replace it, as none of its trials is complete") as kept:
        create(url, "corrected", space=wider, replace=False)
    assert kept.value.status == 409
    second = create(url, "corrected", space=wider, direction="maximize")
    assert second.info()["study_id"] != first and second.direction == "maximize"
    said = capsys.readouterr().err
    assert "study 'corrected' replaces the earlier one, in which no trial completed (" in said
    assert "goal is max, was min" in said and "space.lr is " in said
    second.ask().tell(0.5)
    with pytest.raises(tune.TuneError) as differs:
        create(url, "corrected", space=SPACE, direction="maximize")
    assert differs.value.status == 409 and "replace it" not in str(differs.value)
    for way in ("Undo the change to continue it", "a name of its own", "study.delete() in Python"):
        assert way in str(differs.value)


def test_a_goal_that_its_name_contradicts_is_warned_of(url):
    with pytest.warns(UserWarning, match="'val_acc' is minimized, though its name suggests that more is better; if so, make its goal \"max\""):
        tune.create_study("doubtful", space=SPACE, metric="val_acc", server=url)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tune.create_study("certain", space=SPACE, metric="val_acc", goal="max", server=url)


def test_a_duration_leaves_out_what_a_trial_was_not_run(url):
    study = create(url, "durations", n_trials=1, sampler="random", lease_s=1)
    first = study.ask()
    first._lost = True  # its client is gone: nobody renews
    started = study.trials[0].datetime_start
    trial = study.ask()
    assert trial.number == first.number and trial.attempt == 2
    trial.tell(0.5)
    [ended] = study.trials
    assert ended.datetime_start == started
    assert ended.duration == datetime.timedelta(milliseconds=ended["ran_ms"])
    assert ended.duration < ended.datetime_complete - ended.datetime_start


def test_user_attributes_are_tags_of_the_runs(url):
    attributes = {"owner": "me", "count": 3, "nested": {"a": [1, None]}, "text": "[no JSON", "number": "3", "flag": True}
    study = create(url, "attributes", n_trials=1, sampler="random")

    def objective(trial):
        for key, value in attributes.items():
            trial.set_user_attr(key, value)
            study.set_user_attr(key, value)
        assert trial.user_attrs == attributes
        return 1.0

    study.optimize(objective)
    assert study.user_attrs == study.best_trial.user_attrs == study.trials[0].user_attrs == attributes
    run = call(url, f"/api/2.0/mlflow/runs/get?run_id={study.best_trial.run_id}")[1]["run"]
    assert {"key": "owner", "value": "me"} in run["data"]["tags"]
    with pytest.raises(ValueError, match="names that begin with mlflow., tune., optuna. have a meaning of their own"):
        study.set_user_attr("tune.state", "mine")
    with pytest.raises(TypeError):
        study.set_user_attr("object", object())


def test_progress_is_said_and_garbage_collected(url, capsys, monkeypatch):
    collected = []
    monkeypatch.setattr("tune_client._optimize.gc.collect", lambda: collected.append(1))
    study = create(url, "progress", n_trials=2, sampler="random")
    study.optimize(lambda trial: 2.0 - trial.number, show_progress_bar=True, gc_after_trial=True)
    said = [line for line in capsys.readouterr().err.splitlines() if "trial" in line]
    assert said == ["tune_client: trial 0 is complete with 2; best: 2.0 of trial 0; 1 of 2 trials",
                    "tune_client: trial 1 is complete with 1; best: 1.0 of trial 1; 2 of 2 trials"]
    assert len(collected) == 2

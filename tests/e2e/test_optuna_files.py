"""Studies to and from Optuna's SQLite storage, checked by the real Optuna."""

import contextlib
import json
import math
import signal
import sqlite3
import time

import optuna
import pytest

from study_support import FAILED, INTERRUPTED, OK, USAGE, call, server, start, study_of, trials_of, tune, tune_json

optuna.logging.set_verbosity(optuna.logging.ERROR)

SPACE = {
    "lr": {"float": [1e-5, 0.1], "log": True},
    "width": {"float": [0, 1], "step": 0.25},
    "layers": {"int": [1, 5]},
    "batch": {"int": [32, 1024], "log": True},
    "opt": {"choice": ["sgd", "adam", None, 1.5, True]},
    "depth": {"ordinal": [18, 34, 50]},
    "momentum": {"float": [0, 0.99], "when": {"opt": "sgd"}},
    "seed": {"const": 1},
}


def value_of(params):
    return (math.log10(params["lr"]) + 3) ** 2 + params["layers"] / 10 + params.get("momentum", 0.5)


def fill(url, count=24):
    """A study with trials of every state."""
    call(url, "/api/2.0/tune/studies", {"name": "s", "metric": {"name": "loss", "take": "last"}, "space": SPACE,
                                        "sampler": {"type": "tpe", "seed": 3, "startup": 5}})
    path = "/api/2.0/tune/studies/s"
    for number in range(count):
        trial = call(url, f"{path}/ask", {"worker": "test"})[1]["trials"][0]
        told = {"number": number}
        if number % 6 == 3:
            for step, value in ((1, 0.5), (2, "Infinity"), (4, 0.25)):
                assert call(url, f"{path}/report", {"number": number, "step": step, "value": value})[0] == 200
            told["state"] = "pruned"
        elif number % 6 == 5:
            told |= {"state": "failed", "reason": "out of luck"}
        else:
            told["value"] = value_of(trial["params"])
        assert call(url, f"{path}/tell", told)[0] == 200, number
    call(url, f"{path}/ask", {})
    call(url, f"{path}/enqueue", {"params": {"lr": 0.01, "opt": None}})


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A server's study as a file of Optuna's, and the same over REST."""
    folder = tmp_path_factory.mktemp("export")
    with server(folder) as (_, url):
        fill(url)
        done = tune("export", "optuna.db", "--optuna", "s", "--server", url, cwd=folder)
        assert done.returncode == OK, done.stderr
        assert "optuna.load_study" in done.stdout
        study = study_of(url)
        trials = call(url, "/api/2.0/tune/studies/s/trials?max_results=1000")[1]["trials"]
    return folder, study, trials


def load(folder, name="s"):
    return optuna.load_study(study_name=name, storage=f"sqlite:///{folder}/optuna.db")


STATES = {"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL", "cancelled": "FAIL", "running": "RUNNING",
          "queued": "WAITING"}


def test_optuna_reads_the_same_study(exported):
    folder, study, trials = exported
    loaded = load(folder)
    assert loaded.best_trial.number == study["best"]["number"]
    assert loaded.best_value == study["best"]["value"]
    assert loaded.direction == optuna.study.StudyDirection.MINIMIZE
    assert loaded.metric_names == ["loss"]
    assert len(loaded.trials) == len(trials) == 26
    for ours, theirs in zip(trials, loaded.trials):
        assert theirs.number == ours["number"]
        assert theirs.state.name == STATES[ours["state"]]
        if ours["state"] == "queued":
            assert theirs.system_attrs["fixed_params"] == ours["params"]
            continue
        assert theirs.params == ours["params"], ours["number"]
        assert theirs.user_attrs["tune.run_id"] == ours["run_id"]
        assert abs(theirs.datetime_start.timestamp() * 1000 - ours["start_ms"]) < 1
        if ours["state"] in ("complete", "pruned"):
            assert theirs.value == ours["value"]
        if ours["state"] == "pruned":
            assert theirs.intermediate_values == {1: 0.5, 2: math.inf, 4: 0.25}
        if ours["state"] == "failed":
            assert theirs.user_attrs["tune.reason"] == "out of luck"
    opt = loaded.trials[0].distributions["opt"]
    assert opt.choices == ("sgd", "adam", None, 1.5, True)
    assert loaded.trials[0].distributions["width"] == optuna.distributions.FloatDistribution(0, 1, step=0.25)


def test_its_table_is_the_one_we_show(exported):
    folder, _, trials = exported
    table = load(folder).trials_dataframe(attrs=("number", "value", "params", "state"))
    assert list(table["number"]) == [t["number"] for t in trials]
    assert list(table["state"]) == [STATES[t["state"]] for t in trials]
    for ours, value in zip(trials, table["value_loss"]):
        if ours["state"] == "complete":
            assert value == ours["value"]
    for name in ("lr", "layers"):
        for ours, value in zip(trials, table[f"params_{name}"]):
            if ours["state"] not in ("queued",):
                assert value == ours["params"][name]


def test_optuna_goes_on_with_it_and_it_comes_back(exported, tmp_path):
    folder, _, _ = exported
    file = tmp_path / "optuna.db"
    file.write_bytes((folder / "optuna.db").read_bytes())
    storage = f"sqlite:///{file}"
    loaded = optuna.load_study(study_name="s", storage=storage, sampler=optuna.samplers.TPESampler(seed=1))

    def objective(trial):
        params = {"lr": trial.suggest_float("lr", 1e-5, 0.1, log=True), "layers": trial.suggest_int("layers", 1, 5),
                  "width": trial.suggest_float("width", 0, 1, step=0.25), "batch": trial.suggest_int("batch", 32, 1024, log=True),
                  "opt": trial.suggest_categorical("opt", ["sgd", "adam", None, 1.5, True]),
                  "depth": trial.suggest_categorical("depth", [18, 34, 50]), "seed": trial.suggest_categorical("seed", [1])}
        if params["opt"] == "sgd":
            params["momentum"] = trial.suggest_float("momentum", 0, 0.99)
        trial.set_user_attr("note", "from Optuna")
        return value_of(params)

    loaded.optimize(objective, n_trials=6)
    assert loaded.trials[25].params["lr"] == 0.01, "what was queued here is tried there"
    answer = tune_json("import", file, "--optuna", "--as", "back", cwd=tmp_path)
    assert answer["study"] == "back" and answer["trials"] == 31 and answer["notes"] == []
    trials = trials_of(tmp_path, "back")
    for theirs, ours in zip(loaded.trials, trials):
        assert ours["params"] == theirs.params
        assert ours["value"] == theirs.value
        assert STATES[ours["state"]] == ("FAIL" if theirs.state.name == "RUNNING" else theirs.state.name)
        assert ours["start_ms"] == int(theirs.datetime_start.timestamp() * 1000)
    with server(tmp_path) as (_, url):
        study = study_of(url, "back")
        assert study["state"] == "paused" and study["best"]["value"] == loaded.best_value
        assert study["space"]["momentum"]["when"] == {"opt": "sgd"} or "momentum" in study["space"]
        path = "/api/2.0/tune/studies/back"
        assert call(url, f"{path}/resume", {})[0] == 200
        trial = call(url, f"{path}/ask", {})[1]["trials"][0]
        assert call(url, f"{path}/tell", {"number": trial["number"], "value": 1})[0] == 200
        run = call(url, f"/api/2.0/mlflow/runs/get?run_id={trials[-1]['run_id']}")[1]["run"]
        assert {"key": "note", "value": "from Optuna"} in run["data"]["tags"]
        report = call(url, f"{path}/replay")[1]
        assert report["given"] == 31 and report["compared"] == 1 and report["differing"] == 0


def test_a_study_made_by_optuna_becomes_one_of_ours(tmp_path):
    file = tmp_path / "made.db"
    storage = f"sqlite:///{file}"
    study = optuna.create_study(study_name="theirs", storage=storage, direction="maximize",
                                sampler=optuna.samplers.RandomSampler(seed=2))
    study.set_metric_names(["accuracy"])

    def objective(trial):
        kind = trial.suggest_categorical("kind", ["svm", "forest", "linear"])
        if kind == "svm":
            trial.suggest_float("c", 1e-3, 1e3, log=True)
        elif kind == "forest":
            trial.suggest_int("trees", 10, 100, step=10)
        shift = trial.suggest_float("shift", -1, 1)
        for step in range(3):
            trial.report(shift * step, step)
        if trial.number % 5 == 4:
            raise optuna.TrialPruned
        if trial.number == 6:
            raise ValueError
        return math.inf if trial.number == 7 else shift

    study.optimize(objective, n_trials=20, catch=ValueError)
    study.enqueue_trial({"kind": "linear", "shift": 0.5})
    optuna.create_study(study_name="other", storage=storage)
    nameless = tune("import", file, "--optuna", cwd=tmp_path)
    assert nameless.returncode == FAILED and "--study NAME" in nameless.stderr and "'theirs'" in nameless.stderr and "'other'" in nameless.stderr
    answer = tune_json("import", file, "--optuna", "--study", "theirs", cwd=tmp_path)
    assert answer["trials"] == 21
    assert any("'c' is taken to exist when kind is svm" in sentence for sentence in answer["notes"])
    shown = tune_json("show", "theirs", "--data", "tune-data", cwd=tmp_path)
    assert shown["study"]["metric"] == {"name": "accuracy", "goal": "max", "take": "last"}
    assert shown["study"]["space"]["trees"] == {"int": [10, 100], "step": 10, "when": {"kind": "forest"}}
    trials = shown["trials"]
    for theirs, ours in zip(study.trials[:20], trials):
        assert ours["params"] == theirs.params and STATES[ours["state"]] == theirs.state.name
        if theirs.number == 7:
            assert ours["value"] == "Infinity"
        elif theirs.state.name == "COMPLETE":
            assert ours["value"] == theirs.value
    assert trials[20]["state"] == "queued" and trials[20]["params"] == {"kind": "linear", "shift": 0.5}
    with server(tmp_path) as (_, url):
        pages = call(url, "/api/2.0/tune/studies/theirs/trials?fields=intermediate&max_results=5")[1]["trials"]
        assert pages[4]["intermediate"] == [[s, v] for s, v in study.trials[4].intermediate_values.items()]
    again = tune("import", file, "--optuna", "--study", "theirs", cwd=tmp_path)
    assert again.returncode == FAILED and "--as NAME" in again.stderr


def test_conditions_within_conditions_are_found(tmp_path):
    study = optuna.create_study(study_name="nested", storage=f"sqlite:///{tmp_path}/nested.db",
                                sampler=optuna.samplers.RandomSampler(seed=1))

    def objective(trial):
        if trial.suggest_categorical("model", ["forest", "svm"]) == "forest":
            return trial.suggest_int("depth", 1, 10)
        if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "poly":
            trial.suggest_int("degree", 2, 5)
        return trial.suggest_float("C", 1, 9)

    study.optimize(objective, n_trials=30)
    assert {len(t.params) for t in study.trials} == {2, 3, 4}
    answer = tune_json("import", "nested.db", "--optuna", cwd=tmp_path)
    assert answer["trials"] == 30 and "'degree' is taken to exist when kernel is poly" in answer["notes"]
    shown = tune_json("show", "nested", "--data", "tune-data", cwd=tmp_path)
    assert [t["params"] for t in shown["trials"]] == [t.params for t in study.trials]


def test_user_attributes_go_both_ways(tmp_path):
    attributes = {"owner": "me", "count": 3, "nested": {"a": [1, None]}, "text": "[no JSON", "flag": True}
    study = optuna.create_study(study_name="noted", storage=f"sqlite:///{tmp_path}/noted.db")
    for key, value in attributes.items():
        study.set_user_attr(key, value)

    def objective(trial):
        for key, value in attributes.items():
            trial.set_user_attr(key, value)
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=3)
    tune_json("import", "noted.db", "--optuna", cwd=tmp_path)
    done = tune("export", "again.db", "--optuna", "noted", "--data", "tune-data", cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    again = optuna.load_study(study_name="noted", storage=f"sqlite:///{tmp_path}/again.db")
    for noted in (again, *again.trials):
        assert {k: v for k, v in noted.user_attrs.items() if not k.startswith("tune.")} == attributes


def test_rules_go_both_ways(tmp_path):
    rules = {"derive": {"scaled": "x * sqrt(b)"}, "forbid": ["x > 0.9 and b > 2"], "initial": [{"x": 0.5, "b": 2}]}
    (tmp_path / "one").mkdir()
    with server(tmp_path / "one") as (_, url):
        call(url, "/api/2.0/tune/studies", {"name": "s", "metric": "loss", "budget": {"trials": 4}, **rules,
                                            "space": {"x": {"float": [0, 1]}, "b": {"int": [1, 8]}}})
        path = "/api/2.0/tune/studies/s"
        asked = call(url, f"{path}/ask", {"count": 3})[1]["trials"]
        assert call(url, f"{path}/tell", {"number": 0, "value": 1})[0] == 200
        assert call(url, f"{path}/enqueue", {"params": {"x": 0.25, "b": 1}})[0] == 200
        done = tune("export", "optuna.db", "--optuna", "s", "--server", url, cwd=tmp_path)
        assert done.returncode == OK, done.stderr
    loaded = load(tmp_path)
    assert loaded.trials[0].params == {"x": 0.5, "b": 2} and loaded.trials[3].state.name == "WAITING"
    assert loaded.trials[3].system_attrs["fixed_params"] == {"x": 0.25, "b": 1}
    tune_json("import", "optuna.db", "--optuna", cwd=tmp_path)
    shown = tune_json("show", "s", "--data", "tune-data", cwd=tmp_path)
    assert {key: shown["study"][key] for key in rules} == rules
    assert [t["params"] for t in shown["trials"][:3]] == [t["params"] for t in asked]


def test_several_objectives_and_constraints_go_both_ways(tmp_path):
    storage = f"sqlite:///{tmp_path}/front.db"
    study = optuna.create_study(study_name="front", storage=storage, directions=["minimize", "maximize"],
                                sampler=optuna.samplers.RandomSampler(seed=2))

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number != 5:
            trial.set_constraint("size", x - 0.8)
        return x, math.inf if trial.number == 3 else 1 - x

    study.optimize(objective, n_trials=12)
    answer = tune_json("import", "front.db", "--optuna", cwd=tmp_path)
    assert answer["trials"] == 12
    shown = tune_json("show", "front", "--data", "tune-data", cwd=tmp_path)
    assert [(m["name"], m["goal"]) for m in shown["study"]["metrics"]] == [("value_0", "min"), ("value_1", "max")]
    for theirs, ours in zip(study.trials, shown["trials"]):
        if theirs.number == 5:
            assert ours["state"] == "failed" and "constraints" in ours["reason"]
            continue
        assert ours["values"] == [v if math.isfinite(v) else "Infinity" for v in theirs.values]
        assert ours["constraints"] == {"size": theirs.params["x"] - 0.8}
        assert (ours["violation"] > 0) == (theirs.params["x"] > 0.8)
    done = tune("export", "again.db", "--optuna", "front", "--data", "tune-data", cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    again = optuna.load_study(study_name="front", storage=f"sqlite:///{tmp_path}/again.db")
    assert [d.name for d in again.directions] == ["MINIMIZE", "MAXIMIZE"]
    for before, after in zip(study.trials, again.trials):
        if before.number != 5:
            assert after.values == before.values and after.params == before.params
            assert after.system_attrs["constraints:size"] == before.system_attrs["constraints:size"]
    assert {t.number for t in again.best_trials} == {t.number for t in study.best_trials}


def test_constraints_of_a_function_decide_which_trial_is_best(tmp_path):
    sampler = optuna.samplers.TPESampler(constraints_func=lambda trial: (trial.params["x"] - 0.5, -1.0), seed=1)
    study = optuna.create_study(study_name="two words", storage=f"sqlite:///{tmp_path}/c.db", direction="maximize",
                                sampler=sampler)
    study.set_user_attr("owner", "me")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=20)
    done = tune("import", "c.db", "--optuna", cwd=tmp_path)
    assert done.returncode == OK and "tune resume 'two words' --data" in done.stdout
    shown = tune_json("show", "two words", "--data", "tune-data", cwd=tmp_path)
    for theirs, ours in zip(study.trials, shown["trials"]):
        assert ours["constraints"] == theirs.constraints
    best = tune_json("best", "two words", "--data", "tune-data", cwd=tmp_path)
    assert best["number"] == study.best_trial.number and best["value"] == study.best_value
    with server(tmp_path) as (_, url):
        run = call(url, f"/api/2.0/mlflow/runs/get?run_id={shown['study']['run_id']}")[1]["run"]
        assert {"key": "owner", "value": "me"} in run["data"]["tags"]
    # What Optuna resumes without its function comes back without values of the constraints.
    done = tune("export", "again.db", "--optuna", "two words", "--data", "tune-data", cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    again = optuna.load_study(study_name="two words", storage=f"sqlite:///{tmp_path}/again.db")
    again.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    back = tune("import", "again.db", "--optuna", "--as", "back", cwd=tmp_path)
    assert "2 complete trials lack the value of a constraint and count as failed" in back.stdout


def test_names_that_ours_may_not_have_are_changed_and_reported(tmp_path):
    study = optuna.create_study(study_name="s", storage=f"sqlite:///{tmp_path}/names.db",
                                sampler=optuna.samplers.RandomSampler(seed=1))
    study.set_metric_names(["Fehler ü"])
    names = {"learning rate": "learning_rate_2", "learning_rate": "learning_rate", "größe": "gr__e", "1st": "_1st"}

    def objective(trial):
        trial.set_constraint("ms %", trial.number - 3)
        return sum(trial.suggest_float(name, 0, 1) for name in names)

    study.enqueue_trial({"größe": 0.25})
    study.optimize(objective, n_trials=5)
    study.enqueue_trial({"learning rate": 0.75, "1st": 0.5})
    answer = tune_json("import", "names.db", "--optuna", cwd=tmp_path)
    for theirs, ours in names.items():
        assert (f"the parameter '{theirs}' is called '{ours}'" in answer["notes"]) == (theirs != ours)
    assert "the metric 'Fehler ü' is called 'Fehler _'" in answer["notes"]
    assert "the constraint 'ms %' is called 'ms _'" in answer["notes"]
    shown = tune_json("show", "s", "--data", "tune-data", cwd=tmp_path)
    for theirs, ours in zip(study.trials[:5], shown["trials"]):
        assert ours["params"] == {names[name]: value for name, value in theirs.params.items()}
        assert ours["constraints"] == {"ms _": theirs.number - 3}
    assert shown["trials"][0]["params"]["gr__e"] == 0.25
    assert {"learning_rate_2": 0.75, "_1st": 0.5}.items() <= shown["trials"][5]["params"].items()


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at\n" * 20)
    with sqlite3.connect(tmp_path / "foreign.db") as foreign:
        foreign.execute("CREATE TABLE studies (a)")
    foreign.close()
    optuna.create_study(study_name="old", storage=f"sqlite:///{tmp_path}/old.db")
    with sqlite3.connect(tmp_path / "old.db") as old:
        old.execute("UPDATE alembic_version SET version_num = 'v2.4.0.a'")
    old.close()
    optuna.create_study(study_name="empty", storage=f"sqlite:///{tmp_path}/empty.db")
    for name, words in (("missing.db", "no file"), ("text.db", "text.db"), ("foreign.db", "no studies of Optuna"),
                        ("old.db", "optuna storage upgrade"), ("empty.db", "has a parameter")):
        done = tune("import", name, "--optuna", cwd=tmp_path)
        assert done.returncode in (FAILED, USAGE) and words in done.stderr, (name, done.stderr)
    study = optuna.create_study(study_name="torn", storage=f"sqlite:///{tmp_path}/torn.db")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    for column, value in (("distribution_json", "{"), ("distribution_json", json.dumps({"name": 1, "attributes": []}))):
        with sqlite3.connect(tmp_path / "torn.db") as torn:
            torn.execute(f"UPDATE trial_params SET {column} = ?", (value,))
        torn.close()
        done = tune("import", "torn.db", "--optuna", cwd=tmp_path)
        assert done.returncode in (FAILED, USAGE) and "'x'" in done.stderr
    with server(tmp_path) as (_, url):
        fill(url, 1)
        (tmp_path / "there.db").write_text("mine")
        done = tune("export", "there.db", "--optuna", "s", "--server", url, cwd=tmp_path)
        assert done.returncode == FAILED and "exists" in done.stderr
        assert (tmp_path / "there.db").read_text() == "mine"
        done = tune("export", "new.db", "--optuna", "nobody", "--server", url, cwd=tmp_path)
        assert done.returncode == FAILED and "nobody" in done.stderr
        assert not list(tmp_path.glob("new.db*"))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A study of Optuna's with 4,096 trials: two by Optuna itself, the others copied from them."""
    folder = tmp_path_factory.mktemp("large")
    study = optuna.create_study(study_name="large", storage=f"sqlite:///{folder}/optuna.db")

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        for step in range(3):
            trial.report(x + step, step)
        return x

    study.optimize(objective, n_trials=2)
    with sqlite3.connect(folder / "optuna.db") as db:
        names = {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
                 for table in ("trials", "trial_params", "trial_values", "trial_intermediate_values")}
        for doubling in range(11):
            count = 2 << doubling
            for table, columns in names.items():
                moved = {"trial_id": f"trial_id + {count}", "number": f"number + {count}"}
                kept = [name for name in columns if name == "trial_id" or not name.endswith("_id")]
                db.execute(f"INSERT INTO {table} ({', '.join(kept + ['study_id'] * (table == 'trials'))}) SELECT "
                           + ", ".join([moved.get(name, name) for name in kept] + ["study_id"] * (table == "trials"))
                           + f" FROM {table}")
    assert len(optuna.load_study(study_name="large", storage=f"sqlite:///{folder}/optuna.db").trials) == 4096
    return folder / "optuna.db"


def runs_of(url, name):
    status, found = call(url, f"/api/2.0/mlflow/experiments/get-by-name?experiment_name={name}")
    if status != 200:
        return None, 0
    experiment = found["experiment"]
    runs = call(url, "/api/2.0/mlflow/runs/search", {"experiment_ids": [experiment["experiment_id"]], "max_results": 50000})
    return experiment["lifecycle_stage"], len(runs[1].get("runs", []))


def runs_so_far(folder):
    with contextlib.suppress(sqlite3.OperationalError):  # not made yet, or locked by who stands still
        with contextlib.closing(sqlite3.connect(f"file:{folder}/tune-data/tune.db?mode=ro", uri=True, timeout=0)) as db:
            return db.execute("SELECT count(*) FROM runs").fetchone()[0]
    return 0


@pytest.mark.parametrize("end", ["SIGKILL", "SIGINT"])
def test_an_import_that_breaks_off_leaves_nothing(large, tmp_path, end):
    for moment in (1, 600, 2500):
        for turn in range(20):
            folder = tmp_path / f"{moment}-{turn}"
            folder.mkdir()
            process = start("import", large, "--optuna", cwd=folder)
            # It stands still while it is looked at: on a slow machine it would be over before the signal came.
            while process.poll() is None and (process.send_signal(signal.SIGSTOP) or runs_so_far(folder) < moment):
                process.send_signal(signal.SIGCONT)
                time.sleep(0.02)
            process.send_signal(getattr(signal, end))
            process.send_signal(signal.SIGCONT)
            process.communicate()
            if process.returncode != OK:
                break  # else it was over before: this process was not run for that long
        assert process.returncode == (-signal.SIGKILL if end == "SIGKILL" else INTERRUPTED)
        with server(folder) as (_, url):
            assert call(url, "/api/2.0/tune/studies")[1].get("studies", []) == []
            assert runs_of(url, "large") in ((None, 0), ("deleted", 0))
        assert tune_json("import", large, "--optuna", cwd=folder)["trials"] == 4096
        with server(folder) as (_, url):
            assert study_of(url, "large")["counts"]["complete"] == 4096
            assert runs_of(url, "large") == ("active", 4097)

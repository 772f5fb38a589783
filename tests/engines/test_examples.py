"""What Optuna, optuna-distributed and Hyperopt show first, with one import or argument changed: the texts of their packages as installed."""

import importlib.metadata
import re
import subprocess
import sys

import hyperopt
import optuna
import pytest

from tune_client import TuneTrials, load_study
from tune_client.optuna import TuneStorage


def readme(package):
    """The Python of a package's page."""
    try:
        text = importlib.metadata.metadata(package).get_payload()
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"there is no {package}")
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


def replaced(text, **changes):
    """Each change has to have something to change."""
    for old, new in changes.values():
        assert old in text, f"the example has no {old!r} any more"
        text = text.replace(old, new)
    return text


def test_optunas_first_example(url, monkeypatch):
    """README of optuna: "Sample code with scikit-learn", on the server; its data set would be downloaded."""
    import sklearn.datasets
    import sklearn.ensemble
    import sklearn.model_selection
    import sklearn.svm

    monkeypatch.setenv("TUNE_SERVER", url)
    made = sklearn.datasets.make_regression(80, 4, random_state=0)
    monkeypatch.setattr(sklearn.datasets, "fetch_california_housing", lambda return_X_y: made, raising=False)
    known = {"TuneStorage": TuneStorage}
    exec(replaced(readme("optuna")[0], storage=("optuna.create_study()", "optuna.create_study(storage=TuneStorage())"),
                  trials=("n_trials=100", "n_trials=12")), known)
    study = known["study"]
    assert len(study.trials) == 12 and {trial.state for trial in study.trials} == {optuna.trial.TrialState.COMPLETE}
    assert load_study(study.study_name, url).best_value == study.best_value


def test_optunas_example_of_a_storage(url, monkeypatch):
    """README of optuna: that of the dashboard, whose storage="sqlite:///db.sqlite3" becomes the server."""
    monkeypatch.setenv("TUNE_SERVER", url)
    [text] = [text for text in readme("optuna") if "sqlite:///" in text]
    known = {"TuneStorage": TuneStorage}
    exec(replaced(text, storage=('"sqlite:///db.sqlite3"', "TuneStorage()"), trials=("n_trials=100", "n_trials=30")), known)
    again = optuna.load_study(study_name=known["study"].study_name, storage=TuneStorage(url))
    assert len(again.trials) == 30 and again.best_value == known["study"].best_value


@pytest.mark.parametrize("client", ["None", "Client(n_workers=2, threads_per_worker=1)"])
def test_optuna_distributed(url, tmp_path, monkeypatch, client):
    """README of optuna-distributed, on this machine's processes and on a cluster of Dask."""
    [text] = readme("optuna-distributed")
    text = replaced(text, storage=("optuna.create_study()", "optuna.create_study(study_name=sys.argv[1], storage=TuneStorage())"),
                    client=("client = None", f"client = {client}"), pause=("random.uniform(1.0, 2.0)", "random.uniform(0.1, 0.2)"))
    (tmp_path / "script.py").write_text("import sys\nfrom tune_client.optuna import TuneStorage\n" + text)
    name = "distributed-" + ("here" if client == "None" else "dask")
    monkeypatch.setenv("TUNE_SERVER", url)
    done = subprocess.run([sys.executable, "script.py", name], cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    study = load_study(name, url)
    assert study.info()["counts"]["complete"] == 10 and str(study.best_value) in done.stdout


def test_hyperopts_first_example(url):
    """README of hyperopt: "run your first example", with trials=TuneTrials(...)."""
    [text] = [text for text in readme("hyperopt") if "fmin(" in text]
    known = {"trials": TuneTrials(parallelism=2, server=url)}
    exec(replaced(text, trials=("max_evals=100)", "max_evals=20, trials=trials, verbose=False)")), known)
    best, trials = known["best"], known["trials"]
    assert len(trials) == 20 and trials.argmin == best
    assert known["objective"](hyperopt.space_eval(known["space"], best)) == min(trials.losses())

"""The type hints of clients/python/tune_client: clean under mypy --strict, and of use to who imports it."""

import pathlib
import subprocess
import sys

from conftest import CLIENT

# Whether a library is installed, and has hints, must not change the verdict.
CONFIG = """
[mypy]
strict = True
[mypy-keras.*,lightgbm.*,xgboost.*,pandas.*,hyperopt.*,optuna.*,mlflow.*,pyspark.*,ray.*,cloudpickle.*,pyarrow.*,numpy.*,tensorflow.*]
follow_imports = skip
ignore_missing_imports = True
"""

USER = """
import tune_client as tune
from typing_extensions import assert_type

def objective(trial: tune.Trial) -> float:
    assert_type(trial.suggest_float("x", 0, 1), float)
    assert_type(trial.suggest_int("n", 0, 1), int)
    assert_type(trial.suggest_categorical("c", ["a", "b"]), str)
    assert_type(trial.should_prune(), bool)
    trial.set_user_attr("note", 1)
    return 1.0

def note(study: tune.Study, trial: tune.FrozenTrial) -> None:
    assert_type(trial.value, float | None)
    assert_type(trial.state, tune.TrialState)

study = tune.create_study("s", space={}, direction="minimize")
study.optimize(objective, n_trials=3, callbacks=[note], catch=(ValueError,), gc_after_trial=True, show_progress_bar=True)
assert_type(study.best_value, float | None)
"""


def mypy(folder, *words):
    (folder / "mypy.ini").write_text(CONFIG)
    return subprocess.run([sys.executable, "-m", "mypy", "--config-file", folder / "mypy.ini", "--cache-dir", folder / "cache",
                           *words], capture_output=True, text=True, timeout=280, cwd=folder, env={"MYPYPATH": str(CLIENT)})


def test_the_client_is_clean_under_strict(tmp_path):
    packages = [CLIENT / name for name in ("tune_client", "tune_spark", "tune_ray")]
    done = mypy(tmp_path, *packages)
    assert done.returncode == 0, done.stdout + done.stderr
    count = sum(len(list(package.rglob("*.py"))) for package in packages)
    assert f"no issues found in {count} source files" in done.stdout


def test_a_users_mistakes_are_found(tmp_path):
    assert (CLIENT / "tune_client" / "py.typed").is_file()
    script = pathlib.Path(tmp_path) / "user.py"
    script.write_text(USER)
    done = mypy(tmp_path, script)
    assert done.returncode == 0, done.stdout + done.stderr
    script.write_text(USER + "study.optimise(objective)\nstudy.optimize(objective, n_trials='3')\nstudy.best_value + 1\n")
    done = mypy(tmp_path, script)
    assert done.returncode == 1 and "Found 3 errors" in done.stdout, done.stdout

"""docs/coming_from.md: the blocks of code that stand on the page are what runs here."""

import ast
import os
import re
import subprocess
import sys

import optuna
import pytest
from conftest import CLIENT

from study_support import BIN_DIR, ROOT, server

PAGE = (ROOT / "docs" / "coming_from.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
# The greatest value of the best of 30 draws: lr is off by less than a decade, and a run in which it never is is one of 2^30.
VALUE_MAX = 1 + 0.4 + 0.5 ** 4


def blocks_of(section, kind):
    """The section's blocks of a language, in their order."""
    return [text for language, text in BLOCK.findall(SECTIONS[section]) if language == kind]


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """A folder with what the page says lies there, and a server; gives a function that runs a script or commands in it."""
    intro = PAGE.partition("\n## ")[0]
    [(_, work)] = BLOCK.findall(intro)
    assert work.startswith("# work.py")
    (tmp_path / "work.py").write_text(work)
    (tmp_path / "tune_client").symlink_to(CLIENT / "tune_client")
    (tmp_path / "hyperopt_space.py").symlink_to(CLIENT / "hyperopt_space.py")
    known = {**os.environ, "PATH": f"{BIN_DIR}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"):
        known.pop(name, None)

    def run(text, *, language="python", **more):
        if language == "python":
            (tmp_path / "script.py").write_text(text)
            words = [sys.executable, "script.py"]
        else:
            words = ["bash", "-euc", text]
        done = subprocess.run(words, cwd=tmp_path, env={**known, **more}, capture_output=True, text=True, timeout=250)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def check_best(output):
    """The last line: a value and the parameters that gave it."""
    value, _, params = output.strip().splitlines()[-1].partition(" ")
    point = ast.literal_eval(re.sub(r"np\.\w+\((.*?)\)", r"\1", params))
    assert set(point) == {"lr", "layers"} and 1e-5 <= float(point["lr"]) <= 0.1 and 1 <= int(point["layers"]) <= 4
    return float(value)


def test_the_page_has_a_pair_for_each(scene):
    assert list(SECTIONS) == ["MLflow", "Optuna", "Hyperopt", "Ray Tune", "Weights & Biases"]
    for name, text in SECTIONS.items():
        assert re.search(r"^Theirs", text, re.M) and re.search(r"^Ours", text, re.M), name
        for block in blocks_of(name, "python"):
            compile(block, name, "exec")
        languages = {language for language, _ in BLOCK.findall(text)}
        assert languages <= {"python", "sh", "yaml"} and text.count("```") == 2 * len(BLOCK.findall(text)), name


@pytest.mark.timeout(600)  # five processes that import MLflow, which a busy machine takes a minute for
def test_mlflow(scene, tmp_path):
    theirs, ours = blocks_of("MLflow", "python")
    [commands] = blocks_of("MLflow", "sh")
    (tmp_path / "server").mkdir()
    with server(tmp_path / "server") as (_, url):
        assert 0 < check_best(scene(theirs, MLFLOW_TRACKING_URI=url))
    (tmp_path / "train.py").write_text(ours)
    said = scene(commands.replace("tune run ", "tune run --port 0 "), language="sh")
    assert re.search(r"loss", said) and "lr" in said
    shown = scene("tune show net --json", language="sh")
    assert shown.count('"complete"') >= 4, shown
    assert "mlflow.log_params(vars(args))" in ours and '"failed": 0' in shown, shown


def test_optuna(scene, tmp_path):
    theirs, ours = blocks_of("Optuna", "python")
    objectives = [re.search(r"^def objective.*?^    return loss\n", text, re.M | re.S).group() for text in (theirs, ours)]
    assert objectives[0].replace("optuna.", "tune.") == objectives[1], "the page says that it is the same"
    assert check_best(scene(theirs)) < VALUE_MAX
    with server(tmp_path) as (_, url):
        assert check_best(scene(ours, TUNE_SERVER=url)) < VALUE_MAX


def test_a_study_of_optunas_comes_along_as_the_page_says(scene, tmp_path):
    """Of a file that holds two."""
    for name in ("net", "other"):
        study = optuna.create_study(study_name=name, storage=f"sqlite:///{tmp_path}/study.db")
        study.optimize(lambda trial: trial.suggest_float("lr", 0, 1), n_trials=3 if name == "net" else 1)
    [command] = re.findall(r"`(tune import study\.db [^`]*)`", SECTIONS["Optuna"])
    assert command.endswith(" NAME")
    scene(command.replace("NAME", "net"), language="sh")
    assert scene("tune show net --json", language="sh").count('"complete"') >= 3
    assert "other" not in scene("tune ls", language="sh")


def test_hyperopt(scene, tmp_path):
    theirs, ours = blocks_of("Hyperopt", "python")
    [commands] = blocks_of("Hyperopt", "sh")
    assert check_best(scene(theirs)) < VALUE_MAX
    with server(tmp_path) as (_, url):
        assert check_best(scene(ours, TUNE_SERVER=url)) < VALUE_MAX
    (tmp_path / "theirs.py").write_text(theirs)
    scene(commands, language="sh")
    space = (tmp_path / "study.yaml").read_text()
    assert "lr" in space and "layers" in space


def test_ray(scene, tmp_path):
    theirs, ours = blocks_of("Ray Tune", "python")
    with server(tmp_path) as (_, url):
        assert check_best(scene(ours, TUNE_SERVER=url)) < VALUE_MAX
    compile(theirs, "theirs.py", "exec")  # tests/engines runs it, where Ray is


def test_weights_and_biases(scene, tmp_path):
    [sweep] = blocks_of("Weights & Biases", "yaml")
    theirs, ours = blocks_of("Weights & Biases", "python")
    [commands] = blocks_of("Weights & Biases", "sh")
    compile(theirs, "theirs.py", "exec")
    (tmp_path / "sweep.yaml").write_text(sweep)
    (tmp_path / "train.py").write_text(ours)
    scene(commands.replace("tune run ", "tune run --port 0 "), language="sh")
    shown = scene("tune show net --json", language="sh")
    assert shown.count('"complete"') >= 10, shown

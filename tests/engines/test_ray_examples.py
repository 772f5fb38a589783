"""ray.tune's own examples with one import changed: those of ray/tune/examples and of docstrings, as they are installed."""

import ast
import inspect
import json
import pathlib
import re
import textwrap

import pytest
from conftest import long
from ray_support import no_cluster, ours, run_example  # noqa: F401 (a fixture)

pytest.importorskip("ray")

import tune_client as client  # noqa: E402
from tune_ray import tune  # noqa: E402


def studies(url):
    return {study["name"]: study for study in client._server.Server(url).call("/studies")["studies"]}


def config_in(shown, what):
    return ast.literal_eval(shown.partition(what)[2].strip().splitlines()[0])


def test_asha(url, tmp_path):
    """docs.ray.io/en/latest/tune/examples/includes/async_hyperband_example.html"""
    config = config_in(run_example("async_hyperband_example", url, tmp_path), "Best hyperparameters found: ")
    assert set(config) == {"steps", "width", "height"} and config["steps"] == 100
    info = client.load_study("asynchyperband_test", url).info()
    assert info["counts"]["complete"] == 20 and info["pruner"] == info["pruner"] | {"type": "asha", "min": 5, "max": 100}


def test_checkpoints(url, tmp_path):
    """docs.ray.io/en/latest/tune/examples/includes/custom_func_checkpointing.html"""
    shown = run_example("custom_func_checkpointing", url, tmp_path)
    checkpoint = pathlib.Path(re.search(r"Best checkpoint: +Checkpoint\(path=(.*)\)", shown).group(1))
    assert json.loads((checkpoint / "checkpoint.json").read_text()) == {"step": 0} and 10 <= config_in(shown, "hyperparameters: ")["width"] < 100


@long
def test_hyperband(url, tmp_path):
    """docs.ray.io/en/latest/tune/examples/includes/hyperband_function_example.html"""
    assert 0 <= config_in(run_example("hyperband_function_example", url, tmp_path), "found were: ")["height"] <= 100


@long
@pytest.mark.parametrize("name", ["mnist_pytorch", "mnist_pytorch_trainable"])
def test_mnist(url, tmp_path, absent_cuda, name):
    """docs.ray.io/en/latest/tune/examples/includes/mnist_pytorch.html, which the guide "Getting started" is made of, and with a class."""
    if not absent_cuda:
        pytest.skip("there is no torch")
    lr, momentum = re.search(r"Best config is:.*'lr': ([\d.e-]+), 'momentum': ([\d.]+)", run_example(name, url, tmp_path)).groups()
    assert 1e-4 <= float(lr) <= 0.1 and 0.1 <= float(momentum) <= 0.9


def blocks(thing):
    """The Python in the docstring of a class or function: what stands below its directives, and what a prompt precedes."""
    lines = inspect.getdoc(thing).splitlines()
    found, current = [], None
    for line in [*lines, "."]:
        if re.match(r"\s*\.\. (code-block:: python|testcode::)$", line):
            current = (len(line) - len(line.lstrip()), [])
        elif current is not None and line.strip() and len(line) - len(line.lstrip()) <= current[0]:
            found.append(textwrap.dedent("\n".join(current[1])))
            current = None
        elif current is not None:
            current[1].append(line)
    prompts = [line.strip()[4:] for line in lines if re.match(r"\s*(>>>|\.\.\.)( |$)", line)]
    return found, "\n".join(prompts)


def runs(text, known):
    exec(compile(ours(text), "docstring", "exec"), known)
    return known


def test_docstrings_of_tuner_and_result_grid(url, tmp_path, monkeypatch, no_cluster):
    theirs = pytest.importorskip("ray.tune")
    monkeypatch.setenv("TUNE_SERVER", url)
    monkeypatch.setenv("HOME", str(tmp_path))
    (run, restore), _ = blocks(theirs.Tuner)
    known = runs(run.replace("import ray.tune", "from tune_ray import tune").replace("ray.tune.", "tune."), {"Tuner": tune.Tuner})
    assert [result.config["lr"] for result in known["results"]] == [0.001, 0.01]
    assert [result.metrics["accuracy"] for result in runs(restore, known)["tuner"].get_results()] == [0.8, 0.8]

    (example, *_), prompts = blocks(theirs.ResultGrid)
    known = runs(example.replace("num_samples=10", "num_samples=20"), {})
    errors = known["result_grid"].errors
    assert len(known["result_grid"]) == 20 and 0 < len(errors) < 20 and all("This is an error" in str(error) for error in errors)
    first = re.search(r"^best_result = .*?\)$", prompts.replace("# doctest: +SKIP", ""), re.M | re.S).group()
    assert runs(first, known)["best_result"].metrics["loss"] == 0.0


def test_docstrings_of_stoppers(url, tmp_path, monkeypatch, no_cluster):
    stopper = pytest.importorskip("ray.tune.stopper.stopper")
    monkeypatch.setenv("TUNE_SERVER", url)
    monkeypatch.setenv("HOME", str(tmp_path))
    _, prompts = blocks(stopper.Stopper)
    grid = runs(prompts, {})["result_grid"]
    assert len(grid) == 2 and all(1 <= len(result.history) < 20 for result in grid), "ended after two seconds"
    _, prompts = blocks(stopper.CombinedStopper)
    prompts = prompts.replace("from ray.tune.stopper", "from tune_ray.tune.stopper").replace("    TrialPlateauStopper,\n", "", 1)
    from ray.tune.stopper import TrialPlateauStopper

    grid = runs(prompts, {"TrialPlateauStopper": TrialPlateauStopper})["result_grid"]
    assert len(grid[0].history) <= 10


def test_docstrings_of_with_parameters(url, tmp_path, monkeypatch, no_cluster):
    theirs = pytest.importorskip("ray.tune")
    monkeypatch.setenv("TUNE_SERVER", url)
    monkeypatch.setenv("HOME", str(tmp_path))
    filled_in = {"HugeDataset": lambda download: [3, 2, 1], "update_model": lambda sample: sample, "Tuner": tune.Tuner, "done": "done",
                 "__name__": "__main__"}
    (function, kind, *_), _ = blocks(theirs.with_parameters)
    for text in (function, kind):
        [result] = runs(text, dict(filled_in))["tuner"].fit()
        assert result.error is None and [row["loss"] for row in result.history] == [3, 2, 1]


def test_the_quick_start(url, tmp_path, monkeypatch, no_cluster):
    """As that of docs.ray.io/en/latest/tune/index.html: a function that returns, no metric in TuneConfig."""
    def objective(config):
        return {"score": config["a"] ** 2 + config["b"]}

    monkeypatch.setenv("TUNE_SERVER", url)
    monkeypatch.setenv("HOME", str(tmp_path))
    grid = tune.Tuner(objective, param_space={"a": tune.grid_search([0.001, 0.01, 0.1, 1.0]), "b": tune.choice([1, 2, 3])}).fit()
    assert len(grid) == 4
    best = grid.get_best_result(metric="score", mode="min")
    assert best.metrics["score"] == min(result.metrics["score"] for result in grid) == best.config["a"] ** 2 + best.config["b"]

"""`tune space` on what the packages write, and the published schema against a validator."""

import glob
import importlib.util
import json
import os
import re
import subprocess
import sys

import jsonschema_rs
import pytest
import yaml

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BIN_DIR = os.environ.get("TUNE_BIN_DIR", os.path.join(ROOT, "build", "release", "bin"))
TUNE = os.path.join(BIN_DIR, "tune")

RECORDED = os.path.join(ROOT, "tests", "e2e", "hyperopt_space.json")


class Loader(yaml.SafeLoader):
    """YAML 1.2's scalars, as tune reads them: `on` is a text, 1e-5 a number."""


BOOL, FLOAT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:float"
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag not in (BOOL, FLOAT)]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(BOOL, re.compile("^(true|false)$"), list("tf"))
NUMBER = re.compile(r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$")
Loader.add_implicit_resolver(FLOAT, NUMBER, list("-+.0123456789"))


def load(text):
    return yaml.load(text, Loader=Loader)


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def tune(*words, ok=True):
    done = run(TUNE, *words)
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return done.stdout if ok else done.stderr


@pytest.fixture(scope="module")
def validator():
    return jsonschema_rs.Draft7Validator(json.loads(tune("schema")))


def translated(tmp_path, document, *flags):
    path = tmp_path / "space.json"
    path.write_text(json.dumps(document))
    return tune("space", str(path), *flags)


def accepts(tmp_path, study):
    """Whether tune reads the study; what a plan needs beyond it is added."""
    if isinstance(study, dict):
        study = {"metric": "loss", "space": {"x": "0..1"}, **study}
    path = tmp_path / "study.json"
    path.write_text(json.dumps(study))
    return run(TUNE, "plan", str(path)).returncode == 0


def test_optuna_distributions(tmp_path, validator):
    from optuna import distributions as d

    made = {
        "lr": d.FloatDistribution(1e-5, 1e-1, log=True),
        "mix": d.FloatDistribution(0, 1, step=0.25),
        "layers": d.IntDistribution(1, 9, step=2),
        "width": d.IntDistribution(1, 64, log=True),
        "opt": d.CategoricalDistribution(["sgd", "adam", None, 3, True]),
    }
    stored = {name: d.distribution_to_json(one) for name, one in made.items()}
    study = load(translated(tmp_path, stored))
    assert validator.is_valid(study)
    assert study["space"]["layers"] == {"int": [1, 9], "step": 2}
    assert study["space"]["mix"] == {"float": [0.0, 1.0], "step": 0.25}
    assert study["space"]["opt"] == {"choice": ["sgd", "adam", None, 3, True]}
    assert study["space"]["lr"]["float"] == [1e-5, 0.1]


def test_hyperopt_space_as_recorded(tmp_path, validator):
    """What hyperopt_space.py prints with hyperopt 0.3.0 (see below)."""
    with open(RECORDED, encoding="utf-8") as recorded:
        study = load(translated(tmp_path, json.load(recorded)))
    assert validator.is_valid(study)
    assert study["space"]["model"]["choice"] == ["svm", "forest"]
    assert study["space"]["depth"] == {"int": [1, 9], "when": {"model": "forest"}}
    assert study["space"]["kind"]["weights"] == [0.2, 0.8]
    assert study["space"]["width"]["when"] == {"model": "svm", "kernel": "rbf"}


def hyperopt_space():
    from hyperopt import hp

    rbf = {"k": "rbf", "width": hp.lognormal("width", 0, 1)}
    kernel = hp.choice("kernel", [{"k": "linear"}, rbf])
    svm = {"type": "svm", "C": hp.loguniform("C", -4, 4), "kernel": kernel}
    forest = {"type": "forest", "depth": hp.uniformint("depth", 1, 9), "n": hp.randint("n", 5)}
    return {
        "model": hp.choice("model", [svm, forest]),
        "kind": hp.pchoice("kind", [(0.2, "a"), (0.8, "b")]),
        "step": hp.quniform("step", 0, 1, 0.1),
        "pair": [hp.normal("z", 0, 2), hp.uniform("u", -1, 1)],
        "folds": 5,
    }


def test_hyperopt_space_of_the_package():
    script = os.path.join(ROOT, "clients", "python", "hyperopt_space.py")
    spec = importlib.util.spec_from_file_location("hyperopt_space", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with open(RECORDED, encoding="utf-8") as recorded:
        assert module.tree(hyperopt_space()) == json.load(recorded)
    from hyperopt import hp

    with pytest.raises(module.NotCarriedOver):
        module.tree(hp.uniform("x", 0, 1) + 1)
    done = run(sys.executable, script, __file__ + ":hyperopt_space")
    assert done.returncode == 0, done.stderr


def studies_of_docs():
    """Every block of YAML in the READMEs that has a study's keys, and the examples' study files."""
    found = []
    for path in glob.glob(os.path.join(ROOT, "**", "*.md"), recursive=True):
        if "node_modules" in path or "/build/" in path or "/.venv/" in path:
            continue
        with open(path, encoding="utf-8") as file:
            for block in re.findall(r"```yaml\n(.*?)```", file.read(), re.S):
                study = load(block)
                if isinstance(study, dict) and {"space", "sampler", "pruner"} & set(study):
                    found.append((os.path.relpath(path, ROOT), study))
    for path in glob.glob(os.path.join(ROOT, "examples", "**", "*.yaml"), recursive=True):
        with open(path, encoding="utf-8") as file:
            study = load(file)
        if isinstance(study, dict) and "space" in study:
            found.append((os.path.relpath(path, ROOT), study))
    return found


def test_studies_of_the_docs_validate(validator):
    studies = studies_of_docs()
    assert len(studies) >= 2
    for path, study in studies:
        faults = [f"{list(e.instance_path)}: {e.message}" for e in validator.iter_errors(study)]
        assert not faults, (path, faults)


GOOD = [
    {"space": {"x": {"float": [0, 1], "normal": [0.5, 1]}, "y": {"normal": [0, 1]}}},
    {"space": {"o": {"choice": ["a", "b"], "weights": [1, 2]}, "x": "0..1?o=a"}},
    {"space": {"o": {"choice": ["a", "b"]}, "x": {"int": [1, 4], "when": {"o": "a"}}}},
    {"forbid": "x > 0.5", "derive": {"y": "x * 2", "z": 3}, "initial": [{"x": 0.25}]},
    {"forbid": None, "derive": None, "initial": None, "pruner": None},
    {"sampler": "tpe"},
    {"pruner": {"type": "any", "of": ["median", {"type": "threshold", "upper": 3}]}},
    {"sampler": {"type": "gp", "startup": 3, "seed": 7, "duplicates": "reuse"}},
    {"pruner": {"type": "patience", "wait": 3, "of": "median"}},
    {"budget": {"cost": {"of": "seconds", "max": "1h"}, "no_progress": 5, "target": 0.1}},
    {"warm_start": {"trials": [{"params": {"x": 0.5}, "value": 1}]}},
    {"budget": {"trials": 3, "time": "1h30m", "parallel": 2}, "retry": {"max": 1, "on": ["oom"]}},
    {"metric": ["a", {"name": "b", "goal": "max"}], "sampler": {"type": "nsga2"}},
    {"sampler": {"type": "tpe", "constraints": "each"}, "constraints": [{"name": "ms", "max": 20}]},
    {"sampler": {"type": "pbt", "population": 4, "interval": 5, "warmup": 9, "max": 40, "quantile": 0.5,
                 "resample_probability": 0, "factors": [0.5, 2]}},
    {"constraints": [{"name": "latency_ms", "max": 20}]},
    {"sampler": {"type": "tpe", "preset": "watanabe", "window": 100}},
    {"metric": {"name": "a", "goal": "max", "take": "mean_last_5"}, "grace": 3.5, "timeout": "90s"},
    {"scrape": ["loss=([0-9.]+)", {"name": "a", "pattern": "b=(.)"}]},
    {"env": {"A": 1}, "command": "python a {x}"},
]

# Refused by the reader and by the schema.
BAD = [
    {"smapler": "tpe"},
    {"version": 2},
    {"space": {"x": {"float": [0, 1], "stp": 1}}},
    {"space": {"x": {"float": [0]}}},
    {"space": {"x": {"uniform": [0, 1]}}},
    {"space": {"x": {"choice": []}}},
    {"space": {"1x": {"float": [0, 1]}}},
    {"space": {"x": 3}},
    {"space": [1]},
    {"space": {"x": {"float": [0, 1], "step": -1}}},
    {"space": {"x": {"choice": [1, 2], "weights": [0, 1]}}},
    {"forbid": [3]},
    {"derive": ["x"]},
    {"initial": {"x": 1}},
    {"sampler": "tpe2"},
    {"sampler": {"type": "grid", "startup": 3}},
    {"sampler": {"type": "tpe", "seed": -1}},
    {"pruner": {"type": "asha", "eta": 1}},
    {"pruner": {"type": "percentile"}},
    {"pruner": {"type": "any"}},
    {"budget": {"trials": 0}},
    {"budget": {"time": "soon"}},
    {"budget": {"hours": 1}},
    {"retry": {"on": ["bad_luck"]}},
    {"metric": {"name": "a", "goal": "maxx"}},
    {"metric": []},
    {"constraints": [{"name": "latency_ms"}]},
    {"sampler": {"type": "nsga2", "startup": 3}},
    {"sampler": {"type": "pbt", "population": 1}},
    {"sampler": {"type": "tpe", "constraints": "both"}},
    {"sampler": {"type": "pbt", "factors": [0]}},
    {"sampler": {"type": "pbt", "duplicates": "allow"}},
    {"metric": {"name": "a", "take": "first"}},
    {"scrape": [1]},
    {"env": ["A"]},
    {"env": {"A": [1]}},
    {"timeout": "-3s"},
    {"study": "a/b"},
    {"command": []},
]

# What only the reader can see: a schema has no names, no order of numbers, no expressions.
SEMANTIC = [
    {"space": {"x": {"float": [1, 0]}}},
    {"space": {"x": {"float": [0, 1], "log": True}}},
    {"space": {"x": {"float": [0, 1], "when": {"y": 1}}}},
    {"space": {"x": {"choice": [1, 1]}}},
    {"space": {"x": {"choice": [1, 2], "weights": [1]}}},
    {"space": {"x": {"normal": [9, 1], "low": 0, "high": 1}}},
    {"forbid": ["x >"]},
    {"forbid": ["x >= 0"]},
    {"derive": {"a": "b", "b": "a"}},
    {"initial": [{"x": 7}]},
    {"pruner": {"type": "asha", "min": 9, "max": 3}},
    {"pruner": {"type": "threshold"}},
    {"scrape": ["loss=("]},
    {"command": "python {nothing}"},
]


@pytest.mark.parametrize("study", GOOD, ids=str)
def test_both_accept(tmp_path, validator, study):
    assert accepts(tmp_path, study)
    assert validator.is_valid(study), [e.message for e in validator.iter_errors(study)]


@pytest.mark.parametrize("study", BAD, ids=str)
def test_both_refuse(tmp_path, validator, study):
    assert not accepts(tmp_path, study)
    assert not validator.is_valid(study)


@pytest.mark.parametrize("study", SEMANTIC, ids=str)
def test_only_the_reader_refuses(tmp_path, validator, study):
    assert not accepts(tmp_path, study)
    assert validator.is_valid(study)


def test_unknown_systems_and_files(tmp_path):
    path = tmp_path / "what.yaml"
    path.write_text("a: {b: 1}\n")
    assert "--from" in tune("space", str(path), ok=False)
    assert "known: optuna, wandb" in tune("space", str(path), "--from", "ray", ok=False)
    assert "no-such-file" in tune("space", str(tmp_path / "no-such-file"), ok=False)

"""Writes importance.json: random studies and the importances that Optuna 5.0.0 finds in them.

    .venv/bin/python tests/tuner/golden/make_importance_golden.py

PED-ANOVA has no chance in it and is compared digit by digit; fANOVA is compared by what its forests agree on.
"""

import json
import math
import pathlib
import random
import warnings

import optuna
from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")

FLOATS = {"a": {"float": [0, 1]}, "b": {"float": [-5, 5]}, "c": {"float": [0, 2]}}
MIXED = {
    "lr": {"float": [1e-5, 0.1], "log": True},
    "layers": {"int": [1, 6]},
    "units": {"int": [4, 1000], "log": True},
    "drop": {"float": [0, 0.5], "step": 0.1},
    "batch": {"int": [32, 4096], "step": 32},
    "opt": {"choice": ["sgd", "adam", "lion"]},
    "one": {"int": [3, 3]},
}
CONDITIONAL = {
    "model": {"choice": ["tree", "net"]},
    "depth": {"int": [1, 30], "when": {"model": "tree"}},
    "width": {"float": [0, 1], "when": {"model": "net"}},
    "noise": {"float": [0, 1]},
}


def suggest(trial, name, spec):
    if "choice" in spec:
        return trial.suggest_categorical(name, spec["choice"])
    kind = "float" if "float" in spec else "int"
    call = trial.suggest_float if kind == "float" else trial.suggest_int
    step = {"step": spec["step"]} if "step" in spec else {}
    return call(name, *spec[kind], log=spec.get("log", False), **step)


def mixed(v):
    return math.log10(v["lr"] / 1e-3) ** 2 + 0.1 * v["layers"] + {"sgd": 1, "adam": 0, "lion": 0.4}[v["opt"]] + v["drop"]


def conditional(v):
    return 1 + v["depth"] / 30 if v["model"] == "tree" else v["width"]


CASES = [
    ("floats", FLOATS, "minimize", lambda v: v["a"] + 0.2 * v["b"] ** 2, 200, None),
    ("floats_up", FLOATS, "maximize", lambda v: v["a"] * 3 - v["c"], 57, None),
    ("mixed", MIXED, "minimize", mixed, 300, None),
    ("rounded", MIXED, "minimize", lambda v: round(mixed(v)), 120, None),
    ("few", MIXED, "minimize", mixed, 3, None),
    ("tpe", MIXED, "minimize", mixed, 150, "tpe"),
    ("conditional", CONDITIONAL, "minimize", conditional, 150, None),
]


def record(name, space, direction, objective, count, sampler):
    chosen = optuna.samplers.TPESampler(seed=5) if sampler else optuna.samplers.RandomSampler(seed=len(name))
    study = optuna.create_study(direction=direction, sampler=chosen)
    broken = random.Random(1)

    def run(trial):
        values = {}
        for parameter, spec in space.items():
            if all(values.get(key) == value for key, value in spec.get("when", {}).items()):
                values[parameter] = suggest(trial, parameter, spec)
        return math.inf if broken.random() < 0.03 else objective(values)

    study.optimize(run, n_trials=count)
    importances = PedAnovaImportanceEvaluator().evaluate(study)
    fanova = FanovaImportanceEvaluator(seed=3).evaluate(study) if name == "floats" else {}
    return {
        "name": name,
        "space": space,
        "goal": "min" if direction == "minimize" else "max",
        "trials": [{"params": t.params, "value": t.value if math.isfinite(t.value) else None} for t in study.trials],
        "ped_anova": importances,
        "fanova": fanova,
    }


target = pathlib.Path(__file__).with_name("importance.json")
target.write_text(json.dumps([record(*case) for case in CASES]) + "\n")
print(f"{target}: {target.stat().st_size} bytes")

"""Writes the golden files of this folder: trials of Optuna's TPESampler, to be replayed exactly.

    python3 -m venv /tmp/optuna && /tmp/optuna/bin/pip install optuna==5.0.0 numpy
    /tmp/optuna/bin/python tests/tuner/golden/make_golden.py

The same with optuna==4.9.0 writes those of the preset optuna4 instead.

Each file holds a space, a seed and the asks and tells in order. Parameters are asked for in order of
name. Where the space has grids, numpy's argsort is made stable first: the order it gives to equal
values depends on the processor otherwise.
"""

import json
import math
import pathlib

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution as Choice
from optuna.distributions import FloatDistribution as Float
from optuna.distributions import IntDistribution as Int
from optuna.samplers._tpe import parzen_estimator
from optuna.trial import TrialState

optuna.logging.set_verbosity(optuna.logging.ERROR)
HERE = pathlib.Path(__file__).parent

CONTINUOUS = {
    "lr": Float(1e-5, 1e-1, log=True),
    "mode": Choice(["a", "b", "c"]),
    "x": Float(-5.0, 10.0),
    "y": Float(0.0, 1.0),
}
GRIDS = {
    "batch": Int(1, 512, log=True),
    "depth": Int(1, 10),
    "drop": Float(0.0, 0.5, step=0.05),
    "units": Int(16, 256, step=16),
    "x": Float(0.0, 1.0),
}


class StableNumpy:
    """numpy, but argsort keeps the order of equal values."""

    def __getattr__(self, name):
        return getattr(np, name)

    def argsort(self, values):
        return np.argsort(values, kind="stable")


def spec(distribution):
    if isinstance(distribution, Choice):
        return {"choice": list(distribution.choices)}
    kind = "int" if isinstance(distribution, Int) else "float"
    out = {kind: [distribution.low, distribution.high]}
    if distribution.log:
        out["log"] = True
    if distribution.step is not None and not (kind == "int" and distribution.step == 1):
        out["step"] = distribution.step
    return out


def loss(params):
    total = 0.0
    for index, (name, value) in enumerate(sorted(params.items())):
        if isinstance(value, str):
            total += 0.0 if value == "b" else 0.3
        elif name in ("lr", "batch"):
            total += (math.log10(value) - (-3 if name == "lr" else 1.5)) ** 2 * 0.2
        else:
            total += (value / {"x": 5, "depth": 10, "units": 256}.get(name, 1) - 0.2 - 0.1 * index) ** 2
    return total


def more_losses(params, count):
    """Objectives that pull elsewhere than loss(); coarse, so that some trials are equal."""
    return [round(4 * abs(params["y"] - 0.3 * k) + abs(params["x"] - 2 * k), 1) for k in range(1, count)]


def run(name, space, seed, trials, outstanding=1, goal="min", with_pruned=False, goals=None, bound=None):
    goals = goals or [goal]
    study = optuna.create_study(
        directions=["minimize" if one == "min" else "maximize" for one in goals],
        sampler=optuna.samplers.TPESampler(seed=seed),
    )
    events, waiting = [], []
    for _ in range(trials):
        trial = study.ask(space)
        events.append({"ask": trial.number, "params": trial.params})
        waiting.append(trial)
        if len(waiting) < outstanding:
            continue
        done = waiting.pop(0)
        value = loss(done.params) * (1 if goal == "min" else -1)
        tell = {"tell": done.number}
        if with_pruned and done.number % 7 == 3:
            tell["state"] = "failed"
            study.tell(done, state=TrialState.FAIL)
        elif with_pruned and done.number % 5 == 2:
            tell["state"] = "pruned"
            if done.number % 10 == 2:
                step = 1 + done.number % 4
                for s in range(step + 1):
                    done.report(value + 0.1 * s, s)
                tell |= {"step": step, "value": value + 0.1 * step}
            study.tell(done, state=TrialState.PRUNED)
        else:
            tell |= {"state": "complete", "value": value}
            if bound is not None:
                tell["violation"] = max(0.0, done.params["x"] - bound)
                done.set_constraint("x", done.params["x"] - bound)
            values = [value]
            for one, sign in zip(more_losses(done.params, len(goals)), goals[1:]):
                values.append(one if sign == "min" else -one)
            if len(goals) > 1:
                tell["more_values"] = values[1:]
            study.tell(done, values)
        events.append(tell)
    golden = {
        "made_by": "make_golden.py, optuna " + optuna.__version__ + ", numpy " + np.__version__,
        "space": {key: spec(distribution) for key, distribution in space.items()},
        "seed": seed,
        "preset": "optuna" + optuna.__version__[0],
        **({"goal": goal} if len(goals) == 1 else {"goals": goals}),
        "events": events,
    }
    lines = json.dumps({**golden, "events": []}, indent=1)[: -len('"events": []\n}')]
    body = ",\n".join("  " + json.dumps(event) for event in events)
    (HERE / f"{name}.json").write_text(lines + '"events": [\n' + body + "\n ]\n}\n")


def main():
    if optuna.__version__.startswith("4."):
        run("tpe_optuna4", CONTINUOUS, 42, 100)
        run("tpe_optuna4_parallel", CONTINUOUS, 7, 120, outstanding=4, goal="max", with_pruned=True)
        parzen_estimator.np = StableNumpy()
        run("tpe_optuna4_grids", GRIDS, 3, 100)
        return
    run("tpe_continuous", CONTINUOUS, 42, 100)
    run("tpe_parallel", CONTINUOUS, 7, 80, outstanding=4)
    run("tpe_pruned_maximize", CONTINUOUS, 1, 120, goal="max", with_pruned=True)
    run("tpe_constrained", CONTINUOUS, 5, 100, outstanding=2, bound=-2.0)
    run("tpe_two_objectives", CONTINUOUS, 11, 120, goals=["min", "max"])
    run("tpe_three_objectives", CONTINUOUS, 12, 100, goals=["min", "min", "max"], bound=6.0)
    parzen_estimator.np = StableNumpy()
    run("tpe_grids", GRIDS, 3, 100)


if __name__ == "__main__":
    main()

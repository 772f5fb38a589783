"""Writes nsga3.json: who survives a generation of Optuna 5.0.0's NSGA-III, step by step.

    .venv/bin/python tests/tuner/golden/make_nsga3_golden.py

The last step, niching, draws at random: `chances` are the shares of DRAWS generations in which each trial survived.
"""

import json
import pathlib
import types

import numpy as np
import optuna
from optuna.samplers._lazy_random_state import LazyRandomState
from optuna.samplers._nsgaiii import _elite_population_selection_strategy as nsga3
from optuna.samplers.nsgaii._elite_population_selection_strategy import _rank_population
from optuna.study import StudyDirection
from optuna.trial import create_trial

DRAWS = 400


def cells(array):
    return [[str(x) if np.isinf(x) else float(x) for x in row] for row in array]


def case(rng, rows, columns, divisions, count, kind):
    losses = np.abs(rng.normal(size=(rows, columns)))
    if kind == "front":  # nearly one front, so that most is left to the niches
        losses /= np.linalg.norm(losses, axis=1, keepdims=True)
    if kind == "coarse":  # equal rows, equal distances, degenerate extreme points
        losses = np.round(losses, 0)
    if kind == "infinite":
        losses[rng.random(losses.shape) < 0.1] = np.inf
    off = np.maximum(0, np.round(rng.normal(size=rows), 1)) if kind == "constrained" else np.zeros(rows)
    attrs = [{"constraints": [float(v)]} if kind == "constrained" else {} for v in off]
    trials = [create_trial(values=list(map(float, row)), system_attrs=more, params={}, distributions={})
              for row, more in zip(losses, attrs)]
    for number, trial in enumerate(trials):
        trial.number = number
    study = types.SimpleNamespace(directions=[StudyDirection.MINIMIZE] * columns)
    directions = nsga3._generate_default_reference_point(columns, divisions)

    order, border = [], 0  # whole ranks, then the one that does not fit
    for rank in _rank_population(trials, study.directions, is_constrained=kind == "constrained"):
        border = len(order)
        order += rank
        if len(order) >= count:
            break
    normalized = nsga3._normalize_objective_values(nsga3._filter_inf(order))
    closest, distance = nsga3._associate_individuals_with_reference_points(normalized.copy(), directions)

    chances = np.zeros(rows)
    for seed in range(DRAWS):
        strategy = nsga3.NSGAIIIElitePopulationSelectionStrategy(
            population_size=count, dividing_parameter=divisions, rng=LazyRandomState(seed))
        for trial in strategy(study, list(trials)):
            chances[trial.number] += 1
    return {
        "kind": kind, "divisions": divisions, "count": count, "losses": cells(losses), "violations": off.tolist(),
        "directions": directions.tolist(), "order": [trial.number for trial in order], "border": border,
        "normalized": cells(normalized), "closest": closest.tolist(), "distance": distance.tolist(),
        "chances": (chances / DRAWS).tolist(),
    }


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = np.random.RandomState(11)
    cases = [case(rng, *one) for one in [
        (12, 2, 3, 6, "front"), (40, 2, 12, 20, "plain"), (40, 3, 3, 20, "front"), (60, 3, 4, 20, "plain"),
        (30, 3, 3, 12, "coarse"), (30, 3, 3, 15, "infinite"), (40, 3, 3, 20, "constrained"), (40, 4, 3, 16, "front"),
        (30, 5, 2, 10, "front")]]
    path = pathlib.Path(__file__).with_name("nsga3.json")
    path.write_text(json.dumps({"draws": DRAWS, "cases": cases}, separators=(",", ":")).replace('{"kind"', '\n{"kind"') + "\n")


if __name__ == "__main__":
    main()

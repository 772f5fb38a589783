"""Writes pareto.json: ranks, volumes, subsets, crowding and reference points of Optuna 5.0.0.

    .venv/bin/python tests/tuner/golden/make_pareto_golden.py
"""

import json
import pathlib

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume
from optuna._hypervolume.hssp import _solve_hssp
from optuna.samplers._nsgaiii import _elite_population_selection_strategy as nsga3
from optuna.samplers._tpe.sampler import _get_reference_point
from optuna.samplers.nsgaii._elite_population_selection_strategy import _calc_crowding_distance
from optuna.study._multi_objective import _fast_non_domination_rank
from optuna.trial import create_trial


def cells(array):
    return [[str(x) if np.isinf(x) else float(x) for x in row] for row in array]


def case(rng, rows, columns, coarse):
    losses = rng.normal(size=(rows, columns))
    if coarse:
        losses = np.round(losses, 1)
    penalty = np.maximum(0, np.round(rng.normal(size=rows), 1))
    front = losses[_fast_non_domination_rank(losses) == 0]
    reference = _get_reference_point(losses)
    trials = [create_trial(values=list(map(float, row)), params={}, distributions={}) for row in front]
    for number, trial in enumerate(trials):
        trial.number = number
    distances = _calc_crowding_distance(list(trials))
    directions = nsga3._generate_default_reference_point(columns, 4)
    closest, distance = nsga3._associate_individuals_with_reference_points(
        nsga3._normalize_objective_values(losses.copy()), directions)
    count = max(1, len(front) // 2)
    return {
        "losses": cells(losses),
        "enough": max(1, rows // 10),
        "ranks": _fast_non_domination_rank(losses).tolist(),
        "ranks_of_enough": _fast_non_domination_rank(losses, n_below=max(1, rows // 10)).tolist(),
        "penalty": penalty.tolist(),
        "constrained_ranks": _fast_non_domination_rank(losses, penalty=penalty).tolist(),
        "front": cells(front),
        "reference": reference.tolist(),
        "volume": compute_hypervolume(losses, reference),
        "subset": _solve_hssp(front, np.arange(len(front)), count, _get_reference_point(front)).tolist(),
        "crowding": [str(distances[k]) for k in range(len(front))],
        "normalized": cells(nsga3._normalize_objective_values(losses.copy())),
        "directions": sorted(map(list, directions.tolist())),
        "niche_distance": distance.tolist(),
    }


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = np.random.RandomState(3)
    cases = [case(rng, rows, columns, coarse)
             for rows, columns, coarse in [(1, 2, False), (7, 2, True), (60, 2, False), (120, 2, True), (5, 3, False),
                                           (50, 3, False), (80, 3, True), (40, 4, False), (30, 5, True)]]
    path = pathlib.Path(__file__).with_name("pareto.json")
    path.write_text("[\n" + ",\n".join(" " + json.dumps(one) for one in cases) + "\n]\n")


if __name__ == "__main__":
    main()

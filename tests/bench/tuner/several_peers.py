"""Optuna beside several_bench.cc: dominated volume on problems of several objectives.

    python several_peers.py [trials=300] [seeds=10] [problem ...]
"""

import math
import sys
import time

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume

optuna.logging.set_verbosity(optuna.logging.ERROR)


def zdt(which, x):
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    ratio = x[0] / g
    h = 1 - ratio**2 if which == 2 else 1 - math.sqrt(ratio)
    if which == 3:
        h -= ratio * math.sin(10 * math.pi * x[0])
    return [x[0], g * h]


def dtlz2(x):
    g = 1 + sum((v - 0.5) ** 2 for v in x[2:])
    a, b = x[0] * math.pi / 2, x[1] * math.pi / 2
    return [g * math.cos(a) * math.cos(b), g * math.cos(a) * math.sin(b), g * math.sin(a)]


PROBLEMS = [("zdt1", 30, 2, 11.0, lambda x: zdt(1, x)), ("zdt2", 30, 2, 11.0, lambda x: zdt(2, x)),
            ("zdt3", 30, 2, 11.0, lambda x: zdt(3, x)), ("dtlz2", 12, 3, 2.5, dtlz2)]
SAMPLERS = [("tpe", optuna.samplers.TPESampler), ("nsga2", optuna.samplers.NSGAIISampler),
            ("nsga3", optuna.samplers.NSGAIIISampler)]


def volume(problem, sampler, trials):
    _, parameters, objectives, reference, values = problem
    study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
    study.optimize(lambda t: values([t.suggest_float(f"x{10 + i}", 0, 1) for i in range(parameters)]), n_trials=trials)
    losses = np.array([t.values for t in study.trials])
    return compute_hypervolume(losses[(losses <= reference).all(axis=1)], np.full(objectives, reference))


def main():
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    for problem in [one for one in PROBLEMS if not sys.argv[3:] or one[0] in sys.argv[3:]]:
        for name, kind in SAMPLERS:
            begin = time.perf_counter()
            volumes = [volume(problem, kind(seed=seed), trials) for seed in range(seeds)]
            ms = 1000 * (time.perf_counter() - begin) / (seeds * trials)
            error = np.std(volumes) / math.sqrt(max(1, seeds - 1))
            print(f"{problem[0]:6} optuna {name:7} {np.mean(volumes):9.4f} +- {error:.4f}  {ms:8.3f} ms/trial", flush=True)


if __name__ == "__main__":
    main()

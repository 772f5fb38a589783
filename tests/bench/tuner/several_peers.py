"""Optuna beside several_bench.cc: dominated volume on problems of several objectives.

    python several_peers.py [trials=300] [seeds=10] [problem ...] >> volumes.txt
    tuner_several_bench 300 10 >> volumes.txt
    python several_peers.py --table volumes.txt

The table: mean volume with a 95 % interval, and how often ours is above Optuna's of the same kind at the same seed.
"""

import collections
import math
import sys
import warnings
import time

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume
from scipy import stats

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")  # constraints_func, which 5.0 still takes


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


def c2dtlz2(x):
    """How far the losses of DTLZ2 lie outside the allowed balls of radius 0.4 (Jain, Deb 2014, C2-DTLZ2); 0: inside one."""
    f = dtlz2(x)
    balls = [sum((v - (1 if j == i else 0)) ** 2 for j, v in enumerate(f)) for i in range(3)]
    balls.append(sum((v - 1 / math.sqrt(3)) ** 2 for v in f))
    return max(0.0, min(balls) - 0.16)


PROBLEMS = [("zdt1", 30, 2, 11.0, lambda x: zdt(1, x)), ("zdt2", 30, 2, 11.0, lambda x: zdt(2, x)),
            ("zdt3", 30, 2, 11.0, lambda x: zdt(3, x)), ("dtlz2", 12, 3, 2.5, dtlz2),
            ("c2dtlz2", 12, 3, 2.5, dtlz2)]
SAMPLERS = [("tpe", optuna.samplers.TPESampler), ("nsga2", optuna.samplers.NSGAIISampler),
            ("nsga3", optuna.samplers.NSGAIIISampler)]


def volume(problem, kind, seed, trials):
    name, parameters, objectives, reference, values = problem
    more = {"constraints_func": lambda t: (t.user_attrs["off"],)} if name == "c2dtlz2" else {}
    study = optuna.create_study(directions=["minimize"] * objectives, sampler=kind(seed=seed, **more))

    def objective(trial):
        x = [trial.suggest_float(f"x{10 + i}", 0, 1) for i in range(parameters)]
        trial.set_user_attr("off", c2dtlz2(x) if more else 0.0)
        return values(x)

    study.optimize(objective, n_trials=trials)
    losses = np.array([t.values for t in study.trials if t.user_attrs["off"] == 0]).reshape(-1, objectives)
    return compute_hypervolume(losses[(losses <= reference).all(axis=1)], np.full(objectives, reference))


def table(path):
    volumes = collections.defaultdict(dict)  # (problem, who, sampler) -> the volume of each seed
    for line in open(path):
        problem, who, sampler, seed, value = line.split()[:5]
        volumes[problem, who, sampler][int(seed)] = float(value)

    def cell(key):
        values = list(volumes[key].values())
        if not values:
            return "-"
        half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0
        return f"{np.mean(values):.3f} +- {half:.3f}"

    samplers = [name for name, _ in SAMPLERS]
    print("| problem (seeds) | random | " + " | ".join(f"{name}: ours, Optuna, wins" for name in samplers) + " |")
    print("|---" * (2 + len(samplers)) + "|")
    for problem, *_ in PROBLEMS:
        cells = []
        for name in samplers:
            ours, theirs = volumes[problem, "ours", name], volumes[problem, "optuna", name]
            paired = ours.keys() & theirs.keys()
            wins = sum(ours[seed] > theirs[seed] for seed in paired)
            cells.append(f"{cell((problem, 'ours', name))}, {cell((problem, 'optuna', name))}, {wins} of {len(paired)}")
        seeds = len(volumes[problem, "ours", "tpe"])
        print(f"| {problem} ({seeds}) | {cell((problem, 'ours', 'random'))} | " + " | ".join(cells) + " |")


def main():
    if sys.argv[1:2] == ["--table"]:
        return table(sys.argv[2])
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    for problem in [one for one in PROBLEMS if not sys.argv[3:] or one[0] in sys.argv[3:]]:
        for name, kind in SAMPLERS:
            for seed in range(seeds):
                begin = time.perf_counter()
                reached = volume(problem, kind, seed, trials)
                ms = 1000 * (time.perf_counter() - begin) / trials
                print(f"{problem[0]:7} optuna {name:7} {seed:3} {reached:10.5f} {ms:9.3f} ms/trial", flush=True)


if __name__ == "__main__":
    main()

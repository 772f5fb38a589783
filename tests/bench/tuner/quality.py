#!/usr/bin/env python3
"""How good the best value is after 50, 100 and 200 trials: our samplers and the peers', same objectives, paired seeds.

    tests/bench/tuner/quality.py                         the short form: minutes
    tests/bench/tuner/quality.py --seeds 30              the full form for every sampler: hours, the peers' mostly
    tests/bench/tuner/quality.py --samplers ours:auto,optuna:tpe --suites tables --workers 8 --out runs.jsonl
    tests/bench/tuner/quality.py --report runs.jsonl more.jsonl

Samplers: ours:NAME (of a study file), optuna:tpe, optuna:gp, rustuna:tpe, hyperopt:tpe, hebo:, random. Peers need the
packages of tests/bench/requirements.txt, HEBO those of hebo_requirements.txt. With 8 workers 8 trials are outstanding
at any time, and one of them, drawn by the seed, ends next: the same for every sampler. Normalised regret:
(best - optimum) / (median of one random draw - optimum).
"""

import argparse
import collections
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time
import warnings

import problems

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUDGETS = (50, 100, 200)
SUITES = ("analytic", "tables", "sklearn")
SHORT = ("ours:auto", "ours:tpe", "optuna:tpe", "rustuna:tpe", "hyperopt:tpe")
FLOOR = 1e-6


class Ours:
    """tests/bench/tuner/ask_tell.cc over pipes; the time is what the sampler itself took."""

    program = None

    def __init__(self, problem, seed, sampler):
        space = {}
        for name, kind, *domain in problem.parameters:
            space[name] = {"choice": domain[0]} if kind == "choice" else {kind: domain}
        if Ours.program is None:
            path = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build/release/bin")) / "tuner_ask_tell"
            Ours.program = subprocess.Popen(
                [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        # In a finite space a point that was tried is drawn again, as in any study; the bench ends when all were tried.
        self._say({"study": {"space": space, "sampler": sampler}, "seed": seed})
        self._names = [parameter[0] for parameter in problem.parameters]

    def _say(self, line):
        Ours.program.stdin.write(json.dumps(line) + "\n")
        return json.loads(Ours.program.stdout.readline())

    def ask(self, number):
        answer = self._say({"ask": number})
        return None if "exhausted" in answer else [answer["params"][name] for name in self._names]

    def tell(self, number, value):
        self._say({"tell": number, "value": value})

    def seconds(self):
        return self._say({"time": True})["seconds"]


class Timed:
    def __init__(self):
        self._spent = 0

    def seconds(self):
        return self._spent

    def ask(self, number):
        begin = time.perf_counter()
        values = self.ask_now(number)
        self._spent += time.perf_counter() - begin
        return values

    def tell(self, number, value):
        begin = time.perf_counter()
        self.tell_now(number, value)
        self._spent += time.perf_counter() - begin


class Random(Timed):
    def __init__(self, problem, seed, _):
        super().__init__()
        self._problem, self._rng = problem, random.Random(f"{problem.name} {seed}")

    def ask_now(self, _):
        return self._problem.random_values(self._rng)

    def tell_now(self, number, value):
        pass


class Optuna(Timed):
    """Optuna and Rustuna: the same interface."""

    def __init__(self, problem, seed, sampler):
        super().__init__()
        self._parameters, self._trials = problem.parameters, {}
        package, name = sampler
        module = __import__(package)
        if package == "optuna":
            module.logging.set_verbosity(module.logging.ERROR)
        made = (module.samplers.TPESampler if name == "tpe" else module.samplers.GPSampler)(seed=seed)
        self._study = module.create_study(sampler=made)
        self._by_number = package == "rustuna"

    def ask_now(self, number):
        trial = self._trials[number] = self._study.ask()
        values = []
        for name, kind, *domain in self._parameters:
            if kind == "choice":
                values.append(trial.suggest_categorical(name, domain[0]))
            else:
                values.append((trial.suggest_float if kind == "float" else trial.suggest_int)(name, *domain))
        return values

    def tell_now(self, number, value):
        trial = self._trials.pop(number)
        self._study.tell(trial.number if self._by_number else trial, value)


class Hyperopt(Timed):
    def __init__(self, problem, seed, _):
        super().__init__()
        import hyperopt
        import numpy

        self._hyperopt, self._parameters, self._docs = hyperopt, problem.parameters, {}
        hp = hyperopt.hp
        space = {}
        for name, kind, *domain in problem.parameters:
            if kind == "float":
                space[name] = hp.uniform(name, *domain)
            elif kind == "int":
                space[name] = hp.randint(name, domain[0], domain[1] + 1)
            else:
                space[name] = hp.choice(name, domain[0])
        self._domain = hyperopt.base.Domain(lambda params: 0.0, space)
        self._trials = hyperopt.Trials()
        self._rng = numpy.random.default_rng(seed)

    def ask_now(self, number):
        ids = self._trials.new_trial_ids(1)
        self._trials.refresh()
        seed = int(self._rng.integers(2**31 - 1))
        doc = self._hyperopt.tpe.suggest(ids, self._domain, self._trials, seed, verbose=False)[0]
        self._trials.insert_trial_docs([doc])
        self._trials.refresh()
        self._docs[number] = len(self._trials._dynamic_trials) - 1
        chosen = {name: values[0] for name, values in doc["misc"]["vals"].items()}
        values = []
        for name, kind, *domain in self._parameters:
            value = chosen[name]
            values.append(
                domain[0][int(value)] if kind == "choice" else float(value) if kind == "float" else int(value)
            )
        return values

    def tell_now(self, number, value):
        doc = self._trials._dynamic_trials[self._docs.pop(number)]
        doc["state"] = self._hyperopt.JOB_STATE_DONE
        doc["result"] = {"status": self._hyperopt.STATUS_OK, "loss": float(value)}
        self._trials.refresh()


class Hebo(Timed):
    """Wants numpy 1 and a torch of its own: an environment with hebo_requirements.txt, and --samplers hebo:."""

    def __init__(self, problem, seed, _):
        super().__init__()
        import numpy
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        warnings.simplefilter("ignore")
        numpy.random.seed(seed)
        torch.manual_seed(seed)
        self._parameters, self._rows, self._numpy = problem.parameters, {}, numpy
        space = []
        for name, kind, *domain in problem.parameters:
            if kind == "choice":
                places = [str(i) for i in range(len(domain[0]))]
                space.append({"name": name, "type": "cat", "categories": places})
            else:
                hebo_type = "num" if kind == "float" else "int"
                space.append({"name": name, "type": hebo_type, "lb": domain[0], "ub": domain[1]})
        self._optimizer = HEBO(DesignSpace().parse(space), scramble_seed=seed)

    def ask_now(self, number):
        row = self._rows[number] = self._optimizer.suggest(n_suggestions=1)
        values = []
        for name, kind, *domain in self._parameters:
            value = row[name].iloc[0]
            values.append(
                domain[0][int(value)] if kind == "choice" else float(value) if kind == "float" else int(value)
            )
        return values

    def tell_now(self, number, value):
        self._optimizer.observe(self._rows.pop(number), self._numpy.array([[value]]))


def make(name, problem, seed):
    family, _, sampler = name.partition(":")
    if family == "ours":
        return Ours(problem, seed, sampler)
    if family == "hyperopt":
        return Hyperopt(problem, seed, sampler)
    if family == "hebo":
        return Hebo(problem, seed, sampler)
    if family == "random":
        return Random(problem, seed, sampler)
    return Optuna(problem, seed, (family, sampler))


def run(problem, name, workers, seed, trials):
    """The best value after each number of finished trials, and the sampler's seconds."""
    sampler = make(name, problem, seed)
    order = random.Random(f"order {seed}")
    running, bests, best = [], [], math.inf
    for number in range(trials + workers):
        if len(running) == workers or number >= trials:
            if not running:
                break
            ended, values = running.pop(order.randrange(len(running)))
            value = problem.function(values)
            best = min(best, value)
            bests.append(best)
            sampler.tell(ended, value)
        if number < trials:
            values = sampler.ask(number)
            if values is None:
                break
            running.append((number, values))
    bests += [min([best] + [problem.function(values) for _, values in running])] * (trials - len(bests))
    return bests, sampler.seconds()


def median_of_random(problem):
    rng = random.Random("median " + problem.name)
    return statistics.median(problem.function(problem.random_values(rng)) for _ in range(2001))


def measure(options, out):
    budgets = [budget for budget in BUDGETS if budget <= options.trials]
    deadline = time.monotonic() + options.minutes * 60
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for suite in options.suites:
            for problem in problems.problems_of(suite):
                scale = median_of_random(problem) - problem.optimum
                for name in options.samplers:
                    if time.monotonic() > deadline:
                        return
                    bests, seconds = run(problem, name, options.workers, seed, options.trials)
                    regrets = {str(b): max(bests[b - 1] - problem.optimum, 0) / scale for b in budgets}
                    ms = 1000 * seconds / len(bests)
                    line = {"suite": suite, "problem": problem.name, "sampler": name, "workers": options.workers}
                    out.write(json.dumps({**line, "seed": seed, "regret": regrets, "ms": round(ms, 4)}) + "\n")
                    out.flush()


def interval(by_problem):
    """95 % of the means of seeds drawn anew within each problem."""
    rng = random.Random(0)
    means = sorted(
        statistics.fmean(statistics.fmean(rng.choices(values, k=len(values))) for values in by_problem)
        for _ in range(500)
    )
    return means[12], means[487]


def report(lines, reference="optuna:tpe"):
    runs = collections.defaultdict(dict)  # (suite, workers, budget) -> (sampler, problem) -> seed -> regret
    spent = collections.defaultdict(list)
    for line in lines:
        for budget, regret in line["regret"].items():
            key = (line["suite"], line["workers"], int(budget))
            runs[key].setdefault((line["sampler"], line["problem"]), {})[line["seed"]] = regret
        spent[line["suite"], line["workers"], line["sampler"]].append(line["ms"])
    for (suite, workers, budget), cells in sorted(
        runs.items(), key=lambda item: (SUITES.index(item[0][0]), *item[0][1:])
    ):
        table(suite, workers, budget, cells, spent, reference)


def table(suite, workers, budget, cells, spent, reference):
    names = sorted({name for name, _ in cells})
    # Only problems that every sampler has run.
    every = sorted({p for _, p in cells if all((name, p) in cells for name in names)})
    if not every:
        return
    ranks = collections.defaultdict(list)
    for problem in every:
        means = {name: statistics.fmean(cells[name, problem].values()) for name in names}
        for name in names:
            better = sum(means[other] < means[name] for other in names)
            equal = sum(means[other] == means[name] for other in names)
            ranks[name].append(better + (equal + 1) / 2)
    print(f"\n{suite}, {len(every)} problems, {budget} trials, {workers} at a time")
    print(
        f"{'sampler':<16}{'mean':>9}{'95 % interval':>20}{'geo. mean':>11}{'rank':>7}{'wins':>7}{'ms':>9}{'seeds':>7}"
    )
    rows = []
    for name in names:
        by_problem = [list(cells[name, problem].values()) for problem in every]
        low, high = interval(by_problem)
        mean = statistics.fmean(statistics.fmean(values) for values in by_problem)
        logs = [statistics.fmean(math.log(max(v, FLOOR)) for v in values) for values in by_problem]
        points, pairs = 0, 0
        for problem in every:
            theirs = cells.get((reference, problem), {})
            for seed, regret in cells[name, problem].items():
                if seed in theirs:
                    pairs += 1
                    points += 1 if regret < theirs[seed] else 0.5 if regret == theirs[seed] else 0
        wins = f"{100 * points / pairs:.0f} %" if pairs and name != reference else "-"
        ms = statistics.fmean(spent[suite, workers, name])
        seeds = min(len(values) for values in by_problem)
        rows.append(
            (
                mean,
                f"{name:<16}{mean:>9.4f}{f'{low:.4f} .. {high:.4f}':>20}{math.exp(statistics.fmean(logs)):>11.5f}"
                f"{statistics.fmean(ranks[name]):>7.2f}{wins:>7}{ms:>9.3f}{seeds:>7}",
            )
        )
    for _, row in sorted(rows):
        print(row)
    print(f"wins: of pairs of equal seed against {reference}, ties count half")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samplers", type=lambda text: text.split(","), default=SHORT)
    parser.add_argument("--suites", type=lambda text: text.split(","), default=SUITES)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=math.inf, help="start nothing new after so many minutes")
    parser.add_argument("--out", type=pathlib.Path, help="add the runs to this file instead of printing the table")
    parser.add_argument("--report", type=pathlib.Path, nargs="+", help="only print the table of these files")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.report:
        report([json.loads(line) for path in options.report for line in path.read_text().splitlines()])
        return
    if options.out:
        with options.out.open("a") as out:
            measure(options, out)
        return
    path = pathlib.Path(f"/tmp/tuner_quality.{os.getpid()}.jsonl")
    with path.open("w") as out:
        measure(options, out)
    report([json.loads(line) for line in path.read_text().splitlines()])
    path.unlink()


if __name__ == "__main__":
    main()

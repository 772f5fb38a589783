"""Writes pruners.json: reports of interleaved trials and Optuna 5.0.0's decision on each.

    /tmp/optuna/bin/python tests/tuner/golden/make_pruner_golden.py

An event is ["report", trial, step, value, pruned] or ["end", trial, how[, value]].
"""

import json
import math
import pathlib
import random
import warnings

import optuna
from optuna.trial import TrialState

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore", RuntimeWarning)  # numpy on slices that are all NaN

CASES = [
    ("median", {}, lambda: optuna.pruners.MedianPruner()),
    (
        "median",
        {"startup": 2, "warmup": 3, "interval": 2, "min_trials": 3},
        lambda: optuna.pruners.MedianPruner(2, 3, 2, n_min_trials=3),
    ),
    ("percentile", {"percentile": 30.0, "startup": 3}, lambda: optuna.pruners.PercentilePruner(30.0, 3)),
    ("asha", {}, lambda: optuna.pruners.SuccessiveHalvingPruner()),
    (
        "asha",
        {"min": 1, "eta": 2},
        lambda: optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
    ),
    (
        "asha",
        {"min": 2, "eta": 3, "rate": 1, "bootstrap": 2},
        lambda: optuna.pruners.SuccessiveHalvingPruner(2, 3, 1, 2),
    ),
    ("hyperband", {}, lambda: optuna.pruners.HyperbandPruner()),
    ("hyperband", {"max": 20, "eta": 2}, lambda: optuna.pruners.HyperbandPruner(1, 20, 2)),
    (
        "hyperband",
        {"min": 2, "max": 16, "eta": 2, "bootstrap": 2},
        lambda: optuna.pruners.HyperbandPruner(2, 16, 2, 2),
    ),
    ("threshold", {"upper": 1.5}, lambda: optuna.pruners.ThresholdPruner(upper=1.5)),
    (
        "threshold",
        {"lower": 0.1, "upper": 1.2, "warmup": 3, "interval": 2},
        lambda: optuna.pruners.ThresholdPruner(0.1, 1.2, 3, 2),
    ),
    ("wilcoxon", {}, lambda: optuna.pruners.WilcoxonPruner()),
    (
        "wilcoxon",
        {"p": 0.3, "startup_steps": 4},
        lambda: optuna.pruners.WilcoxonPruner(p_threshold=0.3, n_startup_steps=4),
    ),
    ("patience", {"wait": 2}, lambda: optuna.pruners.PatientPruner(None, 2)),
    (
        "patience",
        {"wait": 1, "min_delta": 0.05, "of": ["median"]},
        lambda: optuna.pruners.PatientPruner(optuna.pruners.MedianPruner(), 1, 0.05),
    ),
    (
        "patience",
        {"wait": 1, "of": [{"type": "asha", "min": 1, "eta": 2}]},
        lambda: optuna.pruners.PatientPruner(
            optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2), 1
        ),
    ),
]


def run(pruner, goal, seed, trials=30, outstanding=4, nan_share=0.06):
    rng = random.Random(seed)
    study = optuna.create_study(
        direction="minimize" if goal == "min" else "maximize",
        pruner=pruner,
        study_name="golden",
    )
    events, running = [], []
    started = 0
    while started < trials or running:
        if started < trials and len(running) < outstanding:
            # Some trials report at every step, some at every third, so that rungs are jumped over.
            running.append([study.ask(), 0, rng.choice([1, 1, 1, 3]), rng.choice([8, 12, 20]), rng.random()])
            started += 1
            continue
        entry = rng.choice(running)
        trial, step, stride, length, level = entry
        value = round(level + 1.0 / (1 + step) + rng.gauss(0, 0.15), 3)
        if rng.random() < nan_share:
            value = math.nan
        trial.report(value, step)
        pruned = bool(trial.should_prune())
        events.append(["report", trial.number, step, "NaN" if math.isnan(value) else value, pruned])
        entry[1] += stride
        how = None
        if pruned:
            how = "pruned"
            study.tell(trial, state=TrialState.PRUNED)
        elif rng.random() < 0.01:
            how = "gone"
            study.tell(trial, state=TrialState.FAIL)
        elif entry[1] >= length:
            how = "complete"
            told = 0.0 if math.isnan(value) else value
            study.tell(trial, told)
        if how:
            events.append(["end", trial.number, how] + ([told] if how == "complete" else []))
            running.remove(entry)
    return events


def main():
    cases = []
    for index, (kind, options, make) in enumerate(CASES):
        for goal in ("min", "max"):
            cases.append(
                {"pruner": {"type": kind, **options}, "goal": goal, "events": run(make(), goal, 100 + index)}
            )
    head = f"make_pruner_golden.py, optuna {optuna.__version__}"
    lines = []
    for case in cases:
        events = ",\n   ".join(json.dumps(event) for event in case["events"])
        settings = json.dumps({"pruner": case["pruner"], "goal": case["goal"]})[:-1]
        lines.append(f'  {settings}, "events": [\n   {events}]}}')
    text = '{"made_by": ' + json.dumps(head) + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n"
    (pathlib.Path(__file__).parent / "pruners.json").write_text(text)


if __name__ == "__main__":
    main()

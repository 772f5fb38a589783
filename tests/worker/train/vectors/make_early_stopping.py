"""Writes early_stopping.json: what Lightning's EarlyStopping decides on sequences of metric values.

    pip install torch lightning && python make_early_stopping.py > early_stopping.json

Values are float64 and thresholds binary fractions, so that ties are ties in any arithmetic.
"""
import json
import math
import random

import torch
from lightning.pytorch.callbacks import EarlyStopping


def number(value):
    return value if math.isfinite(value) else ("NaN" if math.isnan(value) else
                                               "Infinity" if value > 0 else "-Infinity")


def run(rule, values):
    callback = EarlyStopping(monitor="m", check_finite=True, verbose=False, **rule)
    callback.best_score = callback.best_score.double()
    checks = []
    for value in values:
        stop, reason = callback._evaluate_stopping_criteria(torch.tensor(value, dtype=torch.float64))
        name = callback.stopping_reason.name.lower() if stop else "not_stopped"
        checks.append([number(value), {"non_finite_metric": "non_finite"}.get(name, name),
                       number(float(callback.best_score)), callback.wait_count])
        if stop:
            break
    return checks


def cases():
    up = [1.0, 0.75, 0.75, 0.5, 0.5, 0.625, 0.5, 0.25]
    for mode in ("min", "max"):
        for patience in (0, 1, 2, 3):
            for min_delta in (0.0, 0.25):
                sign = 1 if mode == "min" else -1
                yield dict(mode=mode, patience=patience, min_delta=min_delta), [sign * v for v in up]
    for bad in (math.nan, math.inf, -math.inf):
        for mode in ("min", "max"):
            yield dict(mode=mode, patience=3, min_delta=0.0, stopping_threshold=0.5), [0.75, bad]
    # A threshold is strict: reaching it exactly is not enough.
    yield dict(mode="min", patience=1, min_delta=0.0, stopping_threshold=0.5), [1.0, 0.5, 0.25]
    yield dict(mode="max", patience=2, min_delta=0.0, stopping_threshold=0.5), [0.25, 0.5, 0.75]
    yield dict(mode="min", patience=5, min_delta=0.0, divergence_threshold=2.0), [1.0, 2.0, 2.5]
    yield dict(mode="max", patience=5, min_delta=0.0, divergence_threshold=0.25), [0.5, 0.25, 0.125]
    # Both thresholds at once: stopping is tested first.
    yield dict(mode="min", patience=5, min_delta=0.0, stopping_threshold=3.0,
               divergence_threshold=1.0), [2.0]
    generator = random.Random(7)
    for _ in range(40):
        rule = dict(mode=generator.choice(["min", "max"]), patience=generator.randrange(0, 5),
                    min_delta=generator.choice([0.0, 0.125, 0.5]))
        if generator.random() < 0.4:
            rule["stopping_threshold"] = generator.randrange(-8, 9) / 8
        if generator.random() < 0.4:
            rule["divergence_threshold"] = generator.randrange(-8, 9) / 8
        yield rule, [generator.randrange(-16, 17) / 8 for _ in range(12)]


print("[")
print(",\n".join(json.dumps({"rule": rule, "checks": run(rule, values)}) for rule, values in cases()))
print("]")

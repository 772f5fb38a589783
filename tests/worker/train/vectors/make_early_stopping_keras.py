"""Writes early_stopping_keras.json: what Keras's EarlyStopping decides on sequences of metric values.

    pip install keras torch && KERAS_BACKEND=torch python make_early_stopping_keras.py > early_stopping_keras.json

Values and differences are binary fractions, so that ties are ties in any arithmetic.
"""
import json
import math
import random

from keras.callbacks import EarlyStopping


class Model:
    stop_training = False
    metrics = []

    def get_weights(self):
        return []

    def set_weights(self, weights):
        pass


def number(value):
    return value if math.isfinite(value) else ("NaN" if math.isnan(value) else
                                               "Infinity" if value > 0 else "-Infinity")


def run(rule, values):
    callback = EarlyStopping(monitor="m", restore_best_weights=True, **rule)
    model = Model()
    callback.set_model(model)
    callback.on_train_begin()
    checks = []
    for epoch, value in enumerate(values):
        callback.on_epoch_end(epoch, {"m": value})
        best = None if callback.best is None else number(float(callback.best))
        checks.append([number(value), model.stop_training, best, callback.wait])
        if model.stop_training:
            break
    return checks


def cases():
    up = [1.0, 0.75, 0.75, 0.5, 0.5, 0.625, 0.5, 0.25]
    for mode in ("min", "max"):
        sign = 1 if mode == "min" else -1
        for patience in (0, 1, 2, 3):
            for min_delta in (0.0, 0.25):
                yield dict(mode=mode, patience=patience, min_delta=min_delta), [sign * v for v in up]
        for bad in (math.nan, math.inf, -math.inf):
            yield dict(mode=mode, patience=2), [0.75, bad, 0.5, bad, bad, 0.25]
            yield dict(mode=mode, patience=2), [bad, 0.5, 0.25, 0.5]
        yield dict(mode=mode, patience=2, baseline=sign * 0.5), [sign * v for v in (1, 0.75, 0.625, 0.5, 0.375, 0.5, 0.5)]
        yield dict(mode=mode, patience=1, start_from_epoch=3), [sign * v for v in (0, 1, 2, 3, 4, 5)]
    generator = random.Random(7)
    for _ in range(60):
        rule = dict(mode=generator.choice(["min", "max"]), patience=generator.randrange(0, 5),
                    min_delta=generator.choice([0.0, 0.125, 0.5]))
        if generator.random() < 0.5:
            rule["baseline"] = generator.randrange(-8, 9) / 8
        if generator.random() < 0.3:
            rule["start_from_epoch"] = generator.randrange(0, 5)
        yield rule, [generator.randrange(-16, 17) / 8 for _ in range(12)]


print("[")
print(",\n".join(json.dumps({"rule": rule, "checks": run(rule, values)}) for rule, values in cases()))
print("]")

"""The peers of the TPE sampler: Optuna 5.0.0 and Rustuna 0.2.0 on the objective and space of tpe_bench.cc.

    python tests/bench/tuner/peers.py            in an environment with optuna==5.0.0 and rustuna==0.2.0

Default settings, in-memory storage, one worker, seed 0, after a study of 100 trials that is thrown away; the figure is
the median ask + tell of the 30 trials before the mark. Optuna is left out at 10,000 trials:
its time grows by 8 us a trial and ask, so that the study takes 10 minutes.
"""

import json
import logging
import math
import statistics
import time
import warnings

WINDOW = 30
FLOATS = [f"x{i}" for i in range(8)]


def objective(params):
    total = sum((params[name] - 0.3) ** 2 for name in FLOATS)
    total += 0.1 * (math.log10(params["lr"]) + 3) ** 2
    return total + (0.0 if params["c"] == "b" else 0.2)


def measure(peer, study, tell, marks):
    times = []
    for number in range(marks[-1]):
        start = time.perf_counter()
        trial = study.ask()
        params = {name: trial.suggest_float(name, 0.0, 1.0) for name in FLOATS}
        params["lr"] = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
        params["c"] = trial.suggest_categorical("c", ["a", "b", "c"])
        asked = time.perf_counter()
        value = objective(params)
        told = time.perf_counter()
        tell(trial, value)
        times.append((time.perf_counter() - told + asked - start) * 1e6)
        if number + 1 in marks and peer:
            figure = {
                "name": f"TPE ask + tell, 10 parameters, {number + 1} trials",
                "value": round(statistics.median(times[-WINDOW:]), 2),
                "unit": "us",
                "better": "lower",
                "peer": peer,
            }
            print(json.dumps(figure), flush=True)


def main():
    warnings.simplefilter("ignore")
    import optuna
    import rustuna

    optuna.logging.set_verbosity(logging.ERROR)
    optuna_study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    for make in (optuna, rustuna):
        warm = make.create_study(sampler=make.samplers.TPESampler(seed=0))
        by_number = lambda trial, value, warm=warm: warm.tell(trial.number, value)  # noqa: E731
        measure(None, warm, warm.tell if make is optuna else by_number, (100,))
    measure(f"Optuna {optuna.__version__}", optuna_study, optuna_study.tell, (100, 1_000))
    rustuna_study = rustuna.create_study(sampler=rustuna.samplers.TPESampler(seed=0))
    rustuna_tell = lambda trial, value: rustuna_study.tell(trial.number, value)  # noqa: E731
    measure("Rustuna 0.2.0", rustuna_study, rustuna_tell, (100, 1_000, 10_000))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Trials of one second on two slots: ours beside each engine's own way, in one run.

    tests/engines/setup.sh                                                        # once: the environment with Spark and Ray
    build/engines-venv/bin/python tests/bench/engines/trials_bench.py             # 20 trials: minutes
    build/engines-venv/bin/python tests/bench/engines/trials_bench.py --trials 200 spark

The seconds from the call to the last trial's end, and to the first trial's start. An engine's session is up before the clock starts,
and each way has run two trials before, so that no import counts.
"""

import sys
import tempfile
import time

from bench_support import SLOTS, ray_cluster, run_benches, show, spark_session


def objective(x):
    """A trial: says when it began."""
    began = time.time()
    time.sleep(1)
    return {"loss": x, "status": "ok", "began": began}


def show_both(engine, count, seconds, first, peer=None):
    show(f"{count} trials of 1 s on {SLOTS} slots of {engine}", seconds, peer, count / SLOTS * 1.01)
    show(f"the first of them on {engine}", first, peer)


def hyperopts(trials, count):
    """(seconds, seconds to the first trial)."""
    import hyperopt

    begin, clock = time.time(), time.monotonic()
    hyperopt.fmin(objective, hyperopt.hp.uniform("x", 0, 1), algo=hyperopt.rand.suggest, max_evals=count, trials=trials, verbose=False)
    seconds = time.monotonic() - clock
    assert len(trials) == count
    return seconds, min(result["began"] for result in trials.results) - begin


def bench_processes(wanted):
    from tune_client import TuneTrials

    show_both("this machine's processes", wanted.trials, *hyperopts(TuneTrials(parallelism=SLOTS, engine="processes"), wanted.trials))


def bench_spark(wanted):
    from hyperopt import SparkTrials

    from tune_client import TuneTrials

    with spark_session() as spark:
        for peer, kind in ((None, TuneTrials), ("SparkTrials", SparkTrials)):
            hyperopts(kind(parallelism=SLOTS, spark_session=spark), SLOTS)
            show_both("Spark", wanted.trials, *hyperopts(kind(parallelism=SLOTS, spark_session=spark), wanted.trials), peer)


def rays(tune, count, folder, **run):
    """(seconds, seconds to the first trial) with ray.tune's names, whoever's they are."""

    def train(config):
        began = time.time()
        time.sleep(1)
        tune.report({"loss": config["x"], "began": began})

    begin, clock = time.time(), time.monotonic()
    grid = tune.Tuner(train, param_space={"x": tune.uniform(0, 1)},
                      tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=count, max_concurrent_trials=SLOTS),
                      run_config=tune.RunConfig(storage_path=folder, verbose=0, **run)).fit()
    seconds = time.monotonic() - clock
    assert len(grid) == count and not grid.errors
    return seconds, min(result.metrics["began"] for result in grid) - begin


def bench_ray(wanted):
    with ray_cluster(), tempfile.TemporaryDirectory() as folder:
        from ray import tune as theirs

        from tune_ray import tune as ours

        for peer, tune in ((None, ours), ("Ray Tune", theirs)):
            rays(tune, SLOTS, folder)
            show_both("Ray", wanted.trials, *rays(tune, wanted.trials, folder), peer)


if __name__ == "__main__":
    sys.exit(run_benches(__file__, __doc__, {"processes": bench_processes, "spark": bench_spark, "ray": bench_ray}))

#!/usr/bin/env python3
"""Trials of one second on two slots: ours beside each engine's own way, in one run.

    tests/engines/setup.sh                                                              # once: the environment with Spark and Ray
    build/engines-venv/bin/python tests/bench/engines/trials.py                         # 20 trials: minutes
    build/engines-venv/bin/python tests/bench/engines/trials.py --trials 200            # the figures of docs/benchmarks.md
    build/engines-venv/bin/python tests/bench/engines/trials.py spark                   # one engine

Prints a JSON object a figure, as tests/bench/run.py describes them: the seconds from the call to the last trial's end, and to the first
trial's start. An engine's session is up before the clock starts, and each way has run two trials before, so that no import counts.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
CLIENTS = ROOT / "clients" / "python"
SLOTS = 2


def objective(x):
    """A trial: says when it began."""
    began = time.time()
    time.sleep(1)
    return {"loss": x, "status": "ok", "began": began}


def show(name, value, peer=None, target=None):
    figure = {"name": name, "value": round(value, 2), "unit": "s", "better": "lower"}
    if peer:
        figure["peer"] = peer
    if target:
        figure["target"] = target
    print(json.dumps(figure), flush=True)


def show_both(engine, count, seconds, first, peer=None):
    target = None if peer else count / SLOTS * 1.01
    show(f"{count} trials of 1 s on {SLOTS} slots of {engine}", seconds, peer, target)
    show(f"first trial on {engine}", first, peer)


def hyperopts(trials, count):
    """(seconds, seconds to the first trial)."""
    import hyperopt

    begin, clock = time.time(), time.monotonic()
    hyperopt.fmin(objective, hyperopt.hp.uniform("x", 0, 1), algo=hyperopt.rand.suggest, max_evals=count, trials=trials, verbose=False)
    seconds = time.monotonic() - clock
    assert len(trials) == count
    return seconds, min(result["began"] for result in trials.results) - begin


def bench_processes(count):
    from tune_client import TuneTrials

    seconds, first = hyperopts(TuneTrials(parallelism=SLOTS, engine="processes"), count)
    show_both("this machine's processes", count, seconds, first)


def bench_spark(count):
    from hyperopt import SparkTrials
    from pyspark.sql import SparkSession

    from tune_client import TuneTrials

    spark = (SparkSession.builder.master(f"local-cluster[{SLOTS},1,1024]").config("spark.ui.enabled", "false").getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    ways = {None: lambda: TuneTrials(parallelism=SLOTS, spark_session=spark),
            "SparkTrials": lambda: SparkTrials(parallelism=SLOTS, spark_session=spark)}
    for peer, trials in ways.items():
        hyperopts(trials(), SLOTS)
        show_both("Spark", count, *hyperopts(trials(), count), peer)
    spark.stop()


def rays(tune, count, folder):
    """(seconds, seconds to the first trial) with ray.tune's names, whoever's they are."""

    def train(config):
        began = time.time()
        time.sleep(1)
        tune.report({"loss": config["x"], "began": began})

    begin, clock = time.time(), time.monotonic()
    grid = tune.Tuner(train, param_space={"x": tune.uniform(0, 1)},
                      tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=count, max_concurrent_trials=SLOTS),
                      run_config=tune.RunConfig(storage_path=folder, verbose=0)).fit()
    seconds = time.monotonic() - clock
    assert len(grid) == count and not grid.errors
    return seconds, min(result.metrics["began"] for result in grid) - begin


def bench_ray(count):
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray import tune as theirs
    from ray.cluster_utils import Cluster

    from tune_ray import tune as ours

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 << 20, "include_dashboard": False})
    for _ in range(SLOTS):
        cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    ray.init(address=cluster.address, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        for peer, tune in ((None, ours), ("Ray Tune", theirs)):
            rays(tune, SLOTS, folder)
            show_both("Ray", count, *rays(tune, count, folder), peer)
    ray.shutdown()
    cluster.shutdown()


BENCHES = {"processes": bench_processes, "spark": bench_spark, "ray": bench_ray}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(BENCHES)}; default: all")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # the process of one engine
    wanted = parser.parse_args()
    unknown = set(wanted.engines) - set(BENCHES)
    if unknown:
        parser.error(f"unknown engine {', '.join(unknown)}")
    if wanted.inside:
        sys.path.insert(0, str(CLIENTS))
        BENCHES[wanted.inside](wanted.trials)
        return 0
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.setdefault("TUNE_BIN_DIR", str(ROOT / "build" / "release" / "bin"))
    failed = 0
    for engine in wanted.engines or BENCHES:
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([environment["TUNE_BIN_DIR"] + "/tune", "server", "--port", "0", "--data", folder],
                                       stdout=subprocess.PIPE, text=True)
            url = next(word for word in process.stdout.readline().split() if word.startswith("http"))
            words = [sys.executable, __file__, "--inside", engine, "--trials", str(wanted.trials)]
            done = subprocess.run(words, env={**environment, "TUNE_SERVER": url}, cwd=folder, check=False)
            failed += done.returncode != 0
            process.terminate()
            process.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""An executor, a node or a job is lost in the middle of a study: the time to the same number of finished trials, against undisturbed.

    tests/engines/setup.sh                                                        # once: the environment with Spark and Ray
    build/engines-venv/bin/python tests/bench/engines/losses_bench.py             # all
    build/engines-venv/bin/python tests/bench/engines/losses_bench.py --trials 40 spark

Trials of one second on two slots. Half of them have ended when one of the two executors is killed with -9 (Spark), one of the two
nodes with all that runs on it (Ray, which gets another node), one of the two jobs (Slurm).
"""

import os
import pathlib
import signal
import sys
import tempfile
import threading
import time

from bench_support import OK, SLOTS, ray_cluster, run_benches, show, show_missing, slurm_cluster, spark_session, wait_for

import cluster  # Slurm's, which bench_support puts on the path


def disturbed(run, end_one, folder, trials):
    """(seconds undisturbed, seconds with a loss), each after a first run; `run(note)`: trials each make a file in the folder `note`."""
    seconds = []
    for number in range(3):
        note = pathlib.Path(folder) / f"run-{number}-{time.monotonic_ns()}"
        note.mkdir()
        faults = []

        def call(note=note, faults=faults):
            try:
                run(note)
            except BaseException as fault:
                faults.append(fault)

        thread = threading.Thread(target=call)
        begin = time.monotonic()
        thread.start()
        if number == 2:  # here and not in a thread: Ray starts nodes in the main thread only
            wait_for(lambda note=note: len(list(note.iterdir())) > trials // 2, "half of the trials")
            end_one()
        thread.join()
        if faults:
            raise faults[0]
        seconds.append(time.monotonic() - begin)
    return seconds[1:]


def show_loss(engine, what, trials, undisturbed, lossy, peer=None):
    show(f"{trials} trials of 1 s on {engine}, undisturbed", undisturbed, peer)
    show(f"the same, beyond that with {what} lost", lossy - undisturbed, peer)


def bench_spark(wanted):
    import hyperopt
    from hyperopt import SparkTrials

    from tune_client import TuneTrials

    def objective_in(note):
        folder = str(note)

        def objective(x):
            import uuid

            time.sleep(1)
            pathlib.Path(folder, uuid.uuid4().hex).touch()
            return x

        return objective

    def executors():
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        for peer, kind in ((None, TuneTrials), ("SparkTrials", SparkTrials)):
            def run(note, kind=kind):
                trials = kind(parallelism=SLOTS, spark_session=spark)
                hyperopt.fmin(objective_in(note), hyperopt.hp.uniform("x", 0, 1), algo=hyperopt.rand.suggest, max_evals=wanted.trials,
                              trials=trials, verbose=False)
                assert len(trials.losses()) == wanted.trials

            times = disturbed(run, lambda: os.kill(executors()[0], signal.SIGKILL), folder, wanted.trials)
            show_loss("Spark", "an executor", wanted.trials, *times, peer)


def bench_ray(wanted):
    with tempfile.TemporaryDirectory() as folder, ray_cluster() as cluster:
        from ray import tune as theirs

        from tune_ray import tune as ours

        def replace_node():
            cluster.remove_node(cluster.workers.pop(), allow_graceful=False)
            cluster.workers.append(cluster.add_node(num_cpus=1, object_store_memory=100 << 20))

        for peer, tune in ((None, ours), ("Ray Tune", theirs)):
            def run(note, tune=tune):
                place = str(note)

                def train(config):
                    import uuid

                    time.sleep(1)
                    pathlib.Path(place, uuid.uuid4().hex).touch()
                    tune.report({"loss": config["x"]})

                grid = tune.Tuner(train, param_space={"x": tune.uniform(0, 1)},
                                  tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=wanted.trials,
                                                              max_concurrent_trials=SLOTS),
                                  run_config=tune.RunConfig(storage_path=folder, verbose=0, name=note.name,
                                                            failure_config=tune.FailureConfig(max_failures=-1))).fit()
                assert len(grid) == wanted.trials and not grid.errors

            times = disturbed(run, replace_node, folder, wanted.trials)
            show_loss("Ray", "a node", wanted.trials, *times, peer)


def bench_slurm(wanted):
    if not cluster.is_installed():
        show_missing(f"{wanted.trials} trials of 1 s on Slurm, undisturbed", "Slurm is not installed")
        return
    with slurm_cluster() as (slurm, scene):
        def run(note):
            done = scene.tune("run", "--port", 0, "--on", "cluster", "--study", note.name, "-n", wanted.trials, "-m", "loss:min", "x=0..1",
                              "--", "sh", "-c", f"sleep 1; touch {note}/$TUNE_TRIAL; echo 'tune: {{\"loss\": 1}}'", "{x}")
            assert done.returncode == OK, done.stderr
            scene.check_whole(wanted.trials, note.name)

        def lose_job():
            slurm.run("scancel", "--signal=KILL", "--full", slurm.jobs("-t", "R")[0][0])

        times = disturbed(run, lose_job, scene.folder, wanted.trials)
        show_loss("Slurm", "a job", wanted.trials, *times)


if __name__ == "__main__":
    sys.exit(run_benches(__file__, __doc__, {"spark": bench_spark, "ray": bench_ray, "slurm": bench_slurm}))

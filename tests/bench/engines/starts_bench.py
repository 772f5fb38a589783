#!/usr/bin/env python3
"""From the call that starts agents to the first trial's begin, beside the engine's own start of as many empty tasks.

    tests/engines/setup.sh                                                        # once: the environment with Spark and Ray
    build/engines-venv/bin/python tests/bench/engines/starts_bench.py             # all
    build/engines-venv/bin/python tests/bench/engines/starts_bench.py slurm       # a real Slurm, as the tests start it

The engine is up, and each way has started once before. Of five starts the median. The aim is the engine's own start and a second.
"""

import os
import statistics
import sys
import tempfile
import time

from bench_support import SLOTS, agents_of, noted, ray_cluster, run_benches, show, show_missing, slurm_cluster, spark_session, wait_for

import cluster  # Slurm's, which bench_support puts on the path

STARTS = 5


def median(start):
    """Of several calls; `start`: the number of the call -> the seconds it took. The first call does not count."""
    return statistics.median([start(number) for number in range(STARTS + 1)][1:])


def show_start(engine, theirs, ours, task):
    name = f"agents started on {engine} to the first trial"
    show(name, ours, target=theirs + 1)
    show(name, theirs, peer=task)


def started(run_agents, number):
    """Seconds until a trial began."""
    import tune_client

    with tempfile.TemporaryDirectory() as folder:
        command, began = noted(folder)
        name = f"start-{number}"
        wait_for(lambda: not agents_of(os.environ["TUNE_SERVER"]), "the end of the agents before")
        tune_client.create_study(name, space={"x": {"float": [0, 1]}}, metric="loss", trials=SLOTS, sampler="random", command=command)
        begin = time.time()
        with run_agents(name) as agents:
            first = min(wait_for(began, "a trial"))
            agents.wait(120)
    return first - begin


def bench_spark(_):
    import tune_spark

    with spark_session() as spark:
        def task(_):
            begin = time.time()
            return min(spark.sparkContext.parallelize(range(SLOTS), SLOTS).map(lambda _: time.time()).collect()) - begin

        theirs = median(task)
        ours = median(lambda number: started(lambda study: tune_spark.run_agents(spark, os.environ["TUNE_SERVER"], study, SLOTS), number))
        show_start("Spark", theirs, ours, f"the first of {SLOTS} empty tasks")


def bench_ray(_):
    with ray_cluster():
        import ray

        import tune_ray

        @ray.remote(num_cpus=1)
        class Actor:
            def now(self):
                return time.time()

        def actor(_):
            begin = time.time()
            made = [Actor.remote() for _ in range(SLOTS)]
            seconds = min(ray.get([each.now.remote() for each in made])) - begin
            for each in made:
                ray.kill(each)
            return seconds

        theirs = median(actor)
        ours = median(lambda number: started(lambda study: tune_ray.run_agents(os.environ["TUNE_SERVER"], study, SLOTS), number))
        show_start("Ray", theirs, ours, f"the first of {SLOTS} empty actors")


def bench_slurm(_):
    if not cluster.is_installed():
        show_missing("agents started on Slurm to the first trial", "Slurm is not installed")
        return
    with slurm_cluster() as (slurm, scene):
        url = scene.server()

        def job(number):
            note = scene.folder / f"job-{number}"
            begin = time.time()
            slurm.run("sbatch", "-p", "gpu", "-o", "/dev/null", f"--array=0-{SLOTS - 1}", "--wrap", f"date +%s.%N >> {note}")
            first = float(wait_for(lambda: note.exists() and note.read_text().split(), "a job")[0])
            slurm.clear()
            return first - begin

        def agents(number):
            note = scene.folder / f"trials-{number}"
            note.mkdir()
            command, began = noted(note)
            run = scene.start("run", "--no-agent", "--server", url, "--study", f"start-{number}", "-n", SLOTS, "-m", "loss:min",
                              "x=0..1", "--", *command)
            wait_for(lambda: f"start-{number}" in scene.tune("ls", "--server", url).stdout, "the study")
            begin = time.time()
            up = scene.start("agents", "up", "--on", "cluster", "--server", url)
            first = min(wait_for(began, "a trial"))
            for process in (run, up):
                process.wait()
            scene.tune("agents", "down", "--server", url)
            slurm.clear()
            return first - begin

        show_start("Slurm", median(job), median(agents), f"the first of {SLOTS} empty jobs")


if __name__ == "__main__":
    sys.exit(run_benches(__file__, __doc__, {"spark": bench_spark, "ray": bench_ray, "slurm": bench_slurm}))

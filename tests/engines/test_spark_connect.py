"""tune_spark on a session of Spark Connect, whose server is another process. Takes a second JVM: by TUNE_ENGINES_LONG=1 alone."""

import os
import subprocess
import sys

import pytest
from conftest import CLIENTS, long

pytest.importorskip("pyspark")

SCRIPT = """
import os, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local-cluster[2,1,1024]").config("spark.ui.enabled", "false").getOrCreate()
sys.path.insert(0, sys.argv[2])  # not before: executors are sent what they need
import tune_client as tune
import tune_spark
from tune_spark._session import is_connect
print("connect", is_connect(spark), flush=True)

def train(a):
    print("rank", os.environ["RANK"], "speaks", flush=True)
    return a, os.environ["WORLD_SIZE"]

print("slots", tune_spark.slots_of(spark), flush=True)
print("value", tune_spark.TuneDistributor(2, local_mode=False, use_gpu=False).run(train, 3), flush=True)
from hyperopt import fmin, hp, rand
trials = tune.TuneTrials(parallelism=2, spark_session=spark, server=sys.argv[1])
fmin(lambda x: x ** 2, hp.uniform("x", -1, 1), algo=rand.suggest, max_evals=4, trials=trials, verbose=False)
print("trials", len(trials), flush=True)
study = tune.create_study("connect-agents", space={"x": {"float": [0, 1]}}, metric="loss", trials=3, server=sys.argv[1],
                          command=["sh", "-c", "echo 'tune: {\\"loss\\": 1}'"])
with tune_spark.run_agents(spark, sys.argv[1], study="connect-agents", slots=2) as agents:
    print("agents", agents.wait(120), study.info()["counts"]["complete"], flush=True)
spark.stop()
"""


@long
def test_all_of_it_works_over_connect(url, tmp_path):
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    del environment["PYTHONPATH"]
    done = subprocess.run([sys.executable, "-c", SCRIPT, url, CLIENTS], env=environment, cwd=tmp_path, capture_output=True, text=True,
                          timeout=280, check=False)
    shown = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ("connect True", "slots 2", "value (3, '2')", "trials 4", "agents True 3"):
        assert line in shown, done.stdout + done.stderr
    assert "rank 1 speaks" in done.stdout + done.stderr

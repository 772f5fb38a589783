"""What Spark gives and takes: GPUs of resources(), executors that come and go, and the death of whatever takes part in a study.

Each in an application of its own, in another process.
"""

import json
import os
import subprocess
import sys

import pytest
from conftest import BIN_DIR, CLIENTS, long, processes_with, wait_for
from faults import COMMAND, LONG_S, Own, started

pytest.importorskip("pyspark")

import tune_client as tune  # noqa: E402

SESSION = """
import json, os, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", "false")
for key, value in json.loads(sys.argv[2]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
sys.path.insert(0, sys.argv[3])  # not before: executors are sent what they need
import tune_spark
print("application", spark.sparkContext.applicationId, flush=True)
"""


def application(tmp_path, script, master, settings, *words, **more):
    """Starts a script with a session; its process."""
    (tmp_path / "application.py").write_text(SESSION + script)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    folder = tmp_path / "spark"
    folder.mkdir(exist_ok=True)
    settings = {"spark.local.dir": str(folder), "spark.executorEnv.TMPDIR": str(folder), **settings}
    return subprocess.Popen([sys.executable, "application.py", master, json.dumps(settings), str(CLIENTS), *map(str, words)], cwd=tmp_path,
                            env={**environment, "SPARK_LOCAL_IP": "127.0.0.1", **more}, stdout=subprocess.PIPE, text=True)


def ended(process):
    """What it printed, once it has ended well."""
    shown, _ = process.communicate(timeout=280)
    assert process.returncode == 0, shown
    return shown.splitlines()


GPUS = """
study = sys.argv[4]
with tune_spark.run_agents(spark, os.environ["TUNE_SERVER"], study=study, slots=4) as agents:
    print("ended", agents.wait(150), flush=True)

def shown():
    return os.environ["RANK"], os.environ["CUDA_VISIBLE_DEVICES"], os.getppid()

print("ranks", json.dumps(tune_spark.TuneDistributor(4, local_mode=False, use_gpu=True).run_all(shown)), flush=True)
runner = tune_spark.MirroredStrategyRunner(num_slots=4, use_custom_strategy=True)
print("first", runner.run(lambda: os.environ["CUDA_VISIBLE_DEVICES"]), flush=True)
spark.stop()
"""


@long
@pytest.mark.timeout(600)
def test_agents_and_ranks_have_the_gpus_of_their_tasks(url, tmp_path):
    """Two executors with two GPUs each, which a discovery script names; the driver library that agents ask is that of their own tests."""
    library = BIN_DIR / "fake_nvml" / "libnvidia-ml.so.1"
    assert library.exists(), f"no {library}: tests/build.sh tests makes it"
    (tmp_path / "machine").write_text("driver 575.57.08\n" + "".join(f"gpu GPU-{i}{i}{i} bytes=8000000000 used=0\n" for i in range(4)))
    discovery = tmp_path / "discovery.sh"  # two machines' workers are this one's: each has two of its four
    discovery.write_text(f"""#!/bin/sh
if mkdir {tmp_path}/asked; then addresses='"0", "1"'; else addresses='"2", "3"'; fi 2>/dev/null
echo '{{"name": "gpu", "addresses": ['"$addresses"']}}'
""")
    discovery.chmod(0o755)
    settings = {"spark.worker.resource.gpu.amount": "2", "spark.worker.resource.gpu.discoveryScript": str(discovery),
                "spark.executor.resource.gpu.amount": "2", "spark.task.resource.gpu.amount": "1",
                "spark.executorEnv.LD_LIBRARY_PATH": str(library.parent), "spark.executorEnv.FAKE_NVML": str(tmp_path / "machine")}
    # Each trial waits until four run, so that every agent has one.
    (tmp_path / "trial.sh").write_text('echo "$CUDA_VISIBLE_DEVICES" > "$1/gpus-$$"\n'
                                       'while [ "$(ls "$1" | grep -c ^gpus-)" -lt 4 ]; do sleep 0.1; done\necho \'tune: {"loss": 1}\'\n')
    study = tune.create_study("spark-gpus", space={"x": {"float": [0, 1]}}, metric="loss", trials=4, server=url, sampler="random",
                              resources={"gpus": 1}, command=["sh", str(tmp_path / "trial.sh"), str(tmp_path)])
    lines = ended(application(tmp_path, GPUS, "local-cluster[2,2,1024]", settings, "spark-gpus", TUNE_SERVER=url))
    assert "ended True" in lines and study.info()["counts"]["complete"] == 4
    given = sorted(path.read_text().strip() for path in tmp_path.glob("gpus-*"))
    assert len(given) == 4 == len(set(given)), "each GPU once"
    ranks = json.loads(next(line for line in lines if line.startswith("ranks"))[6:])
    assert sorted(gpus for _, gpus, _ in ranks) == ["0", "1", "2", "3"] and [int(rank) for rank, _, _ in ranks] == [0, 1, 2, 3]
    assert next(line for line in lines if line.startswith("first")) in [f"first {i}" for i in range(4)]


DYNAMIC = """
import time
from hyperopt import fmin, hp, rand
import tune_client as tune

def executors():
    return spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is one of them

def settle(count):
    deadline = time.monotonic() + 90
    while executors() != count:
        assert time.monotonic() < deadline, (executors(), count)
        time.sleep(0.1)
    print("executors", count, flush=True)

settle(0)
print("slots", tune_spark.slots_of(spark), flush=True)
with tune_spark.run_agents(spark, os.environ["TUNE_SERVER"], study=sys.argv[4]) as agents:
    settle(2)
    print("ended", agents.wait(150), flush=True)
settle(0)
trials = tune.TuneTrials(parallelism=2, spark_session=spark)
fmin(lambda x: x, hp.uniform("x", 0, 1), algo=rand.suggest, max_evals=6, trials=trials, verbose=False)
print("trials", trials.count_successful_trials(), flush=True)
settle(0)
try:
    tune_spark.TuneDistributor(2, local_mode=False, use_gpu=False).run(print)
except RuntimeError as error:
    print("refused", "dynamic" in str(error).lower(), flush=True)
spark.stop()
"""


@long
@pytest.mark.timeout(600)
def test_waiting_agents_bring_executors_and_their_end_lets_them_go(url, tmp_path):
    settings = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true",
                "spark.dynamicAllocation.minExecutors": "0", "spark.dynamicAllocation.initialExecutors": "0",
                "spark.dynamicAllocation.maxExecutors": "2", "spark.dynamicAllocation.executorIdleTimeout": "2s", "spark.executor.cores": "1"}
    (tmp_path / "trial.py").write_text(COMMAND)
    study = tune.create_study("spark-dynamic", space={"x": {"float": [0, 1]}}, metric="loss", trials=6, server=url, sampler="random",
                              command=[sys.executable, str(tmp_path / "trial.py"), str(tmp_path)])
    (tmp_path / "hold").touch()
    process = application(tmp_path, DYNAMIC, "local-cluster[2,1,1024]", settings, "spark-dynamic", TUNE_SERVER=url)
    wait_for(lambda: len(started(tmp_path)) >= 2 or process.poll() is not None, "a trial on each executor")
    (tmp_path / "hold").unlink()
    lines = ended(process)
    assert lines[1:] == ["executors 0", "slots 2", "executors 2", "ended True", "executors 0", "trials 6", "executors 0", "refused True"]
    assert study.info()["counts"]["complete"] == 6


FAULTS = """
with tune_spark.run_agents(spark, os.environ["TUNE_SERVER"], study=sys.argv[4], slots=2) as agents:
    print("ended", agents.wait(), flush=True)
spark.stop()
"""


@long
@pytest.mark.timeout(900)
def test_whatever_dies_costs_no_trial(tmp_path):
    """kill -9 of an agent, an executor, the server and the driver, one after the other, in the middle of a study."""
    with Own(tmp_path) as own:
        study = own.study("spark-faults", 8)
        driver = application(tmp_path, FAULTS, "local-cluster[2,1,1024]", {}, "spark-faults", TUNE_SERVER=own.url)
        own.drivers.append(driver)
        name = driver.stdout.readline().split()[-1]
        own.kill_agent()
        own.kill_one_of("an executor", [pid for pid in processes_with("CoarseGrainedExecutorBackend") if pid in processes_with(name)])
        own.restart_server()
        driver.kill()
        driver.wait()
        wait_for(lambda: not processes_with(name), "the end of the application", LONG_S)
        wait_for(lambda: not own.trials() and not own.agents(wait=False), "the end of agents and trials, after that of the driver", LONG_S)
        own.release()
        again = application(tmp_path, FAULTS, "local-cluster[2,1,1024]", {}, "spark-faults", TUNE_SERVER=own.url)
        own.drivers.append(again)
        assert "ended True" in ended(again)
        own.check(study, 8)

"""What the benchmarks of engines share: a server, a session of Spark, a cluster of Ray, and how a figure is printed.

An engine is measured in a process of its own, with a server of its own: `run_benches` starts both.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
CLIENTS = ROOT / "clients" / "python"
ENGINES = ROOT / "tests" / "engines"
SLOTS = 2
sys.path[:0] = [str(CLIENTS), str(ROOT / "tests" / "contract" / "frameworks"), str(ENGINES), str(ENGINES / "slurm")]
import absent_cuda  # noqa: E402
import cluster  # noqa: E402
from launching import OK, Scene  # noqa: E402


def show(name, seconds, peer=None, target=None):
    """A figure, as tests/bench/run.py describes them."""
    figure = {"name": name, "value": round(seconds, 3), "unit": "s", "better": "lower"}
    if peer:
        figure["peer"] = peer
    elif target is not None:
        figure["target"] = round(target, 3)
    print(json.dumps(figure), flush=True)


def show_missing(name, reason, peer=None):
    print(json.dumps({"name": name, "unit": "s", "better": "lower", "missing": reason, **({"peer": peer} if peer else {})}), flush=True)


def wait_for(condition, what, timeout_s=300):
    """Until `condition()` is true, of other processes; its value."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"never came: {what}")
        time.sleep(0.005)
    return value


@contextlib.contextmanager
def spark_session():
    """Two executors of one core each, in processes of their own."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = SparkSession.builder.master(f"local-cluster[{SLOTS},1,1024]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def ray_cluster():
    """A head without places and two nodes of one core."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = os.environ["RAY_DISABLE_MEMORY_MONITOR"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 << 20, "include_dashboard": False})
    cluster.workers = [cluster.add_node(num_cpus=1, object_store_memory=100 << 20) for _ in range(SLOTS)]
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextlib.contextmanager
def slurm_cluster():
    """A real Slurm as the tests start it, and a place from which `tune` starts agents on it: the engine "cluster"."""
    slurm = cluster.Cluster()
    try:
        slurm.start()
        with tempfile.TemporaryDirectory() as folder, Scene(folder, **slurm.environment) as scene:
            scene.engines(cluster={"type": "slurm", "partition": "gpu", "agents": SLOTS, "cpus": 1, "slots": 1, "poll": "300ms"})
            yield slurm, scene
    finally:
        slurm.stop()


@contextlib.contextmanager
def importable_torch():
    """Lets ranks import torch where it is linked with CUDA's libraries and none are installed: stand-ins lie where they look."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(absent_cuda.for_processes(folder))
        yield


def agents_of(url):
    """The ids of this machine's agents of a server."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"agent\0--server\0{url}".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def noted(folder):
    """A command of which each run notes its time in `folder`, and what of it is noted: the times at which runs began."""
    command = ["sh", "-c", f"date +%s.%N >> {folder}/began; echo 'tune: {{\"loss\": 1}}'", "{x}"]
    path = pathlib.Path(folder) / "began"
    return command, lambda: [float(line) for line in path.read_text().split()] if path.exists() else []


def run_benches(file, description, benches):
    """`benches`: NAME -> function of the parsed arguments. Runs those that the command line names, each in a process of its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(benches)}; default: all")
    parser.add_argument("--trials", type=int, default=20, help="default %(default)s")
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # the process of one engine
    wanted = parser.parse_args()
    unknown = set(wanted.engines) - set(benches)
    if unknown:
        parser.error(f"unknown engine {', '.join(sorted(unknown))}")
    if wanted.inside:
        benches[wanted.inside](wanted)
        return 0
    environment = {**os.environ}
    environment.setdefault("TUNE_BIN_DIR", str(ROOT / "build" / "release" / "bin"))
    failed = 0
    for engine in wanted.engines or benches:
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([environment["TUNE_BIN_DIR"] + "/tune", "server", "--port", "0", "--data", folder + "/data"],
                                       stdout=subprocess.PIPE, text=True)
            url = next(word for word in process.stdout.readline().split() if word.startswith("http"))
            words = [sys.executable, file, "--inside", engine, "--trials", str(wanted.trials)]
            done = subprocess.run(words, env={**environment, "TUNE_SERVER": url}, cwd=folder, check=False)
            failed += done.returncode != 0
            process.terminate()
            process.wait()
    return 1 if failed else 0

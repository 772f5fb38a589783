"""Fixtures of the engines' tests: a real server, and our packages from where they lie."""

import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "clients" / "python"
BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
sys.path.insert(0, str(CLIENTS))
# Before a client is imported, and for the processes that engines start.
os.environ["TUNE_BIN_DIR"] = str(BIN_DIR)
os.environ["PYTHONPATH"] = os.pathsep.join([str(CLIENTS), str(pathlib.Path(__file__).parent)])
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
OWN_VARIABLES = ("TUNE_SERVER", "MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID")

long = pytest.mark.skipif(not os.environ.get("TUNE_ENGINES_LONG"), reason="takes minutes: TUNE_ENGINES_LONG=1 runs it")
TIMEOUT_S = 120  # only ever waited for by a test that fails


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    """The address of a server that all tests share."""
    folder = tmp_path_factory.mktemp("server")
    process = subprocess.Popen([BIN_DIR / "tune", "server", "--port", "0", "--data", folder / "data"], stdout=subprocess.PIPE,
                               text=True, start_new_session=True)
    found = re.search(r"https?://\S+", process.stdout.readline())
    assert found, "the server did not start"
    yield found.group(0)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


@pytest.fixture(autouse=True)
def own_place(tmp_path, monkeypatch):
    """Not at import: the workers' processes import this file, too, and a trial runs in them then."""
    monkeypatch.chdir(tmp_path)  # what a script writes where it stands, as MLflow's client without an address does
    for name in OWN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "")  # so that what a test leaves behind is taken back
        monkeypatch.delenv(name)


def wait_for(condition, what, timeout_s=TIMEOUT_S):
    """Until `condition()` is true, of other processes; its value."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.02)
    return value


def processes_with(words):
    """The ids of processes with these words in their command line, this one aside."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if words in command:
                found.append(int(entry.name))
    return found


def is_alive(pid):
    try:
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.fixture(scope="session")
def absent_cuda(tmp_path_factory):
    """Lets ranks import torch: that of PyPI is linked with CUDA's libraries. Stand-ins lie where every process looks. False without torch."""
    if importlib.util.find_spec("torch") is None:
        yield False
        return
    folder = tmp_path_factory.mktemp("absent-cuda")
    sys.path.append(str(ROOT / "tests" / "contract" / "frameworks"))
    import absent_cuda

    before = os.environ.get("LD_LIBRARY_PATH")
    os.environ.update(absent_cuda.for_processes(folder))
    yield True
    if before is None:
        del os.environ["LD_LIBRARY_PATH"]
    else:
        os.environ["LD_LIBRARY_PATH"] = before


@pytest.fixture(scope="session")
def spark(tmp_path_factory, absent_cuda):
    """Two executors of one core. They have nothing of ours on their path: what they run is sent to them."""
    import pyspark
    from pyspark.sql import SparkSession

    known = {name: os.environ.pop(name, None) for name in ("PYTHONPATH", "TUNE_BIN_DIR")}
    folder = tmp_path_factory.mktemp("spark")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (SparkSession.builder.master("local-cluster[2,1,1024]").appName("tune-tests")
               .config("spark.ui.enabled", "false").config("spark.local.dir", str(folder))
               .config("spark.executorEnv.TMPDIR", str(folder)).getOrCreate())
    session.sparkContext.setLogLevel("OFF")
    os.environ.update({name: value for name, value in known.items() if value is not None})
    logs = pathlib.Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId
    yield session
    session.stop()
    shutil.rmtree(logs, ignore_errors=True)

"""Fixtures of the contract tests: the real server as a process, driven by the real MLflow client."""

import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time
import uuid

import pytest

import openapi_answers

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Before any test module is read: a second conftest.py would take this one's name.
sys.path.insert(0, str(ROOT / "tests" / "contract" / "loader"))
import tuneloader_path  # noqa: E402, F401

BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build/release/bin"))

# The client reads these when it is imported.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
os.environ["GIT_PYTHON_REFRESH"] = "quiet"
os.environ["MPLBACKEND"] = "Agg"


def server_command(data, port, more=()):
    """`tune server`, or the tracking part alone where `tune` is not built."""
    tune = BIN_DIR / "tune"
    if tune.exists():
        return [str(tune), "server", "--data", str(data), "--port", str(port), *more]
    alone = BIN_DIR / "tracking_server"
    assert alone.exists(), f"neither tune nor tracking_server is in {BIN_DIR}; build first"
    return [str(alone), "--data", str(data), "--port", str(port)]


class Server:
    """One server process on one data folder."""

    # Of those that run: another's server may get the port of one that has ended.
    urls = set()

    def __init__(self, data, port=0, file_bytes_max=None, more=()):
        self.data = pathlib.Path(data)
        limit = None
        if file_bytes_max is not None:
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))
        self.log = open(self.data.parent / f"server-{uuid.uuid4().hex}.log", "w+")
        self.process = subprocess.Popen(
            server_command(data, port, more),
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            preexec_fn=limit,
        )
        line = self.process.stdout.readline()
        found = re.search(r"https?://[^\s]+", line)
        assert found, f"the server did not start: {line!r} {self.errors()}"
        self.url = found.group(0)
        self.port = int(self.url.rsplit(":", 1)[1].split("/")[0])
        Server.urls.add(self.url)

    def errors(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    @property
    def credentials(self):
        """The header of its owner; none where it knows no owner (the tracking part alone)."""
        token = self.data / "token"
        return {"Authorization": "Bearer " + token.read_text().strip()} if token.exists() else {}

    def is_alive(self):
        return self.process.poll() is None

    def memory_kb(self, field="VmRSS"):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise AssertionError(field)

    def cpu_seconds(self):
        """Processor time used so far: unlike the time of a request, it is the same on a busy machine."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def falls_to_kb(self, bound_kb, seconds=60):
        """Whether the memory is or comes below this: what requests freed is given back two quiet seconds later."""
        deadline = time.monotonic() + seconds
        while self.memory_kb() >= bound_kb and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.memory_kb() < bound_kb

    def kill(self):
        Server.urls.discard(self.url)
        self.process.kill()
        self.process.wait()

    def stop(self):
        Server.urls.discard(self.url)
        if self.is_alive():
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(120) == 0, self.errors()
        self.process.stdout.close()
        self.log.close()


class OtherServer:
    """A server that somebody else runs, e.g. MLflow's own, to check these tests themselves."""

    def __init__(self, url):
        self.url = url
        self.port = int(url.rsplit(":", 1)[1])

    def __getattr__(self, name):
        pytest.skip(f"needs our own server ({name})")


@pytest.fixture(autouse=True)
def no_experiment_stays():
    """`mlflow.set_experiment` tells child processes by the environment: those of this test alone."""
    yield
    os.environ.pop("MLFLOW_EXPERIMENT_ID", None)


@pytest.fixture(scope="session")
def answer_faults():
    with openapi_answers.watch(Server.urls) as faults:
        yield faults


@pytest.fixture(autouse=True)
def answers_as_described(answer_faults):
    """Every answer that a test gets matches the OpenAPI description."""
    yield
    found, answer_faults[:] = list(answer_faults), []
    assert not found, "answers that the OpenAPI description does not allow:\n" + "\n".join(found)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    if "TUNE_CONTRACT_URL" in os.environ:
        yield OtherServer(os.environ["TUNE_CONTRACT_URL"])
        return
    running = Server(tmp_path_factory.mktemp("server") / "data")
    yield running
    assert running.is_alive(), f"the server died during the tests: {running.errors()}"
    running.stop()


@pytest.fixture
def own_server(tmp_path):
    """Starts servers that a test may hurt: own_server(port=0, file_bytes_max=None, more=())."""
    started = []

    def start(**options):
        started.append(Server(tmp_path / "data", **options))
        return started[-1]

    yield start
    for each in started:
        if each.is_alive():
            each.kill()


@pytest.fixture
def mlflow(server):
    import mlflow as module

    module.set_tracking_uri(server.url)
    yield module
    while module.active_run():
        module.end_run()
    # What set_experiment() left would be the next test's experiment.
    module.tracking.fluent._active_experiment_id = None
    os.environ.pop("MLFLOW_EXPERIMENT_ID", None)


@pytest.fixture
def client(mlflow):
    return mlflow.MlflowClient()


@pytest.fixture
def experiment(client):
    """The id of a fresh experiment."""
    return client.create_experiment(f"experiment-{uuid.uuid4().hex}")


@pytest.fixture
def run(client, experiment):
    """The id of a fresh run."""
    return client.create_run(experiment).info.run_id

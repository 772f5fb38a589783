"""The two servers as processes: MLflow's own (SQLite, one worker) and ours."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build/release/bin")).absolute()


def scratch():
    """A folder in memory where there is one: MLflow syncs its database with each request, which is not the question."""
    memory = pathlib.Path("/dev/shm")
    return tempfile.mkdtemp(prefix="differential-", dir=memory if os.access(memory, os.W_OK) else None)


def address_of(process, log, seconds=180):
    """What the server logs once it listens."""
    deadline = time.monotonic() + seconds
    while not (found := re.search(r"running on (http://127.0.0.1:[1-9]\d*)\D", log.read_text())):
        assert process.poll() is None, f"MLflow's server ended with {process.returncode}: {log.read_text()}"
        assert time.monotonic() < deadline, f"MLflow's server did not answer in {seconds} s: {log.read_text()}"
        time.sleep(0.1)  # it has no other way to say that it listens
    with urllib.request.urlopen(found.group(1) + "/health", timeout=60) as answer:
        assert answer.status == 200
    return found.group(1)


@contextlib.contextmanager
def mlflow_server():
    """The address of `mlflow server --workers 1` on an empty store."""
    folder = scratch()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", "0", "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/artifacts"]
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    log = open(f"{folder}/server.log", "w")
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder, start_new_session=True)
    try:
        yield address_of(process, pathlib.Path(log.name))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def our_server():
    """The address of `tune server` on an empty folder."""
    folder = scratch()
    program = BIN_DIR / "tune"
    command = [str(program), "server"] if program.exists() else [str(BIN_DIR / "tracking_server")]
    process = subprocess.Popen(command + ["--data", f"{folder}/data", "--port", "0"], stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        line = process.stdout.readline()
        found = re.search(r"http://[^\s]+", line)
        assert found, f"our server did not start: {line!r}"
        yield found.group(0)
        assert process.poll() is None, f"our server died: {process.returncode}"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)

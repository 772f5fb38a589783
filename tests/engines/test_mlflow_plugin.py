"""The header provider that the wheel registers with MLflow's client."""

import importlib.util
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import BIN_DIR, CLIENTS, ROOT


@pytest.fixture
def installed(tmp_path):
    """A folder with the wheel's entry points, as pip leaves them."""
    spec = importlib.util.spec_from_file_location("make_wheel", ROOT / "cmake" / "package" / "make_wheel.py")
    make_wheel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_wheel)
    info = tmp_path / "installed" / "tune-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tune\nVersion: 0\n")
    (info / "entry_points.txt").write_text(make_wheel.ENTRY_POINTS)
    return info.parent


@pytest.fixture
def closed_server(tmp_path):
    """One that asks everybody for a login."""
    (tmp_path / "password").write_text("a long password of the admin")
    process = subprocess.Popen([BIN_DIR / "tune", "server", "--port", "0", "--data", tmp_path / "data", "--auth", "basic",
                                "--admin-password-file", tmp_path / "password"], stdout=subprocess.PIPE, text=True, start_new_session=True)
    yield re.search(r"https?://\S+", process.stdout.readline()).group(0)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


SCRIPT = """
import sys, mlflow
mlflow.set_tracking_uri(sys.argv[1])
with mlflow.start_run():
    mlflow.log_metric("loss", 0.5)
print("logged")
"""


def run(url, *paths, **more):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, paths), str(CLIENTS)]), "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", **more}
    return subprocess.run([sys.executable, "-c", SCRIPT, url], env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_the_login_is_found_without_a_line(installed, closed_server):
    refused = run(closed_server)
    assert refused.returncode != 0 and "UNAUTHENTICATED" in refused.stderr + refused.stdout, refused.stderr
    done = run(closed_server, installed)
    assert done.returncode == 0 and "logged" in done.stdout, done.stderr


def test_a_token_goes_to_its_own_server_alone(installed, monkeypatch):
    import mlflow

    from tune_client.mlflow_plugin import TuneHeaderProvider

    monkeypatch.setenv("TUNE_TOKEN", "secret")
    monkeypatch.setenv("TUNE_SERVER", "http://ours:5000")
    try:
        mlflow.set_tracking_uri("http://ours:5000/")
        assert TuneHeaderProvider().in_context()
        first, second = (TuneHeaderProvider().request_headers() for _ in range(2))
        assert first["Authorization"] == "Bearer secret" and first["Idempotency-Key"] != second["Idempotency-Key"]
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "mine")
        assert "Authorization" not in TuneHeaderProvider().request_headers()
        mlflow.set_tracking_uri("http://theirs:5000")
        assert not TuneHeaderProvider().in_context()
        mlflow.set_tracking_uri("http://ours:5000")
        mlflow.set_registry_uri("http://theirs:5000")
        assert not TuneHeaderProvider().in_context()
    finally:
        mlflow.set_registry_uri(None)
        mlflow.set_tracking_uri(None)

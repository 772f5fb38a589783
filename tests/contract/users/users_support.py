"""A server with users, MLflow's own client of its basic-auth app, and users of names that nobody had before.

The same calls run against `mlflow server --app-name basic-auth` too where TUNE_WITH_MLFLOW=1 is set (it takes a minute to start): what
the tests assert is what MLflow 3.17.2 does.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from mlflow.exceptions import MlflowException, RestException
from mlflow.server import get_app_client

from conftest import Server

ADMIN = ("admin", "the first password")
PASSWORD = "a password of twelve"


@contextlib.contextmanager
def login(username, password=PASSWORD):
    names = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ.update(MLFLOW_TRACKING_USERNAME=username, MLFLOW_TRACKING_PASSWORD=password)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def mlflow_server(folder):
    port = free_port()
    config = folder / "auth.ini"
    config.write_text(f"[mlflow]\ndefault_permission = READ\ndatabase_uri = sqlite:///{folder}/auth.db\nadmin_username = {ADMIN[0]}\n"
                      f"admin_password = {ADMIN[1]}\nauthorization_function = mlflow.server.auth:authenticate_request_basic_auth\n")
    env = {**os.environ, "MLFLOW_AUTH_CONFIG_PATH": str(config), "MLFLOW_FLASK_SERVER_SECRET_KEY": "a secret of this test"}
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--port", str(port), "--workers", "1",
               "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "artifacts")]
    process = subprocess.Popen(command, env=env, cwd=folder, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(url + "/health", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.2)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


@pytest.fixture(scope="module", params=["tune"] + (["mlflow"] if os.environ.get("TUNE_WITH_MLFLOW") else []))
def url(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "mlflow":
        with mlflow_server(folder) as address:
            yield address
        return
    secret = folder / "admin-password"
    secret.write_text(ADMIN[1] + "\n")
    server = Server(folder / "data", more=("--auth", "basic", "--admin-password-file", str(secret)))
    yield server.url
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0


@pytest.fixture
def auth(url):
    return get_app_client("basic-auth", tracking_uri=url)


@pytest.fixture
def user(auth):
    """Makes users of names that nobody had before."""
    made = []

    def make(name):
        name = f"{name}-{time.monotonic_ns()}"
        with login(*ADMIN):
            auth.create_user(name, PASSWORD)
        made.append(name)
        return name

    yield make
    with login(*ADMIN):
        for name in made:
            with contextlib.suppress(MlflowException):
                auth.delete_user(name)


@contextlib.contextmanager
def refused(code, text=""):
    with pytest.raises(MlflowException) as caught:
        yield
    if isinstance(caught.value, RestException):
        assert caught.value.error_code == code, str(caught.value)
    else:  # MLflow's own refusals are plain text
        status = {"PERMISSION_DENIED": "403", "UNAUTHENTICATED": "401"}[code]
        assert f"error code {status}" in str(caught.value), str(caught.value)
    assert text in str(caught.value)

"""The clients of a server behind https:// and a login: the command line, an agent with its trials, the Python client."""

import os
import pathlib
import subprocess
import sys
import time

import pytest
import requests

from conftest import Server
from test_transfer_https import CA, surroundings
from tls_front import Authority, TlsFront
from transfer_support import TUNE, tune_json

CLIENT = os.path.join(os.path.dirname(__file__), "../../../clients/python")
TOKEN = {"MLFLOW_TRACKING_TOKEN": "abc"}
TRIAL = "import os, mlflow\nprint('tune: {\"loss\": 1}')\nmlflow.log_param('who', os.environ['MLFLOW_TRACKING_TOKEN'])"
SCRIPT = """
import tune_client
study = tune_client.create_study("python", metric="loss", trials=2, space={"x": {"float": [0, 1]}})
study.optimize(lambda trial: trial.params["x"])
print(study.info()["counts"]["complete"])
"""


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("backend") / "data", more=["--auth", "off"])  # the front asks for the login
    yield server
    server.stop()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def test_an_agent_and_the_command_line(backend, authority, tmp_path):
    with TlsFront(backend.url, authority.issue("agent"), "Bearer abc") as front:
        known = surroundings(tmp_path, **{CA: authority.file}, **TOKEN)
        requests.post(backend.url + "/api/2.0/tune/studies", json={
            "name": "far", "metric": "loss:min", "space": {"x": "0..1"}, "budget": {"trials": 2},
            "command": [sys.executable, "-c", TRIAL]}).raise_for_status()
        log = open(tmp_path / "agent.log", "w+")
        agent = subprocess.Popen([TUNE, "agent", "--server", front.url, "--state", tmp_path / "agent", "--no-gpus"],
                                 env=known, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 200
            while (shown := tune_json("show", "far", "--server", front.url, env=known))["study"]["state"] != "completed":
                assert time.monotonic() < deadline, (shown, pathlib.Path(log.name).read_text())
                time.sleep(0.05)
        finally:
            agent.terminate()
            assert agent.wait(120) == 0, pathlib.Path(log.name).read_text()
        assert [trial["state"] for trial in shown["trials"]] == ["complete"] * 2, shown
        assert set(front.authorizations) == {"Bearer abc"}
        for variables, word in (({CA: authority.file}, "not authenticated"), (TOKEN, "not trusted")):
            refused = subprocess.run([TUNE, "ls", "--server", front.url], env=surroundings(tmp_path, **variables),
                                     capture_output=True, text=True, timeout=120)
            assert refused.returncode == 1 and word in refused.stderr, refused


@pytest.mark.parametrize("variables, word", [(TOKEN, None), ({}, "not authenticated"), (None, "CERTIFICATE_VERIFY_FAILED")])
def test_the_python_client(backend, authority, tmp_path, variables, word):
    with TlsFront(backend.url, authority.issue("python"), "Bearer abc") as front:
        trusted = {} if variables is None else {CA: authority.file, **variables}
        environment = surroundings(tmp_path, PYTHONPATH=CLIENT, TUNE_SERVER=front.url, **trusted)
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=120)
        if word is None:
            assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
        else:
            assert done.returncode != 0 and word in done.stderr, done

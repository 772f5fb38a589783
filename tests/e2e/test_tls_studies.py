"""A study over TLS: `tune run --server`, an agent that is not the server's, trials with MLflow's client, curl scripts."""

import contextlib
import os
import re
import subprocess
import sys

import pytest

from study_support import OK, ROOT, TUNE, server, wait_until

TRIAL = """
import json, os, mlflow
x = json.loads(os.environ["TUNE_PARAMS"])["x"]
assert os.environ["MLFLOW_TRACKING_URI"].startswith("https://")
with mlflow.start_run():
    mlflow.log_metric("loss", (x - 0.3) ** 2)
    mlflow.log_text("hello", "note.txt")
"""


def openssl(*words, cwd):
    subprocess.run(["openssl", *words], cwd=cwd, check=True, capture_output=True, timeout=60)


@pytest.fixture
def certificates(tmp_path):
    """Of an authority, a server and a client, made by openssl: ca.pem, server.pem with server.key, client.pem."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign", cwd=folder)
    for name in ("server", "client"):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}", cwd=folder)
        (folder / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", f"{name}.ext", "-out", f"{name}.crt", cwd=folder)
        (folder / f"{name}.pem").write_text((folder / f"{name}.crt").read_text() + (folder / f"{name}.key").read_text())
    return folder


def plain_environment(**variables):
    """Ours without what names certificates."""
    kept = {name: value for name, value in os.environ.items()
            if not name.endswith(("CA_BUNDLE", "CERT_FILE", "CERT_DIR", "CERT_PATH"))}
    return {**kept, **{name: str(value) for name, value in variables.items()}}


@contextlib.contextmanager
def agent(cwd, *words, environment=None):
    process = subprocess.Popen([TUNE, "agent", "--no-gpus", "--slots", "2", *map(str, words)], cwd=cwd, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment or plain_environment())
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize("shows", [False, True], ids=["certificate of the server", "certificates of both"])
def test_a_study_with_an_agent_elsewhere(tmp_path, certificates, shows):
    flags = ["--tls-cert", certificates / "server.crt", "--tls-key", certificates / "server.key"]
    trust = ["--ca", "certificates/ca.pem"]  # relative: trials run in other folders
    if shows:
        flags += ["--tls-client-ca", certificates / "ca.pem", "--tls-client-required"]
        trust += ["--client-cert", "certificates/client.pem"]
    with server(tmp_path, *flags) as (_, url), agent(tmp_path, "--server", url, *trust):
        assert url.startswith("https://127.0.0.1:")
        done = subprocess.run([TUNE, "run", "--server", url, *trust, "--no-agent", "--study", "far", "-n", "4", "-m",
                               "loss:min", "x=0..1", "--", sys.executable, "-c", TRIAL], cwd=tmp_path, text=True,
                              capture_output=True, timeout=200, env=plain_environment())
        assert done.returncode == OK, done.stderr
        shown = subprocess.run([TUNE, "show", "far", "--server", url, *trust, "--json"], cwd=tmp_path, text=True,
                               capture_output=True, timeout=60, env=plain_environment())
        assert re.findall(r'"state": ?"(\w+)"', shown.stdout).count("complete") == 4, shown.stdout


def test_the_python_client(tmp_path, certificates):
    script = ("import tune_client\n"
              "study = tune_client.create_study('py', metric='loss', trials=2, space={'x': {'float': [0, 1]}})\n"
              "study.optimize(lambda trial: trial.params['x'])\n"
              "print(study.info()['counts']['complete'])\n")
    flags = ["--tls-cert", certificates / "server.crt", "--tls-key", certificates / "server.key", "--tls-client-ca",
             certificates / "ca.pem", "--tls-client-required"]
    with server(tmp_path, *flags) as (_, url):
        known = plain_environment(TUNE_SERVER=url, PYTHONPATH=ROOT / "clients" / "python",
                                  TUNE_CA_FILE=certificates / "ca.pem", TUNE_CLIENT_CERT=certificates / "client.pem")
        done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, timeout=100, env=known)
        assert done.stdout == "2\n", done.stderr
        known.pop("TUNE_CA_FILE")
        refused = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, timeout=100, env=known)
        assert refused.returncode != 0 and "CERTIFICATE_VERIFY_FAILED" in refused.stderr


def test_an_agent_that_does_not_know_the_authority_says_so(tmp_path, certificates):
    flags = ["--tls-cert", certificates / "server.crt", "--tls-key", certificates / "server.key"]
    with server(tmp_path, *flags) as (_, url), agent(tmp_path, "--server", url) as stranger:
        said = []
        wait_until(lambda: said.append(stranger.stdout.readline()) or "not trusted" in said[-1], "an explanation")
        assert "--ca" in said[-1]


def test_beyond_loopback_with_tls(tmp_path, certificates):
    flags = ["--tls-cert", certificates / "server.crt", "--tls-key", certificates / "server.key"]
    with server(tmp_path, "--host", "0.0.0.0", *flags) as (_, url):
        assert url.startswith("https://0.0.0.0:"), "it is the address that it listens on"

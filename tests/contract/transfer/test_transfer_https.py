"""tune import of a server behind https://, with the certificates and credentials that MLflow's client would use."""

import base64
import os
import subprocess

import pytest

from conftest import Server
from tls_front import Authority, TlsFront
from transfer_support import TUNE, tune_json

PREFIXES = ("MLFLOW_TRACKING_", "REQUESTS_CA_", "CURL_CA_", "SSL_CERT_", "https_proxy", "HTTPS_PROXY", "all_proxy")
CA = "MLFLOW_TRACKING_SERVER_CERT_PATH"
INSECURE = "MLFLOW_TRACKING_INSECURE_TLS"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A server of ours with two runs and an artifact of 1 MB, as any MLflow server would hold them."""
    from mlflow import MlflowClient

    server = Server(tmp_path_factory.mktemp("source") / "data")
    client = MlflowClient(server.url)
    experiment = client.create_experiment("far")
    for i in range(2):
        run = client.create_run(experiment).info.run_id
        client.log_metric(run, "loss", 0.5 + i)
        client.log_text(run, "x" * (1 << 20), "big.txt")
        client.set_terminated(run)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def surroundings(tmp_path, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIXES)}
    return {**kept, "HOME": str(tmp_path), **{name: str(value) for name, value in variables.items()}}


def imported(url, tmp_path, **variables):
    report = tune_json("import", url, "--data", tmp_path / "data", env=surroundings(tmp_path, **variables))
    assert report["verified"] and report["source"]["runs"] == 2 and report["artifacts_new"] == 2, report
    return report


def refused(url, tmp_path, *words, code=1, **variables):
    done = subprocess.run([TUNE, "import", url, "--data", tmp_path / "data"], capture_output=True, text=True, timeout=120,
                          env=surroundings(tmp_path, **variables))
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def test_a_server_whose_certificate_is_known(source, authority, tmp_path):
    with TlsFront(source.url, authority.issue("known")) as front:
        imported(front.url, tmp_path, **{CA: authority.file})
        assert front.connections == 1, "the connection is kept"
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "authority.pem").write_bytes(authority.file.read_bytes())
        subprocess.run(["openssl", "rehash", folder], check=True, capture_output=True)
        again = tune_json("import", front.url, "--data", tmp_path / "data", env=surroundings(tmp_path, **{CA: folder}))
        assert again["verified"] and again["runs_unchanged"] == 2
    with TlsFront(source.url, authority.issue("requests")) as front:
        imported(front.url, tmp_path / "2", REQUESTS_CA_BUNDLE=authority.file)


def test_certificates_that_prove_nothing(source, authority, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with TlsFront(source.url, authority.issue("right")) as front:
        refused(front.url, tmp_path, "is not trusted", CA)
        refused(front.url, tmp_path, "is not trusted", **{CA: Authority(other, "another authority").file})
        refused(front.url, tmp_path, "no TLS connection", **{CA: Authority(other, "test authority").file})
    with TlsFront(source.url, authority.issue("elsewhere", "elsewhere.example")) as front:
        refused(front.url, tmp_path, "is not trusted", "127.0.0.1", **{CA: authority.file})
    with TlsFront(source.url, authority.issue("old", days=(-9, -1))) as front:
        refused(front.url, tmp_path, "is not trusted", "expired", **{CA: authority.file})
        assert front.authorizations == [], "nothing is sent before the server has proved who it is"


def test_the_check_can_be_left_out(source, authority, tmp_path):
    with TlsFront(source.url, authority.issue("unchecked", "elsewhere.example")) as front:
        imported(front.url, tmp_path, **{INSECURE: "true"})
        refused(front.url, tmp_path, "is not trusted", **{INSECURE: "0"})
        refused(front.url, tmp_path, "contradict", code=2, **{INSECURE: "1", CA: authority.file})
        refused(front.url, tmp_path, INSECURE, "must be true or false", code=2, **{INSECURE: "maybe"})


def test_files_and_libraries_that_are_missing(source, authority, tmp_path):
    with TlsFront(source.url, authority.issue("missing")) as front:
        refused(front.url, tmp_path, "'/none.pem' is not there", code=2, **{CA: "/none.pem"})
        refused(front.url, tmp_path, "'/none.pem' is not there", code=2, MLFLOW_TRACKING_CLIENT_CERT_PATH="/none.pem")
        (tmp_path / "text.pem").write_text("no certificate")
        refused(front.url, tmp_path, "cannot be read", **{CA: tmp_path / "text.pem"})
        (tmp_path / "libcurl.so.4").write_text("")
        refused(front.url, tmp_path, "need libcurl", "libcurl4", LD_LIBRARY_PATH=tmp_path)
    refused(source.url.replace("http:", "https:"), tmp_path, "cannot be reached", "plain http://")


@pytest.mark.parametrize("secured", [True, False])
def test_credentials_are_those_of_mlflows_client(source, authority, tmp_path, secured):
    certificate = authority.issue(f"users-{secured}") if secured else None
    basic = "Basic " + base64.b64encode("ann:pä%s".encode()).decode()
    cases = [
        ("Bearer abc", {"MLFLOW_TRACKING_TOKEN": "abc"}),
        (basic, {"MLFLOW_TRACKING_USERNAME": "ann", "MLFLOW_TRACKING_PASSWORD": "pä%s", "MLFLOW_TRACKING_TOKEN": "abc"}),
        ("Bearer abc", {"MLFLOW_TRACKING_USERNAME": "ann", "MLFLOW_TRACKING_TOKEN": "abc"}),
    ]
    for i, (wanted, variables) in enumerate(cases):
        with TlsFront(source.url, certificate, wanted) as front:
            imported(front.url, tmp_path / str(i), **{CA: authority.file}, **variables)
            assert set(front.authorizations) == {wanted}
    with TlsFront(source.url, certificate, basic) as front:
        refused(front.url, tmp_path, "not authenticated", **{CA: authority.file})
        refused(front.url, tmp_path, "control character", code=2, MLFLOW_TRACKING_TOKEN="a\r\nX-Evil: 1")
        (tmp_path / ".mlflow").mkdir()
        (tmp_path / ".mlflow" / "credentials").write_text(
            "[other]\nmlflow_tracking_username = bob\n[mlflow]\n# comment\nMLFLOW_TRACKING_USERNAME = ann\n"
            "mlflow_tracking_password: pä%%s\n")
        imported(front.url, tmp_path, **{CA: authority.file})


def test_a_server_that_wants_to_know_us(source, authority, tmp_path):
    with TlsFront(source.url, authority.issue("strict"), clients=authority.file) as front:
        refused(front.url, tmp_path, "certificate", **{CA: authority.file})
        imported(front.url, tmp_path, MLFLOW_TRACKING_CLIENT_CERT_PATH=authority.issue("me"), **{CA: authority.file})


def test_an_answer_that_is_cut_off_is_not_taken_for_whole(source, authority, tmp_path):
    with TlsFront(source.url, authority.issue("cut"), cut=1) as front:
        settings = surroundings(tmp_path, **{CA: authority.file})
        first = tune_json("import", front.url, "--data", tmp_path / "data", env=settings, code=1)
        assert first["error_code"] == "TEMPORARILY_UNAVAILABLE", first
        second = tune_json("import", front.url, "--data", tmp_path / "data", env=settings)
        assert second["verified"] and second["read_back"]["runs"] == 2, second
        assert second["artifacts_new"] == 2, "the file that was cut off is not there until it is whole"

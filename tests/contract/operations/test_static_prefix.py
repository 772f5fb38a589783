"""--static-prefix: everything under it, streamed artifacts beside it too, as MLflow 3.17.2."""

import os
import re
import subprocess
import urllib.request

import pytest
import requests

from conftest import BIN_DIR, Server

pytestmark = pytest.mark.skipif(not (BIN_DIR / "tune").exists(), reason="tune is not built")


@pytest.fixture(scope="module")
def prefixed(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("prefix") / "data", more=["--static-prefix", "/ml/tracking"])
    yield server
    server.stop()


def test_what_stands_where(prefixed):
    assert prefixed.url.endswith("/ml/tracking")
    root = prefixed.url.removesuffix("/ml/tracking")
    for path in ["/health", "/version", "/api/3.0/mlflow/server-info", "/ajax-api/3.0/mlflow/server-info", "/api/openapi.json",
                 "/api/2.0/mlflow/experiments/get?experiment_id=0", "/ajax-api/2.0/mlflow/experiments/get?experiment_id=0",
                 "/api/2.0/mlflow-artifacts/artifacts", "/api/ui/experiments", "/api/2.0/tune/studies"]:
        assert requests.get(prefixed.url + path).status_code == 200, path
        bare = requests.get(root + path)
        assert bare.status_code == 404 and bare.json()["error_code"] == "ENDPOINT_NOT_FOUND", path
    for wrong in ["/", "/ml", "/ml/", "/ml/trackinghealth", "/ml/tracking2/health", "/ML/tracking/health", "//ml/tracking/health"]:
        assert requests.get(root + wrong).status_code == 404, wrong
    assert requests.get(f"{root}/health", headers={"Host": "evil.com"}).status_code == 403, "only ours is for everybody"
    assert requests.get(f"{prefixed.url}/health", headers={"Host": "evil.com"}).text == "OK"
    for base in [root, prefixed.url]:
        for api in ["api", "ajax-api"]:
            file = f"{base}/{api}/2.0/mlflow-artifacts/artifacts/0/r/f"
            assert requests.put(file, data=b"bytes").status_code == 200
            assert requests.get(file).content == b"bytes" and requests.head(file).status_code == 200
            assert requests.put(file, data=b"x", headers={"Origin": "http://evil.com"}).status_code == 403
    assert requests.delete(f"{root}/api/2.0/mlflow-artifacts/artifacts/0/r/f").status_code == 404, "only streams are at both places"
    assert requests.delete(f"{prefixed.url}/api/2.0/mlflow-artifacts/artifacts/0/r/f").status_code == 200


def test_the_page_finds_its_files(prefixed):
    root = prefixed.url.removesuffix("/ml/tracking")
    for page in ["", "/", "/index.html", "/e/0", "/r/abc"]:
        with urllib.request.urlopen(prefixed.url + page) as answer:
            text = answer.read().decode()
        assert '<meta name="tune-prefix" content="/ml/tracking"' in text
        files = re.findall(r'(?:href|src)="([^"]+)"', text)
        assert len(files) >= 3 and all(name.startswith("/ml/tracking/") for name in files)
    for name in files:
        with urllib.request.urlopen(root + name) as answer:
            assert not answer.read().startswith(b"<!doctype"), name


def test_the_real_client_under_a_prefix(prefixed, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", "1000")
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE", "100000")
    data = os.urandom(250_000)
    (tmp_path / "large.bin").write_bytes(data)
    client = mlflow.MlflowClient(prefixed.url)
    run = client.create_run(client.create_experiment("prefixed")).info.run_id
    client.log_metric(run, "m", 1.5)
    mlflow.set_tracking_uri(prefixed.url)
    client.log_artifact(run, str(tmp_path / "large.bin"), "d")
    client.log_text(run, "text", "t.txt")
    assert client.get_run(run).data.metrics == {"m": 1.5}
    assert [each.path for each in client.list_artifacts(run)] == ["d", "t.txt"]
    (tmp_path / "back").mkdir()
    assert open(client.download_artifacts(run, "d/large.bin", str(tmp_path / "back")), "rb").read() == data


@pytest.mark.parametrize("prefix, sentence", [("ml", "--static-prefix must begin with a '/'."), ("/ml/", "should not end with a '/'."),
                                              ("/", "should not end with a '/'."), ("/{x}", "letters, digits"), ("/a b", "letters, digits"),
                                              ("/a/../b", "no '.' or '..'"), ("/..", "no '.' or '..'"), ("/a/./b", "no '.' or '..'"),
                                              ("/.", "no '.' or '..'"), ("/a//b", "no empty part")])
def test_bad_prefixes(prefix, sentence, tmp_path):
    done = subprocess.run([BIN_DIR / "tune", "server", "--data", tmp_path / "d", "--port", "0", "--static-prefix", prefix],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and re.search(re.escape(sentence), done.stderr + done.stdout)

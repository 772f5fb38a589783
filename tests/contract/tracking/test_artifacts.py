"""Artifacts with the real client: every log_* call, odd names, large files, traversal."""

import hashlib
import os
import urllib.parse

import pytest
import requests

ODD_NAMES = ["with space.txt", "ünï-日本.txt", "a~b+c.txt", "100%.txt", "semi;colon&amp.txt",
             "(brackets) [x] {y}.txt", "quote'\".txt", ".hidden", "...", "comma,equals=.txt"]


def test_everything_that_can_be_logged(mlflow, client, experiment, tmp_path):
    import matplotlib.pyplot as plt
    import numpy
    from PIL import Image

    (tmp_path / "one.bin").write_bytes(b"\0\1\2")
    (tmp_path / "tree/sub").mkdir(parents=True)
    (tmp_path / "tree/a.txt").write_text("a")
    (tmp_path / "tree/sub/b.txt").write_text("b")
    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_text("héllo", "notes/hello.txt")
        mlflow.log_dict({"k": [1, 2]}, "config.yaml")
        mlflow.log_dict({"k": [1, 2]}, "config.json")
        figure, axes = plt.subplots()
        axes.plot([1, 2])
        mlflow.log_figure(figure, "plots/line.png")
        plt.close(figure)
        mlflow.log_image(numpy.zeros((4, 4, 3), dtype=numpy.uint8), "still.png")
        mlflow.log_image(Image.new("RGB", (8, 8)), key="dogs", step=3)
        mlflow.log_table({"q": ["a", "b"]}, "table.json")
        mlflow.log_table({"q": ["c"]}, "table.json")
        mlflow.log_artifact(tmp_path / "one.bin")
        mlflow.log_artifact(tmp_path / "one.bin", "deep/er")
        mlflow.log_artifacts(tmp_path / "tree", "tree")
    run_id = run.info.run_id
    names = [each.path for each in client.list_artifacts(run_id)]
    assert names == sorted(["notes", "config.yaml", "config.json", "plots", "still.png", "images",
                            "table.json", "one.bin", "deep", "tree"])
    assert len(client.list_artifacts(run_id, "images")) == 2
    assert [(each.path, each.is_dir, each.file_size) for each in client.list_artifacts(run_id, "tree")] == [
        ("tree/a.txt", False, 1), ("tree/sub", True, None)]
    assert mlflow.artifacts.load_text(f"runs:/{run_id}/notes/hello.txt") == "héllo"
    assert mlflow.artifacts.load_dict(f"runs:/{run_id}/config.json") == {"k": [1, 2]}
    assert mlflow.artifacts.load_image(f"runs:/{run_id}/still.png").size == (4, 4)
    assert list(client.load_table(experiment, "table.json", [run_id])["q"]) == ["a", "b", "c"]
    local = mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path="tree", dst_path=tmp_path / "back")
    assert open(os.path.join(local, "sub/b.txt")).read() == "b"
    assert client.get_run(run_id).data.tags["mlflow.loggedImages"]


def test_odd_names_come_back_the_same(mlflow, client, run, tmp_path):
    for i, name in enumerate(ODD_NAMES):
        (tmp_path / name).write_text(f"content {i}")
        client.log_artifact(run, tmp_path / name, "odd ünï")
    listed = [each.path for each in client.list_artifacts(run, "odd ünï")]
    assert sorted(listed) == sorted(f"odd ünï/{name}" for name in ODD_NAMES)
    for i, name in enumerate(ODD_NAMES):
        local = client.download_artifacts(run, f"odd ünï/{name}", tmp_path)
        assert open(local).read() == f"content {i}", name


def test_artifacts_are_deleted(mlflow, client, run, server):
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    client.log_text(run, "1", "d/a.txt")
    client.log_text(run, "2", "d/b.txt")
    repository = get_artifact_repository(client.get_run(run).info.artifact_uri)
    repository.delete_artifacts("d/a.txt")
    repository.delete_artifacts("d/a.txt")
    assert [each.path for each in client.list_artifacts(run, "d")] == ["d/b.txt"]
    repository.delete_artifacts("d")
    assert client.list_artifacts(run) == []


def test_a_large_file_is_streamed(mlflow, client, run, server, tmp_path):
    size = 256 << 20
    path = tmp_path / "large.bin"
    digest = hashlib.sha256()
    with open(path, "wb") as out:
        block = os.urandom(1 << 20)
        for i in range(size >> 20):
            piece = i.to_bytes(4, "little") + block[4:]
            out.write(piece)
            digest.update(piece)
    client.log_text(run, "warm", "warm.txt")
    before = server.memory_kb("VmHWM")
    client.log_artifact(run, path, "big")
    base = f"{server.url}/get-artifact?run_id={run}&path=big/large.bin"
    received = hashlib.sha256()
    with requests.get(base, stream=True) as answer:
        assert int(answer.headers["Content-Length"]) == size
        for piece in answer.iter_content(1 << 20):
            received.update(piece)
    assert received.digest() == digest.digest()
    grown = server.memory_kb("VmHWM") - before
    assert grown < 16 << 10, f"the server's memory grew by {grown} kB for a file of {size >> 10} kB"
    part = requests.get(base, headers={"Range": "bytes=1048576-1048580"})
    assert part.status_code == 206 and part.content[:4] == (1).to_bytes(4, "little")
    etag = part.headers["ETag"]
    assert requests.get(base, headers={"If-None-Match": etag}).status_code == 304
    assert requests.head(base).headers["Content-Length"] == str(size)


def test_a_file_that_grows_is_appended_to(client, run, server):
    """PUT with Content-Range: what a repeat brings is there once, and nothing that is there is written over."""
    experiment_id = client.get_run(run).info.experiment_id
    url = f"{server.url}/api/2.0/mlflow-artifacts/artifacts/{experiment_id}/{run}/artifacts/grow.log"

    def put(content, span=None):
        headers = {"Content-Range": f"bytes {span}/*"} if span else {}
        return requests.put(url, data=content, headers=headers).status_code
    assert put(b"one\n", "0-3") == 404 and put(b"one\n") == 200
    for _ in range(2):
        assert put(b"two\n", "4-7") == 200
        assert requests.get(url).content == b"one\ntwo\n"
    assert put(b"new", "0-2") == 200 and requests.get(url).content == b"one\ntwo\n"
    assert put(b"far", "9-11") == 409
    assert put(b"short", "8-20") == 400
    assert put(b"shorter than", "8-9") == 400
    for span in ("", "8", "8-", "-9", "9-8", "8-9 ", "+8-9", "8-99999999999999999999"):
        answer = requests.put(url, data=b"xx", headers={"Content-Range": f"bytes {span}/*"})
        assert answer.status_code == 400 and "Content-Range" in answer.json()["message"], span
    assert requests.put(url, data=b"x", headers={"Content-Range": "bytes 8-8/9"}).status_code == 400
    assert requests.get(url).content.startswith(b"one\ntwo\n")


def test_uploads_by_the_page(client, run, server):
    url = f"{server.url}/ajax-api/2.0/mlflow/upload-artifact"
    where = {"run_uuid": run, "path": "up/x.txt"}
    assert requests.post(url, params=where, data=b"hello").status_code == 200
    assert requests.get(f"{server.url}/get-artifact", params={"run_id": run, "path": "up/x.txt"}).text == "hello"
    assert requests.post(url, params=where, data=b"").json()["message"] == "Request must specify data."
    large = requests.post(url, params=where, data=b"x" * (10 * 1024 * 1024 + 1))
    assert large.status_code == 400 and large.json()["message"].startswith("Artifact size is too large")
    assert requests.post(url, params={"path": "x"}, data=b"x").status_code == 400
    assert requests.post(url, params={"run_uuid": "none", "path": "x"}, data=b"x").status_code == 404


def test_pages_that_were_uploaded_run_nothing(client, run, server):
    client.log_text(run, "<script>alert(1)</script>", "evil.html")
    answer = requests.get(f"{server.url}/get-artifact", params={"run_id": run, "path": "evil.html"})
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


TRAVERSALS = [
    "../../../tune.db", "..%2f..%2ftune.db", "%2e%2e/%2e%2e/tune.db", "%252e%252e/%252e%252e/tune.db",
    "%25252e%25252e%25252ftune.db", "a/../../tune.db", "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd",
    "%2Fetc/passwd", "....//....//tune.db/..", "..%5c..%5ctune.db/..", "file:///etc/passwd", "file:%2f%2f/etc/passwd",
    "x%23y", "%00", "a%0d%0ab", "C:%5cwindows", "%c0%ae%c0%ae/..",
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leads_outside(server, run, path):
    """Sent as they are: requests would tidy some of them up."""
    import http.client

    proxy = "/api/2.0/mlflow-artifacts/artifacts"
    whole = urllib.parse.quote(urllib.parse.unquote(path)) if "%" not in path else path
    attempts = [
        ("GET", f"{proxy}/{path}", None),
        ("PUT", f"{proxy}/{path}", b"evil"),
        ("DELETE", f"{proxy}/{path}", None),
        ("GET", f"{proxy}?path={whole}", None),
        ("GET", f"/api/2.0/mlflow/artifacts/list?run_id={run}&path={whole}", None),
        ("GET", f"/get-artifact?run_id={run}&path={whole}", None),
        ("POST", f"/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path={whole}", b"evil"),
    ]
    for method, target, body in attempts:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.putrequest(method, target, skip_accept_encoding=True)
        connection.putheader("Content-Length", str(len(body or b"")))
        connection.endheaders(body)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status in (400, 404), (method, target, answer.status, text)
        assert b"root:" not in text and b"SQLite" not in text
        connection.close()
    assert (server.data / "tune.db").exists()


def test_links_lead_nowhere(server, client, run):
    client.log_text(run, "x", "real.txt")
    folder = server.data / "artifacts" / client.get_run(run).info.experiment_id / run / "artifacts"
    (folder / "link").symlink_to("/etc")
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "inside").symlink_to(folder / "real.txt")
    assert [each.path for each in client.list_artifacts(run)] == ["real.txt"]
    base = f"{server.url}/get-artifact?run_id={run}&path="
    for path in ["link/passwd", "passwd", "inside"]:
        assert requests.get(base + path).status_code == 404
    proxy = f"{server.url}/api/2.0/mlflow-artifacts/artifacts/{client.get_run(run).info.experiment_id}/{run}/artifacts"
    assert requests.put(f"{proxy}/link/evil", data=b"x").status_code == 400
    assert not os.path.exists("/etc/evil")
    assert requests.delete(f"{proxy}/link").status_code == 200
    assert os.path.exists("/etc/passwd")


def test_calls_that_local_storage_does_not_have(server, run):
    base = f"{server.url}/api/2.0/mlflow-artifacts"
    assert requests.get(f"{base}/presigned/0/x").status_code == 501
    info = requests.get(f"{server.url}/api/3.0/mlflow/server-info").json()
    assert info["multipart_uploads_enabled"] is True and info["multipart_downloads_enabled"] is False


def test_a_bad_path_is_reported_before_a_missing_run(server):
    for path, run_id, status, sentence in [
        ("d/../a.txt", "0" * 32, 400, "Invalid path"),
        ("d/a.txt", "0" * 32, 404, "not found"),
        ("d/a.txt", None, 404, "Run with id=None not found"),
    ]:
        answer = requests.get(f"{server.url}/get-artifact", params={"run_id": run_id, "path": path}, timeout=30)
        assert answer.status_code == status and sentence in answer.json()["message"], path

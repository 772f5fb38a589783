"""Files in parts: the stock client against our own part URLs, and what a client needs to resume after a break."""

import concurrent.futures
import hashlib
import os
import re
import time
import urllib.parse

import pytest
import requests

PART = 1 << 20


@pytest.fixture
def in_parts(monkeypatch):
    """The client sends files of 2 MiB and more in parts of 1 MiB; nothing else is set."""
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", str(2 * PART))
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE", str(PART))


@pytest.fixture
def traffic(monkeypatch):
    """(method, path, status) of every request of this process."""
    seen = []
    plain = requests.Session.request

    def request(self, method, url, **options):
        answer = plain(self, method, url, **options)
        seen.append((method.upper(), urllib.parse.urlsplit(url).path, answer.status_code))
        return answer

    monkeypatch.setattr(requests.Session, "request", request)
    return seen


def folder_of(client, run):
    """A run's artifact folder under the artifact root."""
    return client.get_run(run).info.artifact_uri.split(":/", 1)[1].lstrip("/")


class Upload:
    """The calls of a client of its own."""

    def __init__(self, url, folder, name, parts):
        self.url, self.folder, self.name = url, folder, name
        self.base = f"{url}/api/2.0/mlflow-artifacts/mpu"
        answer = requests.post(f"{self.base}/create/{folder}", json={"path": f"/home/me/{name}", "num_parts": parts})
        assert answer.status_code == 200, answer.text
        self.id = answer.json()["upload_id"]
        self.urls = {each["part_number"]: each["url"] for each in answer.json()["credentials"]}

    def put(self, number, data, **options):
        return requests.put(self.urls[number], data=data, **options)

    def complete(self, etags, **changes):
        body = {"path": self.name, "upload_id": self.id,
                "parts": [{"part_number": number, "etag": etag, "url": "x"} for number, etag in etags.items()]}
        return requests.post(f"{self.base}/complete/{changes.pop('folder', self.folder)}", json=body | changes)

    def abort(self, **changes):
        return requests.post(f"{self.base}/abort/{self.folder}", json={"path": self.name, "upload_id": self.id} | changes)

    def status(self):
        return requests.get(f"{self.url}/api/2.0/tune/uploads/{self.id}")


def staged(server):
    """Uploads whose bytes lie in the hidden folder; of a completed one only its name is left."""
    hidden = server.data / "artifacts/.artifact.uploading.parts"
    return sorted(each.name for each in hidden.iterdir() if not each.is_dir() or (each / "data").exists())


def test_the_stock_client_sends_large_files_in_parts(mlflow, client, run, server, tmp_path, in_parts, traffic):
    content = os.urandom(5 * PART + 12345)
    (tmp_path / "large.bin").write_bytes(content)
    (tmp_path / "small.bin").write_bytes(b"x")
    client.log_artifact(run, str(tmp_path / "large.bin"), "deep/er")
    client.log_artifact(run, str(tmp_path / "small.bin"))
    calls = [(method, re.sub(r"[0-9a-f]{32}|(?<=create/)[0-9]+|(?<=complete/)[0-9]+", "*", path), status)
             for method, path, status in traffic]
    creates = [call for call in calls if "/mpu/create/" in call[1]]
    puts = [call for call in calls if call[0] == "PUT" and "/tune/uploads/" in call[1]]
    completes = [call for call in calls if "/mpu/complete/" in call[1]]
    assert len(creates) == len(completes) == 1 and len(puts) == 6, calls
    assert {call[2] for call in creates + puts + completes} == {200}
    assert sorted(call[1] for call in puts) == [f"/api/2.0/tune/uploads/*/parts/{i}" for i in range(1, 7)]
    # What the client asks, once a minute for each server.
    assert requests.get(f"{server.url}/api/3.0/mlflow/server-info").json()["multipart_uploads_enabled"] is True
    listed = {each.path: each.file_size for each in client.list_artifacts(run, "deep/er")}
    assert listed == {"deep/er/large.bin": len(content)}
    (tmp_path / "back").mkdir()
    local = client.download_artifacts(run, "deep/er/large.bin", str(tmp_path / "back"))
    assert open(local, "rb").read() == content
    assert staged(server) == []


def test_a_logged_model_with_a_large_file(mlflow, experiment, server, tmp_path, in_parts, traffic):
    class Model(mlflow.pyfunc.PythonModel):
        def load_context(self, context):
            self.digest = hashlib.sha256(open(context.artifacts["weights"], "rb").read()).hexdigest()

        def predict(self, context, model_input: list[str], params=None):
            return [self.digest for _ in model_input]

    weights = os.urandom(3 * PART)
    (tmp_path / "weights.bin").write_bytes(weights)
    with mlflow.start_run(experiment_id=experiment):
        info = mlflow.pyfunc.log_model(name="m", python_model=Model(), artifacts={"weights": str(tmp_path / "weights.bin")},
                                       pip_requirements=[])
    assert len([1 for method, path, _ in traffic if method == "PUT" and "/tune/uploads/" in path]) == 3
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    assert loaded.predict(["x"]) == [hashlib.sha256(weights).hexdigest()]


def test_a_failed_part_makes_the_client_abort(mlflow, client, run, server, tmp_path, in_parts, traffic, monkeypatch):
    from mlflow.store.artifact.http_artifact_repo import HttpArtifactRepository

    plain = HttpArtifactRepository._upload_part

    def break_the_third(credential, local_file, size, start_byte):
        if credential.part_number == 3:
            raise ConnectionError("unplugged")
        return plain(credential, local_file, size, start_byte)

    monkeypatch.setattr(HttpArtifactRepository, "_upload_part", staticmethod(break_the_third))
    (tmp_path / "large.bin").write_bytes(os.urandom(4 * PART))
    with pytest.raises(mlflow.exceptions.MlflowException, match="unplugged"):
        client.log_artifact(run, str(tmp_path / "large.bin"))
    assert [status for _, path, status in traffic if "/mpu/abort/" in path] == [200]
    assert staged(server) == [] and client.list_artifacts(run) == []


def test_more_parts_than_the_server_holds_go_in_one_piece(mlflow, client, run, tmp_path, monkeypatch, traffic):
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", "1")
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE", "10")
    (tmp_path / "f").write_bytes(b"y" * 200_000)
    client.log_artifact(run, str(tmp_path / "f"))
    assert [status for _, path, status in traffic if "/mpu/create/" in path] == [501]
    assert client.list_artifacts(run)[0].file_size == 200_000


def test_going_on_after_a_break(client, run, server):
    folder = folder_of(client, run)
    upload = Upload(server.url, folder, "w.bin", 3)
    data = {1: b"a" * 1000, 2: b"b" * 1000, 3: b"c" * 10}
    etags = {3: upload.put(3, data[3]).headers["ETag"], 1: upload.put(1, data[1]).headers["ETag"]}
    assert etags[1] == f'"{hashlib.sha256(data[1]).hexdigest()}"'
    # Another process, which knows the path only.
    found = requests.get(f"{server.url}/api/2.0/tune/uploads", params={"path": f"{folder}/w.bin"}).json()["uploads"]
    assert [(each["upload_id"], each["received_parts"], each["part_size"]) for each in found] == [(upload.id, 2, 1000)]
    status = requests.get(f"{server.url}/api/2.0/tune/uploads/{found[0]['upload_id']}").json()
    assert [(part["part_number"], part["etag"], part["size"]) for part in status["parts"]] == [
        (1, etags[1], 1000), (3, etags[3], 10)]
    assert [each["part_number"] for each in status["credentials"]] == [2]
    etags[2] = requests.put(status["credentials"][0]["url"], data=data[2]).headers["ETag"]
    assert client.list_artifacts(run) == []
    assert upload.complete(etags).json() == {}
    assert requests.get(f"{server.url}/get-artifact?run_id={run}&path=w.bin").content == b"".join(data[i] for i in (1, 2, 3))
    assert upload.complete(etags).status_code == 200, "a retry"
    assert upload.status().status_code == 404
    assert upload.put(1, data[1]).status_code == 404


def test_part_urls_are_capabilities(client, run, server):
    upload = Upload(server.url, folder_of(client, run), "f", 2)
    good = upload.urls[1]
    assert good.startswith(f"http://127.0.0.1:{server.port}/")
    other = Upload(server.url, folder_of(client, run), "g", 2)
    parts = urllib.parse.urlsplit(good)
    query = dict(urllib.parse.parse_qsl(parts.query))
    for bad, expected in [
        (good.replace("/parts/1", "/parts/2"), 403),
        (good.replace(upload.id, other.id), 403),
        (good.replace(upload.id, "0" * 32), 404),
        (good.replace("/parts/1", "/parts/3"), 400),
        (good.replace("/parts/1", "/parts/-1"), 400),
        (good.replace("/parts/1", "/parts/x"), 400),
        (good.replace(query["expires"], str(int(query["expires"]) + 1)), 403),
        (good.replace(query["expires"], "1"), 403),
        (good.split("&token")[0], 403),
        (good[:-1], 403),
        (good.split("?")[0], 400),
    ]:
        assert requests.put(bad, data=b"evil").status_code == expected, bad
    assert requests.get(good).status_code == 405
    assert requests.put(good, data=iter([b"no ", b"length"])).status_code == 400
    assert requests.put(good, data=b"x", headers={"Content-Encoding": "gzip"}).status_code == 415
    assert requests.put(good, data=b"x", headers={"Origin": "http://evil.com"}).status_code == 403
    assert upload.status().json()["parts"] == []
    assert requests.put(good, data=b"good").status_code == 200
    through_a_proxy = requests.post(f"{upload.base}/create/{upload.folder}", json={"path": "f", "num_parts": 1}, headers={
        "X-Forwarded-Proto": "https", "X-Forwarded-Host": "ml.example.com", "X-Forwarded-Prefix": "/team/"}).json()
    assert through_a_proxy["credentials"][0]["url"].startswith("https://ml.example.com/team/api/2.0/tune/uploads/")
    forged = requests.post(f"{upload.base}/create/{upload.folder}", json={"path": "f", "num_parts": 1}, headers={
        "X-Forwarded-Proto": "javascript", "X-Forwarded-Host": "a/b?c", "X-Forwarded-Prefix": "//evil"}).json()
    assert forged["credentials"][0]["url"].startswith(f"http://127.0.0.1:{server.port}/api/")


def test_complete_checks_everything(client, run, server):
    upload = Upload(server.url, folder_of(client, run), "f", 2)
    etags = {1: upload.put(1, b"aaaa").headers["ETag"]}
    assert "Part 2" in upload.complete(etags | {2: "x"}).json()["message"]
    assert upload.put(2, b"too long").status_code == 400
    etags[2] = upload.put(2, b"bb").headers["ETag"]
    for answer in [upload.complete({1: etags[1]}), upload.complete({1: etags[2], 2: etags[1]}), upload.complete({}),
                   upload.complete(etags | {3: "x"}), upload.complete(etags, parts=[{"part_number": 1, "etag": etags[1]}] * 2)]:
        assert answer.status_code == 400, answer.text
    for answer in [upload.complete(etags, path="g"), upload.complete(etags, upload_id="0" * 32),
                   upload.complete(etags, folder=f"{upload.folder}/sub"), upload.abort(path="g")]:
        assert answer.status_code == 404 and answer.json()["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    for answer in [upload.complete(etags, upload_id=""), upload.complete(etags, path=""), upload.complete(etags, parts="x"),
                   upload.complete(etags, path=".."), upload.complete(etags, path="x/..")]:
        assert answer.status_code == 400, answer.text
    assert client.list_artifacts(run) == []
    assert upload.complete({number: etag.strip('"') for number, etag in etags.items()}).status_code == 200
    assert [each.file_size for each in client.list_artifacts(run)] == [6]


def test_create_refuses_in_json(client, run, server):
    base = f"{server.url}/api/2.0/mlflow-artifacts/mpu/create"
    folder = folder_of(client, run)
    for where, body in [(folder, {}), (folder, {"path": "", "num_parts": 1}), (folder, {"path": "f", "num_parts": -1}),
                        (folder, {"path": "f", "num_parts": "x"}), (folder, {"path": "..", "num_parts": 1}),
                        (folder, {"path": "a#b", "num_parts": 1}), ("%2e%2e/x", {"path": "f", "num_parts": 1}),
                        (folder, {"path": ".artifact.uploading.x", "num_parts": 1})]:
        answer = requests.post(f"{base}/{where}", json=body)
        assert answer.status_code == 400 and answer.json()["message"], (where, body)
    windows = requests.post(f"{base}/{folder}", json={"path": "C:\\models\\w.bin", "num_parts": 1}).json()
    status = requests.get(f"{server.url}/api/2.0/tune/uploads/{windows['upload_id']}").json()
    assert status["path"] == f"{folder}/w.bin"
    assert requests.get(f"{server.url}/api/2.0/tune/uploads?path=../x").status_code == 400


def test_a_killed_server_goes_on(own_server):
    server = own_server()
    kept, aborted = Upload(server.url, "0/r/artifacts", "kept.bin", 4), Upload(server.url, "0/r/artifacts", "gone.bin", 2)
    data = {number: os.urandom(PART) for number in range(1, 5)}
    etags = {number: kept.put(number, data[number]).headers["ETag"] for number in (4, 1)}
    assert aborted.put(1, data[1]).status_code == 200 and aborted.abort().status_code == 200
    # Killed in the middle of a part and of a plain upload.
    connections = [half_sent(kept.urls[2], data[2]), half_sent(f"{server.url}/api/2.0/mlflow-artifacts/artifacts/0/r/plain", data[1])]
    wait_until(lambda: kept.status().json()["part_size"] == PART)
    server.kill()
    for connection in connections:
        connection.close()
    assert not (server.data / "artifacts/0").exists(), "nothing half-written is visible"
    (server.data / "artifacts/.artifact.uploading.parts/0011223344556677").write_bytes(b"left by a PUT")
    server = own_server(port=server.port)
    assert staged(server) == [kept.id]
    status = kept.status().json()
    assert [part["part_number"] for part in status["parts"]] == [1, 4]
    for number in (2, 3):
        etags[number] = kept.put(number, data[number]).headers["ETag"]  # by the old URLs
    assert kept.complete(etags).status_code == 200
    answer = requests.get(f"{server.url}/api/2.0/mlflow-artifacts/artifacts/0/r/artifacts/kept.bin")
    assert answer.content == b"".join(data[number] for number in range(1, 5))
    assert staged(server) == []
    server.kill()
    server = own_server(port=server.port)
    assert kept.complete(etags).status_code == 200, "its first answer may have been lost"
    assert kept.complete(etags, path="other").status_code == 404


def half_sent(url, data):
    import socket

    parts = urllib.parse.urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port))
    path = parts.path + ("?" + parts.query if parts.query else "")
    connection.sendall(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode())
    connection.sendall(data[:len(data) // 2])
    return connection


def wait_until(ready, seconds=60):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_full_disk_during_parts(own_server):
    server = own_server(file_bytes_max=2 * PART)
    upload = Upload(server.url, "0/r/artifacts", "f", 3)
    etags = {number: upload.put(number, b"x" * PART).headers["ETag"] for number in (1, 2)}
    answer = upload.put(3, b"x")
    assert answer.status_code == 429 and answer.json()["error_code"] == "RESOURCE_EXHAUSTED"
    assert "Free space" in answer.json()["message"]
    assert len(upload.status().json()["parts"]) == 2
    assert upload.complete(etags | {3: "x"}).status_code == 400
    assert upload.abort().status_code == 200
    assert staged(server) == [] and server.is_alive()


def test_parts_of_many_uploads_at_once(client, run, server):
    folder = folder_of(client, run)
    before = server.memory_kb("VmHWM")

    def one(name):
        upload = Upload(server.url, folder, name, 5)
        data = {number: os.urandom(PART if number < 5 else 17) for number in range(1, 6)}
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            etags = dict(zip(data, pool.map(lambda number: upload.put(number, data[number]).headers["ETag"], data)))
        assert upload.complete(etags).status_code == 200
        return hashlib.sha256(b"".join(data.values())).digest()

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        digests = dict(zip("abcdef", pool.map(one, "abcdef")))
    for name, digest in digests.items():
        content = requests.get(f"{server.url}/get-artifact?run_id={run}&path={name}").content
        assert hashlib.sha256(content).digest() == digest
    assert server.memory_kb("VmHWM") - before < 24 << 10

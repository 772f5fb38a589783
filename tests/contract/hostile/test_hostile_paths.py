"""Paths that lead elsewhere, in every route of the table that takes one, and links under the artifact root."""

import http.client
import itertools
import json
import os
import threading
import urllib.parse

import pytest
import requests

SECRET = "root:"

# As they stand in a URL. Where a route has the path in its body, the decoded form is sent too.
VARIANTS = [
    "..", "../", "../../../tune.db", "a/../../b", "a/..", "./../x", "..%2f..%2ftune.db", "%2e%2e/%2e%2e/tune.db",
    "%2e./tune.db", ".%2e/tune.db", "%252e%252e/%252e%252e/tune.db", "%25252e%25252e%25252ftune.db", "..%255c..%255ctune.db",
    "/etc/passwd", "//etc/passwd", "///etc/passwd", "%2fetc%2fpasswd", "%2Fetc/passwd", "%252fetc%252fpasswd", "/%2fetc/passwd",
    "..%5c..%5ctune.db/..", "....//....//tune.db/..", "..;/..;/x/..", "file:///etc/passwd", "file:%2f%2f/etc/passwd",
    "FILE%3a/../x", "C:%5cwindows%5cx", "C:/windows", "%5c%5cserver%5cshare", "x%23y", "x%2523y", "%00", "x%00.txt", "a%0d%0ab", "a%0ab",
    "%7f", "%c0%ae%c0%ae/..", "%2e%2e%00/x", "a/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    ".artifact.uploading.parts", ".artifact.uploading.parts/x", "a/.artifact.uploading.x", ".artifact%2euploading.parts/x",
    "/".join("d" * 70), "n" * 3000,
]


OPEN = {}


def send(server, method, target, body=b"", content_type="application/json"):
    """Exactly this target: requests would tidy it up."""
    connection = OPEN.pop(server.port, None) or http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest(method, target, skip_accept_encoding=True)
    connection.putheader("Content-Type", content_type)
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body or None)
    answer = connection.getresponse()
    text = answer.read()
    if answer.getheader("Connection") == "close":
        connection.close()
    else:
        OPEN[server.port] = connection
    return answer.status, text


def artifact_operations(server):
    """(method, path, names in the query) of the route table that take an artifact path."""
    table = requests.get(f"{server.url}/api/openapi.json").json()
    found = []
    for path, methods in table["paths"].items():
        for method, operation in methods.items():
            if method not in ("get", "put", "post", "delete", "patch"):
                continue
            names = {each["name"] for each in operation.get("parameters", []) if each.get("in") == "query"}
            text = json.dumps(operation)
            if "artifact" in path.lower() or "/tune/uploads" in path or "artifact_file_path" in text:
                found.append((method.upper(), path, names))
    return found


PATH_FIELDS = ("path", "artifact_file_path", "artifact_directory_path")


def requests_of(method, path, names, variant, ids):
    """The requests by which `variant` reaches this route: in the URL, the query and the body."""
    known = dict(ids)
    decoded = urllib.parse.unquote(variant)

    def fill(template, in_path):
        for name in ("run_id", "run_uuid", "model_id", "upload_id", "part_number", "name", "version"):
            template = template.replace("{" + name + "}", known.get(name, "1"))
        return template.replace("{path}", in_path).replace("{artifact_path}", in_path)

    owners = [{"run_id": known["run_id"]}, {"run_uuid": known["run_id"]}, {"model_id": known["model_id"]}]
    has_path = "{path}" in path
    if has_path:
        yield method, fill(path, variant), b""
        body = json.dumps({"path": "f", "num_parts": 1, "upload_id": "0" * 32, "parts": [{"part_number": 1, "etag": "x"}]})
        yield method, fill(path, variant), body.encode()
    base = fill(path, known["folder"])
    for field in PATH_FIELDS:
        if field in names:
            extra = f"run_id={known['run_id']}&run_uuid={known['run_id']}"
            yield method, f"{base}?{extra}&{field}={variant}", b"evil" if method == "POST" else b""
    if method == "POST":
        for owner, text in itertools.product(owners, {variant, decoded}):
            body = owner | {"path": text, "num_parts": 1, "upload_id": "0" * 32, "parts": [{"part_number": 1, "etag": "x"}]}
            yield method, base, json.dumps(body).encode()


def everything_below(folder):
    return sorted(os.path.join(at, name) for at, folders, files in os.walk(folder) for name in folders + files)


def shows_nothing(server, folder, where, text):
    """Whether an answer of 200 is harmless: an empty list, or an upload into the folder of which only the name is taken."""
    if text == b"":
        return False
    answer = json.loads(text)
    if "/mpu/create/" in where and "upload_id" in answer:
        path = requests.get(f"{server.url}/api/2.0/tune/uploads/{answer['upload_id']}").json()["path"]
        name = os.path.basename(path)
        gone = requests.post(f"{server.url}/api/2.0/mlflow-artifacts/mpu/abort/{folder}",
                             json={"path": name, "upload_id": answer["upload_id"]})
        return path == f"{folder}/{name}" and gone.status_code == 200
    return answer in ({}, {"uploads": []}) or (set(answer) <= {"root_uri", "files"} and answer.get("files", []) == [])


def test_no_route_of_the_table_leads_outside(server, client, run, experiment):
    model = requests.post(f"{server.url}/api/2.0/mlflow/logged-models", json={"experiment_id": experiment, "name": "m"}).json()
    folder = client.get_run(run).info.artifact_uri.split(":/", 1)[1].lstrip("/")
    ids = {"run_id": run, "model_id": model["model"]["info"]["model_id"], "folder": folder}
    operations = artifact_operations(server)
    paths = {path for _, path, _ in operations}
    for needed in ["/api/2.0/mlflow-artifacts/artifacts/{path}", "/api/2.0/mlflow-artifacts/mpu/create/{path}", "/get-artifact",
                   "/api/2.0/mlflow/artifacts/list", "/ajax-api/2.0/mlflow/upload-artifact", "/api/2.0/tune/uploads",
                   "/ajax-api/2.0/mlflow/logged-models/{model_id}/artifacts/files"]:
        assert needed in paths, f"the table lost {needed}"
    outside = everything_below(server.data.parent)
    sent = 0
    for (method, path, names), variant in itertools.product(operations, VARIANTS):
        for verb, target, body in requests_of(method, path, names, variant, ids):
            both = target.startswith("/api/") and not body
            for prefix in (["/api/", "/ajax-api/"] if both else [None]):
                where = target if prefix is None else prefix + target[5:]
                status, text = send(server, verb, where, body)
                sent += 1
                refused = status in (400, 404) or (status == 501 and "/presigned/" in where)
                assert refused or (status == 200 and shows_nothing(server, folder, where, text)), (
                    verb, where, body, status, text[:300])
                assert SECRET.encode() not in text and b"SQLite" not in text, (verb, where)
    assert sent > 1000
    assert server.is_alive() and everything_below(server.data.parent) == outside, "nothing was made or deleted anywhere"


@pytest.fixture
def below(server, client, run):
    """The run's artifact folder as a path of this machine, with one real file."""
    client.log_text(run, "real", "real.txt")
    return server.data / "artifacts" / client.get_run(run).info.artifact_uri.split(":/", 1)[1].lstrip("/")


def calls_on(server, run, below, path):
    """(status, text) of every way to read, list, write or delete `path`."""
    relative = below.relative_to(server.data / "artifacts")
    proxy = f"/api/2.0/mlflow-artifacts/artifacts/{relative}/{path}"
    yield "read", send(server, "GET", proxy)
    yield "read", send(server, "GET", f"/get-artifact?run_id={run}&path={path}")
    yield "list", send(server, "GET", f"/api/2.0/mlflow-artifacts/artifacts?path={relative}/{path}")
    yield "list", send(server, "GET", f"/api/2.0/mlflow/artifacts/list?run_id={run}&path={path}")
    yield "write", send(server, "PUT", f"{proxy}/evil", b"evil")
    yield "write", send(server, "POST", f"/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path={path}/evil", b"evil")
    yield "write", send(server, "POST", f"/api/2.0/mlflow-artifacts/mpu/create/{relative}/{path}",
                        json.dumps({"path": "evil", "num_parts": 1}).encode())


@pytest.mark.parametrize("kind", ["folder", "file", "dangling", "inside", "loop", "parent", "fifo"])
def test_links_lead_nowhere_by_any_call(server, run, below, tmp_path, kind):
    (tmp_path / "target").mkdir()
    (tmp_path / "target/secret").write_text("root: secret")
    link = below / "link"
    target = {"folder": tmp_path / "target", "file": tmp_path / "target/secret", "dangling": tmp_path / "none",
              "inside": below / "real.txt", "loop": link, "parent": below.parent.parent}.get(kind)
    os.mkfifo(link) if target is None else link.symlink_to(target)
    for path in ["link", "link/secret", "link/x"]:
        for what, (status, text) in calls_on(server, run, below, path):
            if what == "read":
                assert status == 404, (path, status, text)
            elif what == "list":
                assert status == 200 and json.loads(text).get("files", []) == [], (path, text)
            else:
                assert status == 400, (path, status, text)
    listed = requests.get(f"{server.url}/api/2.0/mlflow/artifacts/list?run_id={run}").json()
    assert [each["path"] for each in listed["files"]] == ["real.txt"]
    # A name that is a link is replaced, not followed, and deleting it leaves what it points to.
    relative = below.relative_to(server.data / "artifacts")
    assert send(server, "PUT", f"/api/2.0/mlflow-artifacts/artifacts/{relative}/link", b"mine")[0] == 200
    assert not link.is_symlink() and link.read_bytes() == b"mine" and (below / "real.txt").read_text() == "real"
    assert (tmp_path / "target/secret").read_text() == "root: secret" and not (tmp_path / "target/evil").exists()
    assert not (tmp_path / "none").exists()
    link.unlink()
    link.symlink_to(tmp_path / "target")
    assert send(server, "DELETE", f"/api/2.0/mlflow-artifacts/artifacts/{relative}")[0] == 200
    assert (tmp_path / "target/secret").exists() and not below.exists()


def test_links_that_come_and_go_while_requests_run(server, run, below, tmp_path):
    """A folder that is exchanged for a link again and again: what is read is ours, what is written lands inside or nowhere."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_text("root: secret")
    (below / "d").mkdir()
    (below / "d/f").write_text("ours")
    (below / "other").symlink_to(tmp_path / "outside")
    stop = threading.Event()

    def exchange():
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        a, b = os.fsencode(below / "d"), os.fsencode(below / "other")
        while not stop.is_set():
            libc.renameat2(-100, a, -100, b, 2)  # RENAME_EXCHANGE

    thread = threading.Thread(target=exchange)
    thread.start()
    seen = set()
    try:
        for i in range(150):
            seen.add(send(server, "GET", f"/get-artifact?run_id={run}&path=d/f"))
            status, _ = send(server, "POST", f"/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path=d/w{i}", b"w")
            assert status in (200, 400, 404), status
    finally:
        stop.set()
        thread.join()
    assert {text for status, text in seen if status == 200} <= {b"ours"}
    assert {status for status, _ in seen} <= {200, 404}
    assert os.listdir(tmp_path / "outside") == ["f"]

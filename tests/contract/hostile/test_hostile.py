"""Broken, slow and hostile clients against the running server."""

import concurrent.futures
import gzip
import json
import random
import socket
import struct

import pytest
import requests

from raw_http import Raw, api


@pytest.fixture
def raw(server):
    connections = []

    def connect():
        connections.append(Raw(server))
        return connections[-1]

    yield connect
    for each in connections:
        each.close()


SEARCH = "/api/2.0/mlflow/experiments/search?max_results=1"


@pytest.mark.parametrize("host", ["evil.com", "evil.com:5000", "127.0.0.1.evil.com", "10.evil.com", "localhost.evil.com",
                                  "localhost@evil.com", "evil.com#localhost", "[::1].evil.com", ""])
def test_foreign_hosts_are_refused(raw, host):
    status, _, body = raw().send(api("GET", SEARCH, host=host)).answer()
    assert status == 403 and b"DNS rebinding" in body
    assert raw().send(api("GET", "/health", host=host)).answer()[0] == 200


@pytest.mark.parametrize("more", ["Origin: http://evil.com\r\n", "Origin: null\r\n", "Origin: http://localhost.evil.com\r\n",
                                  "Sec-Fetch-Site: cross-site\r\n", "Origin: http://localhost:1\r\n"])
def test_other_sites_cannot_change_anything(raw, server, more):
    for method, path in [("POST", "/api/2.0/mlflow/experiments/create"), ("PUT", "/api/2.0/mlflow-artifacts/artifacts/x"),
                         ("DELETE", "/api/2.0/mlflow-artifacts/artifacts/x"), ("PATCH", "/api/2.0/mlflow/logged-models/m")]:
        status, headers, body = raw().send(api(method, path, b"{}", more=more)).answer()
        assert status == 403 and b"Cross-origin" in body, (method, path)
        assert "access-control-allow-origin" not in headers
    status, headers, _ = raw().send(api("OPTIONS", "/api/2.0/mlflow/experiments/create", more=more)).answer()
    assert status == 204 and "access-control-allow-origin" not in headers
    own = f"Origin: http://localhost:{server.port}\r\n"
    ok = api("POST", "/api/2.0/mlflow/experiments/search", b'{"max_results": 1}', f"localhost:{server.port}", own)
    assert raw().send(ok).answer()[0] == 200


def test_forms_of_other_sites_have_the_wrong_type(server):
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None]:
        answer = requests.post(f"{server.url}/api/2.0/mlflow/experiments/create", data='{"name": "csrf"}',
                               headers={"Content-Type": kind})
        assert answer.status_code == 400 and "Content-Type" in answer.json()["message"]


def test_security_headers(server):
    for path in ["/health", SEARCH, "/api/none"]:
        headers = requests.get(server.url + path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "SAMEORIGIN"


def test_unknown_routes_and_methods(server):
    answer = requests.get(f"{server.url}/api/2.0/mlflow/nothing")
    assert answer.status_code == 404 and answer.json()["error_code"] == "ENDPOINT_NOT_FOUND"
    answer = requests.put(f"{server.url}/api/2.0/mlflow/runs/create", json={})
    assert answer.status_code == 405 and answer.headers["Allow"] == "POST, OPTIONS"
    for prefix in ["/api/2.0", "/ajax-api/2.0"]:
        assert requests.get(f"{server.url}{prefix}/mlflow/experiments/get?experiment_id=0").status_code == 200


MALFORMED = [b"{", b"[]", b"nul", b'{"run_id": }', b"\xff\xfe\x00", b'"', b"{" * 5000, b"[" * 200_000, b'{"a":' * 500,
             b'{"run_id": "r", "metrics": {"a": 1}}', b'{"run_id": "r", "metrics": [[]]}', b'{"run_id": 5}',
             b'{"run_id": "r", "metrics": [{"key": "k", "value": "x", "timestamp": 1}]}',
             b'{"run_id": "r", "metrics": [{"key": "k", "value": 1e999, "timestamp": 1}]}',
             b'{"run_id": "r", "metrics": [{"key": "k", "value": 1, "timestamp": 99999999999999999999}]}',
             b'{"run_id": "r", "runId": "s", "metrics": []}', b'{"run_id": "r", "params": "x"}',
             b'{"run_id": {"$ne": 1}}', b'{"run_id": "r\\ud800", "tags": [{"key": "k"}]}', b"{}{}"]


@pytest.mark.parametrize("body", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_bodies_are_refused_with_json(server, body):
    for path in ["runs/log-batch", "runs/log-metric", "runs/create", "runs/search", "logged-models", "runs/log-inputs"]:
        answer = requests.post(f"{server.url}/api/2.0/mlflow/{path}", data=body,
                               headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 404) or (path == "runs/search" and answer.status_code == 200), (path, answer.text)
        assert isinstance(answer.json(), dict)


def test_huge_headers(raw):
    status, _, body = raw().send(api("GET", SEARCH, more="X: " + "a" * 100_000 + "\r\n")).answer()
    assert status == 431 and json.loads(body)["message"]
    status, _, _ = raw().send(api("GET", SEARCH, more="".join(f"X{i}: b\r\n" for i in range(10_000)))).answer()
    assert status == 431
    status, _, _ = raw().send(api("GET", "/" + "a" * 100_000)).answer()
    assert status == 431


def test_huge_bodies(raw, server):
    connection = raw().send(f"POST /api/2.0/mlflow/runs/log-batch HTTP/1.1\r\nHost: localhost\r\n"
                            f"Content-Length: {1 << 40}\r\n\r\n")
    status, _, body = connection.answer()
    assert status == 413 and json.loads(body)["error_code"] == "REQUEST_ENTITY_TOO_LARGE"
    before = server.memory_kb()
    bomb = gzip.compress(b"[" + b"0," * (100 << 20) + b"0]")
    status, _, body = raw().send(api("POST", "/api/2.0/mlflow/runs/log-batch", bomb,
                                     more="Content-Encoding: gzip\r\n")).answer()
    assert status == 413
    assert server.falls_to_kb(before + (80 << 10))
    small = gzip.compress(b'{"max_results": 1}')
    status, _, _ = raw().send(api("POST", "/api/2.0/mlflow/experiments/search", small,
                                  more="Content-Encoding: gzip\r\n")).answer()
    assert status == 200


def test_truncated_bodies_change_nothing(raw, server, client, run):
    whole = json.dumps({"run_id": run, "key": "t", "value": "v"}).encode()
    message = api("POST", "/api/2.0/mlflow/runs/set-tag", whole)
    for cut in [1, 10, len(message) - 1]:
        connection = raw()
        connection.send(message[:-cut])
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.answer()[0] == 0
    put = api("PUT", f"/api/2.0/mlflow-artifacts/artifacts/cut/{run}.bin", b"x" * 1000)
    connection = raw()
    connection.send(put[:-500])
    connection.socket.shutdown(socket.SHUT_WR)
    assert connection.answer()[0] == 0
    assert "t" not in client.get_run(run).data.tags
    listed = requests.get(f"{server.url}/api/2.0/mlflow-artifacts/artifacts?path=cut").json()
    assert listed == {}


def test_resets_in_the_middle(raw, server, run):
    for i in range(200):
        connection = raw()
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.send(api("POST", "/api/2.0/mlflow/runs/set-tag",
                            json.dumps({"run_id": run, "key": "r", "value": str(i)}).encode()))
        connection.close()
    assert requests.get(f"{server.url}/health").text == "OK"


def test_pipelined_requests_keep_their_order(raw, run):
    batch, expected = b"", []
    for step in range(200):
        body = json.dumps({"run_id": run, "key": "m", "value": step, "timestamp": 1, "step": step}).encode()
        batch += api("POST", "/api/2.0/mlflow/runs/log-metric", body)
        batch += api("GET", f"/api/2.0/mlflow/runs/get?run_id={run}")
        expected.append(step)
    connection = raw().send(batch)
    for step in expected:
        assert connection.answer()[0] == 200
        status, _, body = connection.answer()
        assert status == 200
        metrics = json.loads(body)["run"]["data"]["metrics"]
        assert metrics[0]["value"] == step, "each answer follows its own write"


def test_smuggling(raw):
    """What two readers could take for different requests is refused and ends the connection."""
    for text in [
        "POST /api/2.0/mlflow/runs/create HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /api/2.0/mlflow/runs/create HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        "POST /api/2.0/mlflow/runs/create HTTP/1.1\r\nHost: localhost\r\nHost: evil.com\r\n\r\n",
        "POST /api/2.0/mlflow/runs/create HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n",
        "GET http://evil.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /api/2.0/mlflow/runs/create HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    ]:
        connection = raw().send(text)
        assert connection.answer()[0] == 400, text
        assert connection.answer()[0] == 0, text


def test_event_streams_need_topics_and_send_what_changes(raw, server, client, run):
    assert requests.get(f"{server.url}/api/ui/events").status_code == 400
    connection = raw().send(api("GET", f"/api/ui/events?topics=run:{run}"))
    assert b"200" in connection.reader.readline()
    while connection.reader.readline() != b"\r\n":
        pass
    client.log_metric(run, "m", 0.5, timestamp=7, step=3)
    # The run's creation may be announced after the stream has begun.
    while (line := connection.reader.readline()) != b"event: metrics\n":
        assert line, "the stream ended"
    data = connection.reader.readline()
    assert data.startswith(b"data: ")
    assert json.loads(data[6:]) == {"run_id": run, "points": [["m", 3, 7, 0.5]]}


def test_mutated_requests(raw, server, run):
    dice = random.Random(11)
    body = json.dumps({"run_id": run, "metrics": [{"key": "m", "value": 1, "timestamp": 1, "step": 0}],
                       "params": [], "tags": [{"key": "k", "value": "v"}]}).encode()
    good = api("POST", "/api/2.0/mlflow/runs/log-batch", body) + api("GET", SEARCH)
    for _ in range(400):
        text = bytearray(good)
        for _ in range(dice.randint(1, 5)):
            at = dice.randrange(len(text))
            edit = dice.randrange(3)
            if edit == 0:
                text[at] = dice.randrange(256)
            elif edit == 1:
                del text[at:at + dice.randint(1, 9)]
            else:
                text[at:at] = text[at:at + dice.randint(1, 30)]
        connection = raw().send(bytes(text))
        connection.socket.shutdown(socket.SHUT_WR)
        while connection.answer()[0] != 0:
            pass
        connection.close()
    assert server.is_alive() and requests.get(f"{server.url}/health").text == "OK"


def test_many_connections(server):
    """More clients than the server's threads by far, all served."""
    def one(i):
        with requests.Session() as session:
            return [session.get(f"{server.url}{SEARCH}").status_code for _ in range(5)]

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        for statuses in pool.map(one, range(200)):
            assert statuses == [200] * 5

"""What two readers of HTTP could take differently, clients that drip, stop half-way or come in thousands, full disks."""

import concurrent.futures
import gzip
import hashlib
import json
import os
import resource
import socket
import subprocess
import time
import zlib

import pytest
import requests

from raw_http import Raw, api

SEARCH = "/api/2.0/mlflow/experiments/search?max_results=1"
CREATE = "/api/2.0/mlflow/experiments/create"
PROXY = "/api/2.0/mlflow-artifacts/artifacts"


@pytest.fixture
def raw(server):
    connections = []

    def connect(to=server):
        connections.append(Raw(to))
        return connections[-1]

    yield connect
    for each in connections:
        each.close()


def post(headers, body="", path=CREATE, version="HTTP/1.1"):
    return f"POST {path} {version}\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\r\n{body}"


# A request that a proxy in front could see differently, followed by what it would smuggle in.
def smuggled(name):
    return api("POST", CREATE, json.dumps({"name": name}).encode())


AMBIGUOUS = {
    "length and chunked": post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
    "chunked and length": post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"),
    "two lengths": post("Content-Length: 0\r\nContent-Length: 5\r\n"),
    "two equal lengths": post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"),
    "a list of lengths": post("Content-Length: 0, 5\r\n"),
    "a signed length": post("Content-Length: +2\r\n", "{}"),
    "a negative length": post("Content-Length: -1\r\n"),
    "a hexadecimal length": post("Content-Length: 0x2\r\n", "{}"),
    "a length with a space": post("Content-Length: 1 2\r\n", "{}"),
    "a length of 2^64": post("Content-Length: 18446744073709551616\r\n"),
    "an empty length": post("Content-Length:\r\n"),
    "space before the colon": post("Content-Length : 2\r\n", "{}"),
    "coding with a space before the colon": post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
    "two codings": post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"),
    "chunked twice": post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
    "chunked is not last": post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
    "an unknown coding": post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
    "a coding in quotes": post('Transfer-Encoding: "chunked"\r\n', "0\r\n\r\n"),
    "a coding after a control character": post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"),
    "chunked in HTTP/1.0": post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n", version="HTTP/1.0"),
    "a bare line feed": post("X: a\nContent-Length: 2\r\n", "{}"),
    "a bare carriage return": post("X: a\rContent-Length: 2\r\n", "{}"),
    "a NUL in a header": post("X: a\0b\r\nContent-Length: 0\r\n"),
    "a header without a colon": post("Content-Length\r\n"),
    "a header without a name": post(": x\r\nContent-Length: 0\r\n"),
    "two hosts": post("Host: evil.com\r\nContent-Length: 0\r\n"),
    "a chunk size that overflows": post("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n"),
    "a negative chunk size": post("Transfer-Encoding: chunked\r\n", "-1\r\n"),
    "a chunk size with 0x": post("Transfer-Encoding: chunked\r\n", "0x2\r\n{}\r\n0\r\n\r\n"),
    "an empty chunk size": post("Transfer-Encoding: chunked\r\n", "\r\n{}\r\n0\r\n\r\n"),
    "a chunk without its end": post("Transfer-Encoding: chunked\r\n", "2\r\n{}0\r\n\r\n"),
    "an absolute target": "GET http://evil.com/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a target without a slash": "GET health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an asterisk": "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "spaces in the target": "GET /health x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tab in the request line": "GET\t/health\tHTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP/0.9": "GET /health\r\n\r\n",
    "a newer version": "GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "the preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an unknown method": "BREW /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "CONNECT": "CONNECT evil.com:443 HTTP/1.1\r\nHost: evil.com\r\n\r\n",
    "TRACE": "TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_can_be_read_in_two_ways_ends_the_connection(raw, server, name):
    connection = raw().send(AMBIGUOUS[name].encode("latin-1") + smuggled(name))
    connection.socket.shutdown(socket.SHUT_WR)
    statuses = []
    while (status := connection.answer()[0]) != 0:
        statuses.append(status)
    assert len(statuses) == 1 and statuses[0] in (400, 405, 501, 505), statuses
    found = requests.get(f"{server.url}/api/2.0/mlflow/experiments/get-by-name", params={"experiment_name": name})
    assert found.status_code == 404


def test_chunked_bodies_in_every_cut(raw):
    body = b'{"max_results": 1}'
    chunks = b"".join(b"%x;ext=\"a;b\"\r\n%b\r\n" % (1, body[i:i + 1]) for i in range(len(body)))
    trailer = b"0\r\nHost: evil.com\r\nX: y\r\n\r\n"
    head = b"POST /api/2.0/mlflow/experiments/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
           b"Transfer-Encoding: chunked\r\n\r\n"
    connection = raw()
    for piece in range(0, len(head + chunks + trailer), 7):
        connection.send((head + chunks + trailer)[piece:piece + 7])
    assert connection.answer()[0] == 200
    assert connection.send(api("GET", SEARCH)).answer()[0] == 200, "the trailers changed nothing"
    long_extension = head + b"1;" + b"x" * 100_000
    assert raw().send(long_extension).answer()[0] in (400, 431)


def test_a_body_that_waits_to_be_asked_for(raw):
    expecting = "Expect: 100-continue\r\n"
    body = b'{"max_results": 1}'
    connection = raw().send(api("POST", "/api/2.0/mlflow/experiments/search", more=expecting).replace(b"Length: 0", b"Length: 18"))
    assert connection.answer()[0] == 100
    assert connection.send(body).answer()[0] == 200
    # Refused before a byte of the body is sent.
    for path, host, expected in [("/api/2.0/none", "localhost", 404), ("/api/2.0/mlflow/experiments/search", "evil.com", 403),
                                 (f"{PROXY}/../x", "localhost", 405), ("/ajax-api/2.0/mlflow/upload-artifact?path=x", "localhost", 400)]:
        head = api("POST", path, host=host, more=expecting).replace(b"Length: 0", b"Length: 1000000000")
        connection = raw().send(head)
        assert connection.answer()[0] == expected, path
    odd = raw().send(api("POST", "/api/2.0/mlflow/experiments/search", body, more="Expect: 200-ok\r\n"))
    assert odd.answer()[0] in (200, 417)


@pytest.mark.parametrize("host", ["LOCALHOST", "LocalHost:99999", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:5000", "[::ffff:127.0.0.1]",
                                  "[0:0:0:0:0:0:0:1]:1", "10.0.0.8", "192.168.1.1:5000", "172.16.0.1", "[fd00::1]"])
def test_hosts_that_are_ours(raw, host):
    assert raw().send(api("GET", SEARCH, host=host)).answer()[0] == 200


@pytest.mark.parametrize("host", [
    "evil.com", "EVIL.COM:5000", "localhost.", "localhost.evil.com", "evil.localhost.com", "127.0.0.1.nip.io", "127.0.0.1.evil.com:5000",
    "10.evil.com", "192.168.evil.com", "0x7f000001", "2130706433", "0177.0.0.1", "127.1", "127.0.0.01", "127.0.0.1:", "127.0.0.1:80:80",
    "127.0.0.1:x", "127.0.0.1:-1", "user@localhost", "localhost@evil.com", "localhost:80@evil.com", "localhost%00.evil.com", "localhost%2eevil.com",
    "evil.com/localhost", "evil.com?localhost", "evil.com#localhost", "evil.com\\localhost", "localhost evil.com", "localhost,evil.com", "[::1",
    "::1", "[::1]evil.com", "[::1].evil.com", "[::1%25eth0]", "[::2]", "[2001:db8::1]", "[::ffff:8.8.8.8]", "8.8.8.8", "172.32.0.1", "11.0.0.1",
    "[localhost]", "[]", ":5000", "*", "\xe9vil.com", "l\xf6calhost"])
def test_hosts_that_only_look_like_ours(raw, host):
    status, _, body = raw().send(api("GET", SEARCH, host=host).decode().encode("latin-1")).answer()
    assert (status == 403 and b"DNS rebinding" in body) or status == 400, (status, body)


def test_a_request_without_a_host(raw):
    assert raw().send(f"GET {SEARCH} HTTP/1.1\r\n\r\n").answer()[0] in (400, 403)
    assert raw().send(f"GET {SEARCH} HTTP/1.0\r\n\r\n").answer()[0] in (400, 403)


ORIGINS = {
    "null": False, "http://evil.com": False, "http://localhost.evil.com": False, "http://evil.com#localhost": False,
    "http://localhost:{port}@evil.com": False, "http://user@localhost:{port}": False, "http://localhost:1": False, "http://localhost": False,
    "https://localhost:{port}": True, "http://localhost:{port}": True, "HTTP://LOCALHOST:{port}": True, "http://127.0.0.1:{port}": False,
    "http://[::1]:{port}": False, "localhost:{port}": False, "http://localhost:{port}, http://evil.com": False, "file://": False,
    "http://localhost:{port}/": False, "http://localhost:0{port}": False, "chrome-extension://abc": False, "http://localhost.:{port}": False,
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_origins(raw, server, origin):
    more = f"Origin: {origin.format(port=server.port)}\r\n"
    body = b'{"max_results": 1}'
    status, headers, _ = raw().send(api("POST", "/api/2.0/mlflow/experiments/search", body, f"localhost:{server.port}", more)).answer()
    assert status == (200 if ORIGINS[origin] else 403)
    assert not [name for name in headers if name.startswith("access-control-")]


def test_a_second_origin_does_not_help(raw, server):
    more = f"Origin: http://evil.com\r\nOrigin: http://localhost:{server.port}\r\n"
    host = f"localhost:{server.port}"
    assert raw().send(api("POST", CREATE, b'{"name": "o"}', host, more)).answer()[0] in (400, 403)


BOMB_BYTES = 160 << 20


def test_bodies_that_unfold(raw, server):
    before = server.memory_kb("VmHWM")
    once = gzip.compress(b"[" + b" " * BOMB_BYTES + b"]")
    for body, coding, expected in [
        (once, "gzip", 413), (gzip.compress(once), "gzip", 400), (zlib.compress(b" " * BOMB_BYTES), "deflate", 415),
        (once, "gzip, gzip", 415), (once, "br", 415), (once[:-9], "gzip", 413), (once[:1000], "gzip", 400), (b"", "gzip", 400), (b"x" * 50, "gzip", 400),
        (gzip.compress(b"{}") * 2000, "gzip", 400), (once, "GZIP", 415),
    ]:
        more = f"Content-Encoding: {coding}\r\n"
        status, _, text = raw().send(api("POST", "/api/2.0/mlflow/runs/log-batch", body, more=more)).answer()
        assert status in (expected, 400 if expected == 413 else expected), (coding, len(body), status)
        assert json.loads(text)["message"]
    assert raw().send(api("PUT", f"{PROXY}/bomb", once, more="Content-Encoding: gzip\r\n")).answer()[0] == 415
    assert server.memory_kb("VmHWM") - before < 100 << 10, "no body was unfolded whole"


def test_many_and_long_headers(raw):
    for more in ["X: " + "a" * 20_000 + "\r\n", "".join(f"X{i}: b\r\n" for i in range(3000)), "X" * 20_000 + ": a\r\n", ":" * 20_000 + "\r\n"]:
        status, headers, _ = raw().send(api("GET", SEARCH, more=more)).answer()
        assert status in (400, 431) and headers["connection"] == "close"
    assert raw().send(api("GET", SEARCH + "&x=" + "a" * 20_000)).answer()[0] == 431
    assert raw().send(api("GET", SEARCH, more="".join(f"X{i}: b\r\n" for i in range(200)))).answer()[0] == 200


def test_half_closed_clients_get_their_answers(raw, run):
    body = json.dumps({"run_id": run, "key": "half", "value": "closed"}).encode()
    connection = raw().send(api("POST", "/api/2.0/mlflow/runs/set-tag", body) + api("GET", f"/api/2.0/mlflow/runs/get?run_id={run}"))
    connection.socket.shutdown(socket.SHUT_WR)
    assert connection.answer()[0] == 200
    status, _, text = connection.answer()
    assert status == 200 and b'"closed"' in text
    assert connection.answer()[0] == 0


def test_pipelined_uploads_and_downloads(raw, client, run):
    """Bodies, refusals and files behind one another on one connection, in order."""
    folder = client.get_run(run).info.artifact_uri.split(":/", 1)[1].lstrip("/")
    data = os.urandom(700_000)
    batch = b""
    for i in range(5):
        batch += api("PUT", f"{PROXY}/{folder}/f{i}", data[i:])
        batch += api("GET", f"{PROXY}/{folder}/f{i}", more=f"Range: bytes={i}-\r\n")
        batch += api("POST", "/api/2.0/none", b"x" * 1000)
        batch += api("GET", f"{PROXY}/{folder}/none")
    connection = raw()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(connection.send, batch)
        for i in range(5):
            assert connection.answer()[0] == 200
            status, headers, body = connection.answer()
            assert status == 206 and body == data[2 * i:] and headers["content-range"].endswith(f"/{len(data) - i}")
            assert connection.answer()[0] == 404
            assert connection.answer()[0] == 404


def test_files_in_parts_and_heads(raw, server, client, run):
    data = os.urandom(300_000)
    base = f"{server.url}/get-artifact?run_id={run}&path="
    requests.post(f"{server.url}/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path=f", data=data)
    whole = requests.get(base + "f")
    etag = whole.headers["ETag"]
    assert whole.content == data and whole.headers["Accept-Ranges"] == "bytes"
    for asked, expected in [("bytes=0-0", data[:1]), ("bytes=-5", data[-5:]), ("bytes=299999-", data[-1:]), ("bytes=5-9999999", data[5:]),
                            ("bytes=-9999999", data), ("bytes=0-", data)]:
        part = requests.get(base + "f", headers={"Range": asked})
        assert part.status_code == 206 and part.content == expected, asked
    for asked in ["bytes=300000-", "bytes=-0", "bytes=300000-300001"]:
        answer = requests.get(base + "f", headers={"Range": asked})
        assert answer.status_code == 416 and answer.headers["Content-Range"] == "bytes */300000" and answer.content == b""
    for asked in ["bytes=5-1", "bytes=a-b", "lines=1-2", "bytes=0-1,3-4", "bytes=", "bytes=--1", "bytes=99999999999999999999-"]:
        answer = requests.get(base + "f", headers={"Range": asked})
        assert answer.status_code == 200 and answer.content == data, asked
    assert requests.get(base + "f", headers={"Range": "bytes=0-0", "If-Range": etag}).status_code == 206
    assert requests.get(base + "f", headers={"Range": "bytes=0-0", "If-Range": '"other"'}).status_code == 200
    assert requests.get(base + "f", headers={"If-None-Match": f'"a", {etag}'}).status_code == 304
    head = requests.head(base + "f")
    assert head.headers["Content-Length"] == "300000" and head.headers["ETag"] == etag and head.content == b""
    requests.post(f"{server.url}/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path=f", data=data)
    assert requests.get(base + "f", headers={"Range": "bytes=0-0", "If-Range": etag}).status_code == 200, "it is another file now"
    assert requests.put(f"{server.url}{PROXY}/0/r/empty", data=b"").status_code == 200
    assert requests.get(f"{server.url}{PROXY}/0/r/empty").content == b""
    assert requests.get(f"{server.url}{PROXY}/0/r/empty", headers={"Range": "bytes=0-"}).status_code == 416
    for name, expected in [("plain.txt", 'attachment; filename="plain.txt"'), ('a"b.txt', "filename*=UTF-8''a%22b.txt"),
                           ("ü 日.bin", "filename*=UTF-8''%C3%BC%20%E6%97%A5.bin")]:
        requests.post(f"{server.url}/ajax-api/2.0/mlflow/upload-artifact", params={"run_uuid": run, "path": name}, data=b"x")
        answer = requests.get(f"{server.url}/get-artifact", params={"run_id": run, "path": name})
        assert expected in answer.headers["Content-Disposition"]
        assert answer.headers["Content-Disposition"].isascii()


def test_downloads_from_the_disk_and_from_memory(own_server):
    """Cold files are waited for on another thread, warm ones are sent at once; neither costs memory."""
    server = own_server()
    data = os.urandom(1 << 20) * 64
    assert requests.put(f"{server.url}{PROXY}/0/r/f", data=data).status_code == 200
    memory = server.memory_kb("VmHWM")
    for cold in (False, True):
        if cold:
            with open(server.data / "artifacts/0/r/f", "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        answer = requests.get(f"{server.url}{PROXY}/0/r/f")
        assert hashlib.sha256(answer.content).digest() == hashlib.sha256(data).digest()
    assert server.memory_kb("VmHWM") - memory < 16 << 10, "of a file of 64 MiB"


def test_clients_that_stop_reading_a_download(own_server):
    server = own_server()
    assert requests.put(f"{server.url}{PROXY}/0/r/f", data=os.urandom(1 << 20) * 32).status_code == 200
    before = server.memory_kb()
    stopped = [Raw(server).send(api("GET", f"{PROXY}/0/r/f")) for _ in range(40)]
    for each in stopped:
        each.socket.recv(100)
    assert requests.get(f"{server.url}{SEARCH}").status_code == 200
    assert server.falls_to_kb(before + (8 << 10))
    for i, each in enumerate(stopped):
        if i % 2:
            each.close()  # with unread data: a reset while the server sends
    assert requests.get(f"{server.url}{PROXY}/0/r/f").status_code == 200 and server.is_alive()
    for each in stopped[::2]:
        each.close()


def test_drips_cost_little_and_hold_up_nobody(own_server):
    """Headers, JSON bodies and uploads byte by byte on 600 connections, while others work."""
    server = own_server()
    requests.get(f"{server.url}{SEARCH}")
    before = server.memory_kb()
    head = api("POST", "/api/2.0/mlflow/runs/log-batch", more="X: y\r\n").replace(b"Length: 0", b"Length: 1000000")
    put = api("PUT", f"{PROXY}/0/r/drip").replace(b"Length: 0", b"Length: 1000000000")
    drips = []
    for i in range(600):
        drips.append(Raw(server).send([api("GET", SEARCH)[:-2], head + b"{", put + b"x"][i % 3]))
    for _ in range(4):  # few enough to be done long before the server gives such clients up
        for each in drips:
            each.send(b"x")
        assert requests.get(f"{server.url}{SEARCH}").status_code == 200
    assert server.falls_to_kb(before + (30 << 10), seconds=20), f"{server.memory_kb() - before} kB for 600 slow clients"
    for each in drips:
        each.close()
    listed = requests.get(f"{server.url}{PROXY}?path=0/r").json()
    assert listed == {}


def connect_from(address, port):
    return socket.create_connection(("127.0.0.1", port), source_address=(address, 0))


def test_one_client_leaves_connections_to_others(own_server):
    server = own_server(more=["--connections-per-client", "50"])
    idle = [connect_from("127.0.0.2", server.port) for _ in range(50)]
    assert connect_from("127.0.0.2", server.port).recv(12) == b"HTTP/1.1 429"
    other = connect_from("127.0.0.3", server.port)
    other.sendall(api("GET", SEARCH))
    assert other.recv(12) == b"HTTP/1.1 200"
    for each in [other, *idle]:
        each.close()


def test_agents_with_a_token_do_not_count_to_their_address(own_server):
    server = own_server(more=["--connections-per-client", "20"])
    if not server.credentials:
        pytest.skip("the tracking part alone knows no agents")
    call = api("GET", SEARCH, more=f"Authorization: {server.credentials['Authorization']}\r\n")
    known = [connect_from("127.0.0.2", server.port) for _ in range(10)]
    for _ in range(60):
        known.append(connect_from("127.0.0.2", server.port))
        known[-1].sendall(call)
        assert known[-1].recv(12) == b"HTTP/1.1 200"
    idle = [connect_from("127.0.0.2", server.port) for _ in range(10)]
    assert connect_from("127.0.0.2", server.port).recv(12) == b"HTTP/1.1 429", "strangers still share"
    for each in [*known, *idle]:
        each.close()


def test_more_connections_than_open_files_are_refused_in_a_sentence(own_server):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard > 1 << 30:
        pytest.skip("this machine allows any number of descriptors")
    with pytest.raises(AssertionError, match=f"this process may have {hard}"):
        own_server(more=["--connections", str(hard)])


def test_two_thousand_idle_connections(own_server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4500:
        pytest.skip("this machine allows too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    server = own_server(more=["--connections", "2048"])
    assert requests.get(f"{server.url}{SEARCH}").status_code == 200
    idle = [connect_from(f"127.0.0.{1 + i % 2}", server.port) for i in range(2000)]
    try:
        for each in idle[::100]:
            each.sendall(api("GET", SEARCH))
            assert each.recv(12) == b"HTTP/1.1 200"
        with requests.Session() as session:
            assert session.get(f"{server.url}{SEARCH}").status_code == 200, "a new one is served"
        assert server.falls_to_kb(60 << 10, seconds=30), "and long before the idle ones are closed"
        more = [connect_from("127.0.0.3", server.port) for _ in range(100)]
        refused = more[-40]
        assert refused.recv(12) == b"HTTP/1.1 429"
        for each in more:
            each.close()
    finally:
        for each in idle:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    deadline = time.monotonic() + 60
    while requests.get(f"{server.url}{SEARCH}").status_code != 200:
        assert time.monotonic() < deadline
    assert server.is_alive()


def test_killed_during_uploads(own_server):
    """kill -9 in the middle of 20 uploads that replace files: each is the old one, whole; nothing hidden is left after a start."""
    server = own_server()
    for i in range(20):
        assert requests.put(f"{server.url}{PROXY}/0/r/f{i}", data=b"old").status_code == 200
    half = [Raw(server).send(api("PUT", f"{PROXY}/0/r/f{i}").replace(b"Length: 0", b"Length: 2000000") + b"n" * 1_000_000)
            for i in range(20)]
    assert requests.get(f"{server.url}{SEARCH}").status_code == 200
    server.kill()
    for each in half:
        each.close()
    files = [str(path.relative_to(server.data / "artifacts")) for path in (server.data / "artifacts").rglob("*") if path.is_file()]
    assert sorted(files) == sorted(f"0/r/f{i}" for i in range(20))
    server = own_server()
    for i in range(20):
        assert requests.get(f"{server.url}{PROXY}/0/r/f{i}").content == b"old"
    assert os.listdir(server.data / "artifacts/.artifact.uploading.parts") == []


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of 24 MiB of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", folder], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_is_full(small_disk):
    from conftest import Server

    server = Server(small_disk / "data")
    url = f"{server.url}{PROXY}/0/r"
    try:
        assert requests.put(f"{url}/fits", data=b"x" * (1 << 20)).status_code == 200
        answer = requests.put(f"{url}/large", data=b"x" * (40 << 20))
        assert answer.status_code == 429 and "No space left" in answer.json()["message"]
        created = requests.post(f"{server.url}/api/2.0/mlflow-artifacts/mpu/create/0/r", json={"path": "parts", "num_parts": 8}).json()
        parts, failed = [], 0
        for credential in created["credentials"]:
            answer = requests.put(credential["url"], data=b"y" * (5 << 20))
            if answer.status_code == 200:
                parts.append({"part_number": credential["part_number"], "etag": answer.headers["ETag"]})
            else:
                assert answer.status_code == 429 and answer.json()["error_code"] == "RESOURCE_EXHAUSTED"
                failed += 1
        assert parts and failed
        body = {"path": "parts", "upload_id": created["upload_id"]}
        assert requests.post(f"{server.url}/api/2.0/mlflow-artifacts/mpu/complete/0/r", json=body | {"parts": parts}).status_code == 400
        assert requests.post(f"{server.url}/api/2.0/mlflow-artifacts/mpu/abort/0/r", json=body).status_code == 200
        assert [each["path"] for each in requests.get(f"{server.url}{PROXY}?path=0/r").json()["files"]] == ["fits"]
        assert requests.put(f"{url}/again", data=b"x" * (5 << 20)).status_code == 200, "what failed has given its space back"
        assert server.is_alive()
    finally:
        server.stop()

"""Native TLS: the real MLflow client, curl and openssl; certificates that change; clients with certificates."""

import contextlib
import hashlib
import json
import os
import signal
import shutil
import socket
import subprocess
import threading

import pytest
import requests

from conftest import BIN_DIR, Server
from secured import HalfConnection, answer_of, certificate_of, connect, get, is_closed, openssl, wait_until
from tls_front import Authority

CA = "MLFLOW_TRACKING_SERVER_CERT_PATH"
TUNE = BIN_DIR / "tune"


def flags(certificate, *more):
    return ["--tls-cert", str(certificate), "--tls-key", str(certificate), *map(str, more)]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def other_authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"), "another authority")


@pytest.fixture(scope="module")
def secured(authority, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("secured") / "data", more=flags(authority.issue("server")))
    yield server
    assert server.is_alive(), server.errors()
    server.stop()


def curl(server, authority, *words, path="/health", **run):
    return subprocess.run(["curl", "-sS", "--cacert", authority.file, *map(str, words), server.url + path],
                          capture_output=True, text=True, timeout=60, **run)


# --- who may talk --------------------------------------------------------------------------------


def test_curl_and_the_printed_address(secured, authority):
    assert secured.url.startswith("https://127.0.0.1:")
    done = curl(secured, authority, "-w", " %{http_version} %{ssl_verify_result}")
    assert done.stdout == "OK 1.1 0", done.stderr
    several = curl(secured, authority, "-o", "/dev/null", "-w", "%{num_connects} ", secured.url + "/version")
    assert several.stdout.endswith("0 "), "the connection is used again"


def test_versions_and_protocols(secured):
    address = ["-connect", f"127.0.0.1:{secured.port}"]
    for old in ("-tls1", "-tls1_1"):
        said = openssl(*address, old, "-cipher", "DEFAULT@SECLEVEL=0")
        assert "alert protocol version" in said and "Cipher is (NONE)" in said
    assert "TLSv1.2, Cipher is ECDHE-" in openssl(*address, "-tls1_2")
    assert "TLSv1.3, Cipher is TLS_" in openssl(*address, "-tls1_3")
    assert "Cipher is (NONE)" in openssl(*address, "-tls1_2", "-cipher", "AES128-SHA"), "no forward secrecy"
    assert "ALPN protocol: http/1.1" in openssl(*address, "-alpn", "h2,http/1.1")
    assert "alert no application protocol" in openssl(*address, "-alpn", "h2")


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_sessions_are_taken_up_again(secured, tmp_path, version):
    session = tmp_path / "session"
    words = ["-connect", f"127.0.0.1:{secured.port}", version]
    asked = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert "New, TLSv" in openssl(*words, "-ign_eof", "-sess_out", session, given=asked)
    again = openssl(*words, "-ign_eof", "-sess_in", session, given=asked)
    assert "Reused, TLSv" in again and "200 OK" in again


def test_our_programs_check_the_certificate(secured, authority, other_authority, own_server, tmp_path):
    known = {name: value for name, value in os.environ.items() if not name.endswith(("CERT_FILE", "CA_BUNDLE"))}

    def ls(url, *words, **variables):
        return subprocess.run([TUNE, "ls", "--server", url, *map(str, words)], capture_output=True, text=True,
                              timeout=60, env={**known, **variables})
    assert ls(secured.url, "--ca", authority.file).returncode == 0
    for name in ("TUNE_CA_FILE", CA, "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        assert ls(secured.url, **{name: str(authority.file)}).returncode == 0, name
    both = ls(secured.url, "--ca", authority.file, TUNE_CA_FILE=str(other_authority.file))
    assert both.returncode == 0, "what is said wins"
    for words in ([], ["--ca", other_authority.file]):
        refused = ls(secured.url, *words)
        assert refused.returncode == 1 and "not trusted" in refused.stderr and "--ca" in refused.stderr
    other_name = ls(secured.url.replace("127.0.0.1", "localhost"), "--ca", authority.file)
    assert other_name.returncode == 1 and "not trusted" in other_name.stderr
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(secured.url + "/health", verify=str(other_authority.file))
    old = own_server(more=flags(authority.issue("old", days=(-9, -2))))
    assert "ended on" in old.errors() and "clients refuse it" in old.errors()
    refused = ls(old.url, "--ca", authority.file)
    assert refused.returncode == 1 and "expired" in refused.stderr
    assert "expired" in curl(old, authority).stderr


def test_plain_http_is_told_what_to_do(secured):
    answer = requests.get(secured.url.replace("https", "http") + "/health")
    assert answer.status_code == 400 and "https://" in answer.json()["message"]
    posted = requests.post(secured.url.replace("https", "http") + "/api/2.0/mlflow/runs/search", data=b"x" * 100_000)
    assert posted.status_code == 400
    done = subprocess.run([TUNE, "ls", "--server", secured.url.replace("https", "http")], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1 and "speaks HTTPS" in done.stderr


# --- what passes through -------------------------------------------------------------------------


def test_the_mlflow_client(secured, authority, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.setenv(CA, str(authority.file))
    client = mlflow.MlflowClient(secured.url)
    experiment = client.create_experiment("through TLS")
    run = client.create_run(experiment).info.run_id
    for step in range(20):
        client.log_metric(run, "loss", 1 / (step + 1), step=step)
    client.log_param(run, "p", "v" * 500)
    assert [m.step for m in client.get_metric_history(run, "loss")] == list(range(20))
    large = tmp_path / "large.bin"
    large.write_bytes(os.urandom(1 << 20) * 40)
    client.log_artifact(run, str(large), "deep/folder")
    assert [f.path for f in client.list_artifacts(run, "deep/folder")] == ["deep/folder/large.bin"]
    (tmp_path / "got").mkdir()
    got = client.download_artifacts(run, "deep/folder/large.bin", str(tmp_path / "got"))
    assert hashlib.sha256(open(got, "rb").read()).digest() == hashlib.sha256(large.read_bytes()).digest()
    client.create_registered_model("through TLS")
    client.create_model_version("through TLS", f"runs:/{run}/deep", run)
    assert client.search_model_versions("name='through TLS'")[0].run_id == run
    client.set_terminated(run)
    assert client.search_runs([experiment], "metrics.loss < 1")[0].info.status == "FINISHED"


def test_ranges_of_large_files(secured, authority):
    content = os.urandom(1 << 20) * 24 + b"end"
    address = f"{secured.url}/api/2.0/mlflow-artifacts/artifacts/ranges/large.bin"
    with requests.Session() as session:
        session.verify, session.trust_env = str(authority.file), False
        session.put(address, data=content).raise_for_status()
        assert session.get(address).content == content
        for first, last in ((0, 0), (5, 131_077), (1 << 20, (20 << 20) + 1), (len(content) - 3, len(content) - 1)):
            part = session.get(address, headers={"Range": f"bytes={first}-{last}"})
            assert part.status_code == 206 and part.content == content[first:last + 1]
        tail = session.get(address, headers={"Range": "bytes=-1000000"})
        assert tail.content == content[-1_000_000:]
        etag = session.get(address, stream=True).headers["ETag"]
        assert session.get(address, headers={"If-None-Match": etag}).status_code == 304
        # Several at a time, of which one is given up in the middle.
        given_up = requests.get(address, stream=True, verify=session.verify)
        next(given_up.iter_content(1 << 16))
        given_up.close()
        digests = []
        threads = [threading.Thread(target=lambda: digests.append(hashlib.sha256(
            requests.get(address, verify=session.verify).content).digest())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert digests == [hashlib.sha256(content).digest()] * 8


def test_a_body_that_is_made_while_it_is_sent(secured, authority, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.setenv(CA, str(authority.file))
    client = mlflow.MlflowClient(secured.url)
    run = client.create_run(client.create_experiment("backup")).info.run_id
    for i in range(20):
        client.log_text(run, os.urandom(200_000).hex(), f"{i}.txt")
    done = subprocess.run([TUNE, "backup", tmp_path / "copy.tune", "--server", secured.url, "--with-artifacts", "--ca",
                           authority.file], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    restored = subprocess.run([TUNE, "restore", tmp_path / "copy.tune", "--data", tmp_path / "restored"],
                              capture_output=True, text=True, timeout=100)
    assert restored.returncode == 0, restored.stderr


def test_live_events(secured, authority, monkeypatch):
    import mlflow

    monkeypatch.setenv(CA, str(authority.file))
    stream = requests.get(f"{secured.url}/api/ui/events?topics=experiments", stream=True, timeout=30,
                          verify=str(authority.file))
    lines = stream.iter_lines(chunk_size=1)
    assert next(lines) == b"retry: 1000"
    for name in ("first", "second"):
        mlflow.MlflowClient(secured.url).create_experiment(f"seen {name}")
        seen = []
        for line in lines:
            seen.append(line)
            if line.startswith(b"data:"):
                break
        assert any(line.startswith(b"event:") or line.startswith(b"data:") for line in seen), seen
    stream.close()


def test_keep_alive_and_records_of_every_size(secured, authority):
    with connect(secured, authority) as connection:
        for _ in range(50):
            assert get(connection) == (200, b"OK")
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        received = b""
        while received.count(b"200 OK") < 20:
            received += connection.recv(1 << 16)
        for byte in b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r":
            connection.sendall(bytes([byte]))
        connection.sendall(b"\n")
        assert answer_of(connection) == (200, b"OK")


def test_absolute_addresses_in_answers_say_https(secured, authority):
    run = requests.post(secured.url + "/api/2.0/mlflow/runs/create", json={"experiment_id": "0"},
                        verify=str(authority.file)).json()["run"]["info"]
    started = requests.post(secured.url + f"/api/2.0/mlflow-artifacts/mpu/create/0/{run['run_id']}/artifacts",
                            json={"path": f"0/{run['run_id']}/artifacts/x.bin", "num_parts": 2},
                            verify=str(authority.file)).json()
    assert started["credentials"][0]["url"].startswith(secured.url + "/"), started


def test_the_page_cookie_stays_within_tls(authority, own_server):
    server = own_server(more=flags(authority.issue("page")))
    opened = subprocess.run([TUNE, "open", "--data", server.data, "--ca", authority.file, "--json"],
                            capture_output=True, text=True, timeout=60)
    page = json.loads(opened.stdout)["page"]
    assert page.startswith(server.url + "/?code=")
    answer = curl(server, authority, "-i", path=page.removeprefix(server.url)).stdout
    assert " 303 " in answer and "; Secure\n" in answer


# --- certificates that change --------------------------------------------------------------------


def test_a_new_certificate_without_a_restart(authority, own_server, tmp_path):
    used, spare = tmp_path / "used.pem", [authority.issue(f"spare {i}") for i in range(2)]
    shutil.copy(authority.issue("first"), used)
    server = own_server(more=flags(used))
    first = certificate_of(server, authority)
    with connect(server, authority) as old:
        assert get(old) == (200, b"OK")
        shutil.copy(spare[0], tmp_path / "next.pem")
        os.replace(tmp_path / "next.pem", used)  # the server looks by itself
        wait_until(lambda: certificate_of(server, authority) != first, server.errors)
        second = certificate_of(server, authority)
        used.write_text("nothing of use")
        wait_until(lambda: "certificate in use stays" in server.errors(), server.errors)
        assert certificate_of(server, authority) == second, "a bad file changes nothing"
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.errors().count("certificate in use stays") == 2, server.errors)
        shutil.copy(spare[1], used)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: certificate_of(server, authority) not in (first, second), server.errors)
        assert get(old) == (200, b"OK") and old.getpeercert()["serialNumber"] == first, "old connections go on"
    assert "read anew; it is valid until" in server.errors()


def test_the_holder_of_a_folder_is_not_believed_unseen(authority, own_server):
    server = own_server(more=flags(authority.issue("holder")))
    environment = {name: value for name, value in os.environ.items() if not name.endswith(("CERT_FILE", "CA_BUNDLE"))}
    words = [TUNE, "ls", "--data", server.data]
    refused = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
    assert refused.returncode == 1 and "--ca" in refused.stderr
    trusted = subprocess.run([*words, "--ca", authority.file], capture_output=True, text=True, timeout=60, env=environment)
    assert trusted.returncode == 0, trusted.stderr


def test_a_key_of_another_certificate_is_refused(authority, own_server, tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    shutil.copy(authority.issue("one"), certificate)
    shutil.copy(certificate, key)
    server = own_server(more=["--tls-cert", str(certificate), "--tls-key", str(key)])
    shown = certificate_of(server, authority)
    shutil.copy(authority.issue("two"), key)
    wait_until(lambda: "certificate in use stays" in server.errors(), server.errors)
    assert str(key) in server.errors() and certificate_of(server, authority) == shown


@pytest.mark.parametrize("words, said", [
    (["--tls-cert", "absent.pem", "--tls-key", "absent.pem"], "the certificate 'absent.pem' is not there"),
    (["--tls-cert", "{good}"], "--tls-key"),
    (["--tls-cert", "{good}", "--tls-key", "{other}"], "cannot be used with the certificate"),
    (["--tls-cert", "{good}", "--tls-key", "{locked}"], "without a passphrase"),
    (["--tls-cert", "{text}", "--tls-key", "{good}"], "must be PEM"),
    (["--tls-cert", "{good}", "--tls-key", "{good}", "--tls-client-ca", "{text}"], "authority of clients"),
    (["--tls-cert", "{good}", "--tls-key", "{good}", "--tls-client-required"], "--tls-client-ca")])
def test_bad_files_at_the_start(authority, tmp_path, words, said):
    files = {"good": authority.issue("good"), "other": authority.issue("other"), "text": tmp_path / "text.pem",
             "locked": tmp_path / "locked.pem"}
    files["text"].write_text("not a certificate")
    subprocess.run(["openssl", "pkey", "-in", files["good"], "-aes256", "-passout", "pass:secret", "-out",
                    files["locked"]], check=True)
    done = subprocess.run([TUNE, "server", "--port", "0", *(word.format(**files) for word in words)], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and said in done.stderr, done


# --- certificates of clients ---------------------------------------------------------------------


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def register(url, authority, token, shown=None):
    return requests.post(url + "/api/2.0/tune/agents/register", json={"agent_id": "far", "slots": 1}, cert=shown,
                         verify=str(authority.file), headers={"Authorization": "Bearer " + token})


def test_agents_of_other_machines_show_a_certificate(authority, other_authority, own_server):
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    server = own_server(more=flags(authority.issue("server", address), "--host", "0.0.0.0", "--tls-client-ca",
                                   authority.file))
    token = (server.data / "token").read_text().strip()
    url = f"https://{address}:{server.port}"
    refused = register(url, authority, token)
    assert refused.status_code == 403 and "--client-cert" in refused.json()["message"]
    shown = str(authority.issue("agent"))
    assert register(url, authority, token, shown).status_code == 200
    assert register(url, authority, "0" * 64, shown).status_code == 401, "it grants nothing by itself"
    tracking = requests.get(url + "/api/2.0/mlflow/experiments/get?experiment_id=0", verify=str(authority.file),
                            headers={"Authorization": "Bearer " + token})
    assert tracking.status_code == 200, "the tracking routes need none"
    with pytest.raises(requests.exceptions.ConnectionError):
        register(url, authority, token, str(other_authority.issue("stranger")))


def test_all_clients_show_a_certificate(authority, other_authority, own_server):
    server = own_server(more=flags(authority.issue("server"), "--tls-client-ca", authority.file,
                                   "--tls-client-required"))
    shown = authority.issue("client")
    assert curl(server, authority, "--cert", shown).stdout == "OK"
    for words in ([], ["--cert", other_authority.issue("stranger")]):
        refused = curl(server, authority, *words)
        assert refused.stdout == "" and refused.returncode != 0
    wait_until(lambda: "was not let in for its certificate" in server.errors(), server.errors)
    listed = subprocess.run([TUNE, "ls", "--server", server.url, "--ca", authority.file, "--client-cert", shown],
                            capture_output=True, text=True, timeout=60)
    assert listed.returncode == 0, listed.stderr
    # A session that was made with a certificate is taken up with it.
    session = server.data.parent / "session"
    words = ["-connect", f"127.0.0.1:{server.port}", "-ign_eof", "-cert", shown, "-key", shown]
    asked = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    openssl(*words, "-sess_out", session, given=asked)
    assert "200 OK" in openssl(*words, "-sess_in", session, given=asked)


# --- hostile clients -----------------------------------------------------------------------------


def test_records_that_are_cut_or_forged(secured, authority):
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for damage in (lambda record: record[:-4],                                          # and then nothing more
                   lambda record: record[:10] + bytes([record[10] ^ 1]) + record[11:],  # another byte
                   lambda record: b"\x17\x03\x03\xff\xff" + record[5:],                 # a length that is not allowed
                   lambda record: request,                                              # no TLS any more
                   lambda record: os.urandom(500)):
        half = HalfConnection(secured, authority)
        half.finish_handshake()
        half.socket.sendall(damage(half.encrypt(request)))
        half.socket.shutdown(socket.SHUT_WR)
        assert is_closed(half.socket)
        half.close()
    upload = HalfConnection(secured, authority)
    upload.finish_handshake()
    head = b"PUT /api/2.0/mlflow-artifacts/artifacts/cut/file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    upload.socket.sendall(upload.encrypt(head + b"x" * 9000)[:-9])
    upload.close()
    address = secured.url + "/api/2.0/mlflow-artifacts/artifacts/cut/file"
    assert requests.get(address, verify=str(authority.file)).status_code == 404, "half an upload is none"


def test_handshakes_that_do_not_end(secured, authority):
    """Clients that stop within a handshake, or are killed there, hold up nobody."""
    hello = HalfConnection(secured, authority).hello()
    stuck = []
    for i in range(200):
        connection = socket.create_connection(("127.0.0.1", secured.port), timeout=60)
        connection.sendall(hello[:i + 1] if i % 2 else hello)
        stuck.append(connection)
    with connect(secured, authority) as connection:
        for _ in range(20):
            assert get(connection) == (200, b"OK")
    for connection in stuck[:100]:
        connection.close()
    assert curl(secured, authority).stdout == "OK"
    more = [socket.create_connection(("127.0.0.1", secured.port), timeout=60) for _ in range(300)]
    assert is_closed(more[-1]), "a client has its share of handshakes"
    for connection in stuck[100:] + more:
        connection.close()
    wait_until(lambda: curl(secured, authority).stdout == "OK", secured.errors)


def test_strange_beginnings(secured):
    for begin in (b"\x16", b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\x40\x01" + os.urandom(70_000), b"\x80\x2e\x01",
                  b"\x00" * 100, b"SSH-2.0-x\r\n"):
        with socket.create_connection(("127.0.0.1", secured.port), timeout=60) as connection:
            connection.sendall(begin)
            with contextlib.suppress(OSError):  # it may be closed already
                connection.shutdown(socket.SHUT_WR)
            assert is_closed(connection)

"""A change whose answer is lost on the way is tried again by our clients, and was made once."""

import contextlib
import http.server
import threading
import urllib.error
import urllib.request

import pytest

import tune_client
from study_support import OK, credentials, server, tune, tune_json

SPACE = {"x": {"float": [0, 1]}}


@contextlib.contextmanager
def losing_answers(url):
    """The address of a proxy that carries out the first request of each change and cuts the connection instead of answering it."""
    tries = {}

    class Cutting(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name not in ("Host", "Content-Length", "Connection")}
            wanted = urllib.request.Request(url + self.path, data=body or None, headers=headers, method=self.command)
            try:
                with urllib.request.urlopen(wanted) as answer:
                    status, text = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, text = error.code, error.read()
            what = (self.command, self.path)
            tries.setdefault(what, []).append(status)
            if self.command != "GET" and len(tries[what]) == 1:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = do_PATCH = pass_on

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cutting) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}", tries
        finally:
            proxy.shutdown()
            thread.join()


@pytest.fixture
def lossy(tmp_path, monkeypatch):
    with server(tmp_path) as (_, url):
        tune_client.create_study("s", space=SPACE, metric="loss", server=url)
        monkeypatch.setenv("TUNE_TOKEN", credentials(url)["Authorization"].split()[1])
        with losing_answers(url) as (address, tries):
            yield address, tries


def twice(tries, method, path):
    return tries[(method, "/api/2.0/tune/studies/" + path)] == [200, 200]


def test_the_command_line(lossy, tmp_path):
    url, tries = lossy
    for words in (("rename", "s", "t"), ("rm", "t"), ("restore", "--study", "t")):
        done = tune(*words, "--server", url, cwd=tmp_path)
        assert done.returncode == OK, (words, done.stderr, tries)
    assert twice(tries, "POST", "s/rename") and twice(tries, "DELETE", "t") and twice(tries, "POST", "t/restore"), tries
    assert [study["name"] for study in tune_json("ls", "--server", url, cwd=tmp_path)["studies"]] == ["t"]


def test_quotas(lossy, tmp_path):
    url, tries = lossy
    assert tune("quota", "set", "ann", "--slots", "2", "--server", url, cwd=tmp_path).returncode == OK
    gone = tune("quota", "rm", "ann", "--server", url, cwd=tmp_path)
    assert gone.returncode == OK, gone.stderr
    assert tries[("DELETE", "/api/2.0/tune/quotas/ann")] == [200, 200]


def test_the_python_client(lossy):
    url, tries = lossy
    study = tune_client.load_study("s", url)
    assert study.rename("t")["name"] == "t"
    study.delete()
    assert tune_client.restore_study("t", url).name == "t"
    assert twice(tries, "POST", "s/rename") and twice(tries, "DELETE", "t") and twice(tries, "POST", "t/restore"), tries

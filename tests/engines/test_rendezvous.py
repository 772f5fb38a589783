"""Where the processes of HorovodRunner meet: who is let in, and how much it holds. What Horovod itself says to it: horovod/test_horovod.py."""

import http.client
import os

import pytest

from tune_client import _rendezvous
from tune_client._gang import Training, run_here


@pytest.fixture
def rendezvous():
    with _rendezvous.Rendezvous({"global": 2, "local": 2, "cross": 1}, "127.0.0.1") as made:
        yield made


def ask(rendezvous, method, key, body=None, path=None, **headers):
    link = http.client.HTTPConnection("127.0.0.1", rendezvous.port, timeout=60)
    try:
        link.request(method, f"/{path or rendezvous.path}:{rendezvous.port}/{key}", body, headers)
        answer = link.getresponse()
        return answer.status, answer.read()
    finally:
        link.close()


def test_what_is_put_is_there_until_all_are_done(rendezvous):
    assert ask(rendezvous, "GET", "global/0") == (404, b"")
    assert ask(rendezvous, "PUT", "global/0", b"\0\r\n") == (200, b"")
    assert ask(rendezvous, "DELETE", "global/1") == (200, b"")
    assert ask(rendezvous, "GET", "global/0") == (200, b"\0\r\n")
    assert ask(rendezvous, "DELETE", "global/0") == (200, b"")
    assert ask(rendezvous, "GET", "global/0") == (404, b"")


def test_others_are_refused(rendezvous):
    assert ask(rendezvous, "PUT", "global/0", b"x", path="0" * 32)[0] == 403
    assert ask(rendezvous, "GET", "global/0", path="..")[0] == 403
    assert ask(rendezvous, "GET", "global")[0] == 400
    assert ask(rendezvous, "GET", "global/0/1")[0] == 400
    assert ask(rendezvous, "POST", "global/0", b"x")[0] == 501
    assert ask(rendezvous, "GET", "global/0")[0] == 404


def test_it_is_bounded(rendezvous, monkeypatch):
    assert ask(rendezvous, "PUT", "a/0", b"x", **{"Content-Length": str(_rendezvous.VALUE_BYTES_MAX + 1)})[0] == 413
    monkeypatch.setattr(_rendezvous, "BYTES_MAX", 10)
    assert ask(rendezvous, "PUT", "a/0", b"12345")[0] == 200
    assert ask(rendezvous, "PUT", "a/0", b"123456789")[0] == 200, "the old value makes room"
    assert ask(rendezvous, "PUT", "a/1", b"1")[0] == 507
    assert ask(rendezvous, "DELETE", "a/0")[0] == 200
    monkeypatch.setattr(_rendezvous, "KEYS_MAX", 1)
    assert ask(rendezvous, "PUT", "a/1", b"1")[0] == 200
    assert ask(rendezvous, "PUT", "a/2", b"")[0] == 507


def test_processes_of_the_driver_have_one():
    def meet():
        import urllib.request

        address, port = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]
        key = f"http://{address}:{port}/global/{os.environ['HOROVOD_RANK']}"
        urllib.request.urlopen(urllib.request.Request(key, data=b"here", method="PUT"), timeout=60).close()
        with urllib.request.urlopen(key, timeout=60) as answer:
            return answer.read(), os.environ["HOROVOD_GLOO_IFACE"], os.environ["HOROVOD_HOSTNAME"]

    assert run_here(Training(meet), 2) == [(b"here", "lo", "node-0")] * 2

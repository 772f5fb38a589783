"""Where the processes of a training meet that call hvd.init(): what Horovod's own launcher has for them.

A store of keys and values behind HTTP, as horovod/runner/http/http_server.py (0.28.1) is. Horovod's client sends no credential, so the
address that it is given has a path in it that nobody guesses; what is asked without it is refused. It is in the environment of the
processes, and in clear on the network. Trials of commands have the same in worker/agent/supervisor/rendezvous.h.
"""

from __future__ import annotations

import collections
import fcntl
import http.server
import secrets
import socket
import struct
import threading
from typing import Mapping

VALUE_BYTES_MAX = 1 << 20  # a process writes about 140 bytes for each other one
BYTES_MAX = 64 << 20  # of all together: enough for about 650 processes
KEYS_MAX = 16_384
_SIOCGIFADDR = 0x8915  # asks for the address of an interface


class Rendezvous:
    """Listens from its making to the end of the block, on `address`: all of this machine's where it is empty."""

    def __init__(self, sizes: Mapping[str, int], address: str = "") -> None:
        """`sizes`: members of the scopes "global", "local" and "cross"; a scope is emptied when all have said that they are done."""
        self.path = secrets.token_hex(16)
        self._sizes = dict(sizes)
        self._lock = threading.Lock()
        self._scopes: dict[str, dict[str, bytes]] = {}
        self._finished: collections.Counter[str] = collections.Counter()
        self._bytes = self._keys = 0
        self._server = _Server((address, 0), _Handler)
        self._server.rendezvous = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self) -> Rendezvous:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def variables(self, address: str) -> dict[str, str]:
        """For processes that reach this machine under `address`."""
        return variables(address, self.port, self.path)

    def get(self, scope: str, key: str) -> bytes | None:
        with self._lock:
            return self._scopes.get(scope, {}).get(key)

    def put(self, scope: str, key: str, value: bytes) -> bool:
        """False: there is no room for it."""
        with self._lock:
            old = self._scopes.get(scope, {}).get(key)
            size = len(key) + len(value) - (len(key) + len(old) if old is not None else 0)
            if self._bytes + size > BYTES_MAX or (old is None and self._keys >= KEYS_MAX):
                return False
            self._scopes.setdefault(scope, {})[key] = value
            self._bytes += size
            self._keys += old is None
            return True

    def finish(self, scope: str, key: str) -> None:
        with self._lock:
            members = self._members(scope)
            if members == 0:  # of a set of processes: its size is not known
                self._forget(scope, [key])
                return
            self._finished[scope] += 1
            if self._finished[scope] >= members:
                del self._finished[scope]
                self._forget(scope, list(self._scopes.get(scope, {})))

    def _members(self, scope: str) -> int:
        if "_process_set_hash_" in scope:
            return 0
        return self._sizes.get("global" if scope == "global" else scope.partition("_")[0] if "_" in scope else "", 0)

    def _forget(self, scope: str, keys: list[str]) -> None:
        found = self._scopes.get(scope, {})
        for key in keys:
            value = found.pop(key, None)
            if value is not None:
                self._bytes -= len(key) + len(value)
                self._keys -= 1
        if not found:
            self._scopes.pop(scope, None)


def variables(address: str, port: int, path: str) -> dict[str, str]:
    """Those that lead Horovod to a rendezvous: it puts "http://", ADDR, ":", PORT and "/SCOPE/KEY" together. None for IPv6, which its
    client does not speak."""
    if ":" in address:
        return {}
    return {"HOROVOD_GLOO_RENDEZVOUS_ADDR": f"{address}:{port}/{path}", "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
            "HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}


def interface_of(address: str) -> str:
    """The network interface of this machine that has the address, a number or a name; empty without one."""
    try:
        wanted = socket.gethostbyname(address)
    except OSError:
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                found = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # it has no address of IPv4
            if socket.inet_ntoa(found[20:24]) == wanted:
                return name
    return ""


class _Server(http.server.ThreadingHTTPServer):
    rendezvous: Rendezvous
    request_queue_size = 1024
    daemon_threads = True


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = 10  # for a request to come

    def _respond(self) -> None:
        status, value = self._answer()
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(value)))  # the client knows it by exactly these letters
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(value)

    do_GET = do_PUT = do_DELETE = _respond

    def _answer(self) -> tuple[int, bytes]:
        store = self.server.rendezvous
        prefix = f"/{store.path}:{store.port}/"
        if not secrets.compare_digest(self.path[:len(prefix)].encode(), prefix.encode()):
            return 403, b""
        scope, _, key = self.path[len(prefix):].partition("/")
        if not scope or not key or "/" in key:
            return 400, b""
        if self.command == "GET":
            value = store.get(scope, key)
            return (404, b"") if value is None else (200, value)
        if self.command == "DELETE":
            store.finish(scope, key)
            return 200, b""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return 411, b""
        if int(length) > VALUE_BYTES_MAX:
            return 413, b""
        value = self.rfile.read(int(length))
        if len(value) < int(length):
            return 400, b""
        return (200 if store.put(scope, key, value) else 507), b""

    def log_message(self, format: str, *args: object) -> None:  # pylint: disable=redefined-builtin
        pass

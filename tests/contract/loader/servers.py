"""Servers that the tests of sources start: a real S3 (moto), a web server, and a proxy that breaks what passes it."""

import contextlib
import http.client
import http.server
import pathlib
import socket
import subprocess
import sys
import threading
import urllib.parse


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.lock = threading.Lock()
        self.requests = []  # (method, path, headers)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        pass  # clients that are killed cut their connections

    def log(self, handler):
        with self.lock:
            self.requests.append((handler.command, handler.path, dict(handler.headers)))

    def close(self):
        self.shutdown()
        self.server_close()


class FileServer(Server):
    """The files of a folder. `ranges`: whether it reads Range; `etags` gives a file's ETag; `respond` may answer a
    request in the server's place (it returns True then)."""

    def __init__(self, folder, ranges=True, respond=None):
        self.folder = pathlib.Path(folder)
        self.ranges = ranges
        self.respond = respond
        self.etag = lambda path: f'"{path.stat().st_size}-{path.stat().st_mtime_ns}"'
        super().__init__(FileHandler)


class FileHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FileServer

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        self.server.log(self)
        if self.server.respond and self.server.respond(self):
            return
        path = self.server.folder / urllib.parse.unquote(self.path.split("?")[0]).lstrip("/")
        if not path.is_file():
            return self.answer(404)
        etag = self.server.etag(path)
        if self.headers.get("If-Match", etag) != etag:
            return self.answer(412)
        size = path.stat().st_size
        wanted = self.headers.get("Range")
        if not (wanted and self.server.ranges):
            body = b"" if self.command == "HEAD" else path.read_bytes()
            return self.answer(200, body, ETag=etag, Content_Length=str(size))
        first, last = wanted.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last or size - 1), size - 1)
        if first >= size:
            return self.answer(416)
        with path.open("rb") as file:
            file.seek(first)
            body = file.read(last - first + 1)
        self.answer(206, body, ETag=etag, Content_Range=f"bytes {first}-{last}/{size}")

    do_HEAD = do_POST = do_GET


class FaultProxy(Server):
    """Passes requests on to `upstream`. `fault(method, path, headers)` names what to break: None, "503", "401", "cut", "short",
    "stall" (half the body, then nothing until release()), "slow" (nothing at all until release())."""

    def __init__(self, upstream, fault=lambda *_: None):
        self.upstream = urllib.parse.urlsplit(upstream).netloc
        self.fault = fault
        self.released = threading.Event()
        self.delay = None
        super().__init__(ProxyHandler)

    def release(self):
        self.released.set()


class ProxyHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultProxy

    def log_message(self, *_):
        pass

    def read_body(self):
        """Whole, also where it comes in chunks, as S3's client sends what it signs piece by piece."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(pieces)

    def pass_on(self):
        self.server.log(self)
        body = self.read_body()
        fault = self.server.fault(self.command, self.path, self.headers)
        if fault == "cut":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if fault in ("401", "503"):
            self.send_response(int(fault))
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if fault == "slow":
            self.server.released.wait()
        connection = http.client.HTTPConnection(self.server.upstream)
        with contextlib.closing(connection):
            headers = {name: value for name, value in self.headers.items()
                       if name.lower() not in ("transfer-encoding", "content-length", "expect")}
            connection.request(self.command, self.path, body, {**headers, "Content-Length": str(len(body))})
            answer = connection.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if self.command == "HEAD":
                return
            if fault in ("short", "stall"):
                self.wfile.write(data[: len(data) // 2])
                self.wfile.flush()
                if fault == "stall":
                    self.server.released.wait()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on


def start_moto():
    """The S3 of moto as a process: (process, url)."""
    program = (
        "import sys; from moto.server import ThreadedMotoServer;"
        "server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False); server.start();"
        "print(server.get_host_and_port()[1], flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return process, f"http://127.0.0.1:{int(process.stdout.readline())}"

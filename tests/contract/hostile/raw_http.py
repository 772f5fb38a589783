"""Connections that send exactly the given bytes."""

import socket


class Raw:
    def __init__(self, server, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=timeout)
        self.reader = self.socket.makefile("rb")

    def send(self, data):
        try:
            self.socket.sendall(data if isinstance(data, bytes) else data.encode())
        except (BrokenPipeError, ConnectionResetError):
            pass
        return self

    def answer(self, body=True):
        """(status, headers, body), or (0, {}, b"") when the connection ends. `body` False: the answer to a HEAD."""
        try:
            line = self.reader.readline()
            if not line:
                return 0, {}, b""
            status = int(line.split()[1])
            headers = {}
            while (field := self.reader.readline()) not in (b"\r\n", b""):
                name, value = field.decode().split(":", 1)
                headers[name.lower()] = value.strip()
            return status, headers, self.reader.read(int(headers.get("content-length", 0))) if body else b""
        except ConnectionResetError:
            return 0, {}, b""

    def close(self):
        self.reader.close()
        self.socket.close()


def api(method, path, body=b"", host="localhost", more=""):
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n{more}\r\n".encode() + body

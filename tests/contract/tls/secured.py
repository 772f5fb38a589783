"""A server that speaks HTTPS, and connections to it that do as a test says."""

import socket
import ssl
import subprocess
import time

TIMEOUT_S = 60


def context_of(authority, shown=None):
    context = ssl.create_default_context(cafile=authority.file)
    if shown is not None:
        context.load_cert_chain(shown)
    return context


def connect(server, authority, shown=None, address="127.0.0.1"):
    """A TLS connection after its handshake."""
    plain = socket.create_connection((address, server.port), timeout=TIMEOUT_S)
    return context_of(authority, shown).wrap_socket(plain, server_hostname=address)


class HalfConnection:
    """TLS whose records pass through our hands: `outgoing()` gives what would be sent."""

    def __init__(self, server, authority):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S)
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context_of(authority).wrap_bio(self.into, self.out, server_hostname="127.0.0.1")

    def outgoing(self):
        return self.out.read()

    def hello(self):
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return self.outgoing()

    def finish_handshake(self):
        self.socket.sendall(self.hello())
        while True:
            self.into.write(self.socket.recv(1 << 16))
            try:
                self.tls.do_handshake()
                self.socket.sendall(self.outgoing())
                return
            except ssl.SSLWantReadError:
                self.socket.sendall(self.outgoing())

    def encrypt(self, text):
        self.tls.write(text)
        return self.outgoing()

    def close(self):
        self.socket.close()


def is_closed(connection):
    """Whether the server ends the connection, by a reset or in order, within the time-out."""
    try:
        while connection.recv(1 << 16):
            pass
        return True
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def certificate_of(server, authority):
    """The number of the certificate that a new connection is shown."""
    with connect(server, authority) as connection:
        return connection.getpeercert()["serialNumber"]


def wait_until(condition, what, timeout_s=TIMEOUT_S):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not in {timeout_s} s: {what()}"
        time.sleep(0.02)


def get(connection, path="/health", more=""):
    """(status, body) of one request on a connection that stays open."""
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
    return answer_of(connection)


def answer_of(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16) or b"\r\n\r\n"
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while len(body) < int(fields.get(b"content-length", 0)):
        body += connection.recv(1 << 16)
    return int(head.split()[1]), body


def openssl(*words, given=""):
    """The output of `openssl s_client`, which ends when its input does."""
    done = subprocess.run(["openssl", "s_client", *map(str, words)], input=given, capture_output=True, text=True,
                          timeout=TIMEOUT_S)
    return done.stdout + done.stderr

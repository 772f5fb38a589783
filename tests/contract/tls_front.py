"""A TLS server in front of an HTTP server, and certificates of every kind for it."""

import contextlib
import datetime
import http.client
import http.server
import ipaddress
import socket
import ssl
import threading
import urllib.parse


class Authority:
    """Signs certificates. `file`: its own, for those who trust it."""

    def __init__(self, folder, name="test authority"):
        from cryptography import x509

        self.folder = folder
        self.key, self.name = self.new_key(), self.named(name)
        # What OpenSSL 3 wants of an authority: without it Python's strict checks refuse its certificates.
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self.certificate = self.sign(self.name, self.key, [
            (x509.BasicConstraints(ca=True, path_length=None), True), (usage, True)])
        self.file = self.write(f"{name}.pem", self.certificate)

    @staticmethod
    def new_key():
        from cryptography.hazmat.primitives.asymmetric import ec

        return ec.generate_private_key(ec.SECP256R1())

    @staticmethod
    def named(name):
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def sign(self, subject, key, extensions, days=(-1, 30)):
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name)
                   .public_key(key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(now + datetime.timedelta(days=days[0]))
                   .not_valid_after(now + datetime.timedelta(days=days[1])))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self.key, hashes.SHA256())

    def write(self, name, certificate, key=None):
        from cryptography.hazmat.primitives import serialization

        text = certificate.public_bytes(serialization.Encoding.PEM)
        if key is not None:
            text += key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                      serialization.NoEncryption())
        path = self.folder / name
        path.write_bytes(text)
        return path

    def issue(self, name, address="127.0.0.1", days=(-1, 30)):
        """A PEM file with a certificate for this address, and its key."""
        from cryptography import x509

        key = self.new_key()
        host = x509.IPAddress(ipaddress.ip_address(address)) if address[0].isdigit() else x509.DNSName(address)
        certificate = self.sign(self.named(name), key, [(x509.SubjectAlternativeName([host]), False)], days)
        return self.write(f"{name}.pem", certificate, key)


class TlsFront:
    """Passes requests on to `backend`. Keeps the Authorization of each; refuses those that differ from `wanted`. With
    `clients` (a file) only clients whose certificate is signed by it are let in. `cut` answers end in the middle."""

    def __init__(self, backend, certificate, wanted=None, clients=None, cut=0):
        self.authorizations = []
        self.connections = 0
        self.cut = cut
        front = self
        target = urllib.parse.urlsplit(backend)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                front.connections += 1
                self.behind = http.client.HTTPConnection(target.hostname, target.port)

            def finish(self):
                self.behind.close()
                super().finish()

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                front.authorizations.append(self.headers.get("Authorization"))
                if wanted is not None and front.authorizations[-1] != wanted:
                    return self.answer(401, b"You are not authenticated. Please see the documentation.")
                headers = {name: self.headers[name] for name in ("Content-Type", "User-Agent") if name in self.headers}
                self.behind.request(self.command, self.path, body, headers)
                answer = self.behind.getresponse()
                self.answer(answer.status, answer.read())

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                is_file = self.path.startswith("/api/2.0/mlflow-artifacts/artifacts/") or "get-artifact" in self.path
                if is_file and front.cut > 0:
                    front.cut -= 1
                    self.wfile.write(body[:len(body) // 2])
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

            def log_message(self, *unused):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def shutdown_request(self, request):
                """Reads what the client still sends: a close before that is a reset, which can overtake the alert that
                says what was wrong."""
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_WR)
                    request.settimeout(10)
                    while request.recv(1 << 16):
                        pass
                self.close_request(request)

            def handle_error(self, *unused):
                """Clients that do not like the certificate go away in the middle of the handshake."""

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
        self.server = Quiet(("127.0.0.1", 0), Handler)
        if context is not None:
            context.load_cert_chain(certificate)
            if clients is not None:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(clients)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()

"""A receiver of webhooks over HTTP or HTTPS, and MLflow's own example of checking a signature."""

import base64
import hashlib
import hmac
import http.server
import json
import ssl
import threading


def is_genuine(secret, headers, body):
    """As MLflow's documentation tells receivers to verify (docs: webhooks, "Webhook signature verification")."""
    signed = f"{headers['X-MLflow-Delivery-Id']}.{headers['X-MLflow-Timestamp']}.{body.decode()}"
    digest = hmac.new(secret.encode("utf-8"), signed.encode("utf-8"), hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode("utf-8")
    return hmac.compare_digest(expected, headers["X-MLflow-Signature"])


class Receiver:
    """Keeps (path, headers, body) of each POST; `respond(handler, count)` answers, by default with 200."""

    def __init__(self, respond=None, certificate=None):
        self.received = []
        self.changed = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.changed:
                    receiver.received.append((self.path, dict(self.headers), body))
                    count = len(receiver.received)
                    receiver.changed.notify_all()
                if respond is not None:
                    return respond(self, count)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *unused):
                pass

        class Many(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # of 5 the rest would wait a second for the next try

        self.server = Many(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.port = self.server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait_for(self, count, timeout=60):
        """At least `count` requests, as they came."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.received) >= count, timeout), (
                f"{len(self.received)} of {count} requests came"
            )
            return list(self.received)

    def bodies(self, count):
        return [json.loads(body) for _, _, body in self.wait_for(count)]

    def close(self):
        self.server.shutdown()
        self.server.server_close()

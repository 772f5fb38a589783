"""The storage services of Google and Azure as processes of this machine, and their protocols by hand: what puts the files there
shares nothing with what reads them."""

import base64
import email.utils
import hashlib
import hmac
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

import pytest

ACCOUNT = "devstoreaccount1"  # Azurite's own, the same everywhere
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def folder():
    """Where the emulators are installed; the first call of all installs them."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed, which Azure's emulator comes from")
    setup = pathlib.Path(__file__).with_name("setup.sh")
    done = subprocess.run([setup], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"the emulators cannot be installed: {done.stderr.strip()[-300:]}")
    return pathlib.Path(done.stdout.split()[-1])


def files_of(path):
    return [(each.relative_to(path).as_posix(), each.read_bytes()) for each in sorted(path.rglob("*")) if each.is_file()]


class Emulator:
    """A process that ends with the test's."""

    def __init__(self, command, **environment):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment}
        )

    def line(self, pattern):
        """What the first line that `pattern` matches holds of it."""
        for line in self.process.stdout:
            if found := re.search(pattern, line):
                return found[1]
        raise RuntimeError(f"the emulator ended with {self.process.wait()}")

    def drain(self):
        """Reads what it says from here on: a pipe that is full would stop it."""
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def close(self):
        self.process.kill()
        self.process.wait()


class Google(Emulator):
    def __init__(self):
        program = (
            # Its server serves one connection at a time: one that is kept open would stop all others.
            "import http.server, sys; http.server.ThreadingHTTPServer.request_queue_size = 128;"
            "http.server.HTTPServer = http.server.ThreadingHTTPServer;"
            "from gcp_storage_emulator.server import create_server;"
            "server = create_server('127.0.0.1', 0, in_memory=True, default_bucket='data'); server.start();"
            "print('port', server._api._httpd.socket.getsockname()[1], flush=True); sys.stdin.read(); server.stop()"
        )
        super().__init__([sys.executable, "-c", program], PYTHONPATH=str(folder() / "python"))
        self.url = f"http://127.0.0.1:{self.line('^port ([0-9]+)')}"
        self.drain()

    def put_set(self, name, path):
        for file, data in files_of(path):
            key = urllib.parse.quote(f"{name}/{file}", safe="")
            request = urllib.request.Request(
                f"{self.url}/upload/storage/v1/b/data/o?uploadType=media&name={key}", data, method="POST"
            )
            request.add_header("Content-Type", "application/octet-stream")
            urllib.request.urlopen(request).read()
        return f"gs://data/{name}"

    def environment(self, url=None):
        return {"STORAGE_EMULATOR_HOST": url or self.url}


def signed(key, text):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


class Azure(Emulator):
    def __init__(self):
        main = folder() / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
        with socket.socket() as taken:  # Azurite says which port it was told, not which one it has
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        super().__init__(
            ["node", main, "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--blobPort", str(port)]
        )
        self.url = self.line("successfully listens on (http.*)$").strip()
        self.drain()
        self.put("/data", "restype=container")

    def put(self, path, query="", data=b"", **headers):
        """By a request that the account's key signs."""
        headers |= {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        kind = "application/octet-stream"
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        resource = f"/{ACCOUNT}/{ACCOUNT}{path}" + ("\n" + query.replace("=", ":") if query else "")
        text = f"PUT\n\n\n{len(data) or ''}\n\n{kind}\n\n\n\n\n\n\n{lines}{resource}"
        request = urllib.request.Request(f"{self.url}/{ACCOUNT}{path}" + (f"?{query}" if query else ""), data, method="PUT")
        for name, value in {**headers, "Content-Type": kind, "Authorization": f"SharedKey {ACCOUNT}:{signed(KEY, text)}"}.items():
            request.add_header(name, value)
        urllib.request.urlopen(request).read()

    def put_set(self, name, path):
        for file, data in files_of(path):
            self.put(f"/data/{name}/{file}", data=data, **{"x-ms-blob-type": "BlockBlob"})
        return f"az://data/{name}"

    def environment(self, url=None, key=KEY):
        place = f"BlobEndpoint={url or self.url}/{ACCOUNT}"
        return {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};{place};"}

    def signature(self, key=KEY):
        """A shared access signature (SAS) that may read and list the container's blobs for an hour."""
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        version = "2021-08-06"
        text = "\n".join([ACCOUNT, "rl", "b", "sco", "", end, "", "https,http", version, "", ""])
        fields = {"sv": version, "ss": "b", "srt": "sco", "sp": "rl", "se": end, "spr": "https,http", "sig": signed(key, text)}
        return urllib.parse.urlencode(fields)

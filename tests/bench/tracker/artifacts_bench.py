#!/usr/bin/env python3
"""A large artifact up (one stream, parts) and down, against what dd makes of the same disk in the same run.

    tests/bench/tracker/artifacts_bench.py            2 GB
    TUNE_BENCH_ARTIFACT_GB=10 tests/bench/tracker/artifacts_bench.py

Needs twice the size of free disk beneath TMPDIR. Reads are cold: the file is dropped from the page cache before each.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build/release/bin"))
SIZE = int(float(os.environ.get("TUNE_BENCH_ARTIFACT_GB", "2")) * 1e9) >> 20 << 20
BLOCK = os.urandom(1 << 20)
PART = 10 << 20
SENDERS = 4
PATH = "0/r/artifacts/large.bin"


def figure(name, value, unit, better, target=None):
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit, "better": better} | ({"target": target} if target else {})),
          flush=True)


def dd(*arguments):
    """Bytes a second, by dd's own clock."""
    done = subprocess.run(["dd", *arguments, "bs=1M"], capture_output=True, text=True, check=True, env={"LC_ALL": "C", **os.environ})
    found = re.search(r"(\d+) bytes .*copied, ([0-9.e+-]+) s", done.stderr)
    return int(found.group(1)) / float(found.group(2))


def forget(path):
    """Out of the page cache, so that reading it reads the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Server:
    def __init__(self, data):
        self.process = subprocess.Popen([BIN_DIR / "tune", "server", "--data", data, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r"http://[^:]+:(\d+)", self.process.stdout.readline()).group(1))

    def memory_mb(self, field):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+)", status).group(1)) / 1024

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, blocksize=1 << 20)

    def call(self, method, path, body=None):
        connection = self.connect()
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return json.loads(text)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def send(connection, path, size):
    """One PUT of repeated blocks; its answer's headers."""
    connection.putrequest("PUT", path)
    connection.putheader("Content-Length", str(size))
    connection.endheaders()
    left = size
    while left > 0:
        connection.sock.sendall(memoryview(BLOCK)[:min(left, len(BLOCK))])
        left -= min(left, len(BLOCK))
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, text
    return answer.headers


def put_whole(server):
    started = time.monotonic()
    send(server.connect(), f"/api/2.0/mlflow-artifacts/artifacts/{PATH}", SIZE)
    return SIZE / (time.monotonic() - started)


def put_parts(server):
    started = time.monotonic()
    folder, name = PATH.rsplit("/", 1)
    count = -(-SIZE // PART)
    made = server.call("POST", f"/api/2.0/mlflow-artifacts/mpu/create/{folder}", {"path": name, "num_parts": count})

    def one(credential):
        url = urllib.parse.urlsplit(credential["url"])
        number = credential["part_number"]
        connection = server.connect()
        headers = send(connection, f"{url.path}?{url.query}", min(PART, SIZE - (number - 1) * PART))
        connection.close()
        return {"part_number": number, "etag": headers["ETag"]}

    with concurrent.futures.ThreadPoolExecutor(SENDERS) as pool:
        parts = list(pool.map(one, made["credentials"]))
    server.call("POST", f"/api/2.0/mlflow-artifacts/mpu/complete/{folder}",
                {"path": name, "upload_id": made["upload_id"], "parts": parts})
    return SIZE / (time.monotonic() - started)


def get_whole(server):
    buffer = bytearray(1 << 20)
    started = time.monotonic()
    connection = server.connect()
    connection.request("GET", f"/api/2.0/mlflow-artifacts/artifacts/{PATH}")
    answer = connection.getresponse()
    got = 0
    while count := answer.readinto(buffer):
        got += count
    assert got == SIZE, got
    return SIZE / (time.monotonic() - started)


def main():
    with tempfile.TemporaryDirectory(prefix="artifacts-bench-") as text:
        folder = pathlib.Path(text)
        free = shutil.disk_usage(folder).free
        if free < 2 * SIZE + (5 << 30):
            sys.exit(f"artifacts_bench: {free >> 30} GB free beneath {folder} are too few for {SIZE >> 30} GB")
        writes = dd("if=/dev/zero", f"of={folder}/dd", f"count={SIZE >> 20}", "conv=fdatasync")
        (folder / "dd").unlink()
        server = Server(folder / "data")
        try:
            figure("idle server memory", server.memory_mb("VmRSS"), "MB", "lower", 20)
            in_one_piece = put_whole(server)
            stored = folder / "data/artifacts" / PATH
            forget(stored)
            reads = dd(f"if={stored}", "of=/dev/null")
            forget(stored)
            down = get_whole(server)
            stored.unlink()
            in_parts = put_parts(server)
            # The disk again: others may use it too, and its speed changes within minutes.
            stored.unlink()
            writes = (writes + dd("if=/dev/zero", f"of={folder}/dd", f"count={SIZE >> 20}", "conv=fdatasync")) / 2
            figure("disk write (dd, synced)", writes / 1e6, "MB/s", "higher")
            figure("disk read (dd, cold)", reads / 1e6, "MB/s", "higher")
            for name, speed, disk in [("artifact up, one stream", in_one_piece, writes), ("artifact up, parts", in_parts, writes),
                                      ("artifact down, cold", down, reads)]:
                figure(name, speed / 1e6, "MB/s", "higher")
                figure(f"{name}, of disk speed", 100 * speed / disk, "%", "higher", 80)
            figure("server memory, peak", server.memory_mb("VmHWM"), "MB", "lower", 100)
        finally:
            server.stop()


if __name__ == "__main__":
    main()

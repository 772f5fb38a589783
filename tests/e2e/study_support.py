"""Real `tune` processes in scratch folders, for test_study_*.py."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients" / "python"))
from tune_client._local import token_of_local_server

BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
TUNE = BIN_DIR / "tune"
TIMEOUT_S = 120

OK, FAILED, USAGE, NO_TRIAL, TIME, INTERRUPTED = 0, 1, 2, 3, 4, 130

# One trial: reports its parameter.
REPORT = ["echo", 'tune: {"loss": {x}}']


def tune(*arguments, cwd, timeout=TIMEOUT_S, **more):
    """Runs tune to its end."""
    return subprocess.run([TUNE, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=timeout,
                          **more)


def tune_json(*arguments, cwd, code=OK):
    done = tune(*arguments, "--json", cwd=cwd)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def start(*arguments, cwd):
    """Starts tune in a session of its own, so that signals reach it alone."""
    return subprocess.Popen([TUNE, *map(str, arguments)], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, start_new_session=True)


class Terminal:
    """A process on a pseudo terminal. Whatever it fails to say ends the wait for it."""

    def __init__(self, words, cwd, rows=24, columns=100, **popen):
        self.fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen([TUNE, *map(str, words)], cwd=cwd, env={**os.environ, "TERM": "xterm-256color"},
                                        **{"stdout": child, "stderr": child, **popen})
        os.close(child)
        self.shown = b""

    def read(self, timeout_s=60):
        """What it writes next; empty once nobody can write any more."""
        if not select.select([self.fd], [], [], max(timeout_s, 0))[0]:
            raise AssertionError(f"nothing more in {timeout_s:.0f} s after {self.shown[-2000:]}")
        try:
            piece = os.read(self.fd, 65536)
        except OSError:  # how a pseudo terminal reports its end
            piece = b""
        self.shown += piece
        return piece

    def read_until(self, words, timeout_s=60):
        """Reads until what is new holds `words`; what is new."""
        deadline = time.monotonic() + timeout_s
        text = b""
        while words not in text:
            piece = self.read(deadline - time.monotonic())
            assert piece, f"ended without {words}: {self.shown[-2000:]}"
            text += piece
        return text

    def read_all(self, timeout_s=60):
        """All of it, to its end."""
        deadline = time.monotonic() + timeout_s
        while self.read(deadline - time.monotonic()):
            pass
        return self.shown

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


@contextlib.contextmanager
def terminal(*words, cwd, **more):
    shown = Terminal(words, cwd, **more)
    try:
        yield shown
    finally:
        shown.close()


def run_arguments(command, trials=20, study="s", parameters=("x=0..1",), jobs=2):
    return ["run", "-n", trials, "-m", "loss:min", "-j", jobs, "--port", 0, "--study", study, "--seed", 7, *parameters,
            "--", *command]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.contextmanager
def server(cwd, *arguments, port=0):
    """A `tune server`; gives (process, url). It is stopped by SIGTERM and must end well."""
    process = start("server", "--port", port, *arguments, cwd=cwd)
    try:
        line = process.stdout.readline()
        assert "listening on" in line, line + process.stderr.read()
        yield process, line.split("listening on ")[1].split()[0]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
            assert process.returncode == OK


def credentials(url):
    """The header with the token of the server at `url`."""
    token = token_of_local_server(url)
    return {"Authorization": "Bearer " + token} if token else {}


def call(url, path, body=None):
    """One REST call; (status, JSON)."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, headers={"Content-Type": "application/json", **credentials(url)})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


SPACE = {"lr": {"float": [1e-5, 0.1], "log": True}, "n": {"int": [1, 8]}, "opt": {"choice": ["sgd", "adam", "<&>"]}}


def create_study(url, name, space=SPACE, **more):
    """A study of `loss` that asks at random; `more` are further keys of the study file."""
    body = {"name": name, "metric": {"name": "loss", "goal": "min"}, "space": space,
            "sampler": {"type": "random", "seed": 1}, **more}
    status, answer = call(url, "/api/2.0/tune/studies", body)
    assert status == 200, answer


def ask(url, name, count):
    return call(url, f"/api/2.0/tune/studies/{name}/ask", {"count": count})[1]["trials"]


def report(url, name, trial, step, value):
    return call(url, f"/api/2.0/tune/studies/{name}/report",
                {"number": trial["number"], "attempt": trial["attempt"], "step": step, "value": value})


def tell(url, name, trial, value):
    return call(url, f"/api/2.0/tune/studies/{name}/tell",
                {"number": trial["number"], "attempt": trial["attempt"], "value": value})


def study_of(url, name="s"):
    return call(url, f"/api/2.0/tune/studies/{name}")[1]


def wait_until(condition, what, timeout_s=60):
    """Looks until `condition` gives something true, which is returned; for states of other processes."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not in {timeout_s} s: {what}")


def read_lines_until(process, words, stream="stderr"):
    """Reads lines of the process until one holds `words`; all of them."""
    lines = []
    for line in getattr(process, stream):
        lines.append(line)
        if words in line:
            return lines
    raise AssertionError(f"never said {words!r}: {lines}")


def trials_of(cwd, study="s", *more):
    return tune_json("show", study, "--data", "tune-data", *more, cwd=cwd)["trials"]


def end_all_of(folder):
    """Kills what still runs with this folder as its working directory: trials that a kill -9 left."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if pathlib.Path(os.readlink(entry / "cwd")) == pathlib.Path(folder):
                os.kill(int(entry.name), signal.SIGKILL)

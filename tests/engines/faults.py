"""A study of commands in whose middle processes die: what the faults of Spark's and Ray's tests share."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from conftest import BIN_DIR, is_alive, processes_with, wait_for

import tune_client as tune

LEASE_S = 3
LONG_S = 280  # for several processes that start and end one after the other

# Notes its process, waits while `hold` is there, and reports its parameter.
COMMAND = """
import json, os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / f"trial-{os.getpid()}").write_text(os.environ["TUNE_TRIAL"])
while (folder / "hold").exists():
    time.sleep(0.05)
print("tune: " + json.dumps({"loss": json.loads(os.environ["TUNE_PARAMS"])["x"]}), flush=True)
"""


def started(folder):
    """The trials that began, by their processes."""
    return {int(path.name[6:]): path.read_text() for path in folder.glob("trial-*")}


def program_of(pid):
    """The name of the file that the process runs; empty: it has ended."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


class Own:
    """A server that can be killed, with leases of seconds, and a study whose trials wait. Ends what it started."""

    def __init__(self, folder):
        self.drivers = []  # processes that end with this
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        (folder / "trial.py").write_text(COMMAND)
        (folder / "hold").touch()

    def __enter__(self):
        self._start()
        return self

    def __exit__(self, *_):
        self.release()
        for process in self.drivers:
            process.kill()
            process.wait()
        self._server.send_signal(signal.SIGTERM)
        self._server.wait(60)

    def _start(self):
        command = [BIN_DIR / "tune", "server", "--port", str(self._port), "--data", self._folder / "data", "--heartbeat", "500ms", "--lease-ttl", f"{LEASE_S}s"]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert re.search("https?://", self._server.stdout.readline())

    def study(self, name, trials):
        self._name = name
        return tune.create_study(name, space={"x": {"float": [0, 1]}}, metric="loss", trials=trials, server=self.url, sampler="random",
                                 command=[sys.executable, str(self._folder / "trial.py"), str(self._folder)])

    def trials(self):
        """Processes of trials that live."""
        return {pid for pid in started(self._folder) if is_alive(pid)}

    def agents(self, wait=True):
        """Processes of the program `tune agent`; with `wait`, once two run a trial each."""
        if wait:
            wait_for(lambda: len(self.trials()) == 2, "two trials at a time", LONG_S)
        return [pid for pid in processes_with("agent --server " + self.url) if program_of(pid) == "tune"]

    def kill_agent(self):
        """Ends an agent with -9; returns once another one has adopted its trial, which runs on."""
        agents = self.agents()
        before = self.trials()
        os.kill(agents[0], signal.SIGKILL)
        wait_for(lambda: not is_alive(agents[0]) and len(self.agents(wait=False)) == len(agents), "an agent in its place", LONG_S)
        version = self._info()["counts"]
        time.sleep(2 * LEASE_S)  # in which a lease that nobody renews would end
        assert self.trials() == before and self._info()["counts"] == version

    def kill_one_of(self, what, pids):
        """Ends one with -9; returns once its trial has ended and another one runs in its place."""
        assert pids, what
        before = self.trials()
        os.kill(pids[0], signal.SIGKILL)
        wait_for(lambda: not before <= self.trials(), f"the end of a trial with {what}", LONG_S)
        wait_for(lambda: len(self.trials()) == 2, f"two trials again, after the end of {what}", LONG_S)

    def restart_server(self):
        """Ends the server with -9 and starts it again. The trials run on."""
        before = self.trials()
        self._server.kill()
        self._server.wait()
        self._start()
        time.sleep(2 * LEASE_S)
        assert self.trials() == before and self._info()["counts"]["running"] == len(before)

    def _info(self):
        return tune.load_study(self._name, self.url).info()

    def release(self):
        """Lets all trials end."""
        pathlib.Path(self._folder, "hold").unlink(missing_ok=True)

    def check(self, study, trials):
        """The budget to the trial, none failed, and nothing left running."""
        info = study.info()
        assert info["state"] == "completed" and info["trials"] == trials == info["counts"]["complete"] and info["counts"]["failed"] == 0
        wait_for(lambda: not self.trials() and not self.agents(wait=False), "the end of agents and trials", LONG_S)

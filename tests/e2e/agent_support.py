"""Real `tune server`, `tune agent` and trial processes, for test_agent_*.py."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
TUNE = str(BIN_DIR / "tune")
PYTHON = str(ROOT / ".venv" / "bin" / "python")
TIMEOUT_S = 240  # only ever waited for by a test that fails

# A trial in plain Python: some steps, a checkpoint after each, so that a further attempt resumes where the last one
# stood. Its loss depends on its parameter and the step alone. Where a gate is set (Farm.gate), trials from its number
# on wait in the middle for the test, so that what is to meet them in the middle does, on the slowest of machines.
TRIAL = """
import json, os, pathlib, time
def is_held():
    try:
        return int(os.environ["TUNE_TRIAL"]) >= int(pathlib.Path(os.environ["GATE"]).read_text() or 0)
    except (KeyError, FileNotFoundError):
        return False
x = json.loads(os.environ["TUNE_PARAMS"])["x"]
state = pathlib.Path(os.environ["TUNE_CHECKPOINT_DIR"]) / "step"
first = int(state.read_text()) if state.exists() else 0
(state.parent / "pid").write_text(str(os.getpid()))
with open(state.parent / "starts", "a") as starts:
    print(os.environ["TUNE_ATTEMPT"], file=starts)
for step in range(first, 12):
    print("tune: " + json.dumps({"loss": (x - 0.3) ** 2 + 1 / (step + 1), "step": step}), flush=True)
    (state.parent / "new").write_text(str(step + 1))
    os.replace(state.parent / "new", state)
    time.sleep(0.03)
    while step == 4 and is_held():
        time.sleep(0.01)
print("done", flush=True)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, what):
    """Until `condition()` is true; returns its value."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.01)
    return value


def lives(pid):
    """Whether the process is there and no zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Process:
    """A program that a test starts, kills and starts again."""

    def __init__(self, arguments, log, **more):
        self.log = log
        with open(log, "ab") as out:
            self.process = subprocess.Popen(arguments, stdout=out, stderr=out, stdin=subprocess.DEVNULL, **more)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        if self.process.poll() is None:
            self.kill()


def supervisor_of(folder):
    """Of an attempt's folder, or a pool's; None: it does not run. Its number may have passed to another process: the time
    of its start tells."""
    owner = folder / "owner"
    with contextlib.suppress(OSError, ValueError):  # the folder may go while we look
        # A link that leads nowhere, or, in a folder that served an attempt before, a file that says the same.
        pid, started = map(int, (os.readlink(owner) if owner.is_symlink() else owner.read_text()).split())
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return pid if int(fields[19]) == started else None
    return None


class Farm:
    """One server and its agents in a folder. Everything that was started is stopped at the end."""

    def __init__(self, folder, lease_ttl="30s"):
        self.lease_ttl = lease_ttl
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = None
        self.agents = {}

    def __enter__(self):
        self.start_server()
        return self

    def __exit__(self, *_):
        for agent in self.agents.values():
            agent.stop()
        self.server.stop()

    def start_server(self):
        self.server = Process(
            [TUNE, "server", "--port", str(self.port), "--data", str(self.folder / "data"), "--heartbeat", "500ms",
             "--lease-ttl", self.lease_ttl], self.folder / "server.log")
        wait_for(self.answers, "an answer of the server; see " + str(self.folder / "server.log"))

    def answers(self):
        assert self.server.process.poll() is None, (self.folder / "server.log").read_text()
        with contextlib.suppress(requests.RequestException):
            return requests.get(self.url + "/health", timeout=5).ok

    def start_agent(self, name="agent", slots=3):
        self.agents[name] = Process(
            [TUNE, "agent", "--server", self.url, "--state", str(self.folder / name), "--slots", str(slots),
             "--no-gpus"], self.folder / (name + ".log"))

    def state_dir(self, name="agent"):
        return self.folder / name

    def get(self, path, **query):
        answer = requests.get(self.url + "/api/2.0/" + path, params=query, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def credentials(self):
        return {"Authorization": "Bearer " + (self.folder / "data" / "token").read_text().strip()}

    def post(self, path, body):
        answer = requests.post(self.url + "/api/2.0/" + path, json=body, headers=self.credentials(), timeout=60)
        assert answer.ok, answer.text
        return answer.json()

    def create(self, name, command, trials=8, **more):
        study = {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "space": {"x": "0..1"},
                 "sampler": {"type": "random", "seed": 7}, "budget": {"trials": trials}, "command": command,
                 "grace": "5s"}
        return self.post("tune/studies", {**study, **more})

    def gate(self, number):
        """Trials from `number` on stop after their fifth step; None: no more. In the environment of the study."""
        gate = self.folder / "gate"
        if number is None:
            gate.unlink()
        else:
            gate.with_suffix(".new").write_text(str(number))
            os.replace(gate.with_suffix(".new"), gate)
        return {"GATE": str(gate)}

    def study(self, name):
        return self.get(f"tune/studies/{name}")

    def trials(self, name):
        return self.get(f"tune/studies/{name}/trials")["trials"]

    def wait_for_end(self, name):
        """The study's trials. A state is shown once it is decided; the run follows with the commit, a moment later."""
        wait_for(lambda: self.study(name)["state"] == "completed", f"the end of study {name}")
        trials = self.trials(name)
        for trial in trials:
            wait_for(lambda run_id=trial["run_id"]: self.run(run_id)["info"]["status"] != "RUNNING", "the run's end")
        return trials

    def run(self, run_id):
        return self.get("mlflow/runs/get", run_id=run_id)["run"]

    def history(self, run_id, key="loss"):
        """[(step, value)] in the order of their steps."""
        answer = self.get("mlflow/metrics/get-history", run_id=run_id, metric_key=key)
        return sorted((int(metric["step"]), metric["value"]) for metric in answer.get("metrics", []))

    def artifact(self, trial, path):
        run = self.run(trial["run_id"])
        root = run["info"]["artifact_uri"].partition(":")[2].lstrip("/")
        answer = requests.get(f"{self.url}/api/2.0/mlflow-artifacts/artifacts/{root}/{path}", timeout=60)
        return answer.text if answer.ok else None

    def supervisors(self, name="agent", of="attempts"):
        """The processes that run now between the agent and its trials, or its `pools`."""
        pids = (supervisor_of(folder) for folder in (self.state_dir(name) / of).glob("*"))
        return [pid for pid in pids if pid]

    def starts(self, number):
        """The attempts of a TRIAL that had a process, one for each process."""
        files = self.folder.glob(f"*/checkpoints/**/{number:08d}/starts")
        return [int(attempt) for path in files for attempt in path.read_text().split()]

    def trial_process(self, number):
        """The process of a running TRIAL, once it is up."""
        def read():
            for path in self.folder.glob(f"*/checkpoints/**/{number:08d}/pid"):
                with contextlib.suppress(ValueError):
                    return int(path.read_text())
        return wait_for(read, f"the process of trial {number}")


def outcome(farm, trials):
    """All that must not depend on what was killed meanwhile."""
    return [(trial["number"], trial["state"], trial["params"], trial["value"], farm.history(trial["run_id"]))
            for trial in sorted(trials, key=lambda trial: trial["number"])]

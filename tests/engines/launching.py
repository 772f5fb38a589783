"""Real `tune` processes that launch agents, for the tests in the folders below."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
TUNE = str(BIN_DIR / "tune")
TIMEOUT_S = 120  # only ever waited for by a test that fails
OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

# One trial: says that it began, waits while the gate is shut, reports its parameter. At a SIGTERM it ends as one that was
# preempted.
TRIAL = """
echo "$TUNE_TRIAL.$TUNE_ATTEMPT" >> "$JOURNAL"
trap 'exit 11' TERM
while [ -e "$GATE" ]; do sleep 0.05; done
echo "tune: {\\"loss\\": $1}"
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, what, timeout_s=TIMEOUT_S):
    """Until `condition()` is true, of other processes; its value."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.05)
    return value


class Scene:
    """A scratch folder with a home of its own, in which `tune` runs; whatever it started ends with it."""

    def __init__(self, folder, **environment):
        self.folder = pathlib.Path(folder)
        self.home = self.folder / "home"
        self.runtime = self.folder / "run"
        for one in (self.home, self.runtime):
            one.mkdir(mode=0o700)
        self.journal = self.folder / "journal"
        self.gate = self.folder / "gate"
        (self.folder / "trial.sh").write_text(TRIAL)
        inherited = {name: value for name, value in os.environ.items()
                     if not name.startswith(("TUNE_", "MLFLOW_", "SLURM_"))}
        self.environment = {**inherited, "HOME": str(self.home), "TUNE_RUNTIME_DIR": str(self.runtime), **environment}
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(FileNotFoundError):
            self.gate.unlink()
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def tune(self, *arguments, **more):
        """Runs tune to its end."""
        return subprocess.run([TUNE, *map(str, arguments)], cwd=self.folder, env={**self.environment, **more},
                              capture_output=True, text=True, timeout=TIMEOUT_S)

    def tune_json(self, *arguments):
        done = self.tune(*arguments, "--json")
        assert done.returncode == OK, done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments, **more):
        """Starts tune; what it prints is in the file that `output` reads."""
        return self.start_program(TUNE, *arguments, **more)

    def start_program(self, *words, **more):
        log = self.folder / f"output-{len(self.started)}"
        with open(log, "wb") as out:
            process = subprocess.Popen([*map(str, words)], cwd=self.folder, env={**self.environment, **more},
                                       stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
        process.output = log
        self.started.append(process)
        return process

    def study(self, trials=6, name="s", **more):
        """The words of a study whose trials are TRIAL's."""
        words = ["--study", name, "-n", trials, "-m", "loss:min", "--seed", 7, "x=0..1"]
        for flag, value in more.items():
            words += ["--" + flag.replace("_", "-"), value]
        return [*words, "--", "env", f"JOURNAL={self.journal}", f"GATE={self.gate}", "sh",
                self.folder / "trial.sh", "{x}"]

    def engines(self, **engines):
        (self.folder / "engines.yaml").write_text(json.dumps(engines))

    def starts(self):
        """"TRIAL.ATTEMPT" of each process of a trial, in the order of their starts."""
        return self.journal.read_text().split() if self.journal.exists() else []

    def server(self, *arguments):
        """A server; its address."""
        port = free_port()
        process = self.start("server", "--port", port, "--data", self.folder / "data", "--heartbeat", "500ms",
                             "--lease-ttl", "3s", *arguments)
        wait_for(lambda: b"http" in process.output.read_bytes(), "the server")
        scheme = "https" if "--tls-cert" in arguments else "http"
        return f"{scheme}://127.0.0.1:{port}"

    def processes(self):
        """The agents, trials and shells of this scene that live."""
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                is_ours = any(str(self.folder).encode() in word for word in words)
                is_agent = b"agent" in words or b"trial.sh" in words[-2:] or b"agent.sh" in b" ".join(words) \
                    or b"gang.py" in b" ".join(words)
                if is_ours and is_agent and state != "Z":
                    found.append(int(folder.name))
        return found

    def check_whole(self, trials, name="s", data=None):
        """The budget to the trial, each complete, none failed."""
        shown = self.tune_json("show", name, "--data", data or self.folder / "tune-data")
        numbers = sorted(trial["number"] for trial in shown["trials"])
        assert numbers == list(range(trials))
        assert {trial["state"] for trial in shown["trials"]} == {"complete"}, shown["trials"]
        return shown["trials"]

    def check_nothing_left(self):
        wait_for(lambda: not self.processes(), "the end of all agents and trials")

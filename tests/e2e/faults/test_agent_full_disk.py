"""The server's disk takes nothing for a while: no value that a trial printed meanwhile is lost."""

import resource
import signal
import time

import requests

from agent_support import PYTHON, TUNE, Farm, Process, wait_for

POINTS = 200

# Prints a quarter of its points, then half of them once the test has made the file `full`, and the rest after `free`.
TRIAL = """
import json, os, pathlib, time
folder = pathlib.Path(os.environ["GATE"])
def print_points(begin, end):
    for step in range(begin, end):
        print("tune: " + json.dumps({"loss": 1000 - step, "step": step}), flush=True)
def wait_for(name):
    while not (folder / name).exists():
        time.sleep(0.01)
print_points(0, 50)
wait_for("full")
print_points(50, 150)
(folder / "printed").touch()
wait_for("free")
print_points(150, 200)
"""


class FullDisk(Farm):
    """A server whose files can be kept from growing: the system answers as on a full disk."""

    def start_server(self):
        def ignore():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        self.server = Process(
            [TUNE, "server", "--port", str(self.port), "--data", str(self.folder / "data"), "--heartbeat", "500ms",
             "--lease-ttl", self.lease_ttl], self.folder / "server.log", preexec_fn=ignore)
        wait_for(self.answers, "an answer of the server; see " + str(self.folder / "server.log"))

    def fill(self, is_full):
        most = 4096 if is_full else resource.RLIM_INFINITY
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def takes(self, run_id):
        """Whether a write is taken."""
        answer = requests.post(self.url + "/api/2.0/mlflow/runs/log-metric", timeout=60, headers=self.credentials(),
                               json={"run_id": run_id, "key": "probe", "value": 1, "timestamp": time.time_ns() // 10**6})
        assert answer.ok or answer.status_code in (429, 500, 503), answer.text
        return answer.ok


def test_a_full_disk_loses_no_value(tmp_path):
    with FullDisk(tmp_path) as farm:
        farm.create("s", [PYTHON, "-c", TRIAL], 1, env={"GATE": str(tmp_path)})
        farm.start_agent(slots=1)
        wait_for(lambda: any(trial["attempt"] == 1 for trial in farm.trials("s")), "the trial")
        run_id = farm.trials("s")[0]["run_id"]
        wait_for(lambda: len(farm.history(run_id)) == 50, "the first points")

        farm.fill(True)
        wait_for(lambda: not farm.takes(run_id), "a write that is refused")
        (tmp_path / "full").touch()
        wait_for((tmp_path / "printed").exists, "the points of which none can be stored")
        for _ in range(40):  # while the agent tries again and again
            assert not farm.takes(run_id)
            time.sleep(0.05)
        assert len(farm.history(run_id)) == 50

        farm.fill(False)
        (tmp_path / "free").touch()
        [trial] = farm.wait_for_end("s")
        assert (trial["state"], trial["attempt"]) == ("complete", 1)
        assert farm.history(run_id) == [(step, 1000 - step) for step in range(POINTS)]
        assert trial["value"] == 1000 - (POINTS - 1)

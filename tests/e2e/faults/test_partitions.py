"""The network between the server and an agent is cut, and mended: what became stale meanwhile changes nothing, every trial ends
once, and with the value that it has without all that."""

import time

import pytest
import requests

from agent_support import PYTHON, TRIAL, TUNE, Farm, Process, lives, wait_for
from faults.network import SERVER_ADDRESS, two_machines

TTL_S = 2
GRACE_S = 20  # beyond it, in which an agent waits for a server that is away
TRIALS = 4


class SplitFarm(Farm):
    """Agents `far` at the other end of the cable, and `near`."""

    def __init__(self, folder, cable):
        super().__init__(folder, lease_ttl=f"{TTL_S}s")
        self.cable = cable

    def start_server(self):
        self.server = Process(
            [TUNE, "server", "--host", "0.0.0.0", "--port", str(self.port), "--data", str(self.folder / "data"),
             "--insecure-no-tls", "--allowed-hosts", SERVER_ADDRESS, "--heartbeat", "500ms", "--lease-ttl", self.lease_ttl],
            self.folder / "server.log")
        wait_for(self.answers, "an answer of the server; see " + str(self.folder / "server.log"))

    def get(self, path, **query):
        answer = requests.get(self.url + "/api/2.0/" + path, params=query, headers=self.credentials(), timeout=60)
        answer.raise_for_status()
        return answer.json()

    def start_agent(self, name="near", slots=2):
        if name == "near":
            return super().start_agent(name, slots)
        token = (self.folder / "data" / "token").read_text().strip()
        self.agents[name] = Process(
            self.cable.inside("env", "TUNE_TOKEN=" + token, TUNE, "agent", "--server",
                              f"http://{SERVER_ADDRESS}:{self.port}", "--state", str(self.folder / name), "--slots",
                              str(slots), "--no-gpus"), self.folder / (name + ".log"))

    def begin(self, held):
        """A study whose first trials are in the middle at the far agent, and stay there while the gate is set."""
        self.start_agent("far")
        self.create("s", [PYTHON, "-c", TRIAL], trials=TRIALS, env=self.gate(0) if held else {})
        wait_for(lambda: [trial["state"] for trial in self.trials("s")][:2] == ["running"] * 2, "both trials")
        pids = [self.trial_process(number) for number in range(2)]
        wait_for(lambda: all(len(self.history(trial["run_id"])) == 5 for trial in self.trials("s")[:2]), "five steps")
        return pids

    def check(self):
        trials = self.wait_for_end("s")
        assert [trial["state"] for trial in trials] == ["complete"] * TRIALS
        assert self.study("s")["counts"]["complete"] == self.study("s")["trials"] == TRIALS
        for trial in trials:
            x = trial["params"]["x"]
            curve = [(step, (x - 0.3) ** 2 + 1 / (step + 1)) for step in range(12)]
            assert sorted(set(self.history(trial["run_id"]))) == curve, trial
            assert trial["value"] == curve[-1][1]
        return trials


@pytest.fixture
def farm(tmp_path):
    with two_machines() as cable, SplitFarm(tmp_path, cable) as made:
        yield made


def test_a_cut_shorter_than_the_lease_costs_nothing(farm):
    pids = farm.begin(held=True)
    farm.cable.cut()
    time.sleep(TTL_S / 4)  # how long the cut lasts
    farm.cable.mend()
    farm.gate(None)
    trials = farm.check()
    assert [trial["attempt"] for trial in trials] == [1] * TRIALS
    assert not any(map(lives, pids))


def test_an_attempt_that_outlived_its_lease_is_fenced(farm):
    """The far trials run on while others have them already; when the network is back they are ended, and what they say then
    counts for nothing."""
    pids = farm.begin(held=True)
    farm.cable.cut()
    farm.start_agent("near", slots=TRIALS)
    wait_for(lambda: [trial["attempt"] for trial in farm.trials("s")[:2]] == [2] * 2, "further attempts")
    assert all(map(lives, pids)), "the far agent still waits for its server"
    farm.cable.mend()
    wait_for(lambda: not any(map(lives, pids)), "the end of what is stale")
    farm.gate(None)
    trials = farm.check()
    assert [trial["attempt"] for trial in trials] == [2, 2, 1, 1]


def test_an_agent_that_is_cut_off_for_long_stops_its_trials_by_itself(farm):
    pids = farm.begin(held=True)
    cut = time.monotonic()
    farm.cable.cut()
    wait_for(lambda: not any(map(lives, pids)), "the end of the far trials")
    assert TTL_S + GRACE_S - 1 < time.monotonic() - cut < TTL_S + GRACE_S + 20
    farm.gate(None)
    farm.start_agent("near")
    trials = farm.check()
    assert [trial["attempt"] for trial in trials][:2] == [2, 2]
    farm.cable.mend()  # the ends that the far agent could not report are of no trial any more
    wait_for(lambda: not list((farm.state_dir("far") / "attempts").iterdir()), "an empty folder")
    assert farm.trials("s") == trials
    farm.agents["near"].stop()
    farm.create("t", [PYTHON, "-c", TRIAL], trials=1)
    trial, = farm.wait_for_end("t")
    assert trial["state"] == "complete"

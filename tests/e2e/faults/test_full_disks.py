"""A disk that is full where the agent keeps its state, trials their logs and the trainer its checkpoints: what cannot be kept is
said, no trial has a wrong value for it, and when there is room again all goes on."""

import contextlib
import subprocess

import pytest

from agent_support import PYTHON, TRIAL, TUNE, Farm, Process, wait_for
from trainer_support import TRAINER, train, write_digits


@pytest.fixture
def small_disk(tmp_path):
    """A function: a folder that holds so many bytes."""
    mounted = []

    def make(name, size):
        folder = tmp_path / name
        folder.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip("no small disk can be mounted: " + done.stderr)
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder):
    with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass
    with contextlib.suppress(OSError), open(folder / "filler", "ab", buffering=0) as file:
        while file.write(bytes(1)):
            pass


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path / "farm") as made:
        yield made


def start_agent(farm, state, *more):
    farm.agents["agent"] = Process([TUNE, "agent", "--server", farm.url, "--state", str(state), "--slots", "1", "--no-gpus", *more],
                                   farm.folder / "agent.log")


def test_no_room_to_begin(farm, small_disk):
    disk = small_disk("state", "16m")
    start_agent(farm, disk)
    wait_for(lambda: farm.get("tune/queue")["agents"], "the agent")
    fill(disk)
    farm.create("s", [PYTHON, "-c", TRIAL], trials=3)
    wait_for(lambda: "No space left on device" in (farm.folder / "agent.log").read_text(), "a sentence in the agent's log")
    assert farm.study("s")["counts"].get("failed", 0) == 0
    (disk / "filler").unlink()
    trials = farm.wait_for_end("s")
    assert [trial["state"] for trial in trials] == ["complete"] * 3
    for trial in trials:
        assert [step for step, _ in farm.history(trial["run_id"])] == list(range(12))


# The best value comes after more output than the disk holds.
NOISY = """
import sys
print('tune: {"loss": 2, "step": 0}', flush=True)
for _ in range(int(sys.argv[1])):
    print("x" * 65535)
print('tune: {"loss": 1, "step": 1}', flush=True)
"""


def test_output_that_cannot_be_kept_is_not_passed_over(farm, small_disk):
    disk = small_disk("state", "8m")
    start_agent(farm, disk)
    farm.create("s", [PYTHON, "-c", NOISY, "300"], trials=1, retry={"max": 0, "on": ["failed"]})
    wait_for(lambda: farm.trials("s") and farm.trials("s")[0]["state"] == "failed", "the failure")
    trial, = farm.trials("s")
    assert "of its output could not be stored" in trial["reason"] and "disk" in trial["reason"], trial
    # It took its logs along, and the next one fits.
    farm.create("t", [PYTHON, "-c", NOISY, "10"], trials=1)
    trial, = farm.wait_for_end("t")
    assert (trial["state"], trial["value"]) == ("complete", 1)


def test_checkpoints_that_find_no_room(farm, small_disk, tmp_path):
    data = write_digits(tmp_path / "digits")
    parameters = dict(data=data, epochs=6, batch_size=64, width=64, seed=1, threads=1, lr=0.01)
    whole = train(**parameters)
    disk = small_disk("checkpoints", "4m")
    fill(disk)
    start_agent(farm, farm.folder / "agent", "--checkpoints", str(disk))
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in parameters.items()]
    farm.create("s", [str(TRAINER), "train", *flags], trials=1, metric={"name": "val_loss", "goal": "minimize"},
                retry={"max": 1000, "on": ["failed"]}, stop_after_failures=0)
    wait_for(lambda: farm.trials("s") and farm.trials("s")[0]["attempt"] > 1 or farm.study("s")["state"] == "completed",
             "an attempt without room, or its end")
    (disk / "filler").unlink()
    trial, = farm.wait_for_end("s")
    assert trial["state"] == "complete"
    curve = sorted(set(farm.history(trial["run_id"], "val_loss")))
    assert curve == [(line["step"], line["val_loss"]) for line in whole.lines if "val_loss" in line]
    said = (farm.artifact(trial, "logs/stderr.log") or "") + (farm.folder / "agent.log").read_text()
    assert "No space left on device" in said, said

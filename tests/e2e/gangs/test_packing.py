"""Trials that share GPUs by bytes, on an agent whose GPUs were named by hand."""

import pytest

from agent_support import PYTHON, TUNE, Farm, Process, wait_for

GIB = 1 << 30

# Which GPU it has; waits for the test.
HAS = """
import os, pathlib, time
folder = pathlib.Path(os.environ["FOLDER"])
new = folder / ("new-" + os.environ["TUNE_TRIAL"])
new.write_text(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
os.replace(new, folder / ("has-" + os.environ["TUNE_TRIAL"]))
print('tune: {"loss": 1}', flush=True)
while (folder / "gate").exists():
    time.sleep(0.02)
"""


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        made.agents["a"] = Process(
            [TUNE, "agent", "--server", made.url, "--state", str(tmp_path / "a"), "--slots", "16", "--gpus",
             "GPU-one=80GiB,GPU-two=40GiB"], tmp_path / "a.log")
        (tmp_path / "gate").touch()
        yield made


def running(farm):
    return farm.study("s")["counts"]["running"]


def create(farm, resources):
    farm.create("s", [PYTHON, "-c", HAS], trials=8, resources=resources, env={"FOLDER": str(farm.folder)})


def test_by_bytes(farm):
    create(farm, {"gpus": 1, "gpu_memory": "30GiB"})
    wait_for(lambda: len(list(farm.folder.glob("has-*"))) == 3, "three trials: two on one GPU, one on the other")
    has = sorted(path.read_text() for path in farm.folder.glob("has-*"))
    assert has == ["GPU-one", "GPU-one", "GPU-two"]
    agent, = farm.get("tune/queue")["agents"]
    assert {device["uuid"]: device["free_bytes"] for device in agent["devices"]} == {
        "GPU-one": 20 * GIB, "GPU-two": 10 * GIB}
    assert running(farm) == 3
    (farm.folder / "gate").unlink()
    assert [trial["state"] for trial in farm.wait_for_end("s")] == ["complete"] * 8


def test_groups_of_gpus(farm):
    create(farm, {"gpus": 2})
    wait_for(lambda: (farm.folder / "has-0").exists(), "the first trial")
    assert (farm.folder / "has-0").read_text() == "GPU-one,GPU-two"
    assert running(farm) == 1
    (farm.folder / "gate").unlink()
    assert [trial["state"] for trial in farm.wait_for_end("s")] == ["complete"] * 8


def test_more_than_there_is(farm):
    create(farm, {"gpus": 1, "gpu_memory": "100GiB"})
    wait_for(lambda: "100 GiB" in farm.study("s").get("waits_for", "") and "80 GiB" in farm.study("s")["waits_for"],
             "the reason")


def test_memory_is_learnt(farm):
    """The host's: three trials run without a bound, then as many as fit."""
    (farm.folder / "gate").unlink()
    create(farm, {"memory": "auto"})
    farm.wait_for_end("s")
    need = farm.create("t", [PYTHON, "-c", HAS], trials=1, resources={"memory": "auto"},
                       env={"FOLDER": str(farm.folder)})
    assert need["resources"] == {"memory": "auto"}
    farm.wait_for_end("t")
    run = farm.run(farm.trials("s")[0]["run_id"])
    tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
    assert int(tags["tune.peak_memory_bytes"]) > 1_000_000

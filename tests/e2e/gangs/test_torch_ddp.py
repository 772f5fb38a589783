"""A torch DDP script runs unchanged: on one machine with `tune run --nproc 2`, and over two agents."""

import importlib.util
import os
import sys

import pytest

from agent_support import PYTHON, ROOT, TUNE, Farm, Process, wait_for
from gangs.gang_scripts import DDP, STOPS_TOGETHER
from study_support import OK, tune, tune_json

if importlib.util.find_spec("torch") is None:
    pytest.skip("setup.sh ran with --no-torch", allow_module_level=True)


@pytest.fixture(scope="module")
def torch_works(tmp_path_factory):
    """What the environment needs so that torch of PyPI starts where CUDA's libraries are not."""
    folder = tmp_path_factory.mktemp("absent-cuda")
    sys.path.append(str(ROOT / "tests" / "contract" / "frameworks"))
    import absent_cuda

    return absent_cuda.for_processes(folder)


def test_one_machine(tmp_path, torch_works):
    (tmp_path / "ddp.py").write_text(DDP)
    done = tune("run", "-n", 2, "-m", "loss:min", "--seed", 1, "--port", 0, "--study", "s", "--nproc", 2, "lr=0.01..0.2",
                "--", PYTHON, "ddp.py", cwd=tmp_path, timeout=400, env={**os.environ, **torch_works})
    assert done.returncode == OK, done.stdout + done.stderr
    trials = tune_json("show", "s", cwd=tmp_path)["trials"]
    assert [trial["state"] for trial in trials] == ["complete"] * 2, done.stdout + done.stderr


@pytest.fixture
def farm(tmp_path, torch_works, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", torch_works["LD_LIBRARY_PATH"])
    with Farm(tmp_path) as made:
        for name in ("a", "b"):
            made.agents[name] = Process(
                [TUNE, "agent", "--server", made.url, "--state", str(tmp_path / name), "--slots", "1", "--no-gpus"],
                tmp_path / (name + ".log"))
        yield made


def test_two_agents(farm):
    (farm.folder / "ddp.py").write_text(DDP)
    # As `tune run --server URL --no-agent --nnodes 2 -- python ddp.py`.
    done = tune("run", "-n", 1, "-m", "loss:min", "--server", farm.url, "--no-agent", "--study", "s", "--nnodes", 2,
                "lr=0.01..0.2", "--", PYTHON, farm.folder / "ddp.py", cwd=farm.folder, timeout=400)
    assert done.returncode == OK, done.stdout + done.stderr
    trial, = farm.trials("s")
    assert trial["state"] == "complete"
    assert len(farm.history(trial["run_id"])) == 5, "rank 0 alone reports"
    of_each = [wait_for(lambda name=name: farm.artifact(trial, name), name)
               for name in ("logs/stdout.log", "logs/node-1/stdout.log")]
    last = {text.strip().splitlines()[-1] for text in of_each}
    assert len(last) == 1 and last.pop().startswith("ranks 2 weights")


def test_all_ranks_stop_after_the_same_step(farm):
    (farm.folder / "trial.py").write_text(STOPS_TOGETHER)
    farm.create("s", [PYTHON, str(farm.folder / "trial.py")], trials=1, resources={"nnodes": 2},
                env={"FOLDER": str(farm.folder)}, grace="60s")
    wait_for(lambda: (farm.folder / "runs-0").exists() and (farm.folder / "runs-1").exists(), "both ranks")
    farm.post("tune/studies/s/stop", {})
    wait_for(lambda: farm.trials("s")[0]["state"] == "cancelled", "the end")
    assert (farm.folder / "last-0").read_text() == (farm.folder / "last-1").read_text()

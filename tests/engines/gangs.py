"""Trials of two processes on two machines, for the engines' tests: torch's DDP over gloo, as a script that knows nothing of tune."""

import contextlib
import os
import pathlib
import shlex
import sys

import pytest
from launching import wait_for

# Each rank says that all have met; then they train while the gate is shut, and one step at least.
SCRIPT = """
import json, os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
assert dist.get_world_size() == 2
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
with open(os.environ["JOURNAL"], "a") as journal:
    journal.write("%s.%s.%d\\n" % (os.environ["TUNE_TRIAL"], os.environ["TUNE_ATTEMPT"], rank))
with open(os.environ["JOURNAL"] + ".address", "w") as file:
    file.write(os.environ["MASTER_ADDR"])
more = torch.ones(1)
while more.item():
    x = torch.randn(8, 4)
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    more[0] = os.path.exists(os.environ["GATE"])
    dist.all_reduce(more, op=dist.ReduceOp.MAX)
    time.sleep(0.05)
print("tune: " + json.dumps({"loss": loss.item()}), flush=True)
dist.destroy_process_group()
os._exit(0)  # torch 2.15 aborts one in seven ranks whose model is freed as the interpreter ends
"""


def torch_setup(is_there):
    """Lines of shell by which torch starts on a node. `is_there`: the fixture absent_cuda."""
    if not is_there:
        pytest.skip("setup.sh ran with --no-torch")
    return f"export LD_LIBRARY_PATH={shlex.quote(os.environ.get('LD_LIBRARY_PATH', ''))}"


def gang_words(scene, trials=2, nnodes=2):
    """The words of a study of such trials."""
    (scene.folder / "gang.py").write_text(SCRIPT)
    return ["--study", "s", "-n", trials, "-j", 1, "-m", "loss:min", "--seed", 7, "--nnodes", nnodes, "x=0..1", "--", "env",
            f"JOURNAL={scene.journal}", f"GATE={scene.gate}", sys.executable, scene.folder / "gang.py"]


def start_gang_study(scene, *where, trials=2):
    """A study whose first trial has begun, on both machines, and waits for the gate; the process and the server's address.

    The server is one of its own, since its leases are short: what is lost is known within seconds.
    """
    url = scene.server()
    scene.gate.touch()
    run = scene.start("run", "--server", url, *where, *gang_words(scene, trials))
    wait_for_ranks(scene, attempt=1)
    return run, url


def wait_for_ranks(scene, attempt, trial=0):
    wanted = {f"{trial}.{attempt}.{rank}" for rank in range(2)}
    wait_for(lambda: wanted <= set(scene.starts()), f"both ranks of attempt {attempt}")


def finish(scene, run, trials=2):
    """Opens the gate and waits for the end; the trials, all complete."""
    scene.gate.unlink()
    code = run.wait(120)
    assert code == 0, run.output.read_text()
    return scene.check_whole(trials, data=scene.folder / "data")


def processes_with(scene, variable, word=b""):
    """Processes of the scene with this "NAME=value" in their environment and the word in their command line."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if not folder.name.isdigit() or variable.encode() not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if str(scene.folder).encode() in (folder / "environ").read_bytes() and (not word or word in words):
                found.append(int(folder.name))
    return found

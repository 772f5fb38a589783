"""Horovod itself, compiled with Gloo and torch: hvd.init() in trials and in HorovodRunner, and its own rendezvous server beside ours."""

import json
import os
import signal
import subprocess

import pytest

from conftest import BIN_DIR, ROOT, wait_for

PYTHON = ROOT / "build" / "horovod-venv" / "bin" / "python"
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="tests/engines/horovod/setup.sh builds it, in about 6 minutes of a core")

# As Horovod's examples have it; a set of processes and a second init() on top, which meet in other ways.
SCRIPT = """
import json, os, pathlib, time
import torch
import horovod.torch as hvd

torch.set_num_threads(1)
even = hvd.ProcessSet(range(0, int(os.environ["HOROVOD_SIZE"]), 2))
hvd.init(process_sets=[even])
assert (hvd.rank(), hvd.local_rank()) == (int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"]))
assert (hvd.size(), hvd.local_size()) == (int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"]))
assert hvd.cross_size() == int(os.environ["GROUP_WORLD_SIZE"]) and not hvd.mpi_built()
if even.included():
    # By name: what has none is counted, and not all processes come here.
    ones = hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=even, name="even")
    assert ones.item() == even.size(), ones
torch.manual_seed(hvd.rank())
model = torch.nn.Linear(4, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
folder = pathlib.Path(os.environ.get("FOLDER", "/nonexistent"))
step = 0
while step < 5 or (folder / "gate").exists():
    step += 1
    x = torch.randn(8, 4)
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    model.zero_grad()
    loss.backward()
    with torch.no_grad():  # torch.optim takes seconds to be imported
        for name, parameter in model.named_parameters():
            parameter -= 0.1 * hvd.allreduce(parameter.grad, name=name)
    if step == 5 and folder.exists():
        name = "pid-%s-%d" % (os.environ["TUNE_ATTEMPT"], hvd.rank())
        (folder / ("new-" + name)).write_text(str(os.getpid()))
        os.replace(folder / ("new-" + name), folder / name)
weights = hvd.allgather(model.weight.detach(), name="weights")
assert all(torch.equal(one, weights[0]) for one in weights)
mean = hvd.allreduce(loss.detach(), name="mean").item()
hvd.shutdown()
hvd.init()
assert hvd.allreduce(torch.ones(1), op=hvd.Sum, name="again").item() == hvd.size()
if hvd.rank() == 0:
    print("tune: " + json.dumps({"loss": mean}), flush=True)
print("horovod ranks", hvd.size(), flush=True)
hvd.shutdown()
os._exit(0)  # torch 2.15 aborts one in seven ranks whose model is freed as the interpreter ends
"""


@pytest.fixture(autouse=True)
def script(tmp_path, absent_cuda):
    assert absent_cuda
    (tmp_path / "hvd.py").write_text(SCRIPT)
    return tmp_path / "hvd.py"


def tune(folder, *words, **environment):
    done = subprocess.run([BIN_DIR / "tune", *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=280,
                          env={**os.environ, **environment})
    return done


def trials_of(folder, *where):
    done = tune(folder, "show", "h", "--json", *where)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["trials"]


def test_a_script_of_horovods_is_a_trial(tmp_path, script):
    done = tune(tmp_path, "run", "-n", 2, "-m", "loss:min", "--port", 0, "--study", "h", "--nproc", 3, "-j", 1, "x=0..1", "--",
                PYTHON, script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(trial["state"], trial["attempt"]) for trial in trials_of(tmp_path)] == [("complete", 1)] * 2


@pytest.fixture
def farm(tmp_path):
    """A server with short leases and two agents; its address."""
    (tmp_path / "gate").touch()
    processes = []

    def start(name, *words):
        with open(tmp_path / f"{name}.log", "wb") as log:
            processes.append(subprocess.Popen([BIN_DIR / "tune", *map(str, words)], cwd=tmp_path, stdout=log, stderr=log,
                                              start_new_session=True))

    start("server", "server", "--port", 0, "--data", tmp_path / "data", "--heartbeat", "500ms", "--lease-ttl", "3s")
    line = wait_for(lambda: [word for word in (tmp_path / "server.log").read_text().split() if word.startswith("http")], "the server")
    for name in ("a", "b"):
        start(name, "agent", "--server", line[0], "--state", tmp_path / name, "--slots", 2, "--no-gpus")
    yield line[0]
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait(60)


def test_two_agents_two_ranks_each_and_a_killed_one(farm, tmp_path, script):
    (tmp_path / "study.json").write_text(json.dumps({
        "study": "h", "metric": "loss:min", "space": {"x": "0..1"}, "budget": {"trials": 1}, "env": {"FOLDER": str(tmp_path)},
        "resources": {"nproc": 2, "nnodes": 2}, "retry": {"max": 2, "on": ["failed"]}, "command": [str(PYTHON), str(script)]}))
    run = subprocess.Popen([BIN_DIR / "tune", "run", "study.json", "--server", farm, "--no-agent"], cwd=tmp_path)
    for rank in range(4):
        wait_for((tmp_path / f"pid-1-{rank}").exists, f"rank {rank}")
    os.kill(int((tmp_path / "pid-1-3").read_text()), signal.SIGKILL)
    for rank in range(4):
        wait_for((tmp_path / f"pid-2-{rank}").exists, f"rank {rank} of the second attempt")
    (tmp_path / "gate").unlink()
    assert run.wait(120) == 0
    assert [(trial["state"], trial["attempt"]) for trial in trials_of(tmp_path, "--server", farm)] == [("complete", 2)]


RUNNER = """
import tune_spark

def main(scale):
    import torch
    import horovod.torch as hvd
    hvd.init()
    total = hvd.allreduce(torch.ones(1) * scale, op=hvd.Sum).item()
    found = hvd.size(), hvd.local_size(), total
    hvd.shutdown()
    return found

assert tune_spark.HorovodRunner(np=-2).run(main, scale=3) == (2, 2, 6.0)
print("well")
"""


def test_horovod_runner_on_the_driver(tmp_path):
    (tmp_path / "runner.py").write_text(RUNNER)
    done = subprocess.run([PYTHON, tmp_path / "runner.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0 and done.stdout.endswith("well\n"), done.stdout + done.stderr


# Bytes as http_store.cc sends them, one connection a request; statuses and bodies of what comes back.
ASKED = """
import json, socket, sys

def ask(address, port, method, key, body=b""):
    # "http://" + address + ":" + port + "/" + key, taken apart as HTTPRequest.hpp does.
    domain, _, path = f"{address}:{port}/{key}".partition("/")
    host, _, at = domain.partition(":")
    with socket.create_connection((host, int(at)), timeout=30) as link:
        link.sendall(f"{method} /{path} HTTP/1.1\\r\\nHost: {host}\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n".encode() + body)
        text = b""
        while b"\\r\\n\\r\\n" not in text:
            text += link.recv(65536)
        head, _, found = text.partition(b"\\r\\n\\r\\n")
        length = int([line for line in head.split(b"\\r\\n") if line.startswith(b"Content-Length:")][0][15:])
        while len(found) < length:
            found += link.recv(65536)
    return [int(head.split()[1]), found.decode("latin-1")]

def all_answers(address, port):
    found = []
    values = [bytes(range(256)), b"", b"x" * 100_000]
    for scope, members in ("global", 2), ("local_node-0", 2), ("cross_0", 1), ("global_process_set_hash_7f", 0), ("elsewhere", 0):
        found.append(ask(address, port, "GET", f"{scope}/0"))
        for rank, value in enumerate(values):
            found.append(ask(address, port, "PUT", f"{scope}/rank_{rank}", value))
            found.append(ask(address, port, "PUT", f"{scope}/{rank}", value[::-1]))
        found += [ask(address, port, "GET", f"{scope}/{key}") for key in ("0", "rank_2", "7")]
        for rank in range(max(members, 1)):
            found.append(ask(address, port, "DELETE", f"{scope}/{rank}"))
            found += [ask(address, port, "GET", f"{scope}/{key}") for key in ("0", "1", "rank_0", "rank_1")]
    return found
"""

THEIRS = ASKED + """
from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousServer

server = RendezvousServer()
port = server.start()
server.init(get_host_assignments(parse_hosts("node-0:2"), 2))
print(json.dumps(all_answers("127.0.0.1", port)))
server.stop()
"""

OURS = ASKED + """
import os
where = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]
if os.environ["HOROVOD_RANK"] == "0":
    from horovod.runner.http.http_client import put_data_into_kvstore, read_data_from_kvstore
    put_data_into_kvstore(*where, "by_python", "key", {"a": 1})
    assert read_data_from_kvstore(*where, "by_python", "key") == {"a": 1}
    text = json.dumps(all_answers(*where))
    with open(sys.argv[1], "w") as file:
        file.write(text)
    print('tune: {"loss": 1}')
"""


def test_answers_are_those_of_horovods_own_server(tmp_path):
    """The store of trials, which is C++, that of runners, which is Python, and Horovod's."""
    done = subprocess.run([PYTHON, "-c", THEIRS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    (tmp_path / "ours.py").write_text(OURS)
    done = tune(tmp_path, "run", "-n", 1, "-m", "loss:min", "--port", 0, "--nproc", 2, "x=0..1", "--", PYTHON, "ours.py",
                tmp_path / "answers")
    assert done.returncode == 0, done.stdout + done.stderr
    of_trials = json.loads((tmp_path / "answers").read_text())
    (tmp_path / "runner.py").write_text(
        "import runpy, sys, tune_client\nfrom tune_client._gang import Training, run_here\n"
        f"run_here(Training({str(tmp_path / 'ours.py')!r}, [{str(tmp_path / 'of_runners')!r}]), 2)\n")
    done = subprocess.run([PYTHON, tmp_path / "runner.py"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    of_runners = json.loads((tmp_path / "of_runners").read_text())
    assert len(theirs) == len(of_trials) == len(of_runners)
    for number, (their, trial, runner) in enumerate(zip(theirs, of_trials, of_runners)):
        assert their == trial == runner, number

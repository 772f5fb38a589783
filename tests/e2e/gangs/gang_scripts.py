"""Commands of trials on several processes, for the tests in this folder. None of them knows of tune but by what a
trial of one process would know too: a line on stdout, and SIGTERM."""

# Torch's DDP as its tutorial has it, with data that differ from rank to rank.
DDP = """
import gc, json, os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
assert size == int(os.environ["WORLD_SIZE"]) and rank == int(os.environ["RANK"])
lr = json.loads(os.environ["TUNE_PARAMS"])["lr"]
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
torch.manual_seed(100 + rank)
for step in range(5):
    x = torch.randn(8, 4)
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    print("tune: " + json.dumps({"loss": mean.item() / size, "step": step}), flush=True)
weights = model.module.weight.detach().flatten()
all_weights = [torch.empty_like(weights) for _ in range(size)]
dist.all_gather(all_weights, weights)
assert all(torch.equal(one, weights) for one in all_weights)
print("ranks", size, "weights", weights.tolist(), flush=True)
dist.destroy_process_group()
# Torch 2.15 aborts one in seven ranks whose model is freed only as the interpreter ends, with or without tune.
del model, optimizer
gc.collect()
"""

# Runs until SIGTERM, then all ranks leave after the same step: each says whether it was asked, and the greatest answer
# counts. The last step of each rank goes to a file.
STOPS_TOGETHER = """
import os, pathlib, signal, time
import torch
import torch.distributed as dist

asked = False
def ask(*_):
    global asked
    asked = True
signal.signal(signal.SIGTERM, ask)
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
folder = pathlib.Path(os.environ["FOLDER"])
step = 0
while True:
    step += 1
    print('tune: {"loss": %d, "step": %d}' % (step, step), flush=True)
    time.sleep(0.01 * (rank + 1))
    flag = torch.tensor([1 if asked else 0])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    if step == 5:
        (folder / f"runs-{rank}").touch()
    if flag.item():
        break
(folder / f"last-{rank}").write_text(str(step))
dist.destroy_process_group()
"""

# Says who it is and waits for the test where a gate is set; no library, so that it starts at once. A further attempt
# ends by itself.
WAITS = """
import json, os, pathlib, time
folder = pathlib.Path(os.environ["FOLDER"])
rank, attempt = os.environ["RANK"], os.environ["TUNE_ATTEMPT"]
names = [name for name in os.environ if name.startswith(("RANK", "WORLD", "LOCAL_", "MASTER_", "GROUP_", "ROLE_",
    "TORCHELASTIC_", "TF_CONFIG", "OMPI_", "PMI_", "HOROVOD_", "CUDA_VISIBLE", "OMP_NUM"))]
(folder / f"env-{attempt}-{rank}.json").write_text(json.dumps({name: os.environ[name] for name in names}))
(folder / f"new-{attempt}-{rank}").write_text(str(os.getpid()))
os.replace(folder / f"new-{attempt}-{rank}", folder / f"pid-{attempt}-{rank}")
print('tune: {"loss": %d}' % (10 + int(rank)), flush=True)
while attempt == "1" and (folder / "gate").exists():
    time.sleep(0.02)
"""

# Some steps; a further attempt does them again. Each process leaves its id.
STEPS = """
import json, os, pathlib, time
folder = pathlib.Path(os.environ["FOLDER"])
name = "-".join(os.environ[key] for key in ("TUNE_TRIAL", "TUNE_ATTEMPT", "RANK"))
(folder / ("ran-" + name)).write_text(str(os.getpid()))
x = json.loads(os.environ["TUNE_PARAMS"])["x"]
for step in range(10):
    print("tune: " + json.dumps({"loss": (x - 0.3) ** 2 + 1 / (step + 1), "step": step}), flush=True)
    time.sleep(0.05)
"""

# The requests of hvd.init(), as horovod/common/gloo/http_store.cc sends them (tests/engines/horovod has Horovod itself), twice: all
# processes put an address, read all others' and say that they are done, which empties the store. The last round says what is left.
MEETS = """
import json, os, pathlib, socket, time

address, port = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]
rank, size = int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])

def ask(method, path, body=b""):
    # "http://" + address + ":" + port + "/" + scope + "/" + key, taken apart as HTTPRequest.hpp does.
    domain, _, rest = (address + ":" + port + path).partition("/")
    host, _, at = domain.partition(":")
    with socket.create_connection((host, int(at)), timeout=30) as link:
        link.sendall(("%s /%s HTTP/1.1\\r\\nHost: %s\\r\\nContent-Length: %d\\r\\n\\r\\n" % (method, rest, host, len(body))).encode() + body)
        text = b""
        while piece := link.recv(65536):
            text += piece
    head, _, value = text.partition(b"\\r\\n\\r\\n")
    return int(head.split()[1]), value

def wait_for(path, wanted):
    while (found := ask("GET", path))[0] != wanted:
        time.sleep(0.01)
    return found[1]

for turn in range(2):
    for scope, own, members in (("/global/", rank, size),
                                ("/local_" + os.environ["HOROVOD_HOSTNAME"] + "/", int(os.environ["HOROVOD_LOCAL_RANK"]),
                                 int(os.environ["HOROVOD_LOCAL_SIZE"])),
                                ("/cross_" + os.environ["HOROVOD_LOCAL_RANK"] + "/", int(os.environ["HOROVOD_CROSS_RANK"]),
                                 int(os.environ["HOROVOD_CROSS_SIZE"]))):
        assert ask("PUT", scope + str(own), b"%d of %d" % (own, turn))[0] == 200
        for other in range(members):
            assert wait_for(scope + str(other), 200) == b"%d of %d" % (other, turn), "of this turn"
        # Horovod has a barrier here: nobody is done before all have read. A scope of another name is emptied key by key.
        read = "/read_%d%s" % (turn, scope.replace("/", "_"))
        assert ask("PUT", read + "/%d" % own)[0] == 200
        for other in range(members):
            wait_for(read + "/%d" % other, 200)
        assert ask("DELETE", scope + str(own))[0] == 200
        wait_for(scope + str(own), 404)
print("tune: " + json.dumps({"loss": rank}), flush=True)
print(address, flush=True)
"""

#!/usr/bin/env python3
"""A small model trained by two ranks of DistributedDataParallel: TuneDistributor beside TorchDistributor and bare torchrun.

    tests/engines/setup.sh                                                        # once: the environment with Spark and torch
    build/engines-venv/bin/python tests/bench/engines/ranks_bench.py

The seconds from the call to its value, of five calls the median, on this machine and on two executors of Spark. The training itself
takes as long in each way; what differs is how ranks are started, meet and end.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from bench_support import importable_torch, run_benches, show, spark_session

CALLS = 5
TRAINING = """
def train(steps=100):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group(backend="gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(32, 64)).square().mean()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
    return loss.item()
"""
exec(TRAINING)  # a function of this module, so that it is sent to executors by its value


def median(call):
    """Seconds; the first call does not count."""
    seconds = []
    for _ in range(CALLS + 1):
        begin = time.monotonic()
        call()
        seconds.append(time.monotonic() - begin)
    return statistics.median(seconds[1:])


def bench_here(_):
    from pyspark.ml.torch.distributor import TorchDistributor

    from tune_spark import TuneDistributor

    name = "2 ranks of DDP on this machine"
    with importable_torch(), spark_session(), tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "train.py")
        with open(script, "w") as file:
            file.write(TRAINING + "\n\ntrain()\n")
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", script]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        show(name, median(lambda: TuneDistributor(2, True, False).run(train)))
        show(name, median(lambda: TorchDistributor(2, True, False).run(train)), "TorchDistributor")
        show(name, median(lambda: subprocess.run(torchrun, env=environment, check=True, capture_output=True)), "torchrun")


def bench_spark(_):
    from pyspark.ml.torch.distributor import TorchDistributor

    from tune_spark import TuneDistributor

    name = "2 ranks of DDP on 2 executors of Spark"
    with importable_torch(), spark_session():
        show(name, median(lambda: TuneDistributor(2, False, False).run(train)))
        show(name, median(lambda: TorchDistributor(2, False, False).run(train)), "TorchDistributor")


if __name__ == "__main__":
    sys.exit(run_benches(__file__, __doc__, {"here": bench_here, "spark": bench_spark}))

"""Two ranks of DistributedDataParallel share our StreamingDataset: started as torchrun does, and inside Spark's TorchDistributor."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "frameworks")]
import tuneloader_path  # noqa: E402, F401

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pytest.importorskip("torch", reason="setup.sh ran with --no-torch")
import absent_cuda  # noqa: E402
from streaming_rank import train  # noqa: E402

MODULE = str(pathlib.Path(tuneloader.__file__).parents[1])
COUNT, RANKS = 64, 2


@pytest.fixture(autouse=True)
def importable_torch(tmp_path, monkeypatch):
    """Ranks import torch of PyPI, which is linked with CUDA's libraries: stand-ins lie where every process looks."""
    (tmp_path / "absent").mkdir()
    for name, value in absent_cuda.for_processes(tmp_path / "absent").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH")))))


@pytest.fixture
def folder(tmp_path):
    with tuneloader.MDSWriter(out=str(tmp_path / "data"), columns={"x": "ndarray:float32:3", "y": "int"}, size_limit=1000) as out:
        for i in range(COUNT):
            out.write({"x": np.full(3, i / COUNT, np.float32), "y": i})
    return tmp_path


def run(folder, stop_after):
    """What rank 0 printed."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    common = {**os.environ, "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
              "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    words = [sys.executable, str(HERE / "streaming_rank.py"), MODULE, str(folder / "data"), str(stop_after), str(folder / "state")]
    ranks = [subprocess.Popen(words, env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
             for rank in range(RANKS)]
    outs = [rank.communicate(timeout=280) for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), outs
    return outs[0][0]


def check(ranks):
    """Each epoch has every sample once over the ranks, which hold the same weights."""
    assert len(ranks) == RANKS and ranks[0]["weights"] == ranks[1]["weights"]
    for epoch in range(2):
        assert sorted(y for rank in ranks for batch in rank["epochs"][epoch] for y in batch) == list(range(COUNT))
    assert ranks[0]["epochs"][0] != ranks[0]["epochs"][1]


def test_ranks_see_every_sample_once_and_resume_in_an_epoch(folder):
    whole = json.loads(run(folder, 0))
    check(whole)
    assert run(folder, 5) == ""
    assert json.loads(run(folder, 0)) == whole


def test_inside_torch_distributor(folder):
    pytest.importorskip("pyspark")
    from pyspark.ml.torch.distributor import TorchDistributor
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        check(TorchDistributor(num_processes=RANKS, local_mode=True, use_gpu=False).run(train, MODULE, str(folder / "data"), 0, str(folder / "none")))
    finally:
        spark.stop()

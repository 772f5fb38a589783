"""The peer of the loader: mosaicml-streaming 0.13.0, the same data, the same batches.

It is measured where it is fastest: one process, its StreamingDataset iterated directly and stacked to batches with
numpy. Its own DataLoader, which collates with torch, adds to that.
"""

import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".venv" / "bin" / "python"  # where ./setup.sh installs it: tests/contract/loader/requirements.txt
if importlib.util.find_spec("streaming") is None:
    if pathlib.Path(sys.prefix) == PYTHON.parents[1]:
        sys.exit("mosaicml-streaming is not installed; run ./setup.sh")
    os.execv(PYTHON, [str(PYTHON), __file__])

sys.path.insert(0, str(ROOT / "tests" / "contract" / "loader"))

import mosaic  # noqa: E402
import numpy as np  # noqa: E402
import remote_peer  # noqa: E402

SAMPLES = 50_000
BATCH = 256
PEER = "mosaicml-streaming 0.13.0"


def figure(name, value, unit, better):
    print(json.dumps({"name": name, "value": value, "unit": unit, "better": better, "peer": PEER}), flush=True)


def measure_write(directory):
    images = np.zeros((SAMPLES, 28, 28), np.uint8)
    start = time.perf_counter()
    with mosaic.MDSWriter(out=directory, columns={"image": "ndarray:uint8:28,28", "label": "int"}) as writer:
        for i in range(SAMPLES):
            writer.write({"image": images[i], "label": i % 10})
    figure("write 28x28 samples as MDS", SAMPLES / (time.perf_counter() - start), "1/s", "higher")


def measure_iteration(directory):
    mosaic.clean_stale_shared_memory()
    dataset = mosaic.StreamingDataset(local=directory, shuffle=True, batch_size=BATCH)
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        images, labels = [], []
        for sample in dataset:
            images.append(sample["image"])
            labels.append(sample["label"])
            if len(images) == BATCH:
                np.stack(images), np.array(labels)
                images, labels = [], []
        best = min(best, time.perf_counter() - start)
    for how in ("in the caller's thread", "1 threads", "2 threads"):
        figure(f"iterate 28x28 samples, shuffled, batch 256, {how}", SAMPLES / best, "1/s", "higher")


def measure_random_read(directory):
    dataset = mosaic.LocalDataset(directory)
    order = np.random.default_rng(1).permutation(SAMPLES)[:20_000]
    start = time.perf_counter()
    for i in order:
        dataset[int(i)]
    figure("random read of 28x28 samples", len(order) / (time.perf_counter() - start), "1/s", "higher")


def measure_order():
    sizes = np.full(1000, 10_000, np.int64)
    start = time.perf_counter()
    mosaic.get_shuffle("py1e", sizes, 8, 9176, 0, 1 << 18)
    figure("order of 10,000,000 samples (py1e)", time.perf_counter() - start, "s", "lower")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        measure_write(directory + "/mds")
        measure_iteration(directory + "/mds")
        measure_random_read(directory + "/mds")
    measure_order()
    remote_peer.measure_all()

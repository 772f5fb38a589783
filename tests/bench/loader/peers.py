"""The peers of the loader: mosaicml-streaming 0.13.0, torch's DataLoader, LitData, WebDataset, Petastorm and TRL's packing, the same data, the
same batches.

mosaicml-streaming is measured where it is fastest: one process, its StreamingDataset iterated directly and stacked to batches
with numpy. Its own DataLoader, which collates with torch, adds to that. The others run under torch's DataLoader, without
workers and with two; the better one counts.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
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
# Peers that the tests do not need, with what they need beyond the tests' packages; the versions are those of the table.
EXTRA = ROOT / "build" / "peers" / "loader-extra"
EXTRA_PACKAGES = ["litdata==0.2.76", "webdataset==1.0.2", "braceexpand==0.1.7"]

import mosaic  # noqa: E402
import numpy as np  # noqa: E402
import packing_peer  # noqa: E402
import petastorm_peer  # noqa: E402
import remote_peer  # noqa: E402

SAMPLES = 50_000
BATCH = 256
PEER = "mosaicml-streaming 0.13.0"


ITERATE = "iterate 28x28 samples from Python, shuffled, batch 256"


def figure(name, value, unit, better, peer=PEER):
    print(json.dumps({"name": name, "value": value, "unit": unit, "better": better, "peer": peer}), flush=True)


def measure_write(directory):
    images = np.zeros((SAMPLES, 28, 28), np.uint8)
    start = time.perf_counter()
    with mosaic.MDSWriter(out=directory, columns={"image": "ndarray:uint8:28,28", "label": "int"}) as writer:
        for i in range(SAMPLES):
            writer.write({"image": images[i], "label": i % 10})
    rate = SAMPLES / (time.perf_counter() - start)
    figure("write 28x28 samples as MDS", rate, "1/s", "higher")
    figure("write 28x28 samples as MDS from Python", rate, "1/s", "higher")


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
    figure(ITERATE, SAMPLES / best, "1/s", "higher")
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        for _ in dataset:
            pass
        best = min(best, time.perf_counter() - start)
    figure("iterate 28x28 samples one by one as dicts, shuffled", SAMPLES / best, "1/s", "higher")


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


def import_torch(directory):
    """torch, also where the libraries of CUDA are not."""
    sys.path.insert(0, str(ROOT / "tests" / "contract" / "frameworks"))
    import absent_cuda

    absent_cuda.prepare(directory)
    import torch.utils.data

    return torch


def rate_of(make_loader):
    """Samples a second of the best epoch, without workers or with two."""
    best = float("inf")
    for workers in (0, 2):
        loader = make_loader(workers)
        for _ in range(2):
            start = time.perf_counter()
            samples = sum(len(labels) for _, labels in loader)
            if samples > SAMPLES * 0.9:  # a peer may leave the last batches out
                best = min(best, (time.perf_counter() - start) * SAMPLES / samples)
    return SAMPLES / best


class Mapped:
    """One file of images, mapped, and their labels: what a map-style data set of one's own would be."""

    def __init__(self, path):
        self.path = path
        self.images = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return np.array(self.images[i]), i % 10


def measure_torch(torch, directory):
    path = directory + "/images.npy"
    np.save(path, np.zeros((SAMPLES, 28, 28), np.uint8))

    def loader(workers):
        return torch.utils.data.DataLoader(Mapped(path), BATCH, shuffle=True, num_workers=workers)

    figure(ITERATE, rate_of(loader), "1/s", "higher", f"torch {torch.__version__.split('+')[0]} DataLoader, mapped file")


class RowGroups:
    """A Parquet file as an iterable data set: row groups in a shuffled order, the rows of each shuffled, cut into batches."""

    def __init__(self, path, torch):
        self.path = path
        self.torch = torch

    def __iter__(self):
        import pyarrow.parquet

        file = pyarrow.parquet.ParquetFile(self.path)
        worker = self.torch.utils.data.get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        dice = np.random.default_rng(1)
        for group in dice.permutation(file.num_row_groups)[number::count]:
            table = file.read_row_group(int(group))
            images = table["image"].combine_chunks().values.to_numpy().reshape(-1, 28, 28)
            labels = table["label"].to_numpy()
            order = dice.permutation(len(labels))
            for at in range(0, len(order), BATCH):
                rows = order[at : at + BATCH]
                yield self.torch.from_numpy(images[rows]), self.torch.from_numpy(labels[rows])


def measure_pyarrow(torch, directory):
    import pyarrow
    import pyarrow.parquet

    path = directory + "/images.parquet"
    images = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.zeros(SAMPLES * 784, np.uint8)), 784)
    table = pyarrow.table({"image": images, "label": np.arange(SAMPLES) % 10})
    pyarrow.parquet.write_table(table, path, row_group_size=5_000)

    class Data(RowGroups, torch.utils.data.IterableDataset):
        pass

    def loader(workers):
        return torch.utils.data.DataLoader(Data(path, torch), batch_size=None, num_workers=workers)

    figure(ITERATE, rate_of(loader), "1/s", "higher", f"torch DataLoader on pyarrow {pyarrow.__version__}")


def make_sample(i):
    return np.zeros((28, 28), np.uint8), i % 10


def measure_litdata(directory):
    import litdata

    litdata.optimize(make_sample, list(range(SAMPLES)), directory + "/lit", chunk_bytes="64MB", num_workers=1, verbose=False,
                     start_method="fork")

    def loader(workers):
        dataset = litdata.StreamingDataset(directory + "/lit", shuffle=True)
        return litdata.StreamingDataLoader(dataset, batch_size=BATCH, num_workers=workers)

    figure(ITERATE, rate_of(loader), "1/s", "higher", f"litdata {litdata.__version__}")


def measure_webdataset(torch, directory):
    import webdataset

    image = np.zeros((28, 28), np.uint8)
    with webdataset.ShardWriter(f"{directory}/%04d.tar", maxcount=10_000, verbose=0) as writer:
        for i in range(SAMPLES):
            writer.write({"__key__": f"{i:06d}", "image.npy": image, "label.cls": i % 10})
    url = f"{directory}/{{0000..{(SAMPLES - 1) // 10_000:04d}}}.tar"

    def loader(workers):
        samples = webdataset.WebDataset(url, shardshuffle=100).shuffle(10_000).decode().to_tuple("image.npy", "label.cls")
        return torch.utils.data.DataLoader(samples.batched(BATCH), batch_size=None, num_workers=workers)

    figure(ITERATE, rate_of(loader), "1/s", "higher", f"webdataset {webdataset.__version__}")


def main():
    with tempfile.TemporaryDirectory() as directory:
        measure_write(directory + "/mds")
        measure_iteration(directory + "/mds")
        measure_random_read(directory + "/mds")
        measure_order()
        if not EXTRA.exists():
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(EXTRA)]
            subprocess.run([*pip, *EXTRA_PACKAGES], check=True)
        sys.path.append(str(EXTRA))
        torch = import_torch(directory)
        measure_torch(torch, directory)
        measure_pyarrow(torch, directory)
        measure_litdata(directory)
        measure_webdataset(torch, directory)
    petastorm_peer.measure_all(ITERATE)
    packing_peer.measure_all()
    remote_peer.measure_all()


if __name__ == "__main__":
    main()

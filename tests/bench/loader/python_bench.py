"""The loader from Python: 28x28 uint8 images and an int label, shuffled, in batches of 256 and one by one."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODULE = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin")).parent / "python"
if not list((MODULE / "tuneloader").glob("_core*.so")):
    print("the module tuneloader is not built")
    sys.exit(0)
sys.path.insert(0, str(MODULE))

import numpy as np  # noqa: E402
from documents import LENGTH, documents  # noqa: E402

import tuneloader  # noqa: E402

SAMPLES = 200_000
BATCH = 256
ITERATE = "iterate 28x28 samples from Python, shuffled, batch 256"


def figure(name, value, unit, better, target=None):
    line = {"name": name, "value": value, "unit": unit, "better": better}
    print(json.dumps(line | ({"target": target} if target is not None else {})), flush=True)


def seconds_of(work, rounds=3):
    """The best of a few rounds: what the machine can do when nothing else disturbs it."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def write(directory):
    images = np.zeros((SAMPLES, 28, 28), np.uint8)
    with tuneloader.MDSWriter(out=directory, columns={"image": "ndarray:uint8:28,28", "label": "int"}) as writer:
        for i in range(SAMPLES):
            writer.write({"image": images[i], "label": i % 10})


def read_epochs(dataset, epochs=1):
    for _ in range(epochs):
        samples = 0
        for batch in dataset:
            samples += len(batch["label"])
            batch["image"][0, 0, 0]
        assert samples == SAMPLES


def read_samples(dataset):
    assert sum(1 for _ in dataset) == SAMPLES


def import_seconds():
    code = "import time; t = time.process_time(); import tuneloader; print(time.process_time() - t)"
    run = [sys.executable, "-c", code]
    return min(
        float(subprocess.run(run, env={**os.environ, "PYTHONPATH": str(MODULE)}, capture_output=True, check=True).stdout)
        for _ in range(5)
    )


def write_documents(directory):
    tokens = 0
    with tuneloader.MDSWriter(out=directory, columns={"tokens": "ndarray:uint16"}) as writer:
        for document in documents():
            writer.write({"tokens": document})
            tokens += len(document)
    return tokens


def pack(directory):
    tokens = write_documents(directory)
    for packing in ("concat", "best_fit"):
        data = tuneloader.PackedDataset(directory, column="tokens", length=LENGTH, batch_size=8, packing=packing, shuffle=True)
        given = []

        def read(data=data, given=given):
            given.append(sum(batch["tokens"].size for batch in data))

        seconds = seconds_of(read)
        figure(f"pack documents into sequences of 2,048 tokens, {packing}", tokens / seconds, "tokens/s", "higher")
        figure(f"padding of these, {packing}", 100 * (1 - tokens / given[0]), "%", "lower")
        data.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        directory = folder + "/mds"
        figure("write 28x28 samples as MDS from Python", SAMPLES / seconds_of(lambda: write(directory), 1), "1/s", "higher")
        dataset = tuneloader.Dataset(directory, batch_size=BATCH, shuffle=True)
        read_epochs(dataset)  # opens and checks the shards
        figure(ITERATE, 5 * SAMPLES / seconds_of(lambda: read_epochs(dataset, 5)), "1/s", "higher", 2e6)
        dataset.close()
        streaming = tuneloader.StreamingDataset(local=directory, batch_size=BATCH, shuffle=True)
        seconds = seconds_of(lambda: read_samples(streaming))
        figure("iterate 28x28 samples one by one as dicts, shuffled", SAMPLES / seconds, "1/s", "higher")
    with tempfile.TemporaryDirectory() as folder:
        pack(folder + "/documents")
    figure("import tuneloader", import_seconds() * 1000, "ms", "lower", 50)


if __name__ == "__main__":
    main()

"""What Petastorm's users do with 28x28 images and a label, by the names of Petastorm, which ours has too:

    petastorm_rates.py MODULE FOLDER      MODULE is petastorm or tuneloader; FOLDER holds what write_sets() wrote

Prints {way: samples a second}. The best of three passes counts, each with a reader of its own, as it is by default: ten threads,
row groups in a shuffled order.
"""

import importlib
import json
import pathlib
import sys
import time

SAMPLES = 50_000
BATCH = 256
ROWS = "rows of 28x28 samples by make_reader"
BATCHES = "batches of 28x28 samples by make_batch_reader"
ROW_TENSORS = "28x28 samples by make_reader and DataLoader, shuffled, batch 256"
BATCH_TENSORS = "28x28 samples by make_batch_reader and BatchedDataLoader, shuffled, batch 256"
WAYS = (ROWS, BATCHES, ROW_TENSORS, BATCH_TENSORS)


def write_sets(folder):
    """`rows` with Petastorm's schema, whose images are arrays as NumPy stores them, and `plain`, whose images are lists of numbers. By
    ours, because Petastorm writes by Spark alone; it reads them (tests/contract/loader/test_petastorm.py)."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from tuneloader.codecs import NdarrayCodec
    from tuneloader.etl.dataset_metadata import materialize_dataset
    from tuneloader.unischema import Unischema, UnischemaField, encode_row

    fields = [UnischemaField("image", np.uint8, (28, 28), NdarrayCodec(), False),
              UnischemaField("label", np.int64, (), None, False)]  # another codec would ask for pyspark
    schema = Unischema("Images", fields)
    image = np.zeros((28, 28), np.uint8)
    rows = pathlib.Path(folder) / "rows"
    with materialize_dataset(None, f"file://{rows}", schema, 1):
        rows.mkdir()
        table = pa.Table.from_pylist([encode_row(schema, {"image": image, "label": i % 10}) for i in range(SAMPLES)])
        pq.write_table(table, rows / "part-0.parquet", row_group_size=2_000)
    plain = pathlib.Path(folder) / "plain"
    plain.mkdir()
    offsets = np.arange(SAMPLES + 1, dtype=np.int32) * 784
    images = pa.ListArray.from_arrays(offsets, pa.array(np.zeros(SAMPLES * 784, np.uint8)))
    pq.write_table(pa.table({"image": images, "label": np.arange(SAMPLES) % 10}), plain / "part-0.parquet", row_group_size=2_000)


def rate_of(count):
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        samples = count()
        best = min(best, time.perf_counter() - start)
        assert samples == SAMPLES, f"{samples} samples"
    return SAMPLES / best


def measure(module, folder):
    package = importlib.import_module(module)
    torch_loaders = importlib.import_module(f"{module}.pytorch")

    def rows():
        return package.make_reader(f"file://{folder}/rows", num_epochs=1)

    def plain():
        return package.make_batch_reader(f"file://{folder}/plain", num_epochs=1)

    def count_rows():
        with rows() as reader:
            return sum(1 for row in reader)

    def count_batches():
        with plain() as reader:
            return sum(len(batch.label) for batch in reader)

    def count_tensors(kind, reader):
        with getattr(torch_loaders, kind)(reader(), batch_size=BATCH, shuffling_queue_capacity=10_000) as loader:
            return sum(len(batch["label"]) for batch in loader)

    counts = (count_rows, count_batches, lambda: count_tensors("DataLoader", rows), lambda: count_tensors("BatchedDataLoader", plain))
    return {way: rate_of(count) for way, count in zip(WAYS, counts)}


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "contract" / "frameworks"))
    import absent_cuda

    absent_cuda.prepare(sys.argv[2])
    print(json.dumps(measure(sys.argv[1], sys.argv[2])))

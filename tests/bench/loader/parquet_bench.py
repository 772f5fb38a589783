"""A scan of Parquet by tune-data against Arrow's own scanner (pyarrow.dataset), the same file, the same threads.

Both decode every row group in every pass: ours keeps no more than 32 MB decoded. They run in turns and the best of each
counts, since on a shared machine the worse ones measure its other work.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
ROWS = 2_000_000
TURNS = 3


def tables():
    random = np.random.default_rng(1)
    words = [f"w{k}" for k in random.integers(0, 5000, ROWS)]
    yield "int64, float64, text", pa.table({"i": random.integers(0, 1 << 40, ROWS), "f": random.normal(size=ROWS), "s": words})
    # Far more than is kept decoded, so that no pass finds anything left of the one before.
    values = random.normal(size=ROWS * 16).astype("f4")
    yield "16 floats a row", pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(values), 16)})


def scan_arrow(path):
    start, rows = time.perf_counter(), 0
    for batch in ds.dataset(path).scanner(batch_size=131072).to_batches():
        rows += batch.num_rows
    return rows / (time.perf_counter() - start)


def scan_ours(path):
    output = subprocess.check_output(
        [BIN / "tune-data", "bench", path, "--no-shuffle", "--batch-size", "4096", "--nulls", "refuse",
         "--decompressed-max", "32mb", "--threads", "2", "--seconds", "1", "--json"]
    )  # fmt: skip
    return json.loads(output)["samples_per_s"]


def main():
    pa.set_cpu_count(2)
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables():
            path = pathlib.Path(folder) / "t.parquet"
            pq.write_table(table, path, row_group_size=125_000)
            arrow, ours = [], []
            for _ in range(TURNS):
                arrow.append(scan_arrow(path))
                ours.append(scan_ours(path))
            print(json.dumps({"name": f"Parquet scan, {name}", "value": max(ours), "unit": "1/s", "better": "higher",
                              "target": 0.9 * max(arrow), "peer": "pyarrow scanner", "peer_value": max(arrow)}))  # fmt: skip


if __name__ == "__main__":
    main()

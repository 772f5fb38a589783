"""A scan of Parquet by tune-data against Arrow's own scanner (pyarrow.dataset), the same file, the same threads.

Both decode every row group in every pass: ours keeps no more than 32 MB decoded. They run in turns and the best of each
counts, since on a shared machine the worse ones measure its other work. Processor time tells more there: ours, with the
start of its process, has more threads to be given time.
"""

import json
import os
import pathlib
import resource
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
TURNS = 5


def tables():
    random = np.random.default_rng(1)
    words = [f"w{k}" for k in random.integers(0, 5000, ROWS)]
    yield "int64, float64, text", pa.table({"i": random.integers(0, 1 << 40, ROWS), "f": random.normal(size=ROWS), "s": words})
    # Far more than is kept decoded, so that no pass finds anything left of the one before.
    values = random.normal(size=ROWS * 16).astype("f4")
    yield "16 floats a row", pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(values), 16)})


def processor_s(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def scan_arrow(path):
    start, begun, rows = time.perf_counter(), processor_s(resource.RUSAGE_SELF), 0
    for batch in ds.dataset(path).scanner(batch_size=131072).to_batches():
        rows += batch.num_rows
    return rows / (time.perf_counter() - start), (processor_s(resource.RUSAGE_SELF) - begun) / rows


def scan_ours(path):
    begun = processor_s(resource.RUSAGE_CHILDREN)
    output = subprocess.check_output(
        [BIN / "tune-data", "bench", path, "--no-shuffle", "--batch-size", "4096", "--nulls", "refuse",
         "--decompressed-max", "32mb", "--threads", "2", "--seconds", "1", "--json"]
    )  # fmt: skip
    report = json.loads(output)
    return report["samples_per_s"], (processor_s(resource.RUSAGE_CHILDREN) - begun) / report["samples"]


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
            rate, peer_rate = (max(rate for rate, _ in turns) for turns in (ours, arrow))
            print(json.dumps({"name": f"Parquet scan, {name}", "value": rate, "unit": "1/s", "better": "higher",
                              "target": 0.9 * peer_rate, "peer": "pyarrow scanner", "peer_value": peer_rate}))  # fmt: skip
            cost, peer_cost = (min(cost for _, cost in turns) * 1e9 for turns in (ours, arrow))
            print(json.dumps({"name": f"processor time of these, {name}", "value": cost, "unit": "ns", "better": "lower",
                              "peer": "pyarrow scanner", "peer_value": peer_cost}))  # fmt: skip


if __name__ == "__main__":
    main()

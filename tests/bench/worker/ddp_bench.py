#!/usr/bin/env python3
"""A step of two ranks on this machine, one thread each: what a longer run takes beyond a shorter one. The same network,
batch and number of steps under torchrun is in peers.py. `--short`: whether it runs, not how fast."""

import json
import os
import pathlib
import statistics
import struct
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "e2e" / "trainer")]

from ranks_support import finish, start_ranks  # noqa: E402
from trainer_support import DONE, write_mds  # noqa: E402

NAME = "two ranks, a step of mlp 64-512-512-512-10, batch 128, AdamW"
BATCH = 128
STEPS_OF_EPOCH = 100
SHORT, LONG, ROUNDS = (1, 2, 1) if "--short" in sys.argv else (2, 12, 5)  # epochs


def write_data(directory):
    random = np.random.default_rng(0)
    columns = {"image": ("ndarray:float32:64", 256), "label": ("int", 8)}
    for split, count in (("train", BATCH * STEPS_OF_EPOCH), ("val", BATCH)):
        pixels = random.standard_normal((count, 64), np.float32)
        write_mds(directory / split, columns, [{"image": row.tobytes(), "label": struct.pack("<q", i % 10)}
                                               for i, row in enumerate(pixels)])
    return directory


def seconds_of(data, epochs):
    began = time.perf_counter()
    ends = finish(start_ranks(2, data=data, model="mlp", width=512, depth=3, batch_size=BATCH, epochs=epochs,
                              val_every=1000, log_every=0, threads=1))
    assert [end.code for end in ends] == [DONE, DONE], ends[0].stderr
    return time.perf_counter() - began


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OMP_NUM_THREADS"] = "1"
        data = write_data(pathlib.Path(folder) / "data")
        seconds_of(data, 1)  # statistics of the data are measured once
        steps = (LONG - SHORT) * STEPS_OF_EPOCH
        times = [(seconds_of(data, LONG) - seconds_of(data, SHORT)) / steps * 1e6 for _ in range(ROUNDS)]
    print(json.dumps({"name": NAME, "value": round(statistics.median(times), 1), "unit": "us", "better": "lower"}))


if __name__ == "__main__":
    main()

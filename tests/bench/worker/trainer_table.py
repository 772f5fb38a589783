#!/usr/bin/env python3
"""The trainer's step beside PyTorch's, eager and by torch.compile, and two ranks beside torchrun: one run, one table.

    tests/bench/worker/trainer_table.py [--rounds 3] [--short] [--json]

Each round measures ours and then theirs, so that both have the same machine; the table has the medians. Both compute with
the same LibTorch: that of the Python that runs this. --short: whether all of it runs, not how fast.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "bench"), str(ROOT / "tests" / "contract" / "frameworks")]

import absent_cuda  # noqa: E402
from run import print_table, read_figures  # noqa: E402

HERE = pathlib.Path(__file__).parent


def one_round(bin_dir, environment, short):
    options = ["--short"] if short else []
    ours = {**os.environ, "TUNE_BIN_DIR": str(bin_dir)}
    figures = read_figures([str(bin_dir / "train_bench"), *options], ours, "worker")
    figures += read_figures([sys.executable, str(HERE / "ddp_bench.py"), *options], ours, "worker")
    return figures + read_figures([sys.executable, str(HERE / "peers.py"), *options], environment, "worker")


def medians(rounds):
    """The figures of the first round, with the median of all rounds as their value."""
    values = {}
    for figure in (figure for figures in rounds for figure in figures):
        values.setdefault((figure["name"], figure.get("peer")), []).append(figure["value"])
    return [{**figure, "value": statistics.median(values[figure["name"], figure.get("peer")])} for figure in rounds[0]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    parser.add_argument("--bin-dir", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="absent-cuda-") as folder:
        environment = {**os.environ, **absent_cuda.for_processes(folder)}
        rounds = [one_round(options.bin_dir, environment, options.short) for _ in range(options.rounds)]
    figures = medians(rounds)
    if options.json:
        for figure in figures:
            print(json.dumps(figure))
    else:
        print_table(figures)


if __name__ == "__main__":
    main()

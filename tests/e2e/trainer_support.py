"""Real tune-trainer processes on the UCI handwritten digits, for test_trainer_*.py."""

import json
import os
import pathlib
import struct
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_digits

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
TRAINER = BIN_DIR / "tune-trainer"
TIMEOUT_S = 120

if not TRAINER.exists():
    pytest.skip(f"there is no {TRAINER}: built without LibTorch", allow_module_level=True)

DONE, FAILED, PREEMPTED, OUT_OF_MEMORY, BAD_CONFIG = 0, 1, 11, 12, 13


def write_mds(directory, columns, rows):
    """A dataset of one shard, written from the format's description and not by the loader under test.

    `columns`: {name: (encoding, bytes of a value)}; `rows`: dicts of bytes.
    """
    directory.mkdir(parents=True)
    names = sorted(columns)
    config = {"column_encodings": [columns[n][0] for n in names], "column_names": names,
              "column_sizes": [columns[n][1] for n in names], "compression": None, "format": "mds", "hashes": [],
              "size_limit": 1 << 26, "version": 2}
    config_text = json.dumps(config, sort_keys=True).encode()
    samples = [b"".join(row[n] for n in names) for row in rows]
    begin = 4 + 4 * (len(samples) + 1) + len(config_text)
    offsets = np.cumsum([begin] + [len(sample) for sample in samples]).astype(np.uint32)
    shard = struct.pack("<I", len(samples)) + offsets.tobytes() + config_text + b"".join(samples)
    (directory / "shard.00000.mds").write_bytes(shard)
    entry = {**config, "samples": len(samples), "zip_data": None,
             "raw_data": {"basename": "shard.00000.mds", "bytes": len(shard), "hashes": {}}}
    (directory / "index.json").write_text(json.dumps({"version": 2, "shards": [entry]}))


def digits():
    """Images [1797, 8, 8] uint8 and labels, in a fixed random order."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return data.images.astype(np.uint8)[order], data.target[order]


def write_digits(directory, train_count=1437, val_count=360):
    images, labels = digits()
    columns = {"image": ("ndarray:uint8:8,8", 64), "label": ("int", 8)}
    rows = [{"image": image.tobytes(), "label": struct.pack("<q", label)} for image, label in zip(images, labels)]
    write_mds(directory / "train", columns, rows[:train_count])
    write_mds(directory / "val", columns, rows[1437:1437 + val_count])
    return directory


def clean_environment(**extra):
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("TUNE_", "OMP_", "MLFLOW_"))}
    return {**keep, **extra}


def command(**parameters):
    return [str(TRAINER), "train"] + [f"--{name}={value}" for name, value in parameters.items()]


class Finished:
    """A process that ended: exit code, its metric lines, all of its stdout and stderr."""

    def __init__(self, process):
        self.code = process.returncode
        self.stdout = process.stdout
        self.stderr = process.stderr
        self.lines = parse_lines(process.stdout)

    def epochs(self):
        return [line for line in self.lines if "train_loss" in line]


def parse_lines(text):
    lines = []
    for line in text.splitlines():
        assert line.startswith("tune: "), f"stdout is for metrics only, not for {line!r}"
        lines.append(json.loads(line.removeprefix("tune: ")))
    return lines


def train(arguments=(), environment=None, **parameters):
    process = subprocess.run(command(**parameters) + list(arguments), capture_output=True, text=True,
                             timeout=TIMEOUT_S, env=clean_environment(**(environment or {})))
    return Finished(process)

"""What a Dataset gives out, through the program loader_rows_probe."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
PROBE = BIN / "loader_rows_probe"


def run_probe(directory, **options):
    if not PROBE.exists():
        pytest.skip("built with the tests only")
    return subprocess.run(
        [PROBE, json.dumps({"directory": str(directory), **options})],
        capture_output=True, encoding="utf-8", errors="replace", timeout=120,
    )  # fmt: skip


def read(directory, **options):
    """The columns, and the rows of all epochs in the order in which they came."""
    result = run_probe(directory, **options)
    assert result.returncode == 0, result.stderr
    columns, *rows = [json.loads(line) for line in result.stdout.splitlines()]
    return columns, rows


def in_order(rows):
    """Rows by their id, without it."""
    return [
        {name: value for name, value in row.items() if name != "__id"} for row in sorted(rows, key=lambda r: r["__id"])
    ]


def fault(directory, **options):
    result = run_probe(directory, **options)
    assert result.returncode == 1, (result.returncode, result.stdout[-300:], result.stderr)
    return result.stderr


def has_arrow():
    if not PROBE.exists():
        return False
    return "without Arrow" not in run_probe("/nonexistent.parquet", format="parquet").stderr

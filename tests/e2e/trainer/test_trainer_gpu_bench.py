"""tests/gpu/bench.py in small on the CPU: that every figure comes out, not how large it is."""

import json
import subprocess
import sys

import pytest

from trainer_support import BIN_DIR, ROOT, clean_environment

if not (BIN_DIR / "train_bench").exists():
    pytest.skip(f"there is no {BIN_DIR / 'train_bench'}", allow_module_level=True)


def test_every_figure_is_measured():
    process = subprocess.run([sys.executable, ROOT / "tests" / "gpu" / "bench.py", "--bin", BIN_DIR, "--device=cpu", "--short"],
                             capture_output=True, text=True, timeout=600, env=clean_environment())
    assert process.returncode == 0, process.stderr
    figures = [json.loads(line) for line in process.stdout.splitlines()]
    names = [figure["name"] for figure in figures if "peer" not in figure]
    for wanted in ("resnet50", "gpt 12 layers", "mlp 64", "one after the other", "processes at once", "a pool", "wait for data"):
        assert any(wanted in name for name in names), (wanted, names)
    assert all(figure["value"] >= 0 for figure in figures)
    peers = {figure["name"] for figure in figures if "peer" in figure}
    assert len(peers) == 2, "the steps stand beside PyTorch's"


def test_wrong_arguments_are_refused():
    process = subprocess.run([BIN_DIR / "train_bench", "--devise", "cuda"], capture_output=True, text=True)
    assert process.returncode == 2 and "unknown argument '--devise'" in process.stderr

"""docs/coming_from.md: theirs, where the other tests have nothing to run it with. tests/e2e/python runs ours."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "coming_from.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def run_theirs(section, tmp_path, **more):
    """The section's first script, beside work.py, with nothing of ours on its path. What it printed."""
    [work] = PYTHON.findall(PAGE.partition("\n## ")[0])
    (tmp_path / "work.py").write_text(work)
    (tmp_path / "theirs.py").write_text(PYTHON.findall(SECTIONS[section])[0])
    known = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TUNE_BIN_DIR")}
    done = subprocess.run([sys.executable, "theirs.py"], cwd=tmp_path, env={**known, **more}, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.timeout(1000)  # thirty processes that import Ray, two at a time
def test_ray(tmp_path):
    pytest.importorskip("ray")
    done = run_theirs("Ray Tune", tmp_path, RAY_DISABLE_MEMORY_MONITOR="1", RAY_USAGE_STATS_ENABLED="0",
                      RAY_AIR_NEW_OUTPUT="0")
    value, _, config = done.stdout.strip().splitlines()[-1].partition(" ")
    assert 0 < float(value) < 1 + 0.4 + 0.5 ** 4 and "'lr'" in config and "'layers'" in config


def test_weights_and_biases(tmp_path):
    """Offline, for an account is needed for a sweep: what `wandb agent` would choose stands in the file for defaults."""
    pytest.importorskip("wandb")
    (tmp_path / "config-defaults.yaml").write_text("lr: {value: 0.01}\nlayers: {value: 2}\n")
    done = run_theirs("Weights & Biases", tmp_path, WANDB_MODE="offline", WANDB_SILENT="false")
    assert "offline" in done.stderr
    [run] = (tmp_path / "wandb").glob("offline-run-*")
    assert list(run.glob("*.wandb")), "its record"

"""The tests of frameworks that have an environment of their own, run there."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tuneloader_path  # noqa: E402, F401

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")


def test_jax_in_an_environment_of_its_own():
    setup = subprocess.run([HERE / "setup.sh"], capture_output=True, text=True)
    if setup.returncode != 0:
        pytest.skip(f"jax cannot be installed here: {setup.stderr.strip()[-300:]}")
    words = [setup.stdout.split()[-1], "-m", "pytest", "-q", "-rs", "--noconftest", "-p", "no:cacheprovider", str(HERE / "test_jax.py")]
    module = str(pathlib.Path(tuneloader.__file__).parents[1])
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, env={**os.environ, "PYTHONPATH": module})
    assert done.returncode == 0 and " passed" in done.stdout and "skipped" not in done.stdout, done.stdout + done.stderr

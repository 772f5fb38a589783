"""The packages, built once for all tests of this folder."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin")).parent

STUDY = """version: 1
study: packaged
command: [echo, 'tune: {"loss": {x}}']
metric: {name: loss, goal: min}
space:
  x: {float: [0, 1]}
sampler: {type: tpe, seed: 1}
budget: {trials: 6, parallel: 2}
"""


@pytest.fixture(scope="session")
def packages():
    """The folder with the .deb, the .tar.gz and the wheel."""
    if not shutil.which("cmake"):
        pytest.skip("needs cmake")
    done = subprocess.run(["cmake", "--build", BUILD, "--target", "package"], capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return BUILD / "packages"


def only(folder, pattern):
    found = sorted(folder.glob(pattern))
    assert len(found) == 1, f"{pattern} in {folder}: {found}"
    return found[0]

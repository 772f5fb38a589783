"""Petastorm itself, the peer of our modules of its names. It needs a pyarrow before 15 and a numpy before 2, so it has an environment of
its own, build/peers/loader-petastorm, and takes torch from the tests'. pyspark, which only writing asks for, is left out."""

import json
import pathlib
import subprocess
import sys

import petastorm_bench
import petastorm_rates

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "build" / "peers" / "loader-petastorm"
PACKAGES = ["petastorm==0.13.1", "pyarrow==14.0.2", "numpy==1.26.4", "pandas==2.1.4", "pytz==2026.1", "pyzmq==27.3.0", "dill==0.4.1",
            "diskcache==5.6.3", "future==1.0.0", "setuptools==65.5.0"]
PEER = "petastorm 0.13.1"


def environment():
    python = FOLDER / "bin" / "python"
    stamp = FOLDER / ".installed"
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *PACKAGES], check=True)
        site = "import site; print(site.getsitepackages()[0])"
        own = subprocess.run([python, "-c", site], check=True, capture_output=True, text=True).stdout.strip()
        # By a .pth file: what the tests have comes after the packages above.
        (pathlib.Path(own) / "tune_tests.pth").write_text(subprocess.run([sys.executable, "-c", site], check=True, capture_output=True, text=True).stdout)
        stamp.touch()
    return str(python)


def measure_all(iterate):
    """Also as a peer of the figure `iterate`: the faster of its ways to shuffled batches of tensors."""
    rates = petastorm_bench.print_rates(environment(), "petastorm", PEER)
    best = max(rates[petastorm_rates.ROW_TENSORS], rates[petastorm_rates.BATCH_TENSORS])
    print(json.dumps({"name": iterate, "value": best, "unit": "1/s", "better": "higher", "peer": PEER}), flush=True)

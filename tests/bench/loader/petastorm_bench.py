"""The loader by Petastorm's names; Petastorm itself, on the same files, is measured by petastorm_peer.py."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import petastorm_rates

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODULE = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin")).parent / "python"


def print_rates(python, module, peer=None):
    """Measured by a process of its own: `python` may be of an environment of Petastorm's."""
    sys.path.insert(0, str(MODULE))
    with tempfile.TemporaryDirectory() as folder:
        petastorm_rates.write_sets(folder)
        command = [python, petastorm_rates.__file__, module, folder]
        environment = {**os.environ, **({"PYTHONPATH": str(MODULE)} if peer is None else {}), "PYTHONWARNINGS": "ignore"}
        rates = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
    for way, rate in rates.items():
        print(json.dumps({"name": way, "value": rate, "unit": "1/s", "better": "higher", **({"peer": peer} if peer else {})}), flush=True)
    return rates


if __name__ == "__main__":
    if not list((MODULE / "tuneloader").glob("_core*.so")):
        print("the module tuneloader is not built")
        sys.exit(0)
    print_rates(sys.executable, "tuneloader")

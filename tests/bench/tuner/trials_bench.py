"""Whole trials a second: `tune run` with commands that do nothing, each a process of its own, with every change on disk.

Prints one JSON line a figure. Environment: TUNE_BIN_DIR (default build/release/bin).
"""

import json
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
TUNE = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin")) / "tune"
TRIALS = 1000
ECHO = ["/bin/echo", 'tune: {"loss": {x}}']
SHELL = ["sh", "-c", "echo 'tune: {\"loss\": {x}}'"]


def trials_per_second(command, sampler):
    """One study of TRIALS trials, two at a time, from the start of the program to its end."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        done = subprocess.run([TUNE, "run", "--json", "--port", "0", "-n", str(TRIALS), "-j", "2", "-m", "loss",
                               "--sampler", sampler, "--seed", "1", "x=0..1", "y=1..100:int", "--", *command],
                              cwd=folder, capture_output=True, text=True, check=True)
        seconds = time.monotonic() - begin
    complete = json.loads(done.stdout)["study"]["counts"]["complete"]
    assert complete == TRIALS, complete
    return TRIALS / seconds


def main():
    for name, command, sampler in (("no-op trials as processes (echo, random)", ECHO, "random"),
                                   ("no-op trials as processes (sh -c, random)", SHELL, "random"),
                                   ("no-op trials as processes (echo, tpe)", ECHO, "tpe")):
        print(json.dumps({"name": name, "value": round(trials_per_second(command, sampler), 1), "unit": "1/s",
                          "better": "higher", "target": 200}), flush=True)


if __name__ == "__main__":
    main()

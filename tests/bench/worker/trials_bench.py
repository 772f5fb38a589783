#!/usr/bin/env python3
"""Whole trials through `tune run`: server, sampler, agent, supervisor and process, each trial reporting one metric."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
TUNE = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin")) / "tune"
TRIALS = 1000


def trials_per_second(parallel):
    with tempfile.TemporaryDirectory() as folder:
        command = [TUNE, "run", "-q", "--json", "--data", folder, "--port", "0", "-n", str(TRIALS), "-j", str(parallel),
                   "-m", "loss:min", "--sampler", "random", "x=0..1", "--", "/bin/echo", 'tune: {"loss": {x}}']
        begin = time.monotonic()
        result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True)
        taken_s = time.monotonic() - begin
    complete = json.loads(result.stdout)["study"]["counts"]["complete"]
    if complete != TRIALS:
        sys.exit(f"trials_bench: {complete} of {TRIALS} trials are complete")
    return TRIALS / taken_s


def main():
    for parallel in (2, 8):
        print(json.dumps({"name": f"no-op process trials through tune run, -j {parallel}",
                          "value": round(trials_per_second(parallel), 1), "unit": "1/s", "better": "higher",
                          "target": 200}), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Trials a second through `tune-trainer pool`: trials that only report, and trainings of one epoch of few samples."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
REPORTS = 20_000
TRAININGS = 400


def through_the_pool(parallel, trials):
    """Seconds from the first line to the last, the process's start excluded; every trial must end well."""
    pool = subprocess.Popen([BIN / "tune-trainer", "pool", "--device=cpu", f"--parallel={parallel}"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ready = {"op": "run", "trial": "ready", "attempt": 1, "report": {"x": 0}}
    pool.stdin.write(json.dumps(ready) + "\n")
    pool.stdin.flush()
    while json.loads(pool.stdout.readline())["event"] != "ended":
        pass
    lines = "".join(json.dumps({"op": "run", "trial": str(i), "attempt": 1, **trial}) + "\n"
                    for i, trial in enumerate(trials))
    begin = time.monotonic()
    output, _ = pool.communicate(lines)
    taken_s = time.monotonic() - begin
    good = output.count('"event":"ended"') if '"exit_code":1' not in output else 0
    if good != len(trials) or pool.returncode != 0:
        sys.exit(f"pool_bench: {good} of {len(trials)} trials ended well")
    return taken_s


def write_data(folder):
    for split, count in (("train", 64), ("val", 16)):
        rows = "".join(f"{i % 7},{i * 5 % 11},{i % 2}\n" for i in range(count))
        (folder / f"{split}.csv").write_text("a,b,label\n" + rows)
        subprocess.run([BIN / "tune-data", "convert", folder / f"{split}.csv", folder / "data" / split], check=True,
                       stdout=subprocess.DEVNULL)


def say(name, value, target=None):
    figure = {"name": name, "value": round(value, 1), "unit": "1/s", "better": "higher"}
    print(json.dumps(figure | ({"target": target} if target else {})), flush=True)


def main():
    for parallel in (1, 2):
        taken_s = through_the_pool(parallel, [{"report": {"loss": i}} for i in range(REPORTS)])
        say(f"no-op trials through tune-trainer pool, {parallel} at once", REPORTS / taken_s, 1000)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_data(folder)
        for parallel in (1, 2):
            trials = [{"parameters": {"data": str(folder / "data"), "epochs": 1, "width": 8, "lr": 0.01, "seed": i}}
                      for i in range(TRAININGS)]
            taken_s = through_the_pool(parallel, trials)
            say(f"trainings of 2 steps through tune-trainer pool, {parallel} at once", TRAININGS / taken_s)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""tune import and tune export: metric points a second, whole runs with reading, writing, fsync and verifying.

    tests/bench/tracker/transfer_bench.py                  100 runs x 100 metrics x 100 points (1M points)
    tests/bench/tracker/transfer_bench.py --runs 1000      10M points
    tests/bench/tracker/transfer_bench.py --peer           also MLflow's own `mlflow migrate-filestore` on the same mlruns
"""

import argparse
import json
import os
import pathlib
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
TUNE = BIN_DIR / "tune"
METRICS = 100
POINTS = 100


def run_id(i):
    return f"{i:032x}"


def make_db(path, runs):
    """MLflow's own schema (from an export of an empty store), rows as MLflow writes them."""
    empty = path.parent / "empty"
    process = subprocess.Popen([TUNE, "server", "--port", "0", "--data", empty], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.terminate()
    process.wait()
    subprocess.run([TUNE, "export", path, "--data", empty, "-q"], check=True, stdout=subprocess.DEVNULL)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous=OFF")
    for i in range(runs):
        db.execute("INSERT INTO runs (run_uuid, name, user_id, status, start_time, end_time, lifecycle_stage, "
                   "artifact_uri, experiment_id) VALUES (?, ?, 'u', 'FINISHED', 1, 2, 'active', "
                   "'s3://none/' || ?, 0)", (run_id(i), f"run {i}", run_id(i)))
        rows = [(f"metric_{k}", k + step / 3, 1_700_000_000_000 + step * 1000, run_id(i), step)
                for k in range(METRICS) for step in range(POINTS)]
        db.executemany("INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, 0)",
                       rows)
        db.executemany("INSERT INTO latest_metrics (key, value, timestamp, run_uuid, step, is_nan) "
                       "VALUES (?, ?, ?, ?, ?, 0)", rows[POINTS - 1::POINTS])
        if i % 100 == 99:
            db.commit()
    db.commit()
    db.close()


def make_mlruns(folder, runs):
    experiment = folder / "0"
    experiment.mkdir(parents=True)
    (experiment / "meta.yaml").write_text("artifact_location: s3://none\nexperiment_id: '0'\nlifecycle_stage: active\n"
                                          "name: Default\ncreation_time: 1\nlast_update_time: 1\n")
    for i in range(runs):
        run = experiment / run_id(i)
        (run / "metrics").mkdir(parents=True)
        (run / "meta.yaml").write_text(
            f"artifact_uri: s3://none/{run_id(i)}\nend_time: 2\nentry_point_name: ''\nexperiment_id: '0'\n"
            f"lifecycle_stage: active\nrun_id: {run_id(i)}\nrun_name: run {i}\nrun_uuid: {run_id(i)}\nsource_name: ''\n"
            "source_type: 4\nsource_version: ''\nstart_time: 1\nstatus: 3\ntags: []\nuser_id: u\n")
        for k in range(METRICS):
            lines = [f"{1_700_000_000_000 + step * 1000} {k + step / 3} {step}\n" for step in range(POINTS)]
            (run / "metrics" / f"metric_{k}").write_text("".join(lines))


def timed(command, **more):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, **more)
    took = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, cpu


def figure(name, points, took, **more):
    seconds, cpu = took
    print(json.dumps({"name": name, "value": points / seconds, "unit": "points/s", "better": "higher",
                      "seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2), **more}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--peer", action="store_true", help="also MLflow's migrate-filestore")
    options = parser.parse_args()
    points = options.runs * METRICS * POINTS
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        make_db(scratch / "mlflow.db", options.runs)
        make_mlruns(scratch / "mlruns", options.runs)
        figure("import of an mlflow.db", points, timed([TUNE, "import", scratch / "mlflow.db", "--data", scratch / "a",
                                                        "-q"]))
        figure("import of an mlruns", points, timed([TUNE, "import", scratch / "mlruns", "--data", scratch / "b", "-q"]))
        figure("export to an mlflow.db", points, timed([TUNE, "export", scratch / "out.db", "--data", scratch / "a",
                                                        "-q"]))
        if options.peer:
            environment = {**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true"}
            figure("import of an mlruns", points, timed(
                [sys.executable, "-m", "mlflow", "migrate-filestore", "--source", scratch / "mlruns", "--target",
                 f"sqlite:///{scratch}/peer.db", "--no-progress"], env=environment), peer="mlflow 3.17.2")


if __name__ == "__main__":
    main()

"""MLflow's and FastTrackML's servers (SQLite, their defaults) under the load generator that measures ours, http_bench.

Runs in the environment that tests/bench/run.py makes, whose programs it starts; prints the JSON lines of http_bench
with the field "peer". MLflow takes some minutes; some of it with

    build/peers/tracker/bin/python tests/bench/tracker/peers.py [--peer WORD] [--parts write,search,page]
"""

import argparse
import os
import pathlib
import subprocess
import sys

BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", "build/release/bin"))
PROGRAMS = pathlib.Path(sys.executable).parent

PEERS = {
    # Four workers are its default.
    "MLflow 3.17.2": [
        sys.executable, "-m", "mlflow", "server", "--port", "{port}", "--workers", "4",
        "--backend-store-uri", "sqlite:///{folder}/mlflow.db", "--artifacts-destination", "{folder}/artifacts",
    ],
    "FastTrackML 0.6.0": [
        str(PROGRAMS / "fml"), "server", "--listen-address", "127.0.0.1:{port}",
        "--database-uri", "sqlite://{folder}/fml.db", "--default-artifact-root", "{folder}/artifacts",
    ],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="", help="those with this word in their names")
    parser.add_argument("--parts", default="write,search,page")
    options = parser.parse_args()
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    failed = False
    for name, command in PEERS.items():
        if options.peer not in name:
            continue
        starts = "1" if "write" in options.parts else "0"
        measured = subprocess.run([BIN_DIR / "http_bench", "--peer", name, "--starts", starts, "--parts", options.parts,
                                   "--", *command], env=environment, check=False)
        failed = failed or measured.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())

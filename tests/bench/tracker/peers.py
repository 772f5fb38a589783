"""MLflow's and FastTrackML's servers (SQLite, their defaults) under the load generator that measures ours, http_bench.

Runs in .venv-peers, whose programs it starts; prints the JSON lines of http_bench with the field "peer".
"""

import os
import pathlib
import subprocess
import sys

BIN_DIR = pathlib.Path(os.environ["TUNE_BIN_DIR"])
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
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    failed = False
    for name, command in PEERS.items():
        measured = subprocess.run([BIN_DIR / "http_bench", "--peer", name, "--starts", "1", "--", *command],
                                  env=environment, check=False)
        failed = failed or measured.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())

"""mosaicml-streaming from the S3 server of remote_bench: an epoch in order, through an empty cache, 8 KiB samples. Called
by peers.py."""

import json
import os
import pathlib
import subprocess
import tempfile
import time

import mosaic

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
SAMPLES, SAMPLE_BYTES, BATCH = 96_000, 8192, 256


def measure(name, pause_ms):
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [BIN / "remote_bench", "--serve", folder, str(pause_ms)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            os.environ |= {
                "S3_ENDPOINT_URL": server.stdout.readline().strip(),
                "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
            }  # fmt: skip
            mosaic.clean_stale_shared_memory()
            start = time.perf_counter()
            dataset = mosaic.StreamingDataset(
                remote="s3://bucket/set", local=f"{folder}/cache", shuffle=False, batch_size=BATCH, predownload=65_536
            )
            count = sum(1 for _ in dataset)
            seconds = time.perf_counter() - start
        finally:
            server.stdin.close()
            server.wait()
    assert count == SAMPLES
    figure = {"name": name, "value": SAMPLES * SAMPLE_BYTES / seconds / 1e6, "unit": "MB/s", "better": "higher"}
    print(json.dumps(figure | {"peer": "mosaicml-streaming 0.13.0"}), flush=True)


def measure_all():
    measure("S3, an epoch in order", 0)
    measure("S3 + 50 ms, an epoch in order", 50)

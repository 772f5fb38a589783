"""A script with Keras under MultiWorkerMirroredStrategy, which knows nothing of tune, is a trial on two machines: TF_CONFIG is all
that it needs, and what Keras prints is scraped."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import BIN_DIR, ROOT, wait_for

PYTHON = ROOT / "build" / "tensorflow-venv" / "bin" / "python"  # of tests/engines/setup.sh

SCRIPT = """
import sys
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(16)
with strategy.scope():
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.InputLayer((4,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(float(sys.argv[1])), loss="mse")
model.fit(data, epochs=3, verbose=2)
print("replicas", strategy.num_replicas_in_sync, "weights", model.get_weights()[0].ravel().tolist())
"""


@pytest.fixture
def agents(url, tmp_path):
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    processes = [subprocess.Popen([BIN_DIR / "tune", "agent", "--server", url, "--state", tmp_path / name, "--slots", "1",
                                   "--no-gpus"], env=environment) for name in ("a", "b")]
    yield
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        assert process.wait(60) == 0


def get(url, path):
    with urllib.request.urlopen(url + path, timeout=60) as answer:
        return answer.read().decode()


def log(url, run, name):
    root = run["info"]["artifact_uri"].partition(":")[2].lstrip("/")
    try:
        return get(url, f"/api/2.0/mlflow-artifacts/artifacts/{root}/logs/{name}")
    except urllib.error.HTTPError:
        return ""


def test_keras_on_two_machines(url, agents, tmp_path):
    assert PYTHON.exists(), f"no {PYTHON}: tests/engines/setup.sh makes it"
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([BIN_DIR / "tune", "run", "-n", "2", "-m", "loss:min", "--scrape", "loss", "--seed", "1", "--server", url,
                           "--no-agent", "--study", "keras", "--nnodes", "2", "lr=0.02..0.1", "--", PYTHON, tmp_path / "script.py",
                           "{lr}"], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    trials = json.loads(get(url, "/api/2.0/tune/studies/keras/trials"))["trials"]
    assert [trial["state"] for trial in trials] == ["complete"] * 2
    for trial in trials:
        run = json.loads(get(url, "/api/2.0/mlflow/runs/get?run_id=" + trial["run_id"]))["run"]
        losses = json.loads(get(url, f"/api/2.0/mlflow/metrics/get-history?run_id={trial['run_id']}&metric_key=loss"))["metrics"]
        assert len(losses) == 3 and losses[-1]["value"] < losses[0]["value"], "rank 0 alone reports, once an epoch"
        last = {wait_for(lambda name=name: log(url, run, name), name).strip().splitlines()[-1]
                for name in ("stdout.log", "node-1/stdout.log")}
        assert len(last) == 1 and last.pop().startswith("replicas 2 weights"), "both workers end with the same weights"

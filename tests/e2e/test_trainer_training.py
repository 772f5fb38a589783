"""tune-trainer on real data: what it learns, reports and leaves behind."""

import json
import re
import struct

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from trainer_support import BAD_CONFIG, DONE, digits, train, write_digits, write_mds


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("trainer") / "digits")


@pytest.mark.parametrize("model", ["mlp", "cnn"])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_learns_the_digits(data, model, optimizer):
    lr = 3e-3 if optimizer == "adamw" else 0.02
    run = train(data=data, model=model, optimizer=optimizer, lr=lr, epochs=12, width=32, seed=1)
    assert run.code == DONE, run.stderr
    epochs = run.epochs()
    assert [line["step"] for line in epochs] == list(range(1, 13))
    assert [line["epoch"] for line in epochs] == list(range(1, 13))
    assert epochs[-1]["val_accuracy"] > 0.96
    assert epochs[-1]["train_loss"] < epochs[0]["train_loss"] / 5
    assert "best val_loss" in run.stderr


def test_lines_hold_steps_and_learning_rates(data):
    run = train(data=data, epochs=2, log_every=10, batch_size=128, base_batch_size=32, lr=0.01)
    assert run.lines[0] == {"lr_base": 0.01, "lr_effective": 0.02, "step": 0}
    steps = [line for line in run.lines if "train_loss_step" in line]
    assert [line["step"] for line in steps] == [10, 20]  # 12 steps an epoch
    assert all(line["lr_step"] == 0.02 for line in steps)
    quiet = train(data=data, epochs=2, log_every=0, batch_size=128, base_batch_size=32, lr=0.01)
    assert quiet.lines == [line for line in run.lines if "train_loss_step" not in line], \
        "reporting must not change what is learnt"


def test_warm_up_and_cosine(data):
    run = train(data=data, epochs=4, log_every=1, lr=0.01, schedule="cosine", warmup_epochs=1, batch_size=128)
    rates = [line["lr_step"] for line in run.lines if "lr_step" in line]
    assert len(rates) == 48
    assert rates[0] == pytest.approx(0.01 / 12)
    assert rates[11] == rates[12] == 0.01
    assert rates[12:] == sorted(rates[12:], reverse=True)
    assert rates[30] == pytest.approx(0.005)


def test_same_seed_same_bytes(data, tmp_path):
    def run(name, **parameters):
        finished = train(data=data, epochs=3, dropout=0.2, checkpoint_dir=tmp_path / name, **parameters)
        assert finished.code == DONE
        return finished.stdout, (tmp_path / name / "last.safetensors").read_bytes()

    first = run("a", seed=5)
    assert run("b", seed=5) == first
    assert run("c", seed=6) != first
    assert run("d", seed=5, loader_threads=2) == first, "threads of the loader must not change the order"


def test_seed_comes_from_the_environment(data):
    by_flag = train(data=data, epochs=1, seed=77)
    by_environment = train(data=data, epochs=1, environment={"TUNE_SEED": "77"})
    assert by_environment.stdout == by_flag.stdout
    assert train(data=data, epochs=1, environment={"TUNE_SEED": str(2**64 - 1)}).code == DONE
    assert train(data=data, epochs=1, environment={"TUNE_SEED": "x"}).code == BAD_CONFIG


def test_best_checkpoint_is_a_state_dict(data, tmp_path):
    """The weights, used by nothing but numpy, give the accuracy that the trainer reported."""
    run = train(data=data, epochs=8, width=24, depth=2, dropout=0.1, early_stopping="val_accuracy:max",
                patience=100, checkpoint_dir=tmp_path)
    with safe_open(tmp_path / "best.safetensors", "numpy") as file:
        metadata = file.metadata()
    assert metadata["format"] == "pt"
    assert metadata["tune.python"].startswith("nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Dropout(0.1), ")
    inputs = json.loads(metadata["tune.inputs"])
    assert inputs["classes"] == 10
    weights = load_file(tmp_path / "best.safetensors")
    assert sorted(weights) == sorted(f"{i}.{k}" for i in (0, 3, 6) for k in ("weight", "bias"))
    images, labels = digits()
    column = inputs["columns"][0]
    h = (images[1437:].reshape(-1, 64).astype(np.float32) - column["mean"]) * column["scale"]
    for layer in (0, 3, 6):
        h = h @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]
        h = np.maximum(h, 0) if layer < 6 else h
    accuracy = float((h.argmax(1) == labels[1437:]).mean())
    best = max(line["val_accuracy"] for line in run.epochs())
    assert accuracy == pytest.approx(best)
    assert json.loads(metadata["tune.metrics"])["val_accuracy"] == best


def test_early_stopping_and_its_checks(data):
    run = train(data=data, epochs=200, lr=0.02, patience=2, val_every=2, seed=3)
    assert run.code == DONE
    losses = [line["val_loss"] for line in run.epochs() if "val_loss" in line]
    assert len(run.epochs()) < 200
    assert "early: patience_exhausted" in run.stderr
    assert len(run.epochs()) == 2 * len(losses), "every second epoch is validated"
    best = losses.index(min(losses))
    assert len(losses) - 1 - best == 2, "two checks without improvement, then the end"


def test_thresholds(data):
    good = train(data=data, epochs=50, early_stopping="val_accuracy:max", stopping_threshold=0.9)
    assert "early: stopping_threshold" in good.stderr
    assert good.epochs()[-1]["val_accuracy"] > 0.9 >= max(
        [line["val_accuracy"] for line in good.epochs()[:-1]], default=0)
    bad = train(data=data, epochs=50, divergence_threshold=0.01)
    assert "early: divergence_threshold" in bad.stderr and len(bad.epochs()) == 1


def test_a_loss_that_is_no_number_is_reported_and_ends_training(data, tmp_path):
    run = train(data=data, epochs=5, optimizer="sgd", lr=1e30, checkpoint_dir=tmp_path)
    assert run.code == DONE
    assert len(run.epochs()) == 1
    assert run.epochs()[0]["val_loss"] == "NaN"
    assert "early: non_finite" in run.stderr
    assert not (tmp_path / "best.safetensors").exists()
    again = train(data=data, epochs=5, optimizer="sgd", lr=1e30, checkpoint_dir=tmp_path)
    assert again.epochs() == run.epochs()


def test_values_as_labels(tmp_path):
    generator = np.random.default_rng(3)
    rows = []
    for _ in range(900):
        a, b = generator.normal(50, 10), generator.integers(0, 100)
        rows.append({"a": struct.pack("<d", a), "b": struct.pack("<B", b),
                     "target": struct.pack("<d", 1000 + 3 * a - 2 * float(b))})
    columns = {"a": ("float64", 8), "b": ("uint8", 1), "target": ("float64", 8)}
    write_mds(tmp_path / "train", columns, rows[:700])
    write_mds(tmp_path / "val", columns, rows[700:])
    run = train(data=tmp_path, epochs=30, lr=5e-3, width=32)
    assert run.code == DONE, run.stderr
    last = run.epochs()[-1]
    assert last["val_mae"] < 5, "of labels that spread over hundreds"
    assert "val_accuracy" not in last


def test_yaml_and_flags(data, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(f"data: {data}\nepochs: 2\nlr: 0.5\nbatch_size: 64\nlog_every: 0\n")
    run = train(["--config", str(config), "--lr=0.25"])
    assert run.code == DONE, run.stderr
    assert run.lines[0]["lr_base"] == 0.25
    assert len(run.epochs()) == 2


def test_names_with_underscores_and_aliases(data):
    plain = train(data=data, epochs=1, **{"batch-size": 64})
    for name in ("batch_size", "batch"):
        assert train(data=data, epochs=1, **{name: 64}).stdout == plain.stdout


def test_help_explains():
    run = train_help()
    for text in ("--lr-scaling", "sqrt|linear|none", "FLOAT=0.001", "Examples:", "Exit codes:"):
        assert text in run, text
    assert re.search(r"--batch-size,--batch INT=32", run)


def train_help():
    import subprocess
    from trainer_support import TRAINER
    done = subprocess.run([TRAINER, "train", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    return done.stdout

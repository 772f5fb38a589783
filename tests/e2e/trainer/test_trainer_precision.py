"""Every precision trains, goes on exactly after a stop, and what float64 leaves is double."""

import signal
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file

from trainer_support import (BAD_CONFIG, DONE, PREEMPTED, TIMEOUT_S, clean_environment, command, parse_lines, train,
                             write_digits)

COMMON = dict(model="cnn", width=8, epochs=6, batch_size=50, lr=5e-3, dropout=0.1, seed=2, log_every=1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("precision") / "digits", train_count=700)


@pytest.mark.parametrize("options", [dict(precision=name) for name in ("bf16", "fp16", "tf32", "float64")]
                         + [dict(deterministic="true"), dict(channels_last="true", precision="bf16")],
                         ids=lambda options: " ".join(f"{name}={value}" for name, value in options.items()))
def test_a_precision_learns_and_goes_on_exactly(data, tmp_path, options):
    whole = train(data=data, checkpoint_dir=tmp_path / "whole", **COMMON, **options)
    assert whole.code == DONE, whole.stderr
    assert whole.epochs()[-1]["val_accuracy"] > 0.85
    process = subprocess.Popen(command(data=data, checkpoint_dir=tmp_path / "cut", **COMMON, **options), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment())
    text = "".join(process.stdout.readline() for _ in range(20))
    process.send_signal(signal.SIGTERM)
    text += process.stdout.read()  # not communicate(): it would miss what readline() has buffered
    errors = process.stderr.read()
    assert process.wait(timeout=TIMEOUT_S) == PREEMPTED, errors
    last = train(data=data, checkpoint_dir=tmp_path / "cut", **COMMON, **options)
    assert last.code == DONE and "resumed from" in last.stderr, last.stderr
    assert parse_lines(text) + last.lines == whole.lines
    for name in ("last.safetensors", "best.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_float64_is_double_throughout(data, tmp_path):
    run = train(data=data, checkpoint_dir=tmp_path / "wide", precision="float64", **COMMON)
    narrow = train(data=data, checkpoint_dir=tmp_path / "narrow", **COMMON)
    assert run.code == narrow.code == DONE, run.stderr
    wide = load_file(tmp_path / "wide" / "last.safetensors")
    assert {tensor.dtype for tensor in wide.values()} == {np.dtype(np.float64)}
    weight = wide["model.0.weight"]
    assert (weight != weight.astype(np.float32)).mean() > 0.9, "numbers of float32 in double's clothes"
    first, other = run.lines[1]["train_loss_step"], narrow.lines[1]["train_loss_step"]
    assert first == pytest.approx(other, rel=1e-5) and first != other
    assert run.epochs()[-1]["val_loss"] == pytest.approx(narrow.epochs()[-1]["val_loss"], rel=0.05)


def test_weights_go_from_one_precision_to_another_but_checkpoints_do_not(data, tmp_path):
    assert train(data=data, checkpoint_dir=tmp_path / "wide", precision="float64", **COMMON).code == DONE
    refused = train(data=data, checkpoint_dir=tmp_path / "wide", **COMMON)
    assert refused.code == BAD_CONFIG
    assert "precision" in refused.stderr and "float64" in refused.stderr
    taken = train(data=data, init_from=tmp_path / "wide" / "best.safetensors", **{**COMMON, "epochs": 1, "lr": 1e-6})
    assert taken.code == DONE, taken.stderr
    assert taken.epochs()[-1]["val_accuracy"] > 0.85, "it starts from what was learnt"

"""--checkpoint-best: the best epochs survive, also kills and damage."""

import os
import pathlib
import shutil
import signal
import subprocess

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from trainer_support import BAD_CONFIG, DONE, TIMEOUT_S, clean_environment, command, parse_lines, train, write_digits

# A rate that is too high: epochs get better and worse in turns.
OPTIONS = dict(epochs=8, lr=0.03, width=32, batch_size=32)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("best") / "digits", train_count=300)


def best_epochs(lines, count, metric="val_loss", sign=1):
    """Of equal ones the earlier."""
    epochs = [line for line in lines if "train_loss" in line]
    return [int(line["epoch"]) for line in sorted(epochs, key=lambda line: sign * line[metric])][:count]


def kept(folder):
    return sorted(int(path.stem.rpartition("-")[2]) for path in folder.glob("best-epoch-*.safetensors"))


def epoch_of(path):
    with safe_open(path, "numpy") as file:
        return int(file.metadata()["tune.epoch"])


@pytest.mark.parametrize("watched, metric, sign", [("", "val_loss", 1), ("val_accuracy:max", "val_accuracy", -1)])
def test_the_best_of_all_epochs_stay(data, tmp_path, watched, metric, sign):
    more = dict(early_stopping=watched, patience=100) if watched else {}
    run = train(data=data, checkpoint_dir=tmp_path, checkpoint_best=3, **more, **OPTIONS)
    assert run.code == DONE, run.stderr
    best = best_epochs(run.lines, 3, metric, sign)
    assert kept(tmp_path) == sorted(best)
    for epoch in best:
        assert epoch_of(tmp_path / f"best-epoch-{epoch}.safetensors") == epoch
    assert epoch_of(tmp_path / "best.safetensors") == best[0]
    # Another name of the same file, no second copy.
    assert os.path.samefile(tmp_path / "best.safetensors", tmp_path / f"best-epoch-{best[0]}.safetensors")
    assert f"in epoch {best[0]} ({tmp_path}/best.safetensors)" in run.stderr


def test_one_is_kept_by_default(data, tmp_path):
    run = train(data=data, checkpoint_dir=tmp_path, **OPTIONS)
    assert kept(tmp_path) == []
    assert epoch_of(tmp_path / "best.safetensors") == best_epochs(run.lines, 1)[0]


def test_killed_at_any_moment(data, tmp_path):
    """Between the file of a best epoch and the last checkpoint, too: the same files in the end."""
    whole = train(data=data, checkpoint_dir=tmp_path / "whole", checkpoint_best=3, **OPTIONS)
    expected = {path.name: load_file(path) for path in (tmp_path / "whole").glob("best*.safetensors")}
    assert len(expected) == 4
    folder = tmp_path / "killed"
    kills = 0
    for round_number in range(12):
        process = subprocess.Popen(command(data=data, checkpoint_dir=folder, checkpoint_best=3, **OPTIONS),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment())
        # Each epoch's line is written just before its checkpoint's files.
        for line in process.stdout:
            if "train_loss\"" in line and len(parse_lines(line)) == 1:
                break
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_S)
        kills += process.returncode == -signal.SIGKILL
        # Nothing half-written has a name that is read.
        for path in folder.glob("*.safetensors"):
            load_file(path)
    assert kills > 0
    end = train(data=data, checkpoint_dir=folder, checkpoint_best=3, **OPTIONS)
    assert end.code == DONE, end.stderr
    found = {path.name: load_file(path) for path in folder.glob("best*.safetensors")}
    assert found.keys() == expected.keys()
    for name, tensors in expected.items():
        for key, tensor in tensors.items():
            assert np.array_equal(found[name][key], tensor), (name, key)
    assert not list(folder.glob(".best*")) and not list(folder.glob("*.new"))
    assert whole.epochs()[-1] == end.lines[-1]


def damage(path):
    """Another content under the same name, as a disk does it: not what hard links share."""
    content = bytearray(path.read_bytes())
    content[-5] ^= 0x40
    path.unlink()
    path.write_bytes(content)


def test_a_damaged_best_is_passed_over(data, tmp_path):
    first = train(data=data, checkpoint_dir=tmp_path / "c", checkpoint_best=3, **OPTIONS)
    best = best_epochs(first.lines, 3)
    shutil.copytree(tmp_path / "c", tmp_path / "all")
    damage(tmp_path / "c" / "best.safetensors")
    run = train(data=data, checkpoint_dir=tmp_path / "c", checkpoint_best=3, restore="best",
                model_dir=tmp_path / "m", **OPTIONS)
    assert run.code == DONE
    assert "not those that were written" in run.stderr
    assert f"the weights of epoch {best[0]} are passed over" in run.stderr
    assert epoch_of(tmp_path / "c" / "model.safetensors") == best[1]
    assert f'"epoch":{best[1]}' in (tmp_path / "m" / "MLmodel").read_text()
    for path in [tmp_path / "all" / "best.safetensors", *(tmp_path / "all").glob("best-epoch-*")]:
        damage(path)
    run = train(data=data, checkpoint_dir=tmp_path / "all", checkpoint_best=3, restore="best", **OPTIONS)
    assert run.code == DONE and run.stderr.count("are passed over") == 3
    assert epoch_of(tmp_path / "all" / "model.safetensors") == 8, "the last epoch's are left"


def test_another_number_in_a_later_run(data, tmp_path):
    shorter = {**OPTIONS, "epochs": 4}
    train(data=data, checkpoint_dir=tmp_path, **shorter)
    best = epoch_of(tmp_path / "best.safetensors")
    more = train(data=data, checkpoint_dir=tmp_path, checkpoint_best=2, **OPTIONS)
    assert more.code == DONE, more.stderr
    # Of the epochs before only the best was there.
    later = [line for line in more.epochs() if line["epoch"] > 4]
    values = {int(line["epoch"]): line["val_loss"] for line in later}
    assert set(kept(tmp_path)) <= {best, *values} and len(kept(tmp_path)) == 2
    fewer = train(data=data, checkpoint_dir=tmp_path, checkpoint_best=1, **{**OPTIONS, "epochs": 9})
    assert fewer.code == DONE and kept(tmp_path) == []
    assert (tmp_path / "best.safetensors").exists()


def test_bad_values(data, tmp_path):
    run = train(data=data, checkpoint_dir=tmp_path, checkpoint_best=0)
    assert run.code == BAD_CONFIG
    assert "checkpoint-best: '0' is not an integer from 1 to 1000" in run.stderr
    run = train(data=data, checkpoint_dir=tmp_path, checkpoint_best=2, early_stopping="val_mae:min")
    assert run.code == BAD_CONFIG
    assert "there is no metric 'val_mae'; this run has" in run.stderr
    assert not list(pathlib.Path(tmp_path).glob("*.safetensors"))

"""Population based training with the built-in trainer: a run that starts from another one's checkpoint."""

import json

import numpy as np
import pytest

from study_support import OK, end_all_of, trials_of, tune
from trainer_support import BAD_CONFIG, DONE, FAILED, TRAINER, train, write_digits

COMMON = dict(width=32, batch_size=64, lr=0.003, epochs=6, schedule="cosine", dropout=0.2, seed=4, log_every=0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("trainer") / "digits", train_count=400)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    yield
    end_all_of(tmp_path)


def tensors(directory):
    blob = (directory / "last.safetensors").read_bytes()
    size = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8:8 + size])
    return {name: np.frombuffer(blob[8 + size:][slice(*entry["data_offsets"])], np.float32)
            for name, entry in header.items() if name != "__metadata__"}


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_two_halves_are_the_whole(data, tmp_path, optimizer):
    common = dict(COMMON, data=data, optimizer=optimizer)
    whole = train(checkpoint_dir=tmp_path / "whole", **common)
    first = train(checkpoint_dir=tmp_path / "first", until_epoch=3, **common)
    agent = {"TUNE_RESUME_FROM": str(tmp_path / "first"), "TUNE_CHECKPOINT_DIR": str(tmp_path / "second"),
             "TUNE_STEP_FROM": "3", "TUNE_STEP_TO": "6"}
    second = train(environment=agent, **common)
    assert (whole.code, first.code, second.code) == (DONE, DONE, DONE), second.stderr
    assert first.epochs() + second.epochs() == whole.epochs()
    ours, theirs = tensors(tmp_path / "second"), tensors(tmp_path / "whole")
    assert ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)
    # Run again after its end, without the parent: its own checkpoint counts.
    again = train(environment={**agent, "TUNE_RESUME_FROM": str(tmp_path / "gone")}, **common)
    assert again.code == DONE and again.epochs() == second.epochs()[-1:]


def test_a_child_may_train_otherwise(data, tmp_path):
    parent = train(data=data, checkpoint_dir=tmp_path / "parent", **{**COMMON, "optimizer": "sgd", "momentum": 0,
                                                                     "epochs": 3})
    child = train(environment={"TUNE_RESUME_FROM": str(tmp_path / "parent"), "TUNE_STEP_TO": "5", "TUNE_SEED": "9"},
                  data=data, checkpoint_dir=tmp_path / "child", width=32, optimizer="sgd", momentum=0.9, lr=0.01,
                  batch_size=32, dropout=0, weight_decay=0.001)
    assert (parent.code, child.code) == (DONE, DONE), child.stderr
    assert [line["step"] for line in child.epochs()] == [4, 5]
    assert child.epochs()[0]["train_loss"] < parent.epochs()[0]["train_loss"]
    assert child.epochs()[-1]["lr"] == pytest.approx(0.01), "its own rate"


@pytest.mark.parametrize("change, said, code", [
    (dict(width=16), "width was '32' and is '16'", BAD_CONFIG),
    (dict(optimizer="sgd"), "optimizer was 'adamw' and is 'sgd'", BAD_CONFIG),
    (dict(resume_from="nowhere"), "there is no checkpoint 'nowhere/last.safetensors'", BAD_CONFIG),
    (dict(resume_from="damaged"), "", FAILED),
])
def test_what_cannot_be_continued_is_reported(data, tmp_path, monkeypatch, change, said, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "last.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    assert train(data=data, checkpoint_dir="parent", **{**COMMON, "epochs": 1}).code == DONE
    child = train(data=data, checkpoint_dir="child", **{**COMMON, "resume_from": "parent", **change})
    assert child.code == code and said in child.stderr, child.stderr
    assert train(data=data, environment={"TUNE_STEP_TO": "soon"}).code == BAD_CONFIG


def test_a_population(data, tmp_path):
    study = {"version": 1, "study": "s", "metric": {"name": "val_loss", "take": "last"},
             "command": [str(TRAINER), "train", f"--data={data}", "--width=32", "--log-every=0", "{args}"],
             "space": {"lr": {"float": [1e-4, 0.1], "log": True}, "batch-size": {"choice": [16, 64]},
                       "dropout": {"float": [0, 0.5]}},
             "sampler": {"type": "pbt", "seed": 2, "population": 4, "interval": 2, "max": 8}, "budget": {"parallel": 2}}
    (tmp_path / "study.json").write_text(json.dumps(study))
    done = tune("run", "study.json", "--port", 0, cwd=tmp_path)
    assert done.returncode == OK, done.stdout + done.stderr
    trials = trials_of(tmp_path)
    assert {trial["state"] for trial in trials} == {"complete"}, [trial["reason"] for trial in trials]
    assert max(trial["steps"][1] for trial in trials) == 8
    by_number = {trial["number"]: trial for trial in trials}
    starters = [trial["value"] for trial in trials if trial["parent"] is None]
    best = min(trials, key=lambda trial: trial["value"])
    assert best["parent"] is not None and best["value"] < min(starters), "weights were continued"
    assert any(by_number[trial["parent"]]["params"] != trial["params"] for trial in trials if trial["parent"] is not None)

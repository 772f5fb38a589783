"""What `tune-trainer train --model-dir` leaves is what stock MLflow loads, and predicts what the trainer measured."""

import json
import pathlib
import struct
import subprocess

import numpy as np
import pytest

from agent_support import PYTHON
from models.models_support import cross_entropy, make_torch_work, predict
from trainer_support import BAD_CONFIG, DONE, ROOT, clean_environment, digits, train, write_digits, write_mds

PLACES = 17  # 16 tokens to read, one to predict


@pytest.fixture(scope="module")
def torch_works(tmp_path_factory):
    return make_torch_work(tmp_path_factory.mktemp("absent-cuda"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("models") / "digits", train_count=400)


def at_best(run, metric="val_loss"):
    return min(run.epochs(), key=lambda line: line[metric])


@pytest.mark.parametrize("options", [
    dict(model="mlp", dropout=0.2),
    dict(model="mlp", precision="float64"),
    dict(model="cnn", width=4, depth=2),
    dict(model="resnet18", stem="small"),
    dict(model="transformer", width=16, depth=2),
], ids=lambda options: " ".join([options["model"], options.get("precision", "")]).strip())
def test_classes(data, tmp_path, torch_works, options):
    epochs = 1 if options["model"] == "resnet18" else 4
    run = train(data=data, epochs=epochs, lr=3e-3, checkpoint_dir=tmp_path / "c", model_dir=tmp_path / "m",
                log_model="best", metrics="accuracy", **options)
    assert run.code == DONE, run.stderr
    images, labels = digits()
    made = predict(tmp_path / "m", images[1437:], tmp_path, torch_works)
    best = at_best(run)
    for flavor in ("pytorch", "pyfunc"):
        assert made[flavor].shape == (360, 10) and made[flavor].dtype == np.float32
        assert cross_entropy(made[flavor], labels[1437:]) == pytest.approx(best["val_loss"], rel=1e-5)
        assert (made[flavor].argmax(1) == labels[1437:]).mean() == pytest.approx(best["val_accuracy"])
    signature = str(made["signature"])
    assert '"dtype": "uint8", "shape": [-1, 8, 8]' in signature.replace('"dtype":"uint8","shape":[-1,8,8]',
                                                                        '"dtype": "uint8", "shape": [-1, 8, 8]')
    assert int(made["size"]) == sum(f.stat().st_size for f in (tmp_path / "m" / "data").iterdir())
    assert f"torch==2.15" in (tmp_path / "m" / "requirements.txt").read_text()
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "MLmodel", "conda.yaml", "data", "python_env.yaml", "requirements.txt"]


def test_values_of_several_columns_in_their_own_unit(tmp_path, torch_works):
    generator = np.random.default_rng(1)
    x = generator.normal([3.0, -70.0, 1e4], [0.1, 9.0, 250.0], (600, 3))
    y = (x @ [50.0, 2.0, 0.01] + 700).astype(np.float32)
    rows = [{"a": struct.pack("<d", row[0]), "b": struct.pack("<d", row[1]), "c10": struct.pack("<d", row[2]),
             "y": struct.pack("<f", value)} for row, value in zip(x, y)]
    columns = {"a": ("float64", 8), "b": ("float64", 8), "c10": ("float64", 8), "y": ("float32", 4)}
    write_mds(tmp_path / "d" / "train", columns, rows[:500])
    write_mds(tmp_path / "d" / "val", columns, rows[500:])
    run = train(data=tmp_path / "d", epochs=10, lr=1e-2, checkpoint_dir=tmp_path / "c", model_dir=tmp_path / "m")
    assert run.code == DONE, run.stderr
    made = predict(tmp_path / "m", x[500:], tmp_path, torch_works)
    assert made["pyfunc"].shape == (100, 1)
    error = np.abs(made["pyfunc"][:, 0].astype(np.float64) - y[500:]).mean()
    assert error == pytest.approx(at_best(run)["val_mae"], rel=1e-3)
    assert '"float64"' in str(made["signature"])


def test_a_gpt_takes_rows_as_they_are_stored(tmp_path, torch_works):
    content = b"".join(path.read_bytes() for path in sorted((ROOT / "docs").glob("*.md")))[:20_000]
    tokens = (np.frombuffer(content, np.uint8).astype(np.uint16) % 128)
    pieces = tokens[:len(tokens) // PLACES * PLACES].reshape(-1, PLACES)
    columns = {"tokens": (f"ndarray:uint16:{PLACES}", 2 * PLACES)}
    rows = [{"tokens": piece.tobytes()} for piece in pieces]
    write_mds(tmp_path / "d" / "train", columns, rows[:-200])
    write_mds(tmp_path / "d" / "val", columns, rows[-200:])
    run = train(data=tmp_path / "d", model="gpt", width=16, depth=2, epochs=2, lr=3e-3, vocabulary=128,
                checkpoint_dir=tmp_path / "c", model_dir=tmp_path / "m")
    assert run.code == DONE, run.stderr
    made = predict(tmp_path / "m", pieces[-200:], tmp_path, torch_works)
    assert made["pyfunc"].shape == (200, PLACES - 1, 128)
    assert cross_entropy(made["pyfunc"], pieces[-200:, 1:].astype(np.int64)) == pytest.approx(at_best(run)["val_loss"],
                                                                                             rel=1e-5)


def test_a_module_of_the_users_own(data, tmp_path, torch_works):
    script = "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n" \
             "m = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 10))\n" \
             f"torch.jit.script(m).save({str(tmp_path / 'own.pt')!r})"
    subprocess.run([PYTHON, "-c", script], check=True, env=clean_environment(**torch_works))
    run = train(data=data, model="torchscript", module=tmp_path / "own.pt", epochs=3, checkpoint_dir=tmp_path / "c",
                model_dir=tmp_path / "m")
    assert run.code == DONE, run.stderr
    images, labels = digits()
    made = predict(tmp_path / "m", images[1437:], tmp_path, torch_works)
    assert cross_entropy(made["pyfunc"], labels[1437:]) == pytest.approx(at_best(run)["val_loss"], rel=1e-4)


def mlmodel_epoch(folder):
    line, = [line for line in (folder / "MLmodel").read_text().splitlines() if line.startswith("metadata: ")]
    return json.loads(line.removeprefix("metadata: "))["tune"]["epoch"]


def test_which_epoch(data, tmp_path):
    # A rate that makes it worse after a while.
    options = dict(data=data, epochs=6, lr=0.05, schedule="constant", width=64)
    run = train(checkpoint_dir=tmp_path / "c", model_dir=tmp_path / "best", **options)
    best = int(at_best(run)["epoch"])
    assert best < 6, "or this test shows nothing"
    assert mlmodel_epoch(tmp_path / "best") == best
    # Run again after its end it leaves the same, in place of what is there.
    again = train(checkpoint_dir=tmp_path / "c", model_dir=tmp_path / "best", log_model="last", **options)
    assert again.code == DONE and mlmodel_epoch(tmp_path / "best") == 6
    train(checkpoint_dir=tmp_path / "c", model_dir=tmp_path / "none", log_model="none", **options)
    assert not (tmp_path / "none").exists()
    # Without a folder of checkpoints there is no best epoch any more.
    lone = train(model_dir=tmp_path / "lone", **options)
    assert lone.code == DONE and mlmodel_epoch(tmp_path / "lone") == 6
    assert "the model is the last epoch's" in lone.stderr


def test_large_models_only_when_asked(data, tmp_path):
    options = dict(data=data, epochs=1, width=1800, depth=2, checkpoint_dir=tmp_path / "c")
    run = train(model_dir=tmp_path / "m", **options)
    assert run.code == DONE and not (tmp_path / "m").exists()
    assert "is not logged; --log-model=best or last would" in run.stderr
    assert train(model_dir=tmp_path / "m", log_model="best", **options).code == DONE
    assert (tmp_path / "m" / "MLmodel").exists()


def test_what_is_there_is_not_destroyed(data, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.txt").write_text("years of work")
    run = train(data=data, epochs=1, model_dir=tmp_path / "m", log_model="last")
    assert run.code == DONE and "no model is logged: model-dir" in run.stderr
    assert [path.name for path in pathlib.Path(tmp_path / "m").iterdir()] == ["thesis.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["m"], "nothing half-written stays"


def test_bad_values(data):
    run = train(data=data, log_model="all")
    assert run.code == BAD_CONFIG
    assert "log-model: 'all' is not one of auto|best|last|none" in run.stderr

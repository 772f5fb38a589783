"""Samples that reach the device as they are stored: what is learnt from them is the same, bit for bit."""

import numpy as np
import pytest

from trainer_support import DONE, digits, train, write_digits, write_mds

PLACES = 9


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("stored") / "digits", train_count=400)


def write_tokens(directory, dtype):
    tokens = np.random.default_rng(1).integers(0, 50, (300, PLACES)).astype(dtype)
    tokens[:, 1::2] = tokens[:, :-1:2]  # something to learn
    columns = {"tokens": (f"ndarray:{np.dtype(dtype).name}:{PLACES}", PLACES * np.dtype(dtype).itemsize)}
    rows = [{"tokens": row.tobytes()} for row in tokens]
    write_mds(directory / "train", columns, rows[:200])
    write_mds(directory / "val", columns, rows[200:])
    return directory


def trained(tmp_path, where, **parameters):
    run = train(convert_on=where, checkpoint_dir=tmp_path / where, epochs=2, seed=5, log_every=1, **parameters)
    assert run.code == DONE, run.stderr
    return run.lines, (tmp_path / where / "last.safetensors").read_bytes()


@pytest.mark.parametrize("parameters", [dict(model="cnn", width=4), dict(model="mlp", width=16, dropout=0.3)],
                         ids=["cnn", "mlp"])
def test_images_of_bytes(data, tmp_path, parameters):
    host = trained(tmp_path, "host", data=data, **parameters)
    assert trained(tmp_path, "device", data=data, **parameters) == host
    assert trained(tmp_path, "auto", data=data, **parameters) == host, "a CPU reads numbers"


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.uint32, np.int64])
def test_tokens_of_any_width(tmp_path, dtype):
    data = write_tokens(tmp_path / "data", dtype)
    parameters = dict(data=data, model="gpt", width=8, depth=1, batch_size=20)
    assert trained(tmp_path, "device", **parameters) == trained(tmp_path, "host", **parameters)


def test_a_run_that_goes_on_reads_them_so_too(data, tmp_path):
    parameters = dict(data=data, model="cnn", width=4, seed=5, log_every=1)
    whole = train(checkpoint_dir=tmp_path / "whole", epochs=4, convert_on="host", **parameters)
    first = train(checkpoint_dir=tmp_path / "half", epochs=2, convert_on="device", **parameters)
    second = train(checkpoint_dir=tmp_path / "half", epochs=4, convert_on="device", **parameters)
    assert [whole.code, first.code, second.code] == [DONE, DONE, DONE], second.stderr
    assert first.lines + second.lines == whole.lines


def test_a_token_that_is_too_large_is_found_before_the_device(tmp_path):
    data = write_tokens(tmp_path / "data", np.uint16)
    run = train(data=data, model="gpt", width=8, depth=1, vocabulary=10, convert_on="device")
    assert run.code != DONE
    assert "is not one of 0 to 9" in run.stderr


def test_columns_that_are_no_bytes_stay_numbers(tmp_path):
    images, labels = digits()
    columns = {"image": ("ndarray:float32:8,8", 256), "label": ("int", 8)}
    rows = [{"image": image.astype(np.float32).tobytes(), "label": int(label).to_bytes(8, "little")}
            for image, label in zip(images[:300], labels[:300])]
    write_mds(tmp_path / "data" / "train", columns, rows[:200])
    write_mds(tmp_path / "data" / "val", columns, rows[200:])
    parameters = dict(data=tmp_path / "data", model="cnn", width=4)
    assert trained(tmp_path, "device", **parameters) == trained(tmp_path, "host", **parameters)

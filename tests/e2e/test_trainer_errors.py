"""What tune-trainer reports, and with which exit code it ends, when something is wrong."""

import shutil
import struct

import pytest

from trainer_support import BAD_CONFIG, DONE, FAILED, OUT_OF_MEMORY, train, write_digits, write_mds


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("trainer") / "digits")


@pytest.fixture
def own_data(data, tmp_path):
    shutil.copytree(data, tmp_path / "digits")
    return tmp_path / "digits"


@pytest.mark.parametrize("arguments, sentence", [
    (["--lerning-rate=1"], "there is no parameter 'lerning-rate'"),
    (["--dropuot=0.1"], "did you mean 'dropout'? Known parameters: data,"),
    (["--foo", "1"], "there is no parameter 'foo'"),
    (["lr=0.1"], "unexpected argument 'lr=0.1'; parameters are written --name=value"),
    (["--lr=-1"], "lr: '-1' is not a number above 0"),
    (["--lr=nan"], "lr: 'nan' is not a number above 0"),
    (["--optimizer=adam"], "optimizer: 'adam' is not one of adamw|sgd"),
    (["--epochs=0"], "epochs: '0' is not an integer from 1"),
    (["--early-stopping=val_f1:max"], "there is no metric 'val_f1'; this run has train_loss, val_loss, val_accuracy"),
    (["--label=digit"], "there is no column 'digit'; the data have: image (ndarray:uint8:8,8), label (int)"),
    (["--shape=8,9"], "shape: 8,9 has 72 elements, a sample has 64"),
    (["--model=cnn", "--shape=64"], "model cnn needs images"),
    (["--classes=5"], "is not one of the classes 0 to 4; --classes N sets their number"),
    (["--val-split=validation"], "validation"),
    (["--config=/nowhere/run.yaml"], "/nowhere/run.yaml"),
])
def test_bad_configuration(data, arguments, sentence):
    run = train(arguments, data=data, epochs=1)
    assert run.code == BAD_CONFIG, run.stderr
    assert sentence in run.stderr
    assert run.stdout == "" or "train_loss" not in run.stdout
    assert run.stderr.count("\n") <= 3, "a sentence, not a trace"


def test_no_data_and_no_command(tmp_path):
    assert "no data: give --data DIR" in train().stderr
    missing = train(data=tmp_path / "nowhere")
    assert missing.code == BAD_CONFIG
    assert str(tmp_path / "nowhere") in missing.stderr


def test_yaml_errors_name_line_and_column(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("lr: 0.1\nwidht: 3\n")
    run = train(config=config)
    assert run.code == BAD_CONFIG
    assert f"{config}:2:1: there is no parameter 'widht'; did you mean 'width'?" in run.stderr
    config.write_text("lr: [0.1\n")
    run = train(config=config)
    assert run.code == BAD_CONFIG
    assert f"{config}:2:1:" in run.stderr or f"{config}:1:" in run.stderr


def test_out_of_memory(data):
    run = train(data=data, width=1000000, depth=2)
    assert run.code == OUT_OF_MEMORY, run.stderr
    assert "out of memory; a smaller batch-size or width needs less" in run.stderr


@pytest.mark.parametrize("split", ["train", "val"])
def test_truncated_shard(own_data, split):
    shard = own_data / split / "shard.00000.mds"
    shard.write_bytes(shard.read_bytes()[:-100])
    run = train(data=own_data, epochs=1)
    assert run.code == FAILED
    assert "shard.00000.mds" in run.stderr


def test_label_damaged_in_the_shard(own_data):
    shard = own_data / "train" / "shard.00000.mds"
    content = bytearray(shard.read_bytes())
    content[-1] = 0x80  # the highest byte of the last label: negative now
    shard.write_bytes(content)
    run = train(data=own_data, epochs=1)
    assert run.code in (BAD_CONFIG, FAILED)
    assert "label" in run.stderr


def test_damaged_checkpoint(data, tmp_path):
    assert train(data=data, epochs=1, checkpoint_dir=tmp_path).code == DONE
    last = tmp_path / "last.safetensors"
    whole = last.read_bytes()
    for damaged in (b"", whole[:7], whole[:-1], whole + b"x", struct.pack("<Q", 1 << 62) + whole[8:],
                    whole.replace(b'"epoch_trained', b'"epoch_trainee', 1),
                    whole.replace(b'\\"epoch\\":1', b'\\"epoch\\":"', 1)):
        if damaged == whole:
            continue
        last.write_bytes(damaged)
        run = train(data=data, epochs=2, checkpoint_dir=tmp_path)
        assert run.code == FAILED, run.stderr
        assert "safetensors" in run.stderr or "checkpoint" in run.stderr


def test_checkpoint_of_another_run(data, tmp_path):
    train(data=data, epochs=1, checkpoint_dir=tmp_path)
    run = train(data=data, epochs=1, checkpoint_dir=tmp_path, lr=0.5)
    assert run.code == BAD_CONFIG
    assert "the checkpoint is of another training run: lr was '0.001' and is '0.5'" in run.stderr


def test_checkpoint_of_other_data(data, own_data, tmp_path):
    train(data=data, epochs=1, checkpoint_dir=tmp_path / "run")
    shutil.rmtree(own_data)
    write_digits(own_data, train_count=1000)
    run = train(data=own_data, epochs=2, checkpoint_dir=tmp_path / "run")
    assert run.code == BAD_CONFIG, run.stderr


def test_checkpoint_directory_that_cannot_be_made(data, tmp_path):
    (tmp_path / "file").write_text("")
    run = train(data=data, epochs=1, checkpoint_dir=tmp_path / "file" / "sub")
    assert run.code == FAILED
    assert str(tmp_path / "file" / "sub") in run.stderr


def test_empty_split(data, tmp_path):
    write_mds(tmp_path / "train", {"image": ("ndarray:uint8:8,8", 64), "label": ("int", 8)}, [])
    shutil.copytree(data / "val", tmp_path / "val")
    run = train(data=tmp_path, epochs=1)
    assert run.code in (BAD_CONFIG, FAILED)
    assert "Traceback" not in run.stderr and run.stderr.strip()

"""tune-trainer's larger models, tasks, options of a step and transfer learning, as real processes."""

import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from trainer_support import (BAD_CONFIG, DONE, PREEMPTED, ROOT, TIMEOUT_S, clean_environment, command, digits, train,
                             write_digits, write_mds)

PLACES = 17  # 16 tokens to read, one to predict


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("trainer") / "digits")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """This repository's own prose as bytes, in pieces of PLACES tokens."""
    directory = tmp_path_factory.mktemp("trainer") / "text"
    content = b"".join(path.read_bytes() for path in sorted((ROOT / "docs").glob("*.md")))[:120_000]
    tokens = np.frombuffer(content, np.uint8).astype(np.uint16) % 128
    rows = [{"tokens": piece.tobytes()} for piece in tokens[:len(tokens) // PLACES * PLACES].reshape(-1, PLACES)]
    columns = {"tokens": (f"ndarray:uint16:{PLACES}", 2 * PLACES)}
    write_mds(directory / "train", columns, rows[:-1000])
    write_mds(directory / "val", columns, rows[-1000:])
    return directory


def test_a_small_gpt_learns_english(text, tmp_path):
    run = train(data=text, model="gpt", width=32, depth=2, epochs=4, lr=3e-3, batch_size=64, metrics="perplexity,accuracy",
                checkpoint_dir=tmp_path)
    assert run.code == DONE, run.stderr
    last = run.epochs()[-1]
    assert last["val_perplexity"] == pytest.approx(np.exp(last["val_loss"]))
    assert last["val_perplexity"] < 16, "of 128 characters"
    assert last["val_accuracy"] > 0.2
    with safe_open(tmp_path / "best.safetensors", "numpy") as file:
        metadata = file.metadata()
    assert metadata["tune.python"].startswith("Gpt(16, 12")
    assert "class Gpt(nn.Module)" in metadata["tune.python.definitions"]


@pytest.mark.parametrize("model, options", [
    ("resnet18", dict(stem="small", batch_size=64, lr=1e-3, epochs=3)),
    ("transformer", dict(width=32, depth=2, lr=3e-3, epochs=8)),
])
def test_images_are_learnt(data, model, options):
    run = train(data=data, model=model, metrics="accuracy,top5", **options)
    assert run.code == DONE, run.stderr
    last = run.epochs()[-1]
    assert last["val_accuracy"] > 0.85
    assert last["val_top5"] > last["val_accuracy"]


def test_batch_norm_goes_on_bit_for_bit(data, tmp_path):
    options = dict(data=data, model="resnet18", stem="small", epochs=1, batch_size=16, checkpoint_every=3, log_every=1, seed=4)
    whole = train(checkpoint_dir=tmp_path / "whole", **options)
    assert whole.code == DONE, whole.stderr
    lines = []
    for _ in range(4):
        process = subprocess.Popen(command(checkpoint_dir=tmp_path / "cut", **options), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=clean_environment())
        for _ in range(15):
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=TIMEOUT_S)
        lines += rest.splitlines(keepends=True)
        assert process.returncode in (PREEMPTED, DONE), errors
    last = train(checkpoint_dir=tmp_path / "cut", **options)
    assert last.code == DONE, last.stderr
    assert (tmp_path / "cut" / "last.safetensors").read_bytes() == (tmp_path / "whole" / "last.safetensors").read_bytes()


def in_python(code, *arguments):
    """Runs `code` with PyTorch in another process and returns what it prints."""
    prepare = ("import sys, tempfile; sys.path.insert(0, sys.argv[1]); import absent_cuda; "
               "folder = tempfile.TemporaryDirectory(); absent_cuda.prepare(folder.name)\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", prepare + code, str(ROOT / "tests/contract/frameworks"),
                           *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_checkpoints_load_in_pytorch(data, text, tmp_path):
    """The best weights under the Python source of their metadata give the accuracy and loss that were reported."""
    runs = {
        "gpt": dict(data=text, model="gpt", width=16, depth=1, heads=2, epochs=1, batch_size=256, dropout=0.1),
        "transformer": dict(data=data, model="transformer", width=16, depth=1, heads=2, epochs=1, batch_size=128),
    }
    expected = {}
    for name, options in runs.items():
        run = train(checkpoint_dir=tmp_path / name, **options)
        assert run.code == DONE, run.stderr
        expected[name] = run.epochs()[-1]["val_loss"]
    images, labels = digits()
    np.savez(tmp_path / "val.npz", images=images[1437:], labels=labels[1437:])
    shard = (text / "val" / "shard.00000.mds").read_bytes()
    np.save(tmp_path / "tokens.npy", np.frombuffer(shard[-2 * PLACES * 1000:], np.uint16).reshape(-1, PLACES).astype(np.int64))
    printed = in_python("""
import json, pathlib, numpy as np, torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch.nn import functional as F
folder = pathlib.Path(sys.argv[2])
def model_of(name):
    with safe_open(folder / name / "best.safetensors", "pt") as file:
        metadata = file.metadata()
    names = {"torch": torch, "nn": torch.nn}
    exec(metadata["tune.python.definitions"], names)
    model = eval(metadata["tune.python"], names).eval()
    model.load_state_dict(load_file(folder / name / "best.safetensors"))
    return model, json.loads(metadata["tune.inputs"])
with torch.no_grad():
    model, _ = model_of("gpt")
    tokens = torch.from_numpy(np.load(folder / "tokens.npy"))
    output = model(tokens[:, :-1])
    print(json.dumps(F.cross_entropy(output.flatten(0, 1), tokens[:, 1:].flatten()).item()))
    model, inputs = model_of("transformer")
    val = np.load(folder / "val.npz")
    column = inputs["columns"][0]
    x = (torch.from_numpy(val["images"]).float() - column["mean"]) * column["scale"]
    print(json.dumps(F.cross_entropy(model(x), torch.from_numpy(val["labels"])).item()))
""", tmp_path)
    losses = [json.loads(line) for line in printed.splitlines()]
    assert losses[0] == pytest.approx(expected["gpt"], rel=1e-4)
    assert losses[1] == pytest.approx(expected["transformer"], rel=1e-4)


@pytest.mark.parametrize("arguments, sentence", [
    (["--model=gpt"], "features: tokens are one column of lists of integers"),
    (["--model=resnet19"], "is not one of mlp|cnn|resnet18|resnet34|resnet50|transformer|gpt|torchscript"),
    (["--model=transformer", "--heads=3"], "heads: 3 does not divide the width 128"),
    (["--model=torchscript"], "model torchscript needs --module FILE"),
    (["--model=torchscript", "--module=/nowhere.pt"], "module: there is no file '/nowhere.pt'"),
    (["--metrics=f1"], "metrics: there is no 'f1' for this task; it has accuracy, top5, perplexity"),
    (["--metrics=mae"], "it has accuracy, top5, perplexity"),
    (["--task=language"], "task language needs --model=gpt"),
    (["--loss=cross-entropy", "--task=regression"], "cross-entropy is for classes and tokens"),
    (["--loss=bce"], "is no probability"),
    (["--schedule=one-cycle", "--warmup-steps=3"], "one-cycle begins with its own warm-up"),
    (["--lr-scaling=adam_sde", "--optimizer=sgd"], "adam_sde is for --optimizer=adamw"),
    (["--accumulate=64"], "a batch of 32 samples cannot be cut into 64 parts"),
    (["--find-batch-size=memory"], "give --base-batch-size"),
    (["--compat=keras", "--stopping-threshold=1"], "compat keras has no thresholds"),
    (["--freeze=["], "freeze: '[' is not a regular expression"),
    (["--freeze=."], "leaves nothing to train"),
    (["--freeze=layer1"], "freeze: 'layer1' is found in no parameter's name; the layers are 0, 3, 6"),
    (["--freeze=^0", "--unfreeze=2:^O"], "unfreeze: '^O' is found in no parameter's name"),
    (["--unfreeze=layer4"], "unfreeze: 'layer4' is not EPOCH:REGEX"),
    (["--init-from=models:/digits@champion"], "is a model of the registry, and the trainer has no network"),
    (["--init-from=/nowhere"], "init-from: there is no file '/nowhere'"),
])
def test_bad_configuration(data, arguments, sentence):
    run = train(arguments, data=data, epochs=1)
    assert run.code == BAD_CONFIG, run.stderr
    assert sentence in run.stderr
    assert run.stderr.count("\n") <= 3, "a sentence, not a trace"


def test_tokens_out_of_the_vocabulary(text):
    run = train(data=text, model="gpt", vocabulary=50, epochs=1)
    assert run.code == BAD_CONFIG
    assert "is not one of 0 to 49; --vocabulary N sets their number" in run.stderr


def test_statistics_are_measured_once(data, tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    first = train(data=data, epochs=1, environment=environment)
    kept = list((tmp_path / "tune" / "statistics").glob("*.json"))
    assert len(kept) == 1
    content = json.loads(kept[0].read_text())
    content["inputs"]["columns"][0]["mean"] += 1  # to see that it is used
    kept[0].write_text(json.dumps(content))
    assert train(data=data, epochs=1, environment=environment).stdout != first.stdout
    assert train(data=data, epochs=1, statistics_cache="none", environment=environment).stdout == first.stdout
    kept[0].write_text("half a fi")
    assert train(data=data, epochs=1, environment=environment).stdout == first.stdout


def test_adam_sde_logs_what_it_changed(data):
    run = train(data=data, epochs=1, lr_scaling="adam_sde", batch_size=128, base_batch_size=32, lr=0.01)
    assert run.lines[0] == {"lr_base": 0.01, "lr_effective": 0.02, "beta1_effective": pytest.approx(0.6),
                            "beta2_effective": pytest.approx(0.996), "eps_effective": pytest.approx(0.5e-8), "step": 0}
    clamped = train(data=data, epochs=1, lr_scaling="adam_sde", batch_size=640, base_batch_size=32)
    assert "warning: lr-scaling adam_sde: the batch is 20 times base-batch-size" in clamped.stderr


def test_noise_scale_is_logged_with_advice(data, tmp_path):
    options = dict(data=data, epochs=3, noise_every=5, log_every=20)
    run = train(checkpoint_dir=tmp_path / "whole", **options)
    assert run.code == DONE
    noise = [line["gradient_noise_scale"] for line in run.lines if "gradient_noise_scale" in line]
    assert noise and all(value > 0 for value in noise)
    assert "gradient noise scale" in run.stderr and "batch 32 is" in run.stderr
    half = train(checkpoint_dir=tmp_path / "cut", until_epoch=1, **options)
    rest = train(checkpoint_dir=tmp_path / "cut", **options)
    assert half.stdout + rest.stdout == run.stdout


def test_the_batch_size_is_found(data, tmp_path):
    options = dict(data=data, epochs=1, find_batch_size="throughput", batch_size=8, base_batch_size=32, lr=0.01)
    run = train(checkpoint_dir=tmp_path, **options)
    assert run.code == DONE, run.stderr
    found = int(run.lines[0]["batch_size"])
    assert found >= 8
    assert run.lines[0]["lr_effective"] == pytest.approx(0.01 * (found / 32) ** 0.5)
    assert f"batch size {found}\n" in run.stderr and "batch 8: " in run.stderr and "batch 16: " in run.stderr
    again = train(checkpoint_dir=tmp_path, **options)
    assert again.code == DONE and "samples/s" not in again.stderr, "it is found once"


FAILING_ALLOCATOR = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
int posix_memalign(void** place, size_t alignment, size_t size) {
    static int (*real)(void**, size_t, size_t);
    if (!real) real = (int (*)(void**, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    if (size > (size_t)atol(getenv("ALLOCATION_MAX"))) return ENOMEM;
    return real(place, alignment, size);
}
"""


def test_memory_that_runs_out_cuts_the_batch(data, tmp_path):
    source = tmp_path / "failing.c"
    source.write_text(FAILING_ALLOCATOR)
    library = tmp_path / "failing.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    options = dict(data=data, epochs=2, batch_size=512, width=256)
    plain = train(checkpoint_dir=tmp_path / "plain", **options)
    # 512 rows of 256 numbers are 512 KB, 256 x 256 weights 256 KB.
    environment = {"LD_PRELOAD": str(library), "ALLOCATION_MAX": str(300 << 10)}
    cut = train(environment=environment, checkpoint_dir=tmp_path / "cut", **options)
    assert cut.code == DONE, cut.stderr
    assert "parts, with the same result" in cut.stderr
    assert {"accumulate": 2.0, "step": 1} in cut.lines
    assert cut.epochs()[-1]["val_loss"] == pytest.approx(plain.epochs()[-1]["val_loss"], rel=1e-3)


def test_keras_semantics(data, tmp_path):
    run = train(data=data, epochs=50, compat="keras", lr=0.05, checkpoint_dir=tmp_path, restore="best")
    assert run.code == DONE, run.stderr
    assert "best val_loss" in run.stderr
    plain = train(data=data, epochs=50, compat="keras", patience=0, lr=0.05)
    losses = [line["val_loss"] for line in plain.epochs()]
    assert len(losses) < 50, "patience 0 ends it at the first epoch that is no better"
    assert losses[-1] >= min(losses[:-1])
    assert (tmp_path / "model.safetensors").read_bytes() == (tmp_path / "best.safetensors").read_bytes()


def test_restore_last_leaves_the_last_weights(data, tmp_path):
    assert train(data=data, epochs=2, restore="last", checkpoint_dir=tmp_path).code == DONE
    last, left = load_file(tmp_path / "last.safetensors"), load_file(tmp_path / "model.safetensors")
    assert all(np.array_equal(left[name], last["model." + name]) for name in left)


def test_transfer_beats_training_from_nothing(data, tmp_path):
    """Digits 0 to 4 teach layers with which 5 to 9 are learnt from 20 images."""
    images, labels = digits()
    columns = {"image": ("ndarray:uint8:8,8", 64), "label": ("int", 8)}

    def write(folder, wanted, shift, count):
        rows = [{"image": image.tobytes(), "label": struct.pack("<q", label - shift)}
                for image, label in zip(images, labels) if label in wanted]
        write_mds(folder / "train", columns, rows[:count])
        write_mds(folder / "val", columns, rows[500:])
        return folder

    many = write(tmp_path / "many", range(5), 0, 500)
    few = write(tmp_path / "few", range(5, 10), 5, 20)
    network = dict(model="cnn", width=16, seed=2, statistics_cache="none")
    source = train(data=many, epochs=15, lr=3e-3, checkpoint_dir=tmp_path / "source", **network)
    assert source.code == DONE, source.stderr
    short = dict(data=few, epochs=4, lr=3e-3, batch_size=16, **network)
    nothing = train(**short)
    moved = train(init_from=tmp_path / "source" / "best.safetensors", new_head="true", freeze="^0", unfreeze="2:.",
                  lr_decay=0.9, **short)
    assert moved.code == DONE, moved.stderr
    assert "tensors taken; new: 8.weight, 8.bias" in moved.stderr
    assert moved.epochs()[-1]["val_accuracy"] > nothing.epochs()[-1]["val_accuracy"] + 0.02


def test_a_damaged_checkpoint_falls_back_to_the_one_before(data, tmp_path):
    options = dict(data=data, epochs=6, seed=4, dropout=0.1)
    whole = train(checkpoint_dir=tmp_path / "whole", **options)
    assert whole.code == DONE
    half = train(checkpoint_dir=tmp_path / "cut", until_epoch=3, **options)
    assert half.code == DONE
    last = tmp_path / "cut" / "last.safetensors"
    content = bytearray(last.read_bytes())
    content[-5] ^= 1  # one bit of a tensor: only the digest shows it
    last.write_bytes(content)
    rest = train(checkpoint_dir=tmp_path / "cut", **options)
    assert rest.code == DONE, rest.stderr
    assert "warning: " in rest.stderr and "resuming from the checkpoint before it" in rest.stderr
    # Checkpoints are written beside the training: where that is quicker, the one before is not always the last but one.
    epoch = int(re.search(r"resumed from .*: epoch (\d+), step", rest.stderr).group(1))
    assert 1 <= epoch <= 2 and rest.epochs() == whole.epochs()[epoch:]
    for name in ("last.safetensors", "best.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()

    for name in ("last.safetensors", "previous.safetensors"):
        content = bytearray((tmp_path / "cut" / name).read_bytes())
        content[-5] ^= 1
        (tmp_path / "cut" / name).unlink()  # a name of its own again
        (tmp_path / "cut" / name).write_bytes(content)
    assert "are not those that were written" in train(checkpoint_dir=tmp_path / "cut", **options).stderr

"""However often a training process is stopped or killed, the result is that of one that ran through, bit for bit."""

import os
import random
import signal
import subprocess
import time

import pytest

from trainer_support import (DONE, FAILED, PREEMPTED, TIMEOUT_S, clean_environment, command, parse_lines, train,
                             write_digits)

MODELS = {
    "mlp-adamw": dict(model="mlp", dropout=0.3, epochs=250, batch_size=64, schedule="cosine", warmup_epochs=1),
    "mlp-sgd": dict(model="mlp", optimizer="sgd", lr=0.02, epochs=250, batch_size=50, patience=300, val_every=2),
    "cnn-adamw": dict(model="cnn", width=8, dropout=0.2, epochs=60, batch_size=100),
}
COMMON = dict(checkpoint_every=7, log_every=5, seed=4)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("trainer") / "digits")


def files(directory):
    return {name: (directory / name).read_bytes() for name in ("last.safetensors", "best.safetensors")}


def start(data, directory, parameters):
    return subprocess.Popen(command(data=data, checkpoint_dir=directory, **COMMON, **parameters),
                            env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end_at_random(process, rng, number, lines_max):
    """Sends `number` after a random count of lines and a random moment more; returns the output until then."""
    text = ""
    for _ in range(rng.randrange(1, lines_max)):
        line = process.stdout.readline()
        if not line:
            break
        text += line
    time.sleep(rng.random() * 0.01)  # anywhere within a step, a validation or a write of a checkpoint
    process.send_signal(number)
    text += process.stdout.read()  # not communicate(): it would miss what readline() has buffered
    errors = process.stderr.read()
    process.wait(timeout=TIMEOUT_S)
    return text[:text.rfind("\n") + 1], errors  # a killed process may leave half a line


def train_in_pieces(data, directory, parameters, how, rng, lines_max):
    """The lines of all pieces together, and how often training was interrupted."""
    lines = []
    for ends in range(300):
        process = start(data, directory, parameters)
        text, errors = end_at_random(process, rng, how, lines_max)
        lines += parse_lines(text)
        if process.returncode == DONE:
            return lines, ends
        assert process.returncode == (PREEMPTED if how == signal.SIGTERM else -signal.SIGKILL), errors
    pytest.fail("no progress from one run to the next")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
@pytest.mark.parametrize("name", MODELS)
def test_interrupted_training_equals_uninterrupted(data, tmp_path, name, how):
    parameters = MODELS[name]
    whole = train(data=data, checkpoint_dir=tmp_path / "whole", **COMMON, **parameters)
    assert whole.code == DONE, whole.stderr

    rng = random.Random(f"{name} {how}")
    for turn in range(20):  # it is over early where this process is not run for a while
        pieces = tmp_path / f"pieces-{turn}"
        lines, ends = train_in_pieces(data, pieces, parameters, how, rng, len(whole.lines) // 5)
        if ends >= 3:
            break
    assert ends >= 3, "the test must interrupt something"
    assert files(pieces) == files(tmp_path / "whole")
    seen = {}
    for line in lines:
        key = (line["step"], tuple(sorted(line)))
        assert seen.setdefault(key, line) == line, "a step that was repeated gave something else"
    assert {tuple(sorted(line.items())) for line in seen.values()} == \
        {tuple(sorted(line.items())) for line in whole.lines}
    if how == signal.SIGTERM:
        assert len(lines) - len(seen) <= 1, "nothing is lost on SIGTERM, so nothing is repeated but the last line"


def test_sigterm_finishes_the_step_and_reports_it(data, tmp_path):
    process = start(data, tmp_path, dict(epochs=100000))
    process.stdout.readline()
    process.stdout.readline()
    process.terminate()
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == PREEMPTED
    assert "stopped by request after" in errors
    assert (tmp_path / "last.safetensors").exists()


def test_sigterm_without_a_checkpoint_directory(data):
    process = subprocess.Popen(command(data=data, epochs=100000, log_every=1), env=clean_environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.terminate()
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == PREEMPTED


def test_run_again_after_its_end_repeats_the_last_metrics(data, tmp_path):
    parameters = dict(data=data, epochs=3, environment={"TUNE_CHECKPOINT_DIR": str(tmp_path)})
    first = train(**parameters)
    before = files(tmp_path)
    again = train(**parameters)
    assert again.code == DONE
    assert again.lines == [first.lines[-1]]
    assert files(tmp_path) == before


def test_a_run_can_be_made_longer(data, tmp_path):
    train(data=data, epochs=2, checkpoint_dir=tmp_path / "a")
    longer = train(data=data, epochs=4, checkpoint_dir=tmp_path / "a")
    whole = train(data=data, epochs=4, checkpoint_dir=tmp_path / "b")
    assert [line["step"] for line in longer.epochs()] == [3, 4]
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert longer.epochs() == whole.epochs()[2:]


def test_a_reader_that_goes_away_stops_training(data, tmp_path):
    process = start(data, tmp_path, dict(epochs=100000))
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=TIMEOUT_S) == PREEMPTED
    assert (tmp_path / "last.safetensors").exists()


def test_two_processes_do_not_share_a_checkpoint_directory(data, tmp_path):
    process = start(data, tmp_path, dict(epochs=100000))
    try:
        process.stdout.readline()
        second = train(data=data, checkpoint_dir=tmp_path, epochs=1)
        assert second.code == FAILED
        assert f"'{tmp_path}': another process is training in it" in second.stderr
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_under_stdout_stops_training(data, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(command(data=data, epochs=100000, checkpoint_dir=tmp_path), stdout=full,
                              stderr=subprocess.PIPE, env=clean_environment(), timeout=TIMEOUT_S)
    assert done.returncode == PREEMPTED

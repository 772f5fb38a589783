"""Several ranks train what one would: same samples, same dropout, same metrics, one set of lines and files."""

import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load_file

from ranks_support import finish, free_port, start_ranks, train_ranks
from trainer_support import (BAD_CONFIG, DONE, FAILED, PREEMPTED, TIMEOUT_S, TRAINER, clean_environment, command,
                             parse_lines, train, write_digits)

# 1437 samples: the last batch of an epoch is short, and no number of ranks but 3 divides it.
PARAMETERS = dict(model="mlp", width=32, dropout=0.3, epochs=4, batch_size=120, schedule="cosine", log_every=5, seed=3)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("ranks") / "digits")


def assert_close(lines, expected, tolerance=2e-4, accuracy=0.0):
    """`accuracy`: by how much this one may differ, which changes by whole samples."""
    assert [sorted(line) for line in lines] == [sorted(line) for line in expected]
    for line, other in zip(lines, expected):
        for name, value in line.items():
            within = max(tolerance / 10, accuracy if name.endswith("accuracy") else 0)
            assert value == pytest.approx(other[name], rel=tolerance, abs=within), (name, line, other)


def assert_same_weights(directory, expected, tolerance=2e-4):
    tensors, others = (load_file(d / "last.safetensors") for d in (directory, expected))
    assert tensors.keys() == others.keys()
    for name, tensor in tensors.items():
        np.testing.assert_allclose(tensor, others[name], rtol=tolerance, atol=tolerance / 10, err_msg=name)


@pytest.mark.parametrize("model", [dict(), dict(model="cnn", width=4, optimizer="sgd", lr=0.05, epochs=2)],
                         ids=["mlp adamw", "cnn sgd"])
@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_ranks_train_what_one_would(data, tmp_path, size, model):
    parameters = {**PARAMETERS, **model, "data": data}
    alone = train(checkpoint_dir=tmp_path / "alone", **parameters)
    assert alone.code == DONE, alone.stderr
    ranks = train_ranks(size, checkpoint_dir=tmp_path / "ranks", **parameters)
    assert [rank.code for rank in ranks] == [DONE] * size, ranks[0].stderr
    assert_close(ranks[0].lines, alone.lines)
    assert all(rank.stdout == "" for rank in ranks[1:]), "rank 0 alone reports"
    assert_same_weights(tmp_path / "ranks", tmp_path / "alone")


def test_early_stopping_ends_all_ranks_at_once(data):
    parameters = dict(data=data, **{**PARAMETERS, "epochs": 50}, stopping_threshold=0.8,
                      early_stopping="val_accuracy:max")
    alone = train(**parameters)
    ranks = train_ranks(2, **parameters)
    assert [rank.code for rank in ranks] == [DONE, DONE]
    assert "early: stopping_threshold" in ranks[0].stderr
    assert_close(ranks[0].lines, alone.lines)


def stop_after(processes, lines, number, victims):
    text = "".join(processes[0].stdout.readline() for _ in range(lines))
    for victim in victims:
        processes[victim].send_signal(number)
    return text


@pytest.mark.parametrize("victim", [0, 1])
def test_sigterm_of_any_rank_stops_all_at_the_same_step_and_other_numbers_of_ranks_go_on(data, tmp_path, victim):
    # In double precision, so that what is compared is the samples and the steps and not how sums are rounded.
    parameters = dict(data=data, precision="float64", **{**PARAMETERS, "epochs": 30, "log_every": 1})
    whole = train(checkpoint_dir=tmp_path / "whole", **parameters)
    lines = []
    for size in (2, 3, 1, 4):
        processes = start_ranks(size, checkpoint_dir=tmp_path / "pieces", **parameters)
        text = stop_after(processes, 20, signal.SIGTERM, [min(victim, size - 1)])
        rest = processes[0].stdout.read()
        ends = finish(processes)
        assert [rank.code for rank in ends] == [PREEMPTED] * size, ends[0].stderr
        assert all("stopped by request" in rank.stderr for rank in ends)
        assert len({rank.stderr.splitlines()[-1] for rank in ends}) == 1, "all stop after the same step"
        lines += parse_lines(text + rest)
    ends = train_ranks(2, checkpoint_dir=tmp_path / "pieces", **parameters)
    assert [rank.code for rank in ends] == [DONE, DONE], ends[0].stderr
    assert_close(lines + ends[0].lines, whole.lines, 1e-9)
    assert_same_weights(tmp_path / "pieces", tmp_path / "whole", 1e-9)


def test_killed_ranks_resume_bit_for_bit(data, tmp_path):
    parameters = dict(data=data, **{**PARAMETERS, "epochs": 20, "log_every": 1, "checkpoint_every": 3})
    train_ranks(3, checkpoint_dir=tmp_path / "whole", **parameters)
    for turn in range(3):
        processes = start_ranks(3, checkpoint_dir=tmp_path / "pieces", **parameters)
        stop_after(processes, 25, signal.SIGKILL, range(3))
        finish(processes)
    ends = train_ranks(3, checkpoint_dir=tmp_path / "pieces", **parameters)
    assert [rank.code for rank in ends] == [DONE] * 3, ends[0].stderr
    assert "resumed from" in ends[0].stderr
    for name in ("last.safetensors", "best.safetensors"):
        assert (tmp_path / "pieces" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_dead_rank_ends_the_others_with_a_sentence(data, victim):
    processes = start_ranks(3, data=data, **{**PARAMETERS, "epochs": 100_000, "log_every": 1})
    stop_after(processes, 5, signal.SIGKILL, [victim])
    began = time.monotonic()
    ends = finish(processes)
    assert time.monotonic() - began < 30
    for rank, end in enumerate(ends):
        if rank != victim:
            assert end.code == FAILED
            assert f"rank {rank} of 3: another rank is gone or stuck" in end.stderr


def test_a_stuck_rank_ends_the_others_after_the_time_out(data):
    processes = start_ranks(2, data=data, rank_timeout=2, **{**PARAMETERS, "epochs": 100_000, "log_every": 1})
    try:
        stop_after(processes, 5, signal.SIGSTOP, [1])
        rest = processes[0].stdout.read()
        assert parse_lines(rest) is not None
        errors = processes[0].stderr.read()
        assert processes[0].wait(timeout=TIMEOUT_S) == FAILED
        assert "rank 0 of 2: another rank is gone or stuck" in errors
    finally:
        processes[1].kill()
        processes[1].communicate()


@pytest.mark.parametrize("missing", [0, 1])
def test_a_rank_that_never_comes(data, missing):
    end, = finish(start_ranks(2, only=[1 - missing], data=data, rank_timeout=2, **PARAMETERS))
    assert end.code == FAILED
    assert f"rank {1 - missing} of 2 did not meet the others at 127.0.0.1:" in end.stderr
    assert "within 2 s" in end.stderr


def test_more_ranks_than_samples(tmp_path):
    data = write_digits(tmp_path / "digits", train_count=3)
    for end in train_ranks(4, data=data, batch_size=4):
        assert end.code == BAD_CONFIG
        assert "has 3 samples for 4 ranks" in end.stderr


def test_a_batch_that_does_not_divide(data):
    for end in train_ranks(2, data=data, batch_size=33):
        assert end.code == BAD_CONFIG
        assert "batch-size 33 is that of all 2 ranks together" in end.stderr


def test_what_only_rank_0_sees_ends_all(data, tmp_path):
    (tmp_path / "last.safetensors").write_bytes(b"no checkpoint")
    ends = train_ranks(2, data=data, checkpoint_dir=tmp_path, **PARAMETERS)
    assert [end.code for end in ends] == [FAILED, FAILED]
    assert all("last.safetensors" in end.stderr for end in ends)


@pytest.mark.parametrize("variables, sentence", [
    (dict(WORLD_SIZE="2"), "RANK is not set"),
    (dict(WORLD_SIZE="2", RANK="2"), "RANK: '2' is not an integer from 0 to 1"),
    (dict(WORLD_SIZE="many"), "WORLD_SIZE: 'many' is not an integer"),
    (dict(WORLD_SIZE="2", RANK="0", MASTER_PORT="1234"), "MASTER_ADDR is not set"),
])
def test_wrong_variables(data, variables, sentence):
    process = subprocess.run(command(data=data), capture_output=True, text=True, timeout=TIMEOUT_S,
                             env=clean_environment(**variables))
    assert process.returncode == BAD_CONFIG
    assert sentence in process.stderr


def test_torchrun_launches_it(data, tmp_path):
    parameters = dict(data=data, **PARAMETERS)
    alone = train(**parameters)
    process = subprocess.run(
        [sys.executable, str(pathlib.Path(__file__).parent / "torchrun.py"), "--nproc-per-node=2", "--nnodes=1",
         "--master-addr=127.0.0.1",
         f"--master-port={free_port()}", "--no-python", str(TRAINER), *command(**parameters)[1:]],
        capture_output=True, text=True, timeout=TIMEOUT_S, env=clean_environment())
    assert process.returncode == 0, process.stderr
    assert_close(parse_lines(process.stdout), alone.lines)

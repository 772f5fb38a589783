"""Memory that runs out on one rank or on all, and the noise of gradients, where several ranks train."""

import pathlib
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file

from ranks_support import finish, free_port, start_ranks, train_ranks
from trainer_support import DONE, OUT_OF_MEMORY, train, write_digits

FAILING_ALLOCATOR = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
int posix_memalign(void** place, size_t alignment, size_t size) {
    static int (*real)(void**, size_t, size_t);
    static int count;
    if (!real) real = (int (*)(void**, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    if (size > (size_t)atol(getenv("ALLOCATION_MAX")) && count++ >= atol(getenv("ALLOCATIONS"))) return ENOMEM;
    return real(place, alignment, size);
}
"""
# A rank's 512 rows of 128 numbers are 256 KB, all weights 103 KB.
PARAMETERS = dict(model="mlp", width=128, dropout=0.3, epochs=3, batch_size=1024, seed=3, log_every=1)
LIMIT = str(200 << 10)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("ranks") / "digits")


@pytest.fixture(scope="module")
def allocator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("allocator")
    (folder / "failing.c").write_text(FAILING_ALLOCATOR)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "failing.so", folder / "failing.c", "-ldl"], check=True)
    return {"LD_PRELOAD": str(folder / "failing.so"), "ALLOCATION_MAX": LIMIT}


def assert_same_training(ends, folder, alone, alone_folder):
    assert [end.code for end in ends] == [DONE] * len(ends), [end.stderr for end in ends]
    for line, other in zip(ends[0].epochs(), alone.epochs()):
        assert line == pytest.approx(other, rel=1e-3, abs=1e-4)
    tensors, others = (load_file(pathlib.Path(d) / "last.safetensors") for d in (folder, alone_folder))
    for name, tensor in tensors.items():
        np.testing.assert_allclose(tensor, others[name], rtol=5e-3, atol=5e-3, err_msg=name)


@pytest.mark.parametrize("victims", [[0], [1], [0, 1]], ids=["first", "second", "both"])
@pytest.mark.parametrize("allocations", [0, 1, 2, 3, 5, 8], ids=lambda count: f"after {count}")
def test_a_rank_without_memory_cuts_its_share(data, allocator, tmp_path, victims, allocations):
    """At whatever place of a forward or backward pass the first refusal comes."""
    alone = train(data=data, checkpoint_dir=tmp_path / "alone", **PARAMETERS)
    port = free_port()
    processes = [start_ranks(2, port=port, only=[rank], data=data, checkpoint_dir=tmp_path / "ranks",
                             environment={**allocator, "ALLOCATIONS": str(allocations)} if rank in victims else None,
                             **PARAMETERS)[0] for rank in (0, 1)]
    ends = finish(processes)
    assert_same_training(ends, tmp_path / "ranks", alone, tmp_path / "alone")
    for rank in (0, 1):
        warning = f"warning: rank {rank} is out of memory; from step 1 on its batch is computed in 2 parts"
        assert (warning in ends[rank].stderr) == (rank in victims), ends[rank].stderr
    assert any(line.get("accumulate") == 2 for line in ends[0].lines) == (0 in victims)


def train_with_a_victim(data, folder, allocator, allocations, epochs):
    """Rank 1 is refused memory after so many large allocations."""
    port = free_port()
    parameters = {**PARAMETERS, "epochs": epochs, "data": data, "checkpoint_dir": folder, "rank_timeout": 60}
    environment = {**allocator, "ALLOCATIONS": str(allocations)}
    return finish([start_ranks(2, port=port, only=[rank], environment=environment if rank == 1 else None, **parameters)[0]
                   for rank in (0, 1)])


def test_memory_that_runs_out_while_gradients_are_sent_ends_all(data, allocator, tmp_path):
    """Long after the first steps; the next start is careful again, and goes on from the checkpoint."""
    codes = []
    for allocations in range(200, 230, 3):
        folder = tmp_path / str(allocations)
        ends = train_with_a_victim(data, folder, allocator, allocations, epochs=30)
        codes.append(ends[1].code)
        if codes[-1] == OUT_OF_MEMORY:
            break
        # It came in a forward pass, which can be done again; the other rank saw nothing of it.
        assert [end.code for end in ends] == [DONE, DONE], [end.stderr for end in ends]
        assert "rank 1 is out of memory" in ends[1].stderr and "out of memory" not in ends[0].stderr
    assert codes[-1] == OUT_OF_MEMORY, "no run was refused memory within a backward pass"
    assert "another rank is gone" in ends[0].stderr
    ends = train_with_a_victim(data, folder, allocator, 0, epochs=30)
    assert [end.code for end in ends] == [DONE, DONE], [end.stderr for end in ends]
    assert "resumed from" in ends[0].stderr and "rank 1 is out of memory" in ends[1].stderr


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_measure_the_noise(data, tmp_path, size):
    parameters = dict(data=data, model="mlp", width=32, epochs=6, batch_size=120, seed=3, log_every=4, noise_every=2)
    ranks = train_ranks(size, checkpoint_dir=tmp_path / "ranks", **parameters)
    assert [rank.code for rank in ranks] == [DONE] * size, ranks[0].stderr
    quiet = train_ranks(size, checkpoint_dir=tmp_path / "quiet", **{**parameters, "noise_every": 0})
    assert [rank.code for rank in quiet] == [DONE] * size
    tensors, others = (load_file(tmp_path / d / "last.safetensors") for d in ("ranks", "quiet"))
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, others[name], err_msg="what is measured changes nothing")
    noise = [line["gradient_noise_scale"] for line in ranks[0].lines if "gradient_noise_scale" in line]
    alone = train(**parameters)
    expected = [line["gradient_noise_scale"] for line in alone.lines if "gradient_noise_scale" in line]
    assert noise and expected
    # Two estimates of one number, from other halves of the same batches.
    assert np.log(noise[-1] / expected[-1]) == pytest.approx(0, abs=np.log(3))
    assert "gradient noise scale" in ranks[0].stderr and "samples/s" in ranks[0].stderr


@pytest.mark.parametrize("size, dropout", [(2, 0), (3, 0.3)])
def test_the_noise_of_shares_is_that_of_the_same_parts(tmp_path, size, dropout):
    """With a sample a rank the shares of a step are the parts into which one rank cuts its batch. 119 samples: in the
    last step a rank has none."""
    parameters = dict(data=write_digits(tmp_path / "digits", train_count=119, val_count=40), model="mlp", width=16,
                      dropout=dropout, epochs=2, batch_size=size, seed=3, log_every=1, noise_every=1,
                      precision="float64")
    alone = train(accumulate=size, **parameters)
    ranks = train_ranks(size, **parameters)
    assert [rank.code for rank in ranks] == [DONE] * size, ranks[0].stderr
    noise, expected = ([line["gradient_noise_scale"] for line in run.lines if "gradient_noise_scale" in line]
                       for run in (ranks[0], alone))
    assert len(noise) > 50
    np.testing.assert_allclose(noise, expected, rtol=1e-6)

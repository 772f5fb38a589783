"""--find-batch-size with real processes, real limits on memory, and several ranks."""

import json
import re
import resource
import subprocess

import pytest

from ranks_support import finish, free_port, start_ranks
from trainer_support import BAD_CONFIG, DONE, TIMEOUT_S, TRAINER, Finished, clean_environment, command, train, write_digits

MEGABYTE = 1 << 20
# Much memory and little arithmetic: 1024 rows of 8192 numbers are 32 MB in each of five tensors, weights 2 MB.
WIDE = dict(model="mlp", width=8192, depth=1, epochs=1, batch_size=256, base_batch_size=256, log_every=0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("batches") / "digits", train_count=300)


def sizes_of(stderr):
    """{size: whether it fits}, in the order in which they were tried."""
    return {int(size): "does not fit" not in rest for size, rest in re.findall(r"^batch (\d+): (.*)$", stderr, re.M)}


def assert_largest_that_fits(stderr):
    sizes = sizes_of(stderr)
    found = int(re.search(r"^batch size (\d+)$", stderr, re.M)[1])
    refused = [size for size, fits in sizes.items() if not fits]
    assert refused, "the limit is too high for this test: " + stderr
    assert sizes[found] and found == max(size for size, fits in sizes.items() if fits)
    assert found < min(refused)
    return found


@pytest.mark.parametrize("limit", ["agent", "rlimit"])
def test_memory_ends_the_search(data, limit):
    allowed = 350 * MEGABYTE
    environment = clean_environment(**({"TUNE_MEMORY_BYTES": str(allowed)} if limit == "agent" else {}))
    set_limit = (lambda: resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))) if limit == "rlimit" else None
    run = Finished(subprocess.run(command(data=data, find_batch_size="memory", **WIDE), capture_output=True, text=True,
                                  timeout=TIMEOUT_S, env=environment, preexec_fn=set_limit))
    assert run.code == DONE, run.stderr
    found = assert_largest_that_fits(run.stderr)
    assert run.lines[0]["batch_size"] == found


@pytest.mark.parametrize("mode", ["memory", "throughput"])
def test_ranks_agree_on_a_size(data, mode):
    processes = start_ranks(2, data=data, find_batch_size=mode, environment={"TUNE_MEMORY_BYTES": str(600 * MEGABYTE)},
                            **WIDE)
    ends = finish(processes)
    assert [rank.code for rank in ends] == [DONE, DONE], ends[0].stderr
    found = int(ends[0].lines[0]["batch_size"])
    assert found % 2 == 0 and f"batch size {found}\n" in ends[0].stderr
    assert sizes_of(ends[1].stderr) == {}, "rank 0 alone says what was tried"
    if mode == "memory":
        assert assert_largest_that_fits(ends[0].stderr) == found


def test_the_limit_of_one_rank_holds_for_all(data):
    port = free_port()
    processes = [start_ranks(2, port=port, only=[rank], data=data, find_batch_size="memory",
                             environment={"TUNE_MEMORY_BYTES": str(megabytes * MEGABYTE)}, **WIDE)[0]
                 for rank, megabytes in [(0, 8000), (1, 600)]]
    ends = finish(processes)
    assert [rank.code for rank in ends] == [DONE, DONE], ends[0].stderr
    assert_largest_that_fits(ends[0].stderr)


def test_not_even_one_sample_fits(data):
    run = train(data=data, find_batch_size="memory", environment={"TUNE_MEMORY_BYTES": str(40 * MEGABYTE)},
                **{**WIDE, "batch_size": 2})
    assert run.code == 12, run.stderr
    assert "out of memory with a batch of one sample" in run.stderr


def test_a_step_that_fails_is_an_error(data):
    """What is tried comes from the trainer; whatever else comes is refused, not guessed."""
    for text in ("", "{}", json.dumps({"parameters": {"width": "x"}, "inputs": {}, "batch": 1, "limit": 0})):
        process = subprocess.run([str(TRAINER), "probe-batch"], input=text, capture_output=True, text=True,
                                 timeout=TIMEOUT_S, env=clean_environment())
        assert process.returncode == BAD_CONFIG, process.stderr
        assert process.stderr and not process.stdout

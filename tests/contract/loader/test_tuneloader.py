"""The module tuneloader by itself: what batches hold and how long, where they resume, and what happens in threads, signals
and child processes."""

import gc
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")

MODULE = pathlib.Path(tuneloader.__file__).parents[1]
DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]


def write(folder, columns, samples, **options):
    with tuneloader.MDSWriter(out=str(folder), columns=columns, **options) as writer:
        for sample in samples:
            writer.write(sample)
    return str(folder)


@pytest.fixture
def numbers(tmp_path):
    """100 samples: x is the sample's number, image holds it."""
    samples = [{"x": i, "image": np.full((4, 3), i, np.uint8)} for i in range(100)]
    return write(tmp_path / "numbers", {"x": "int", "image": "ndarray:uint8:4,3"}, samples, size_limit=400)


def read_ids(dataset):
    return [x for batch in dataset for x in batch["x"].tolist()]


def replace(path, data):
    """A file that is mapped must not be shortened in place."""
    path.with_suffix(".new").write_bytes(data)
    path.with_suffix(".new").replace(path)


def run_python(code, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(MODULE)}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env=environment, capture_output=True, text=True, timeout=20, **options,
    )  # fmt: skip


def test_columns_of_every_dtype_come_as_they_were_written(tmp_path):
    random = np.random.default_rng(3)
    columns = {name: name for name in DTYPES} | {f"a_{name}": f"ndarray:{name}:2,3" for name in DTYPES}
    samples = []
    for _ in range(50):
        values = {name: random.integers(0, 100, (2, 3)).astype(name) for name in DTYPES}
        samples.append({name: value[0, 0] for name, value in values.items()} | {f"a_{n}": v for n, v in values.items()})
    dataset = tuneloader.Dataset(write(tmp_path / "d", columns, samples), batch_size=16)
    described = {column.name: (column.dtype, column.shape) for column in dataset.columns}
    at = 0
    for batch in dataset:
        for name in DTYPES:
            assert described[name] == (name, ()) and described[f"a_{name}"] == (name, (2, 3))
            assert batch[name].dtype == name and batch[f"a_{name}"].dtype == name
            rows = samples[at : at + len(batch[name])]
            assert (batch[name] == np.array([row[name] for row in rows])).all()
            assert (batch[f"a_{name}"] == np.stack([row[f"a_{name}"] for row in rows])).all()
            assert batch[f"a_{name}"].ctypes.data % 64 == 0
        at += len(batch["uint8"])
    assert at == 50 and len(dataset) == 4


def test_columns_of_varying_size_are_lists_or_offsets(tmp_path):
    columns = {"t": "str", "b": "bytes", "j": "json", "n": "str_int", "f": "str_float", "a": "ndarray", "h": "ndarray:int16"}
    samples = [
        {
            "t": "é" * i, "b": bytes(range(i)), "j": {"i": [i, None]}, "n": 10**i, "f": 0.1 * i,
            "a": np.arange(2 * i + 2, dtype=np.float32).reshape(2, -1), "h": np.arange(i + 1, dtype=np.int16),
        }
        for i in range(30)
    ]  # fmt: skip
    folder = write(tmp_path / "d", columns, samples)
    [batch] = tuneloader.Dataset(folder, batch_size=30)
    assert batch["t"] == [s["t"] for s in samples] and batch["b"] == [s["b"] for s in samples]
    assert [json.loads(text) for text in batch["j"]] == [s["j"] for s in samples]
    assert batch["n"] == [s["n"] for s in samples] and batch["f"] == [s["f"] for s in samples]
    for name in "ah":
        assert all((got == s[name]).all() and got.dtype == s[name].dtype for got, s in zip(batch[name], samples))
    [batch] = tuneloader.Dataset(folder, batch_size=30, ragged="offsets", columns=["t"], ids="number")
    data, offsets = batch["t"]
    assert data.dtype == np.uint8 and offsets.dtype == np.int64
    assert [bytes(data[a:b]).decode() for a, b in zip(offsets, offsets[1:])] == [s["t"] for s in samples]
    assert batch["number"].tolist() == list(range(30)) and sorted(batch) == ["number", "t"]


def test_arrays_share_the_memory_of_the_batch_and_keep_it(numbers):
    dataset = tuneloader.Dataset(numbers, batch_size=5, shuffle=True, predownload=5)
    kept = [batch for batch in dataset]  # more than there are slots
    assert all((batch["image"][:, 0, 0] == batch["x"]).all() for batch in kept)
    assert len({batch["image"].ctypes.data for batch in kept}) == 20
    view = kept[3]["image"][1:2]
    expected = int(kept[3]["x"][1])
    dataset.close()
    del kept, dataset
    gc.collect()
    assert (view == expected).all()
    # Memory that nobody refers to is used again: a second pass takes no more than two batches and those decoded ahead.
    dataset = tuneloader.Dataset(numbers, batch_size=5, predownload=5)
    assert len({batch["image"].ctypes.data for _ in range(5) for batch in dataset}) <= 4


def test_dlpack_objects_and_other_libraries_take_the_memory_as_it_is(numbers):
    [batch] = tuneloader.Dataset(numbers, batch_size=100, arrays="dlpack")
    taken = np.from_dlpack(batch["image"])
    assert (taken[:, 0, 0] == np.arange(100)).all()
    assert np.asarray(batch["image"]).ctypes.data == taken.ctypes.data
    torch = pytest.importorskip("torch")
    [batch] = tuneloader.Dataset(numbers, batch_size=100, arrays="torch")
    assert isinstance(batch["image"], torch.Tensor) and batch["image"].dtype == torch.uint8
    batch["image"][7] = 77
    assert batch["image"][7].eq(77).all() and batch["x"].tolist() == list(range(100))
    [batch] = tuneloader.Dataset(numbers, batch_size=100)
    assert torch.from_dlpack(batch["image"]).data_ptr() == batch["image"].ctypes.data


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_epochs_and_resume_at_every_batch(numbers, threads):
    options = {"batch_size": 7, "shuffle": True, "shuffle_block_size": 40, "threads": threads}
    dataset = tuneloader.Dataset(numbers, **options)
    epochs = [read_ids(dataset) for _ in range(2)]
    assert [sorted(ids) for ids in epochs] == [list(range(100))] * 2 and epochs[0] != epochs[1]
    assert dataset.epoch == 2
    dataset.start_epoch(1)
    assert read_ids(dataset) == epochs[1]
    first = tuneloader.Dataset(numbers, **options)
    for given, _ in enumerate(first, 1):
        state = json.loads(json.dumps(first.state_dict()))
        second = tuneloader.Dataset(numbers, **options)
        second.load_state_dict(state)
        assert read_ids(second) == epochs[0][7 * given :]
        assert read_ids(second) == epochs[1]


def test_ranks_share_an_epoch_and_replicated_ones_read_the_same(numbers):
    parts = [read_ids(tuneloader.Dataset(numbers, batch_size=5, cur_shard=r, shard_count=4)) for r in range(4)]
    assert sorted(sum(parts, [])) == list(range(100))
    pairs = [read_ids(tuneloader.Dataset(numbers, batch_size=5, rank=r, world_size=4, replication=2)) for r in range(4)]
    assert pairs[0] == pairs[1] and pairs[2] == pairs[3] and sorted(pairs[0] + pairs[2]) == list(range(100))


def test_the_lazy_order_reads_every_sample_once_and_resumes(numbers):
    options = {"batch_size": 6, "shuffle": True, "order": "lazy", "world_size": 3}
    epochs = [[read_ids(d) for _ in range(2)] for d in (tuneloader.Dataset(numbers, rank=r, **options) for r in range(3))]
    for epoch in range(2):
        ids = sum((epochs[r][epoch] for r in range(3)), [])
        assert set(ids) == set(range(100)) and len(ids) == 102  # two repeats even the ranks out
    assert epochs[0][0] != epochs[0][1]
    dataset = tuneloader.Dataset(numbers, rank=1, **options)
    next(iter(dataset))
    resumed = tuneloader.Dataset(numbers, rank=1, **options)
    resumed.load_state_dict(dataset.state_dict())
    assert read_ids(resumed) == epochs[1][0][6:]
    with pytest.raises(ValueError, match="the loader state was saved with the order 'lazy-v1"):
        tuneloader.Dataset(numbers).load_state_dict(dataset.state_dict())


def test_errors_are_exceptions_with_the_sentence(numbers, tmp_path):
    with pytest.raises(FileNotFoundError, match="none/index.json"):
        tuneloader.Dataset(tmp_path / "none")
    with pytest.raises(ValueError, match="there is no column 'y'; the data set has image x"):
        tuneloader.Dataset(numbers, columns=["y"])
    with pytest.raises(ValueError, match="there is no shuffle algorithm 'py9'"):
        tuneloader.Dataset(numbers, shuffle_algo="py9")
    with pytest.raises(ValueError, match="give one of the three"):
        tuneloader.Dataset()
    dataset = tuneloader.Dataset(numbers, batch_size=10)
    with pytest.raises(ValueError, match="there is no sample 100; the data set has 100 samples"):
        dataset.read([100])
    assert dataset.read([5, 3])["x"].tolist() == [5, 3]
    shard = pathlib.Path(numbers) / "shard.00000.mds"
    data = shard.read_bytes()
    replace(shard, data[:-1])
    broken = tuneloader.Dataset(numbers)
    with pytest.raises(tuneloader.DataLossError, match="shard.00000.mds.*the index states"):
        next(iter(broken))
    replace(shard, data)
    assert next(iter(broken))["x"].tolist() == [0]  # what was repaired is read
    with tuneloader.Dataset(numbers) as dataset:
        next(iter(dataset))
    with pytest.raises(ValueError, match="was closed"):
        next(iter(dataset))


def test_the_writer_refuses_what_does_not_fit(tmp_path):
    with pytest.raises(ValueError, match="column 'x'.*300"):
        write(tmp_path / "a", {"x": "uint8"}, [{"x": 300}])
    assert not (tmp_path / "a" / "index.json").exists()  # what ended in an error is no data set
    with pytest.raises(KeyError, match="y"):
        write(tmp_path / "b", {"x": "int", "y": "int"}, [{"x": 1}])
    with pytest.raises(ValueError, match="a value of type object cannot be stored as int"):
        write(tmp_path / "c", {"x": "int"}, [{"x": object()}])
    with pytest.raises(NotImplementedError, match="'https://example.org/d' can be read, not written"):
        tuneloader.MDSWriter(out="https://example.org/d", columns={"x": "int"})


# A shard that is a pipe: whoever opens it waits until somebody opens its other end, here for ever.
STALLED = """
import os, signal, sys, threading
import tuneloader
pipe = os.path.join(sys.argv[1], "shard.00000.mds")
os.remove(pipe)
os.mkfifo(pipe)
dataset = tuneloader.Dataset(sys.argv[1], threads=1)
def end(message):
    print(message, flush=True)
    os._exit(0)  # a thread is inside the kernel and stays there
"""


def test_ctrl_c_ends_the_wait_for_a_batch(numbers):
    # The signal is sent by another thread while the main thread waits in C++: that it runs at all shows that the main thread
    # has let go of the GIL.
    result = run_python(
        STALLED
        + textwrap.dedent("""
            # Whoever started the tests may have it ignored or blocked, as a shell does for its jobs in the background.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            try:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                next(iter(dataset))
            except KeyboardInterrupt:
                end("interrupted")
        """),
        numbers,
    )
    assert result.stdout == "interrupted\n", result.stdout + result.stderr


def test_a_second_thread_is_refused_while_one_waits(numbers):
    result = run_python(
        STALLED
        + textwrap.dedent("""
            threading.Thread(target=lambda: next(iter(dataset)), daemon=True).start()
            while True:  # until the other one is inside
                try:
                    dataset.start_epoch(0)
                except RuntimeError as error:
                    end(error)
        """),
        numbers,
    )
    assert "is being read by another thread" in result.stdout, result.stdout + result.stderr


def test_a_forked_child_reads_on_by_itself(numbers):
    result = run_python(
        """
        import os, sys
        import tuneloader
        dataset = tuneloader.Dataset(sys.argv[1], batch_size=10, shuffle=True, threads=2)
        batches = iter(dataset)
        held = [next(batches) for _ in range(3)]
        child = os.fork()
        rest = [x for batch in batches for x in batch["x"].tolist()]
        following = [x for batch in dataset for x in batch["x"].tolist()]
        held.clear()
        name = "child" if child == 0 else "parent"
        with open(os.path.join(sys.argv[1], name), "w") as file:
            print(len(rest), rest, following, dataset.epoch, file=file)
        del batches, dataset
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """,
        numbers,
    )
    assert result.returncode == 0, result.stderr
    told = [(pathlib.Path(numbers) / name).read_text() for name in ("parent", "child")]
    assert told[0] == told[1] and told[0].startswith("70 [")


def test_importing_takes_no_array_library_and_little_time():
    code = """
        import sys, time
        begin = time.process_time()
        import tuneloader
        spent = time.process_time() - begin
        assert not {"numpy", "torch", "pandas"} & set(sys.modules)
        print(spent)
    """
    assert min(float(run_python(code).stdout) for _ in range(5)) < 0.05


def test_the_types_hold_under_mypy_strict(tmp_path):
    use = tmp_path / "use.py"
    use.write_text(
        "import tuneloader\n"
        "dataset = tuneloader.Dataset('d', batch_size=4, shuffle=True)\n"
        "for batch in dataset:\n    reveal_type(batch)\n"
        "reveal_type(dataset.columns[0].shape)\n"
        "streaming = tuneloader.StreamingDataset(local='d', batch_size=2)\n"
        "state: dict[str, object] = streaming.state_dict(0, False)\n"
        "with tuneloader.MDSWriter(out='d', columns={'x': 'int'}) as writer:\n    writer.write({'x': 1})\n"
    )
    source = pathlib.Path(__file__).resolve().parents[3] / "loader" / "python"
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(source / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache"),
         str(source / "tuneloader"), str(use)],
        env={**os.environ, "MYPYPATH": str(source)}, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
    assert 'dict[str, Any]"' in result.stdout and "tuple[int, ...] | None" in result.stdout


def test_signals_and_threads_are_left_as_they_were(numbers):
    before = signal.getsignal(signal.SIGINT), threading.active_count()
    dataset = tuneloader.Dataset(numbers, batch_size=10)
    assert read_ids(dataset) == list(range(100))
    assert (signal.getsignal(signal.SIGINT), threading.active_count()) == before

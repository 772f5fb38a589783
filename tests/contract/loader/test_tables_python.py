"""tuneloader.Dataset over every format that C++ reads, against pyarrow and deltalake, and over data in memory."""

import datetime
import decimal
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import textwrap

import numpy as np
import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

MODULE = pathlib.Path(tuneloader.__file__).parents[1]
BIN = MODULE.parent / "bin"
if not (BIN / "libtune_tables.so").exists():
    pytest.skip("a build without Arrow", allow_module_level=True)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TUNE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "in-memory"


@pytest.fixture
def table():
    """100 rows of many types, without nulls."""
    return pa.table({
        "id": np.arange(100),
        "x": pa.array(np.arange(100) / 4, pa.float32()),
        "flag": pa.array([i % 3 == 0 for i in range(100)]),
        "text": [f"row {i} é" for i in range(100)],
        "blob": [bytes([i, 0]) for i in range(100)],
        "day": pa.array([datetime.date(2026, 1, 1) + datetime.timedelta(i) for i in range(100)]),
        "time": pa.array(np.arange(100) * 10**6, pa.timestamp("us")),
        "amount": pa.array([decimal.Decimal(i).scaleb(-2) for i in range(100)], pa.decimal128(9, 2)),
        "list": pa.array([np.arange(i % 4) for i in range(100)], pa.list_(pa.int16())),
        "pairs": pa.array([[[i, i + 1]] * (i % 3) for i in range(100)], pa.list_(pa.list_(pa.float32(), 2))),
        "fixed": pa.array([[i, i + 1, i + 2] for i in range(100)], pa.list_(pa.int32(), 3)),
        "nested": pa.array([[[i], [1, 2]] for i in range(100)], pa.list_(pa.list_(pa.int64()))),
        "struct": pa.array([{"a": i, "b": "z"} for i in range(100)]),
    })  # fmt: skip


def batches_of(source, **options):
    with tuneloader.Dataset(source, **options) as dataset:
        return list(dataset)


def joined(batches, name):
    if isinstance(batches[0][name], np.ndarray):
        return np.concatenate([batch[name] for batch in batches]).tolist()
    return [value.tolist() if isinstance(value, np.ndarray) else value for batch in batches for value in batch[name]]


def test_a_parquet_table_comes_out_as_pyarrow_reads_it(table, tmp_path):
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=30)
    batches = batches_of(tmp_path / "a.parquet", batch_size=16)
    assert len(batches) == 7
    for name in ("id", "x", "text", "blob", "list", "pairs", "fixed"):
        assert joined(batches, name) == table[name].to_pylist(), name
    assert joined(batches, "flag") == [int(value) for value in table["flag"].to_pylist()]
    assert joined(batches, "day") == table["day"].cast(pa.int32()).to_pylist()
    assert joined(batches, "time") == table["time"].cast(pa.int64()).to_pylist()
    assert [decimal.Decimal(value) for value in joined(batches, "amount")] == table["amount"].to_pylist()
    assert [json.loads(value) for value in joined(batches, "nested")] == table["nested"].to_pylist()
    assert [json.loads(value) for value in joined(batches, "struct")] == table["struct"].to_pylist()
    assert batches[0]["fixed"].dtype == np.int32 and batches[0]["fixed"].shape == (16, 3)
    with tuneloader.Dataset(tmp_path / "a.parquet") as dataset:
        stored = {column.name: (column.encoding, column.stored) for column in dataset.columns}
    assert stored["time"] == ("int64", "timestamp[us]") and stored["flag"] == ("uint8", "bool")
    assert stored["list"][0] == "list:int16" and stored["pairs"][0] == "list:float32:2" and stored["id"] == ("int64", "int64")


def test_lists_are_parts_of_the_batch_or_offsets_of_elements(table, tmp_path):
    pq.write_table(table, tmp_path / "a.parquet")
    (batch,) = batches_of(tmp_path / "a.parquet", batch_size=100, columns=["list", "pairs", "text"])
    assert all(value.base is not None for value in batch["list"]) and batch["list"][3].dtype == np.int16
    assert batch["pairs"][2].shape == (2, 2) and batch["pairs"][0].shape == (0, 2)
    (offsets,) = batches_of(tmp_path / "a.parquet", batch_size=100, columns=["list", "pairs", "text"], ragged="offsets")
    for name, shape in (("list", ()), ("pairs", (2,))):
        data, starts = offsets[name]
        assert data.shape[1:] == shape and data.dtype == batch[name][0].dtype and starts[-1] == len(data)
        for i, value in enumerate(batch[name]):
            assert (data[starts[i] : starts[i + 1]] == value).all()
    data, starts = offsets["text"]
    assert bytes(data[starts[5] : starts[6]]).decode() == "row 5 é"
    (shaped,) = batches_of(tmp_path / "a.parquet", batch_size=100, columns=["nested", "list"], filters=[("id", "=", 3)],
                           shapes={"list": (3,)})  # fmt: skip
    assert shaped["list"].tolist() == [[0, 1, 2]]


def test_nulls_are_refused_masked_or_filled(tmp_path):
    table = pa.table({"i": [1, None, 3], "t": ["a", None, "c"], "l": pa.array([[1.0], None, []])})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="null"):
        batches_of(tmp_path, columns=["i"], batch_size=3)
    (batch,) = batches_of(tmp_path, nulls="mask", batch_size=3)
    assert batch["i"].tolist() == [1, 0, 3] and batch["i__valid"].tolist() == [True, False, True]
    assert batch["i__valid"].dtype == np.bool_
    assert batch["t"] == ["a", None, "c"] and batch["l"][1] is None and batch["l"][2].size == 0
    assert "t__valid" not in batch
    (offsets,) = batches_of(tmp_path, nulls="mask", batch_size=3, ragged="offsets")
    assert offsets["t__valid"].tolist() == offsets["l__valid"].tolist() == [True, False, True]
    (filled,) = batches_of(tmp_path, nulls="fill", fill={"i": -1, "t": "none"}, columns=["i", "t"], batch_size=3)
    assert filled["i"].tolist() == [1, -1, 3] and filled["t"] == ["a", "none", "c"]
    (mixed,) = batches_of(tmp_path, nulls={"i": "mask", "t": "fill"}, fill="x", columns=["i", "t"], batch_size=3)
    assert mixed["i__valid"].tolist() == [True, False, True] and mixed["t"][1] == "x"
    torch = pytest.importorskip("torch")
    (batch,) = batches_of(tmp_path, nulls="mask", batch_size=3, arrays="torch")
    assert batch["i__valid"].dtype == torch.bool and batch["l"][0].dtype == torch.float64


def test_filters_columns_and_types(table, tmp_path):
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    batches = batches_of(tmp_path, filters=[[("id", "in", [3, 5, 70]), ("flag", "=", True)], [("text", "=", "row 9 é")]],
                         columns=["id"], batch_size=10)  # fmt: skip
    assert joined(batches, "id") == [3, 9]
    since = datetime.date(2026, 4, 5)
    assert joined(batches_of(tmp_path, filters=[("day", ">=", since)], columns=["id"], batch_size=50), "id") == list(range(94, 100))
    (batch,) = batches_of(tmp_path, columns=["id", "x"], dtypes={"x": np.float64}, batch_size=100)
    assert batch["x"].dtype == np.float64 and set(batch) == {"id", "x"}
    with pytest.raises(ValueError, match="does not hold every value"):
        batches_of(tmp_path, dtypes={"id": "int8"})
    narrow = batches_of(tmp_path, columns=["id"], dtypes={"id": "int8"}, allow_narrowing=True, batch_size=100)
    assert narrow[0]["id"].dtype == np.int8
    with pytest.raises(ValueError, match="no comparison"):
        batches_of(tmp_path, filters=[("id", "~", 3)])
    with pytest.raises(ValueError, match="there is no format 'orc'"):
        batches_of(tmp_path, format="orc")


@pytest.mark.parametrize("threads", [0, 2])
def test_a_shuffled_table_resumes_and_is_shared_by_ranks(table, tmp_path, threads):
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    options = {"columns": ["id", "text"], "batch_size": 8, "shuffle": True, "seed": 5, "threads": threads}
    whole = joined(batches_of(tmp_path, **options), "id")
    assert sorted(whole) == list(range(100)) and whole != list(range(100))
    with tuneloader.Dataset(tmp_path, **options) as dataset:
        for _ in range(4):
            next(iter(dataset))
        state = json.loads(json.dumps(dataset.state_dict()))
    with tuneloader.Dataset(tmp_path, **options) as dataset:
        dataset.load_state_dict(state)
        assert joined(list(dataset), "id") == whole[32:]
    ranks = [joined(batches_of(tmp_path, **options, cur_shard=i, shard_count=2), "id") for i in range(2)]
    assert sorted(set(ranks[0] + ranks[1])) == list(range(100))


def test_delta_tables_by_version(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    folder = str(tmp_path / "delta")
    deltalake.write_deltalake(folder, pa.table({"id": range(50), "part": [i % 2 for i in range(50)]}), partition_by=["part"])
    deltalake.write_deltalake(folder, pa.table({"id": range(50, 60), "part": [1] * 10}), mode="append")
    deltalake.DeltaTable(folder).delete("id < 5")
    assert sorted(joined(batches_of(folder, batch_size=9), "id")) == list(range(5, 60))
    assert sorted(joined(batches_of(folder, batch_size=9, version=0), "id")) == list(range(50))
    some = batches_of(folder, format="delta", filters=[("part", "=", 0)], batch_size=99)
    assert sorted(joined(some, "id")) == list(range(6, 50, 2))


def test_text_archives_and_images(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"x": 1, "t": "a"}\n{"x": 2, "t": "b"}\n')
    assert joined(batches_of(tmp_path / "a.jsonl", batch_size=2), "t") == ["a", "b"]
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("x,t\n1,a\n2.5,b\n")
    (batch,) = batches_of(tmp_path / "csv", batch_size=2)
    assert batch["x"].tolist() == [1, 2.5] and batch["t"] == ["a", "b"]
    (tmp_path / "tars").mkdir()
    (tmp_path / "s.cls").write_text("7")
    with tarfile.open(tmp_path / "tars" / "a.tar", "w") as archive:
        archive.add(tmp_path / "s.cls", "s.cls")
    (batch,) = batches_of(tmp_path / "tars", format="webdataset")
    assert batch["cls"].tolist() == [7] and batch["__key__"] == ["s"]
    for name in ("cat/1.png", "dog/2.png"):
        (tmp_path / "images" / name).parent.mkdir(parents=True)
        (tmp_path / "images" / name).write_bytes(b"\x89PNG\r\n\x1a\n" + name.encode())
    (batch,) = batches_of(tmp_path / "images", batch_size=2)
    assert batch["class"] == ["cat", "dog"] and batch["label"].tolist() == [0, 1]


def test_urls_of_this_machine_are_read_in_place(table, tmp_path):
    pq.write_table(table, tmp_path / "a b.parquet")
    for place in (f"file://{tmp_path}", str(tmp_path), tmp_path):
        assert joined(batches_of(place, columns=["id"], batch_size=100), "id") == list(range(100))


def test_arrays_in_memory_are_a_data_set_until_it_is_closed(cache):
    arrays = {
        "image": np.arange(5000 * 12, dtype=np.uint8).reshape(5000, 4, 3),
        "label": np.arange(5000),
        "flag": np.arange(5000) % 2 == 0,
        "big": np.arange(5000).astype(">f4"),
        "list": list(range(5000)),
    }
    with tuneloader.Dataset.from_numpy(arrays, batch_size=512, shuffle=True, seed=3) as dataset:
        seen = list(dataset)
        assert [name for name in os.listdir(cache) if not name.startswith(".")]
    order = np.concatenate([batch["label"] for batch in seen])
    assert sorted(order) == list(range(5000))
    for name, values in arrays.items():
        assert (np.concatenate([batch[name] for batch in seen]) == np.asarray(values)[order]).all(), name
    assert not os.listdir(cache)
    dataset = tuneloader.Dataset(arrays)
    batch = next(iter(dataset))
    del dataset
    assert not os.listdir(cache) and batch["label"].tolist() == [0]
    with pytest.raises(ValueError, match="same number of samples"):
        tuneloader.Dataset({"a": np.arange(3), "b": np.arange(4)})
    with pytest.raises(TypeError, match="not of builtins.int"):
        tuneloader.Dataset(7)
    assert not os.listdir(cache)


def test_arrays_in_memory_are_what_mosaic_would_read(cache, tmp_path):
    arrays = {"y": np.arange(9, dtype=np.int32), "a": np.arange(18, dtype=np.float64).reshape(9, 2)}
    with tuneloader.Dataset(arrays) as dataset:
        folder = dataset._held.folder
        with tuneloader.MDSWriter(out=str(tmp_path / "mds"), columns={"y": "int32", "a": "ndarray:float64:2"}, size_limit=None) as out:
            for i in range(9):
                out.write({name: values[i] for name, values in arrays.items()})
        for name in ("shard.00000.mds", "index.json"):
            assert (pathlib.Path(folder) / name).read_bytes() == (tmp_path / "mds" / name).read_bytes()


def test_texts_lists_and_frames_in_memory(cache):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5], "t": ["a", None, "c"], "n": pd.array([1, None, 3], dtype="Int64")})
    with tuneloader.Dataset.from_pandas(frame, batch_size=3) as dataset:
        (batch,) = dataset
    assert batch["x"].tolist() == [1.5, 2.5, 3.5] and batch["t"] == ["a", None, "c"]
    assert batch["n__valid"].tolist() == [True, False, True]
    (batch,) = batches_of(pd.DataFrame({"x": np.arange(4), "f": np.float32(0.5)}), batch_size=4)
    assert batch["f"].dtype == np.float32 and batch["x"].tolist() == [0, 1, 2, 3]
    (batch,) = batches_of({"t": ["a", "b"], "l": [[1], [2, 3]], "m": np.ones((2, 2))}, batch_size=2)
    assert batch["t"] == ["a", "b"] and batch["l"][1].tolist() == [2, 3] and batch["m"].shape == (2, 2)
    assert not os.listdir(cache)


def test_hugging_face_data_sets(cache):
    datasets = pytest.importorskip("datasets")
    source = datasets.Dataset.from_dict(
        {"text": ["a", "b", "c"], "label": [0, 1, 1], "matrix": [[[1, 2], [3, 4]]] * 3},
        features=datasets.Features({
            "text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"]),
            "matrix": datasets.Array2D((2, 2), "float32"),
        }),
    )  # fmt: skip
    with tuneloader.Dataset.from_hf(source.select([2, 0]), batch_size=2) as dataset:
        (batch,) = dataset
    assert batch["text"] == ["c", "a"] and batch["label"].tolist() == [1, 0]
    assert batch["matrix"].dtype == np.float32 and batch["matrix"].tolist() == [[[1, 2], [3, 4]]] * 2
    with pytest.raises(TypeError, match="split by split"):
        tuneloader.Dataset(datasets.DatasetDict({"train": source}))


def test_what_a_killed_process_held_is_deleted_by_the_next(cache):
    code = """
        import os, signal, numpy, tuneloader
        dataset = tuneloader.Dataset({"x": numpy.arange(10)})
        os.kill(os.getpid(), signal.SIGKILL)
    """
    environment = {**os.environ, "PYTHONPATH": str(MODULE)}
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment, timeout=60)
    assert killed.returncode == -signal.SIGKILL and len(os.listdir(cache)) == 1
    with tuneloader.Dataset({"x": np.arange(3)}) as dataset:
        assert len(os.listdir(cache)) == 1
        pid = os.fork()
        if pid == 0:
            dataset.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert joined(list(dataset), "x") == [0, 1, 2], "a child's close() leaves the parent's files alone"
    assert not os.listdir(cache)


def test_without_arrow_the_sentence_says_what_to_install(table, tmp_path):
    """The library as it stands in an environment without pyarrow: without the folder that its search path names."""
    pq.write_table(table, tmp_path / "a.parquet")
    module = tmp_path / "module" / "tuneloader"
    module.mkdir(parents=True)
    for file in (MODULE / "tuneloader").iterdir():
        target = module / file.name
        if file.is_dir():
            target.symlink_to(file.resolve())
        else:
            # And without the build's folder of libraries.
            target.write_bytes(file.read_bytes().replace(str(BIN).encode(), b"/" + b"x" * (len(str(BIN)) - 1)))
    moved = (BIN / "libtune_tables.so").read_bytes()
    # A name that no folder has, of the same length, in place of the wheel's.
    (module / "libtune_tables.so").write_bytes(moved.replace(b"/pyarrow", b"/nowhere"))
    code = """
        import sys
        sys.path = [path for path in sys.path if "site-packages" not in path]
        import tuneloader
        try:
            tuneloader.Dataset(sys.argv[1])
        except NotImplementedError as error:
            print(error)
    """
    told = subprocess.run([sys.executable, "-c", textwrap.dedent(code), tmp_path / "a.parquet"], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "PYTHONPATH": str(module.parent)}, timeout=60)  # fmt: skip
    assert "pip install 'pyarrow==26.*'" in told.stdout and "Parquet files and Delta tables need" in told.stdout, told

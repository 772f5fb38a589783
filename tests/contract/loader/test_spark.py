"""tuneloader.spark and dataframe_to_mds with real Spark, classic and Connect. pyspark is not in the environment of the other tests:

    build/engines-venv/bin/python -m pytest tests/contract/loader/test_spark.py

as tests/run.sh does in its suite "engines", or any environment with pyspark 4 (and its Connect packages) beside the tests' own. Java 17 is needed.
"""

import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pyspark = pytest.importorskip("pyspark", reason="pyspark is in an environment of its own")
pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")
from tuneloader.spark import SparkDatasetConverter, from_spark, make_spark_converter, register_delete_dir_handler  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MODULE = pathlib.Path(tuneloader.__file__).parents[1]
SETTING = "petastorm.spark.converter.parentCacheDirUrl"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Of processes that Spark starts: they import tuneloader, pyspark and torch as this one does."""
    import absent_cuda

    libraries = tmp_path_factory.mktemp("libraries")
    absent_cuda.prepare(libraries)
    java = pathlib.Path("/usr/lib/jvm/java-17-openjdk-amd64")
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(MODULE), str(pathlib.Path(pyspark.__file__).parents[1])]),
        "LD_LIBRARY_PATH": str(libraries),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **({"JAVA_HOME": str(java)} if java.exists() else {}),
    }


@pytest.fixture(scope="module")
def spark(environment):
    from pyspark.sql import SparkSession

    before = dict(os.environ)
    os.environ.update(environment)
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def cache(spark, tmp_path):
    spark.conf.set(SETTING, f"file://{tmp_path}/cache")
    return tmp_path / "cache"


@pytest.fixture
def frame(spark):
    from pyspark.ml.linalg import Vectors

    rows = [(i, i / 3, [i / 2, 1.0], Vectors.dense([i, 2.0 * i, 0.5]), i % 2 == 0, f"t{i}") for i in range(100)]
    schema = ["id", "x", "list", "vector", "flag", "text"]
    return spark.createDataFrame(rows, schema).repartitionByRange(4, "id")


def test_a_frame_becomes_tensors(frame, cache):
    converter = make_spark_converter(frame.drop("text"))
    assert len(converter) == 100 and converter.cache_dir_url.startswith(f"file://{cache}/") and len(converter.file_urls) == 4
    with converter.make_torch_dataloader(batch_size=30, num_epochs=1, shuffle_row_groups=False) as loader:
        batches = list(loader)
    ids = sum((batch["id"].tolist() for batch in batches), [])
    assert sorted(ids) == list(range(100)) and [len(batch["id"]) for batch in batches] == [30, 30, 30, 10]
    at = np.array(ids[:30])
    assert batches[0]["x"].dtype == torch.float32 and np.allclose(batches[0]["x"], (at / 3).astype(np.float32))
    assert batches[0]["vector"].dtype == torch.float32
    assert batches[0]["vector"].tolist() == [[float(i), 2.0 * i, 0.5] for i in at]
    assert batches[0]["list"].tolist() == [[i / 2, 1.0] for i in at] and batches[0]["flag"].dtype == torch.uint8
    converter.delete()
    assert not list(cache.iterdir())


def test_precision_is_as_asked_for(frame, cache):
    for dtype, expected, vector in [("float64", np.float64, np.float64), (None, np.float64, np.float64), ("float32", np.float32, np.float32)]:
        converter = make_spark_converter(frame.select("id", "x", "vector", "list"), dtype=dtype)
        with tuneloader.make_batch_reader(converter.file_urls) as reader:
            batch = next(reader)
        assert batch.x.dtype == batch.list.dtype == expected and batch.vector.dtype == vector and batch.id.dtype == np.int64
    with pytest.raises(ValueError, match="dtype must be"):
        make_spark_converter(frame, dtype="float16")
    with pytest.raises(RuntimeError, match="compression_codec must be one of"):
        make_spark_converter(frame, compression_codec="rar")


def test_the_same_plan_is_written_once(frame, cache):
    one = make_spark_converter(frame.select("id").filter("id > 3"))
    again = make_spark_converter(frame.select("id").filter("id > 3"))
    assert one.cache_dir_url == again.cache_dir_url and len(list(cache.iterdir())) == 1 and len(one) == 96
    for other in (
        make_spark_converter(frame.select("id").filter("id > 4")),
        make_spark_converter(frame.select("id").filter("id > 3"), dtype="float64"),
        make_spark_converter(frame.select("id").filter("id > 3"), compression_codec="zstd"),
        make_spark_converter(frame.select("id").filter("id > 3"), parquet_row_group_size_bytes=1 << 20),
    ):
        assert other.cache_dir_url != one.cache_dir_url
    one.delete()
    assert make_spark_converter(frame.select("id").filter("id > 3")).cache_dir_url != one.cache_dir_url


def test_the_setting_is_needed_and_is_a_url(frame, spark, tmp_path):
    spark.conf.unset(SETTING)
    with pytest.raises(ValueError, match=f"set the Spark setting {re.escape(SETTING)}"):
        make_spark_converter(frame)
    spark.conf.set(SETTING, str(tmp_path))
    with pytest.raises(ValueError, match="prepend 'file://'"):
        make_spark_converter(frame)
    spark.conf.set("tuneloader.spark.converter.parentCacheDirUrl", f"file://{tmp_path}/own")
    try:
        assert f"{tmp_path}/own/" in make_spark_converter(frame.select("id")).cache_dir_url
    finally:
        spark.conf.unset("tuneloader.spark.converter.parentCacheDirUrl")


def test_a_converter_goes_to_other_processes_and_shards(frame, spark, cache):
    converter = from_spark(frame.select("id", "x"))
    assert isinstance(converter, SparkDatasetConverter)

    def ids(shard):
        with converter.make_torch_dataloader(num_epochs=1, cur_shard=shard, shard_count=4) as loader:
            return [id_ for batch in loader for id_ in batch["id"].tolist()]

    parts = spark.sparkContext.parallelize(range(4), 2).map(ids).collect()
    assert sorted(sum(parts, [])) == list(range(100)) and all(parts)
    copy = pickle.loads(pickle.dumps(converter))
    assert copy.file_urls == converter.file_urls and len(copy) == 100


def test_a_folder_of_parquet_is_taken_as_it_is(frame, cache, tmp_path, monkeypatch):
    frame.select("id").write.parquet(f"file://{tmp_path}/written")
    converter = make_spark_converter(f"file://{tmp_path}/written")
    assert len(converter) == 100 and not cache.exists()
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    with pytest.raises(ValueError, match="must lie on DBFS"):
        make_spark_converter(f"file://{tmp_path}/written")


def test_a_frame_is_a_data_set_of_the_loader(frame, cache):
    converter = from_spark(frame, dtype=None)
    with converter.make_dataset(batch_size=25, shuffle=True, seed=2, shapes={"list": (2,)}) as dataset:
        batches = list(dataset)
    ids = np.concatenate([batch["id"] for batch in batches])
    assert sorted(ids) == list(range(100)) and ids.tolist() != list(range(100))
    assert (np.concatenate([batch["x"] for batch in batches]) == ids / 3).all()
    assert batches[0]["text"] == [f"t{i}" for i in ids[:25]] and batches[0]["list"].shape == (25, 2)


def test_ranks_of_horovod_are_compared(frame, cache, monkeypatch, caplog):
    converter = make_spark_converter(frame.select("id"))
    monkeypatch.setenv("HOROVOD_RANK", "1")
    monkeypatch.setenv("HOROVOD_SIZE", "2")
    converter.make_torch_dataloader()
    assert "not this process's rank 1 of 2" in caplog.text
    caplog.clear()
    converter.make_torch_dataloader(cur_shard=1, shard_count=2)
    assert not caplog.text


def test_folders_are_deleted_by_the_users_handler(frame, cache):
    deleted = []
    register_delete_dir_handler(deleted.append)
    try:
        converter = make_spark_converter(frame.select("id"))
        converter.delete()
    finally:
        register_delete_dir_handler(None)
    assert deleted == [converter.cache_dir_url]


def test_petastorms_data_sets_are_written_by_spark(spark, tmp_path):
    from pyspark.sql.types import IntegerType, StringType
    from tuneloader.codecs import NdarrayCodec, ScalarCodec
    from tuneloader.etl.dataset_metadata import materialize_dataset
    from tuneloader.spark_utils import dataset_as_rdd
    from tuneloader.unischema import Unischema, UnischemaField, dict_to_spark_row

    schema = Unischema("S", [
        UnischemaField("id", np.int32, (), ScalarCodec(IntegerType()), False),
        UnischemaField("text", np.str_, (), ScalarCodec(StringType()), True),
        UnischemaField("array", np.float32, (2, None), NdarrayCodec(), False),
    ])  # fmt: skip
    url = f"file://{tmp_path}/rows"
    with materialize_dataset(spark, url, schema, 1):
        rows = spark.sparkContext.parallelize(range(20), 2).map(
            lambda i: dict_to_spark_row(schema, {"id": i, "array": np.full((2, i + 1), i, np.float32)}))  # fmt: skip
        spark.createDataFrame(rows, schema.as_spark_schema()).write.parquet(url)
    with tuneloader.make_reader(url, seed=1) as reader:
        read = {int(row.id): row for row in reader}
    assert sorted(read) == list(range(20)) and read[3].array.shape == (2, 4) and read[3].text is None
    first = dataset_as_rdd(url, spark, ["id", "array"]).sortBy(lambda row: int(row.id)).first()
    assert first.id == 0 and first.array.shape == (2, 1)
    other = os.environ.get("TUNE_PETASTORM_PYTHON")
    if other:  # the real Petastorm reads what was written here
        # Its thread pool may end before the first row on a busy machine.
        code = f"""
from petastorm import make_reader
with make_reader({url!r}, reader_pool_type="dummy") as r:
    print(sorted((int(x.id), x.array.shape) for x in r))
"""
        told = subprocess.run([other, "-c", code], capture_output=True, text=True, timeout=300)
        assert told.stdout.splitlines()[0] == str([(i, (2, i + 1)) for i in range(20)]), told.stderr[-2000:]


def samples_of(folder):
    dataset = tuneloader.Dataset(str(folder), batch_size=16)
    with dataset:
        return [{name: values[i] for name, values in batch.items()} for batch in dataset for i in range(len(batch["id"]))]


def test_a_frame_becomes_mds(frame, tmp_path):
    """A part for each of Spark's partitions, in their order, as one data set."""
    out = tmp_path / "mds"
    kept = frame.select("id", "x", "list", "text")
    assert tuneloader.dataframe_to_mds(kept, mds_kwargs={"out": str(out), "hashes": ["xxh64"]}) == (str(out), "")
    index = json.loads((out / "index.json").read_text())
    folders = [shard["zip_data"]["basename"].split("/")[0] for shard in index["shards"]]
    assert [folder.split("-")[0] for folder in folders] == [f"{i:05d}" for i in range(4)]
    assert index["shards"][0]["column_encodings"] == ["int64", "ndarray:float64", "str", "float64"]
    found = samples_of(out)
    assert [int(sample["id"]) for sample in found] == list(range(100))
    assert found[7]["text"] == "t7" and float(found[7]["x"]) == 7 / 3 and list(found[7]["list"]) == [3.5, 1.0]
    with pytest.raises(FileExistsError, match="is not empty"):
        tuneloader.dataframe_to_mds(kept, mds_kwargs={"out": str(out)})
    tuneloader.dataframe_to_mds(kept.limit(3), mds_kwargs={"out": str(out), "exist_ok": True})
    assert len(samples_of(out)) == 3


def test_a_users_function_makes_the_samples_in_sparks_tasks(frame, tmp_path):
    def doubled(rows, add):
        for number in rows["id"]:
            yield {"id": int(number), "y": 2 * int(number) + add}
            yield {"id": int(number), "y": -1}

    kwargs = {"out": (str(tmp_path / "local"), str(tmp_path / "there")), "columns": {"id": "int", "y": "int"}}
    told = tuneloader.dataframe_to_mds(frame, mds_kwargs=kwargs, udf_iterable=doubled, udf_kwargs={"add": 5})
    assert told == (str(tmp_path / "local"), str(tmp_path / "there")) and not (tmp_path / "local").exists()
    found = samples_of(tmp_path / "there")
    assert len(found) == 200 and {int(s["y"]) for s in found if s["id"] == 9} == {23, -1}
    assert sorted(kwargs) == ["columns", "out"], "the caller's arguments stay as they were"


def test_frames_that_are_no_mds_are_refused(frame, spark, tmp_path):
    with pytest.raises(ValueError, match="column 'flag' of type boolean has no encoding"):
        tuneloader.dataframe_to_mds(frame.select("id", "flag"), mds_kwargs={"out": str(tmp_path / "a")})
    with pytest.raises(ValueError, match="no rows"):
        tuneloader.dataframe_to_mds(frame.filter("id < 0"), mds_kwargs={"out": str(tmp_path / "b")})
    with pytest.raises(ValueError, match="no column z; it has id"):
        tuneloader.dataframe_to_mds(frame.select("id"), mds_kwargs={"out": str(tmp_path / "c"), "columns": {"z": "int"}})
    unmerged = tuneloader.dataframe_to_mds(frame.select("id"), merge_index=False, mds_kwargs={"out": str(tmp_path / "d")})[0]
    assert len(list(pathlib.Path(unmerged).glob("*/index.json"))) == 4 and not (tmp_path / "d" / "index.json").exists()


def run_script(environment, code, *arguments):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], env=environment,
                          capture_output=True, text=True, timeout=900)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_spark_connect_and_the_end_of_the_process(environment, tmp_path):
    pytest.importorskip("grpc")
    code = """
        import json, sys
        from pyspark.sql import SparkSession
        from pyspark.sql.functions import col
        from tuneloader import make_spark_converter
        spark = SparkSession.builder.remote("local[1]").getOrCreate()
        assert "connect" in type(spark).__module__
        spark.conf.set("petastorm.spark.converter.parentCacheDirUrl", f"file://{sys.argv[1]}/cache")
        frame = spark.range(50).select("id", (col("id") / 4).alias("x"))
        converter = make_spark_converter(frame)
        same = make_spark_converter(spark.range(50).select("id", (col("id") / 4).alias("x")))
        with converter.make_torch_dataloader(batch_size=50, num_epochs=1) as loader:
            (batch,) = loader
        ids, kind = sorted(batch["id"].tolist()), str(batch["x"].dtype)
        from pyspark.ml.linalg import Vectors
        vectors = spark.createDataFrame([(i, Vectors.dense([i, 1.0])) for i in range(5)], ["id", "v"])
        with make_spark_converter(vectors).make_torch_dataloader(batch_size=5, num_epochs=1) as loader:
            (batch,) = loader
        dense = sorted(vector[0] for vector in batch["v"].tolist())
        from tuneloader import Dataset, dataframe_to_mds
        with Dataset(dataframe_to_mds(frame, mds_kwargs={"out": sys.argv[1] + "/mds"})[0], batch_size=50) as mds:
            assert sorted(next(iter(mds))["id"].tolist()) == list(range(50))
        print(json.dumps([len(converter), same.cache_dir_url == converter.cache_dir_url, ids, kind, dense]))
    """
    told = json.loads(run_script(environment, code, tmp_path).splitlines()[-1])
    assert told == [50, True, list(range(50)), "torch.float32", [0.0, 1.0, 2.0, 3.0, 4.0]]
    assert not list((tmp_path / "cache").iterdir()), "what was written is deleted when the process ends"


def test_the_example_of_petastorm_runs_with_one_import_changed(spark, tmp_path, monkeypatch):
    """One machine, and on a worker of Spark, as its notebooks of distributed tuning do."""
    random = np.random.default_rng(1)
    lines = []
    for _ in range(300):
        digit = int(random.integers(10))
        pixels = {28 * row + column + 1: 255 for row in range(2 * digit, 2 * digit + 5) for column in range(4, 24)}
        lines.append(f"{digit} " + " ".join(f"{at}:{value}" for at, value in sorted(pixels.items())))
    (tmp_path / "mnist.libsvm").write_text("\n".join(lines) + "\n")
    code = (HERE / "petastorm" / "examples" / "spark_converter_pytorch_example.py").read_text()
    changed = re.sub(r"^from petastorm", "from tuneloader", code, flags=re.M)
    for name in ("examples", "examples.spark_dataset_converter", "examples.spark_dataset_converter.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["examples.spark_dataset_converter.utils"].get_mnist_dir = lambda: str(tmp_path)
    names = {"__name__": "__main__x"}
    exec(compile(changed.replace("spark.stop()", "pass").replace("steps=100", "steps=10"), "example", "exec"), names)
    # Its models are of this module: what a worker is sent goes by value.
    accuracies = []
    monkeypatch.setattr("logging.info", lambda text, *values: accuracies.append(values[-1]) if text.startswith("Accuracy") else None)
    names["run"](str(tmp_path / "mnist.libsvm"))
    assert len(accuracies) == 2 and all(0 <= accuracy <= 1 for accuracy in accuracies)

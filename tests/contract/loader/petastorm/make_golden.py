"""Writes the data sets of this folder with the real Petastorm and Spark, and what Petastorm reads from them.

    python3.11 -m venv /tmp/petastorm
    /tmp/petastorm/bin/pip install pyarrow==14.0.2 numpy==1.26.4 pandas==2.1.4 pyspark==4.0.5 petastorm==0.13.1 \
        opencv-python-headless==4.10.0.84
    /tmp/petastorm/bin/python tests/contract/loader/petastorm/make_golden.py

Petastorm 0.13.1 needs a pyarrow before 15 and a numpy before 2, so it is not in the environment of the tests.
"""

import datetime
import decimal
import hashlib
import json
import pathlib
import shutil

import numpy as np
import petastorm
import pyarrow as pa
import pyarrow.parquet as pq
from petastorm import TransformSpec, make_batch_reader, make_reader
from petastorm.codecs import CompressedImageCodec, CompressedNdarrayCodec, NdarrayCodec, ScalarCodec
from petastorm.etl.dataset_metadata import materialize_dataset
from petastorm.etl.rowgroup_indexers import FieldNotNullIndexer, SingleFieldIndexer
from petastorm.etl.rowgroup_indexing import build_rowgroup_index
from petastorm.ngram import NGram
from petastorm.predicates import in_lambda, in_pseudorandom_split, in_set
from petastorm.selectors import SingleIndexSelector, UnionIndexSelector
from petastorm.unischema import Unischema, UnischemaField, dict_to_spark_row
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BooleanType, DecimalType, DoubleType, FloatType, IntegerType, LongType, ShortType, StringType, TimestampType,
)  # fmt: skip

HERE = pathlib.Path(__file__).resolve().parent
ROWS = 40

GoldenSchema = Unischema(
    "GoldenSchema",
    [
        UnischemaField("id", np.int64, (), ScalarCodec(LongType()), False),
        UnischemaField("time", np.int32, (), ScalarCodec(IntegerType()), False),
        UnischemaField("image", np.uint8, (8, 6, 3), CompressedImageCodec("png"), False),
        UnischemaField("grey", np.uint8, (5, 4), CompressedImageCodec("png"), False),
        UnischemaField("deep", np.uint16, (3, 4), CompressedImageCodec("png"), False),
        UnischemaField("matrix", np.float32, (3, None), NdarrayCodec(), False),
        UnischemaField("packed", np.float64, (2, 2), CompressedNdarrayCodec(), True),
        UnischemaField("name", np.str_, (), ScalarCodec(StringType()), True),
        UnischemaField("flag", np.bool_, (), ScalarCodec(BooleanType()), False),
        UnischemaField("small", np.uint16, (), ScalarCodec(IntegerType()), False),
        UnischemaField("short", np.int16, (), ScalarCodec(ShortType()), True),
        UnischemaField("real", np.float32, (), ScalarCodec(FloatType()), True),
        UnischemaField("plain", np.float64, (), None, False),
        UnischemaField("amount", decimal.Decimal, (), ScalarCodec(DecimalType(10, 2)), False),
        UnischemaField("when", np.datetime64, (), ScalarCodec(TimestampType()), False),
        UnischemaField("half", np.float64, (), ScalarCodec(DoubleType()), False),
    ],
)


def row(i):
    random = np.random.default_rng(i)
    return {
        "id": i,
        "time": i * 2 if i < 20 else i * 2 + 10,
        "image": random.integers(0, 255, (8, 6, 3), dtype=np.uint8),
        "grey": random.integers(0, 255, (5, 4), dtype=np.uint8),
        "deep": random.integers(0, 65535, (3, 4), dtype=np.uint16),
        "matrix": random.normal(size=(3, i % 3 + 1)).astype(np.float32),
        "packed": None if i % 5 == 0 else random.normal(size=(2, 2)),
        "name": None if i % 7 == 0 else f"row {i} é",
        "flag": bool(i % 2),
        "small": np.uint16(60000 + i),
        "short": None if i % 6 == 0 else np.int16(-i),
        "real": None if i % 9 == 0 else np.float32(i / 3),
        "plain": i / 7,
        "amount": decimal.Decimal(i).scaleb(-2),
        "when": datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=i),
        "half": i / 2,
    }


def told(value):
    """A value as JSON: type, shape, and what it holds."""
    if value is None:
        return None
    if hasattr(value, "categories"):  # of a partition
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.shape:
        if value.dtype == object or value.dtype.kind in "UM":
            return {"shape": list(value.shape), "values": [told(item) for item in value.reshape(-1)]}
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return {"dtype": str(value.dtype), "shape": list(value.shape), "sha256": digest}
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[us]"))
    if isinstance(value, (decimal.Decimal, datetime.date)):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, np.generic):
        return {"dtype": "str" if isinstance(value, np.str_) else str(value.dtype), "value": told(value.item())}
    return repr(value) if isinstance(value, float) else value


def rows_of(reader):
    with reader:
        return [{name: told(value) for name, value in row._asdict().items()} for row in reader]


def ids_of(reader):
    with reader:
        return [int(row.id) for row in reader]


def write_petastorm(spark, folder):
    url = f"file://{folder}"
    with materialize_dataset(spark, url, GoldenSchema, row_group_size_mb=1):
        rows = [dict_to_spark_row(GoldenSchema, row(i)) for i in range(ROWS)]
        frame = spark.createDataFrame(rows, GoldenSchema.as_spark_schema())
        frame.repartitionByRange(5, "id").sortWithinPartitions("id").write.mode("overwrite").parquet(url)
    build_rowgroup_index(
        url, spark.sparkContext, [SingleFieldIndexer("by_id", "id"), SingleFieldIndexer("by_name", "name"),
                                  FieldNotNullIndexer("has_packed", "packed")], hdfs_driver="libhdfs",
    )  # fmt: skip
    # Golden data has no time in it.
    for extra in [*folder.glob(".*.crc"), *folder.glob("_SUCCESS")]:
        extra.unlink()


def write_plain(folder):
    folder.mkdir(parents=True)
    for part in range(2):
        table = pa.table({
            "id": pa.array(range(part * 30, part * 30 + 30)),
            "x": pa.array([None if i % 4 == 0 else i for i in range(30)], pa.int32()),
            "y": pa.array(np.arange(30) / 4, pa.float32()),
            "text": pa.array([f"t{i}" for i in range(30)]),
            "vector": pa.array([[float(i), 0.5, -1.0] for i in range(30)], pa.list_(pa.float32())),
            "day": pa.array([datetime.date(2026, 1, 1) + datetime.timedelta(i) for i in range(30)]),
            "blob": pa.array([bytes([i]) for i in range(30)]),
            "flag": pa.array([bool(i % 2) for i in range(30)]),
            "amount": pa.array([decimal.Decimal(i).scaleb(-1) for i in range(30)], pa.decimal128(8, 1)),
        })  # fmt: skip
        (folder / f"part={part}").mkdir()
        pq.write_table(table, folder / f"part={part}" / "data.parquet", row_group_size=10)


def ngrams_of(reader):
    with reader:
        return [{str(step): {k: told(v) for k, v in row._asdict().items()} for step, row in window.items()} for window in reader]


def golden_of_rows(url):
    dummy = {"reader_pool_type": "dummy"}
    fixed = {**dummy, "shuffle_row_groups": False}
    schema = GoldenSchema
    ngram = {-1: [schema.id, schema.time], 0: ["time", "flag"], 1: [schema.id]}

    def doubled(row):
        row["double"] = np.float32(row["id"] * 2)
        return row

    spec = TransformSpec(doubled, edit_fields=[("double", np.float32, (), False)], removed_fields=["image", "grey", "deep"])
    return {
        "rows": rows_of(make_reader(url, **fixed)),
        "ids by seed": {seed: ids_of(make_reader(url, ["id"], seed=seed, num_epochs=2, **dummy)) for seed in (1, 2, 77)},
        "ids by shard": [ids_of(make_reader(url, ["id"], seed=5, cur_shard=i, shard_count=3, **dummy)) for i in range(3)],
        "ids in two parts": ids_of(make_reader(url, ["id"], seed=3, shuffle_row_drop_partitions=2, **dummy)),
        "split": [ids_of(make_reader(url, ["id", "name"], predicate=in_pseudorandom_split([0.3, 0.7], i, "id"), **fixed)) for i in (0, 1)],
        "lambda": ids_of(make_reader(url, ["id", "flag"], predicate=in_lambda(["flag", "id"], lambda f, i: f and i > 9), **fixed)),
        "set": rows_of(make_reader(url, ["id", "na.*"], predicate=in_set({3, 4, 39}, "id"), **fixed)),
        "transformed": rows_of(make_reader(url, transform_spec=spec, **fixed))[:3],
        "windows": ngrams_of(make_reader(url, NGram(ngram, 2, "time"), **fixed)),
        "apart": ngrams_of(make_reader(url, NGram(ngram, 2, schema.time, timestamp_overlap=False), **fixed)),
        "one index": ids_of(make_reader(url, ["id"], rowgroup_selector=SingleIndexSelector("by_id", [3, 38]), **fixed)),
        "two indexes": ids_of(make_reader(url, ["id"], rowgroup_selector=UnionIndexSelector(
            [SingleIndexSelector("by_id", [9]), SingleIndexSelector("by_name", ["row 25 é"])]), **fixed)),
    }  # fmt: skip


def golden_of_batches(url):
    dummy = {"reader_pool_type": "dummy"}
    fixed = {**dummy, "shuffle_row_groups": False}

    def with_square(frame):
        frame["square"] = frame["y"] ** 2
        frame["cube"] = [np.full((2, 2), value, np.float32) for value in frame["y"]]
        return frame[["cube", "id", "square"]]

    spec = TransformSpec(
        with_square, edit_fields=[("square", np.float32, (), False), ("cube", np.float32, (2, 2), False)],
        selected_fields=["cube", "id", "square"],
    )  # fmt: skip

    def ids(reader):
        with reader:
            return [batch.id.tolist() for batch in reader]

    return {
        "batches": rows_of(make_batch_reader(url, **fixed)),
        "ids by seed": {seed: ids(make_batch_reader(url, ["id"], seed=seed, num_epochs=2, **dummy)) for seed in (1, 9)},
        "ids by shard": [ids(make_batch_reader(url, ["id"], seed=4, cur_shard=i, shard_count=4, **dummy)) for i in range(4)],
        "lambda": ids(make_batch_reader(url, ["id", "y"], predicate=in_lambda(["y"], lambda y: y > 2), **fixed)),
        "partition": ids(make_batch_reader(url, predicate=in_set({1}, "part"), **fixed)),
        "transformed": rows_of(make_batch_reader(url, transform_spec=spec, **fixed))[:2],
        "filtered": ids(make_batch_reader(url, ["id"], filters=[("part", "=", 1)], **fixed)),
    }


def main():
    spark = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    for name in ("rows", "plain"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    write_petastorm(spark, HERE / "rows")
    write_plain(HERE / "plain")
    golden = {
        "petastorm": petastorm.__version__,
        "rows": golden_of_rows(f"file://{HERE}/rows"),
        "plain": golden_of_batches(f"file://{HERE}/plain"),
    }
    (HERE / "golden.json").write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()

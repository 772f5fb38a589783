"""Parquet files as a Dataset reads them, against pyarrow; damaged ones."""

import datetime
import decimal
import io
import math

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("pyarrow.compute")
import rows  # noqa: E402

pytestmark = pytest.mark.skipif(not rows.has_arrow(), reason="a build without Arrow")

EPOCH = datetime.date(1970, 1, 1)
TYPES = {
    "bool": (pa.bool_(), lambda r: bool(r.integers(2))),
    "i8": (pa.int8(), lambda r: int(r.integers(-128, 128))),
    "u16": (pa.uint16(), lambda r: int(r.integers(0, 2**16))),
    "i32": (pa.int32(), lambda r: int(r.integers(-(2**31), 2**31))),
    "u64": (pa.uint64(), lambda r: int(r.integers(0, 2**63)) * 2 + 1),
    "i64": (pa.int64(), lambda r: int(r.integers(-(2**63), 2**63 - 1))),
    "f32": (pa.float32(), lambda r: float(np.float32(r.normal()))),
    "f64": (pa.float64(), lambda r: float(r.normal())),
    "text": (pa.string(), lambda r: "".join(r.choice(list("aé€😀 "), r.integers(0, 9)))),
    "big_text": (pa.large_string(), lambda r: "x" * int(r.integers(0, 9))),
    "blob": (pa.binary(), lambda r: r.bytes(int(r.integers(0, 9)))),
    "code": (pa.binary(3), lambda r: r.bytes(3)),
    "date": (pa.date32(), lambda r: EPOCH + datetime.timedelta(int(r.integers(-9999, 9999)))),
    "time": (pa.timestamp("us"), lambda r: int(r.integers(0, 2**50))),
    "amount": (pa.decimal128(12, 3), lambda r: decimal.Decimal(int(r.integers(-(10**9), 10**9))).scaleb(-3)),
    "list": (pa.list_(pa.float32()), lambda r: [float(v) for v in np.float32(r.normal(size=r.integers(0, 5)))]),
    "long_list": (pa.large_list(pa.int16()), lambda r: [int(v) for v in r.integers(-9, 9, r.integers(0, 5))]),
    "fixed": (pa.list_(pa.int32(), 3), lambda r: [int(v) for v in r.integers(-9, 9, 3)]),
    "nested": (pa.list_(pa.list_(pa.int64())), lambda r: [[int(v)] * int(v) for v in r.integers(0, 3, 2)]),
    "struct": (pa.struct([("a", pa.int64()), ("b", pa.string())]), lambda r: {"a": int(r.integers(9)), "b": None}),
    "map": (pa.map_(pa.string(), pa.int64()), lambda r: [("k", int(r.integers(9)))]),
}


def random_table(count, seed, null_share=0.0, names=tuple(TYPES)):
    random = np.random.default_rng(seed)
    return pa.table(
        {
            name: pa.array([None if random.random() < null_share else TYPES[name][1](random) for _ in range(count)], TYPES[name][0])
            for name in names
        }
    )


def plain(value, type_):
    """A value of pyarrow as the probe prints it."""
    if value is None:
        return None
    if pa.types.is_boolean(type_):
        return int(value)
    if pa.types.is_date(type_):
        return (value - EPOCH).days
    if pa.types.is_timestamp(type_):
        return round((value - datetime.datetime(1970, 1, 1, tzinfo=value.tzinfo)) / datetime.timedelta(microseconds=1))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if pa.types.is_map(type_):
        return dict(value)
    return value


def expected(table):
    types = {field.name: field.type for field in table.schema}
    return [{name: plain(value, types[name]) for name, value in row.items()} for row in table.to_pylist()]


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("seed", range(4))
def test_random_tables_are_pyarrows(tmp_path, seed, threads):
    table = random_table(300, seed, null_share=[0, 0.2][seed % 2])
    options = [{}, {"compression": "zstd", "data_page_version": "2.0"}, {"use_dictionary": False}, {"compression": "none"}]
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=[37, 300, 1000, 1][seed], **options[seed])
    _, unshuffled = rows.read(tmp_path / "t.parquet", nulls="mask", threads=threads)
    assert [row["__id"] for row in unshuffled] == list(range(300))
    assert rows.in_order(unshuffled) == expected(table)
    _, shuffled = rows.read(tmp_path / "t.parquet", nulls="mask", threads=threads, shuffle=True, bytes_max=1)
    assert rows.in_order(shuffled) == expected(table)
    assert [row["__id"] for row in shuffled] != list(range(300))


def test_dictionaries_and_several_files(tmp_path):
    table = random_table(90, 9, names=("i64", "text"))
    table = table.append_column("kind", pa.array(["x", "yy", "z"] * 30).dictionary_encode())
    for part in range(3):
        pq.write_table(table.slice(part * 30, 30), tmp_path / f"part-{part}.parquet", row_group_size=11)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "_metadata").write_text("not data")
    columns, read = rows.read(tmp_path)
    assert columns == {"i64": "int64", "kind": "str", "text": "str"}
    assert rows.in_order(read) == expected(table)


@pytest.mark.parametrize("written", [{}, {"dictionary_pagesize_limit": 64, "data_page_size": 64}, {"use_dictionary": False}, {"data_page_version": "2.0"}], ids=str)
@pytest.mark.parametrize("threads", [0, 2])
def test_texts_are_the_same_however_they_are_stored(tmp_path, written, threads):
    """In a dictionary, in one that gave up after some pages, and in none; with nulls, and rows that do not count between others."""
    random = np.random.default_rng(5)
    texts = [None if random.random() < 0.2 else f"text {random.integers(0, 40)}" * int(random.integers(0, 3)) for _ in range(600)]
    table = pa.table({"n": range(600), "t": texts, "b": pa.array([t and t.encode() for t in texts], pa.binary()), "none": pa.nulls(600, pa.string())})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=150, **written)
    for options in ({"shuffle": True, "batch_size": 7}, {"batch_size": 64}):
        _, read = rows.read(tmp_path, nulls="mask", threads=threads, **options)
        assert rows.in_order(read) == expected(table)
    _, kept = rows.read(tmp_path, nulls="mask", threads=threads, filters=[["n >= 100", "n != 200", "n < 480"]], batch_size=50)
    assert rows.in_order(kept) == [row for row in expected(table) if 100 <= row["n"] < 480 and row["n"] != 200]
    whole = table.filter(pa.compute.is_valid(table["t"])).select(["n", "t"])
    pq.write_table(whole, tmp_path / "t.parquet", row_group_size=150, **written)
    assert rows.in_order(rows.read(tmp_path, threads=threads, batch_size=32)[1]) == expected(whole)


def test_columns_are_projected_and_retyped(tmp_path):
    pq.write_table(pa.table({"a": pa.array([-1, 2], pa.int8()), "b": [1.5, 2.5], "c": ["x", "y"]}), tmp_path / "t.parquet")
    columns, read = rows.read(tmp_path, columns=["a"], column_options=[{"name": "a", "dtype": "float32"}])
    assert columns == {"a": "float32"} and [row["a"] for row in read] == [-1.0, 2.0]
    message = rows.fault(tmp_path, column_options=[{"name": "b", "dtype": "float32"}])
    assert "'b' is stored as float64, and float32 does not hold every value" in message
    options = [{"name": "b", "dtype": "int8", "allows_narrowing": True}]
    assert [row["b"] for row in rows.read(tmp_path, column_options=options)[1]] == [1, 2]
    assert "holds no numbers" in rows.fault(tmp_path, column_options=[{"name": "c", "dtype": "int8"}])
    assert "there is no column 'z'; the data set has a b c" in rows.fault(tmp_path, columns=["z"])


def test_lists_take_a_stated_shape(tmp_path):
    pq.write_table(pa.table({"v": pa.array([[1.0, 2.0, 3.0, 4.0]] * 3 + [[0.0] * 4])}), tmp_path / "t.parquet")
    columns, read = rows.read(tmp_path, column_options=[{"name": "v", "shape": [2, 2]}])
    assert columns == {"v": "ndarray:float64:2,2"} and read[0]["v"] == [1.0, 2.0, 3.0, 4.0]
    message = rows.fault(tmp_path, column_options=[{"name": "v", "shape": [3]}])
    assert "t.parquet" in message and "row 0, column 'v': 4 elements, but its shape takes 3" in message


def test_nulls_are_refused_masked_or_filled(tmp_path):
    table = pa.table({"n": [1, None, 3], "t": ["a", None, "c"], "v": pa.array([[1], None, [2, 3]], pa.list_(pa.int8()))})
    pq.write_table(table, tmp_path / "t.parquet")
    assert "row 1, column 'n': a null" in rows.fault(tmp_path)
    _, masked = rows.read(tmp_path, nulls="mask")
    assert rows.in_order(masked) == table.to_pylist()
    options = [{"name": "n", "nulls": "fill", "fill": "-7"}, {"name": "t", "nulls": "fill", "fill": "?"}, {"name": "v", "nulls": "fill"}]
    columns, filled = rows.read(tmp_path, column_options=options)
    assert columns["n"] == "int64" and filled[1]["n"] == -7 and filled[1]["t"] == "?" and filled[1]["v"] == []
    pq.write_table(pa.table({"v": [[1, None]]}), tmp_path / "t.parquet")
    assert "a null in a list" in rows.fault(tmp_path, nulls="mask")


FILTERS = [
    [["n >= 40"]],
    [["n < 3"], ["n > 95", "t != w7"]],
    [["t in w1,w3"]],
    [["t not in w1,w3", "n <= 20"]],
    [["f > 0.5", "d >= 2020-02-01"]],
    [["n == 50"], ["b = true", "n < 9"]],
    [["f != 0.25"]],
    [["when > 2020-01-01T00:01:00"]],
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_select_what_pyarrows_do(tmp_path, filters):
    random = np.random.default_rng(3)
    count = 100
    table = pa.table(
        {
            "n": pa.array([None if i % 11 == 0 else i for i in range(count)]),
            "t": [None if i % 7 == 0 else f"w{i % 5}" for i in range(count)],
            "f": [float("nan") if i % 13 == 0 else float(random.choice([0.25, 0.75])) for i in range(count)],
            "d": [datetime.date(2020, 1, 1) + datetime.timedelta(i) for i in range(count)],
            "b": [i % 2 == 0 for i in range(count)],
            "when": pa.array([1577836800000 + i * 1000 for i in range(count)], pa.timestamp("ms")),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=9)

    def value(column, text):
        if column == "when":
            return datetime.datetime.fromisoformat(text)
        if column == "d":
            return datetime.date.fromisoformat(text)
        return {"n": int, "f": float, "b": lambda t: t == "true", "t": str}[column](text)

    def pyarrow_filter(text):
        if " in " in text:
            column, op, rest = text.partition(" not in " if " not in " in text else " in ")
            return column, op.strip(), [value(column, item) for item in rest.split(",")]
        column, op, rest = text.split(" ")
        return column, op, value(column, rest)

    wanted = pq.read_table(tmp_path / "t.parquet", filters=[[pyarrow_filter(f) for f in group] for group in filters])
    if wanted.num_rows == 0:
        assert "no row of the table is left" in rows.fault(tmp_path, filters=filters, nulls="mask")
        return
    _, read = rows.read(tmp_path, filters=filters, nulls="mask", columns=["d", "n", "t"])
    assert rows.in_order(read) == expected(wanted.select(["n", "t", "d"]))
    _, shuffled = rows.read(tmp_path, filters=filters, nulls="mask", columns=["d", "n", "t"], shuffle=True, epochs=2)
    assert len(shuffled) == 2 * len(read)


def test_filters_that_fit_no_column_are_named(tmp_path):
    pq.write_table(pa.table({"n": [1], "t": ["x"]}), tmp_path / "t.parquet")
    assert "names a column that does not exist" in rows.fault(tmp_path, filters=[["z > 1"]])
    assert "does not fit its column, which is string" in rows.fault(tmp_path, filters=[["t > 1"]])
    assert "does not fit its column, which is int64" in rows.fault(tmp_path, filters=[["n > x"]])
    assert "no row of the table is left" in rows.fault(tmp_path, filters=[["n > 1"]])


def test_hive_partitions_are_columns(tmp_path):
    table = random_table(60, 4, names=("i64", "text"))
    table = table.append_column("year", pa.array([2020 + i % 3 for i in range(60)]))
    table = table.append_column("place", pa.array([None if i % 5 == 0 else "a b/c" for i in range(60)]))
    pq.write_to_dataset(table, tmp_path / "d", partition_cols=["year", "place"])
    columns, read = rows.read(tmp_path / "d", nulls="mask")
    assert columns["year"] == "int64?" and columns["place"] == "str?"
    key = lambda row: row["i64"]  # noqa: E731
    assert sorted(rows.in_order(read), key=key) == sorted(expected(table), key=key)
    _, some = rows.read(tmp_path / "d", nulls="mask", filters=[["year = 2021", "place = 'a b/c'"]])
    assert sorted(row["i64"] for row in some) == sorted(
        row["i64"] for row in table.to_pylist() if row["year"] == 2021 and row["place"]
    )


def npy(array, packed=False):
    file = io.BytesIO()
    np.savez_compressed(file, arr=array) if packed else np.save(file, array)
    return file.getvalue()


def test_what_petastorm_wrote_is_read(tmp_path):
    """Its codecs are bytes of .npy and .npz; its schema is a pickle under a key of _common_metadata, never opened."""
    arrays = [np.arange(6, dtype=np.int16).reshape(2, 3) + i for i in range(4)]
    table = pa.table(
        {
            "id": range(4),
            "m": pa.array([npy(a) for a in arrays], pa.binary()),
            "z": pa.array([npy(a.astype("f4"), True) for a in arrays], pa.binary()),
            "jpg": pa.array([b"\xff\xd8" + bytes([i]) for i in range(4)], pa.binary()),
        }
    )
    pq.write_table(table, tmp_path / "part-0.parquet", row_group_size=2)
    schema = table.schema.with_metadata({b"dataset-toolkit.unischema.v1": b"cos\nsystem\n(S'false'\ntR."})
    pq.write_metadata(schema, tmp_path / "_common_metadata")
    columns, read = rows.read(tmp_path)
    assert columns == {"id": "int64", "m": "ndarray", "z": "ndarray", "jpg": "bytes"}
    assert read[1]["m"] == {"dtype": "int16", "shape": [2, 3], "data": arrays[1].flatten().tolist()}
    assert read[2]["z"]["dtype"] == "float32" and read[2]["z"]["data"] == arrays[2].flatten().tolist()
    options = [{"name": "m", "shape": [2, 3], "dtype": "float32"}, {"name": "z", "shape": [2, 3], "dtype": "float32"}]
    columns, fixed = rows.read(tmp_path, column_options=options)
    assert columns["m"] == "ndarray:float32:2,3" and fixed[3]["m"] == arrays[3].flatten().tolist()
    options[0]["shape"] = [3, 2]
    assert "another shape" in rows.fault(tmp_path, column_options=options)


def test_damaged_files_are_named_and_never_crash(tmp_path):
    random = np.random.default_rng(11)
    table = random_table(200, 5, null_share=0.1)
    pq.write_table(table, tmp_path / "whole.parquet", row_group_size=50)
    whole = (tmp_path / "whole.parquet").read_bytes()
    damaged = tmp_path / "d.parquet"
    for attempt in range(60):
        data = bytearray(whole)
        if attempt % 3 == 0:
            data = data[: int(random.integers(0, len(data)))]
        else:
            # The footer is where a flipped bit does most.
            begin = len(data) - 4000 if attempt % 3 == 1 else 0
            for _ in range(int(random.integers(1, 6))):
                data[int(random.integers(max(begin, 0), len(data)))] ^= 1 << int(random.integers(8))
        damaged.write_bytes(data)
        result = rows.run_probe(damaged, nulls="mask")
        assert result.returncode in (0, 1), (attempt, result.returncode, result.stderr[-500:])
        if result.returncode == 1:
            assert "d.parquet" in result.stderr, result.stderr

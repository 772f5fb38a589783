"""Delta tables as a Dataset reads them, against the deltalake package; tables it cannot write are made here by the
protocol's text; damaged ones."""

import datetime
import json
import struct
import time
import uuid
import zlib

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
deltalake = pytest.importorskip("deltalake")
import rows  # noqa: E402
from test_parquet import expected, random_table  # noqa: E402

pytestmark = pytest.mark.skipif(not rows.has_arrow(), reason="a build without Arrow")

NAMES = ("bool", "i8", "i32", "i64", "f32", "f64", "text", "blob", "date", "time", "amount", "list", "struct")


def same_rows(path, key="id", **options):
    """What we read against what the package reads, as rows sorted by `key`."""
    version = options.get("version")
    table = deltalake.DeltaTable(path, version=version).to_pyarrow_table()
    _, read = rows.read(path, nulls="mask", **options)
    assert sorted((dict(row) for row in rows.in_order(read)), key=lambda r: r[key]) == sorted(
        expected(table), key=lambda r: r[key]
    )
    return len(read)


def numbered(count, seed, start=0):
    return random_table(count, seed, 0.1, NAMES).append_column("id", pa.array(range(start, start + count)))


def test_appends_overwrites_deletes_updates_and_time_travel(tmp_path):
    path = tmp_path / "t"
    deltalake.write_deltalake(path, numbered(60, 1))
    deltalake.write_deltalake(path, numbered(40, 2, 60), mode="append")
    table = deltalake.DeltaTable(path)
    table.delete("id % 7 = 3")
    table.update(updates={"text": "'changed'"}, predicate="id > 80")
    deltalake.write_deltalake(path, numbered(15, 3), mode="overwrite")
    counts = [same_rows(path, version=version) for version in range(5)]
    assert counts == [60, 100, 86, 86, 15] and same_rows(path) == 15
    assert "has no version 5; its newest is 4" in rows.fault(path, version=5)
    _, shuffled = rows.read(path, nulls="mask", version=1, shuffle=True, epochs=2)
    assert sorted(row["id"] for row in shuffled[:100]) == list(range(100))


def test_timestamps_choose_the_newest_state_not_later(tmp_path):
    path = tmp_path / "t"
    times = []
    for part in range(3):
        deltalake.write_deltalake(path, pa.table({"id": [part]}), mode="append")
        times.append(datetime.datetime.now(datetime.timezone.utc))
        while time.time_ns() // 10**6 <= int(times[-1].timestamp() * 1000):
            pass  # commits state milliseconds
    for part, when in enumerate(times):
        _, read = rows.read(path, timestamp=when.isoformat())
        assert sorted(row["id"] for row in read) == list(range(part + 1))
    assert "holds no state as old as" in rows.fault(path, timestamp="2001-01-01")
    assert "is no time" in rows.fault(path, timestamp="yesterday")
    assert "not both" in rows.fault(path, timestamp="2001-01-01", version=1)


def test_schema_change_and_partitions(tmp_path):
    path = tmp_path / "t"
    first = pa.table({"id": [0, 1, 2], "place": ["a b", None, "c/d=e"], "day": [datetime.date(2020, 1, i + 1) for i in range(3)]})
    deltalake.write_deltalake(path, first, partition_by=["place", "day"])
    second = first.set_column(0, "id", pa.array([3, 4, 5])).append_column("new", pa.array([1.5, None, 2.5]))
    deltalake.write_deltalake(path, second, mode="append", schema_mode="merge")
    assert same_rows(path) == 6
    _, read = rows.read(path, nulls="mask", filters=[["place = 'c/d=e'"], ["day = 2020-01-01", "id > 2"]])
    assert sorted(row["id"] for row in read) == [2, 3, 5]
    assert same_rows(path, version=0) == 3


def test_checkpoints_and_a_cleaned_log(tmp_path):
    path = tmp_path / "t"
    for part in range(4):
        deltalake.write_deltalake(path, numbered(10, part, 10 * part), mode="append")
    deltalake.DeltaTable(path).delete("id % 5 = 1")
    deltalake.DeltaTable(path).create_checkpoint()
    deltalake.write_deltalake(path, numbered(10, 7, 40), mode="append")
    assert same_rows(path) == 42 and same_rows(path, version=4) == 32
    for version in range(4):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    assert same_rows(path) == 42
    assert "the log was cleaned up since" in rows.fault(path, version=2)
    (path / "_delta_log" / "_last_checkpoint").write_text('{"version": 99, "size": -1}')  # a hint, and a wrong one
    assert len(rows.read(path, nulls="mask")[1]) == 42
    (path / "_delta_log" / f"{4:020}.checkpoint.parquet").unlink()
    assert "needs the commit" in rows.fault(path)


# Tables made by hand, for what the package does not write.


def z85(data):
    alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    text = ""
    for (value,) in struct.iter_unpack(">I", data):
        text += "".join(alphabet[value // 85**power % 85] for power in range(4, -1, -1))
    return text


def roaring(values, runs=False):
    """Delta's magic number and a portable 64-bit Roaring bitmap."""
    buckets = {}
    for value in values:
        buckets.setdefault(value >> 32, {}).setdefault(value >> 16 & 0xFFFF, []).append(value & 0xFFFF)
    out = struct.pack("<IQ", 1681511377, len(buckets))
    for bucket, containers in sorted(buckets.items()):
        headers = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in sorted(containers.items()))
        bodies = []
        for _, low in sorted(containers.items()):
            if runs:
                pairs = []
                for value in sorted(low):
                    if pairs and value == pairs[-1][0] + pairs[-1][1] + 1:
                        pairs[-1][1] += 1
                    else:
                        pairs.append([value, 0])
                bodies.append(struct.pack("<H", len(pairs)) + b"".join(struct.pack("<HH", *pair) for pair in pairs))
            elif len(low) > 4096:
                bits = bytearray(8192)
                for value in low:
                    bits[value // 8] |= 1 << value % 8
                bodies.append(bytes(bits))
            else:
                bodies.append(struct.pack(f"<{len(low)}H", *sorted(low)))
        count = len(containers)
        if runs:
            prefix = struct.pack("<I", 12347 | (count - 1) << 16) + b"\xff" * ((count + 7) // 8) + headers
        else:
            prefix = struct.pack("<II", 12346, count) + headers
        if not runs or count >= 4:
            at = len(prefix) + 4 * count
            for body in bodies:
                prefix += struct.pack("<I", at)
                at += len(body)
        out += struct.pack("<I", bucket) + prefix + b"".join(bodies)
    return out


def schema_string(fields):
    return json.dumps({"type": "struct", "fields": fields})


def field(name, type_="long", **metadata):
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


class Table:
    """Writes commits of a table action by action."""

    def __init__(self, path, fields=(field("id"),), features=("deletionVectors",), configuration=None, partitions=()):
        self.path, self.version = path, 0
        (path / "_delta_log").mkdir(parents=True)
        self.head = [
            {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": list(features), "writerFeatures": list(features)}},
            {"metaData": {"id": "x", "format": {"provider": "parquet", "options": {}}, "schemaString": schema_string(list(fields)),
                          "partitionColumns": list(partitions), "configuration": configuration or {}}},
        ]  # fmt: skip
        self.commit(*self.head)

    def commit(self, *actions):
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (self.path / "_delta_log" / f"{self.version:020}.json").write_text(text)
        self.version += 1

    def file(self, name, table, **options):
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, self.path / name, **options)
        return {"path": name, "size": (self.path / name).stat().st_size, "partitionValues": {}, "modificationTime": 0, "dataChange": True}

    def vector(self, values, runs=False, offset=1):
        name = uuid.uuid4()
        data = roaring(values, runs)
        block = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        (self.path / f"deletion_vector_{name}.bin").write_bytes(b"\x01" + b"\x00" * (offset - 1) + block)
        return {"storageType": "u", "pathOrInlineDv": z85(name.bytes), "offset": offset, "sizeInBytes": len(data), "cardinality": len(values)}


def ids(path, **options):
    return sorted(row["id"] for row in rows.read(path, **options)[1])


@pytest.mark.parametrize("runs", [False, True])
def test_deletion_vectors_of_every_container(tmp_path, runs):
    count = 200_000
    table = Table(tmp_path / "t")
    add = table.file("a.parquet", pa.table({"id": range(count)}), row_group_size=70_000)
    random = np.random.default_rng(1)
    deleted = sorted({*range(10, 9000), *(int(v) for v in random.integers(0, count, 500)), count - 1, 65535, 65536})
    table.commit({"add": add})
    table.commit({"remove": {"path": "a.parquet"}}, {"add": {**add, "deletionVector": table.vector(deleted, runs, offset=5)}})
    kept = sorted(set(range(count)) - set(deleted))
    assert ids(table.path, batch_size=1000) == kept
    assert ids(table.path, batch_size=1000, shuffle=True) == kept
    assert len(ids(table.path, batch_size=1000, version=1)) == count
    few = [r for r in kept if 9000 <= r < 9100]
    assert ids(table.path, filters=[["id >= 8000", "id < 9100"]]) == few


def test_an_inline_vector(tmp_path):
    table = Table(tmp_path / "t")
    data = roaring([3, 4, 7, 11, 18, 29])
    vector = {"storageType": "i", "pathOrInlineDv": z85(data + b"\0" * (-len(data) % 4)), "sizeInBytes": len(data), "cardinality": 6}
    table.commit({"add": {**table.file("a.parquet", pa.table({"id": range(30)})), "deletionVector": vector}})
    assert ids(table.path) == sorted(set(range(30)) - {3, 4, 7, 11, 18, 29})


def test_damaged_vectors_are_named(tmp_path):
    table = Table(tmp_path / "t")
    add = table.file("a.parquet", pa.table({"id": range(30)}))
    good = table.vector([3, 4])
    file = next(table.path.glob("deletion_vector_*.bin"))
    whole = file.read_bytes()

    def message(vector, data=whole):
        file.write_bytes(data)
        table.version = 1
        table.commit({"add": {**add, "deletionVector": vector}})
        return rows.fault(table.path)

    assert "checksum" in message(good, whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:])
    assert "beyond the end of its file" in message(good, whole[:-3])
    assert "beyond the end of its file" in message({**good, "offset": 10**9})
    assert "holds 2 rows, the log states 1" in message({**good, "cardinality": 3}).replace("states 3", "states 1")
    assert "damaged bitmap" in message({**good, "cardinality": 1})
    assert "outside of the table" in message({**good, "storageType": "p", "pathOrInlineDv": "/etc/passwd"})
    assert "outside of the table" in message({**good, "pathOrInlineDv": "../x" + good["pathOrInlineDv"]})
    assert "without its UUID" in message({**good, "pathOrInlineDv": "short"})
    assert "'cardinality'" in message({**good, "cardinality": -1})
    beyond = table.vector([3, 4_000_000_000])
    assert "names row 4000000000, but the file has 30 rows" in message(beyond)
    random = np.random.default_rng(2)
    for _ in range(40):
        data = bytearray(roaring(sorted({int(v) for v in random.integers(0, 10**5, 200)}), bool(random.integers(2))))
        for _ in range(3):
            data[int(random.integers(len(data)))] ^= 1 << int(random.integers(8))
        block = struct.pack(">I", len(data)) + bytes(data) + struct.pack(">I", zlib.crc32(bytes(data)))
        assert "deletion vector" in message({**good, "sizeInBytes": len(data), "cardinality": 190}, b"\x01" + block)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping(tmp_path, mode):
    fields = [
        field("id", **{"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-a"}),
        field("new name", "string", **{"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "col-b"}),
        field("part", "integer", **{"delta.columnMapping.id": 3, "delta.columnMapping.physicalName": "col-p"}),
    ]
    table = Table(tmp_path / "t", fields, ("columnMapping",), {"delta.columnMapping.mode": mode}, ["part"])
    physical = ["col-a", "col-b"] if mode == "name" else ["x", "y"]
    schema = pa.schema(
        [
            pa.field(physical[0], pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field(physical[1], pa.string(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    add = table.file("a.parquet", pa.table([range(5), list("abcde")], schema=schema))
    table.commit({"add": {**add, "partitionValues": {"col-p": "7"}}})
    columns, read = rows.read(table.path, filters=[["new name != 'c'"]])
    assert columns == {"id": "int64", "new name": "str", "part": "int64"} or columns["part"] == "int32"
    assert [(row["id"], row["new name"], row["part"]) for row in read] == [(i, "abcde"[i], 7) for i in (0, 1, 3, 4)]


def test_checkpoints_in_parts_and_with_sidecars(tmp_path):
    table = Table(tmp_path / "t", features=("v2Checkpoint",))
    adds = [table.file(f"{part}.parquet", pa.table({"id": [part]})) for part in range(6)]
    for add in adds:
        table.commit({"add": add})
    log = table.path / "_delta_log"
    plain = [{"add": add} for add in adds]
    types = {"maps": pa.map_(pa.string(), pa.string())}

    def checkpoint(name, actions):
        keys = sorted({key for action in actions for key in action})
        columns = {}
        for key in keys:
            values = []
            for action in actions:
                value = dict(action[key]) if key in action else None
                if value:
                    for name_ in ("partitionValues", "configuration", "options"):
                        if name_ in value:
                            value[name_] = list(value[name_].items())
                    if "format" in value:
                        value["format"] = {"provider": "parquet"}
                values.append(value)
            sample = next(value for value in values if value)
            kinds = {"partitionValues": types["maps"], "configuration": types["maps"], "format": pa.struct([("provider", pa.string())]),
                     "partitionColumns": pa.list_(pa.string()), "readerFeatures": pa.list_(pa.string()), "writerFeatures": pa.list_(pa.string())}  # fmt: skip
            infer = lambda v: pa.bool_() if isinstance(v, bool) else pa.int64() if isinstance(v, int) else pa.string()  # noqa: E731
            columns[key] = pa.array(values, pa.struct([(n, kinds.get(n) or infer(v)) for n, v in sample.items()]))
        pq.write_table(pa.table(columns), log / name)

    def clean():
        for version in range(7):
            (log / f"{version:020}.json").unlink(missing_ok=True)

    # Multi-part, first with a part missing: then the commits still count.
    checkpoint(f"{6:020}.checkpoint.{1:010}.{2:010}.parquet", table.head + plain[:3])
    assert ids(table.path) == list(range(6))
    checkpoint(f"{6:020}.checkpoint.{2:010}.{2:010}.parquet", plain[3:])
    clean()
    assert ids(table.path) == list(range(6))
    for file in log.glob("*.checkpoint.*"):
        file.unlink()
    # Version 2: a JSON file that names sidecars, then one in Parquet.
    (log / "_sidecars").mkdir()
    checkpoint("_sidecars/one.parquet", plain[:4])
    checkpoint("_sidecars/two.parquet", plain[4:])
    top = [{"checkpointMetadata": {"version": 6}}, *table.head,
           *({"sidecar": {"path": f"{name}.parquet", "sizeInBytes": 1, "modificationTime": 0}} for name in ("one", "two"))]  # fmt: skip
    name = log / f"{6:020}.checkpoint.{uuid.uuid4()}.json"
    name.write_text("".join(json.dumps(action) + "\n" for action in top))
    assert ids(table.path) == list(range(6))
    name.unlink()
    checkpoint(f"{6:020}.checkpoint.{uuid.uuid4()}.parquet", top[1:])
    assert ids(table.path) == list(range(6))
    # A sidecar that is gone, and one that leads in a circle.
    (log / "_sidecars" / "two.parquet").unlink()
    assert "two.parquet" in rows.fault(table.path)
    checkpoint("_sidecars/two.parquet", [top[-1]])
    assert "a sidecar that holds more than files" in rows.fault(table.path)


def test_tables_that_need_more_are_refused_by_name(tmp_path):
    for number, feature in enumerate(["variantType", "catalogManaged", "someday"]):
        table = Table(tmp_path / str(number), features=(feature,))
        table.commit({"add": table.file("a.parquet", pa.table({"id": [1]}))})
        assert f"the reader feature '{feature}'" in rows.fault(table.path)
    table = Table(tmp_path / "v", fields=(field("id"), field("v", "variant")))
    table.commit({"add": table.file("a.parquet", pa.table({"id": [1]}))})
    assert "column 'v': the type 'variant' is not known" in rows.fault(table.path)
    assert ids(table.path, columns=["id"]) == [1]


def test_type_widening_reads_old_files_as_the_wider_type(tmp_path):
    table = Table(tmp_path / "t", fields=(field("id"), field("x", "double")), features=("typeWidening",))
    table.commit({"add": table.file("a.parquet", pa.table({"id": pa.array([1], pa.int32()), "x": pa.array([1.5], pa.float32())}))})
    table.commit({"add": table.file("b.parquet", pa.table({"id": [2**40], "x": [0.1]}))})
    assert [(row["id"], row["x"]) for row in rows.read(table.path)[1]] == [(1, 1.5), (2**40, 0.1)]
    table = Table(tmp_path / "n", fields=(field("id", "integer"),))
    table.commit({"add": table.file("a.parquet", pa.table({"id": [2**40]}))})
    assert "is stored as int64 here, but as int32 in the table" in rows.fault(table.path)


def test_hostile_logs_are_named_and_never_crash(tmp_path):
    table = Table(tmp_path / "t")
    add = table.file("a.parquet", pa.table({"id": [1]}))

    def message(*actions):
        table.version = 1
        table.commit(*actions)
        return rows.fault(table.path)

    assert "leads out of the table" in message({"add": {**add, "path": "../../etc/passwd"}})
    assert "leads out of the table" in message({"add": {**add, "path": "%2e%2e/x.parquet"}})
    assert "lies outside of the table" in message({"add": {**add, "path": "/etc/passwd"}})
    assert "vacuum" in message({"add": {**add, "path": "gone.parquet"}})
    assert "line 1" in message({"add": 7})
    assert "'size'" in message({"add": {**add, "size": -5}})
    assert "has no rows" in message({"remove": {"path": "a.parquet"}})
    log = table.path / "_delta_log"
    (log / f"{3:020}.json").write_text("")
    assert f"needs the commit {2:020}.json" in rows.fault(table.path)
    (log / f"{3:020}.json").unlink()
    table.version = 1
    table.commit({"add": add})
    whole = (log / f"{0:020}.json").read_bytes()
    random = np.random.default_rng(6)
    for attempt in range(60):
        data = bytearray(whole)
        if attempt % 2:
            data = data[: int(random.integers(len(data)))]
        else:
            data[int(random.integers(len(data)))] ^= 1 << int(random.integers(8))
        (log / f"{0:020}.json").write_bytes(data)
        result = rows.run_probe(table.path)
        assert result.returncode in (0, 1), (attempt, result.returncode, result.stderr)
        assert result.returncode == 0 or "_delta_log" in result.stderr or "a.parquet" in result.stderr or "column" in result.stderr

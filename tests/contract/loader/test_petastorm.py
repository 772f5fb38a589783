"""make_reader and make_batch_reader against what the real Petastorm 0.13.1 read from the same files (petastorm/make_golden.py),
and what its users rely on besides."""

import collections
import datetime
import decimal
import hashlib
import json
import os
import pathlib
import pickle
import warnings

import numpy as np
import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402
from tuneloader import NoDataAvailableError, TransformSpec, make_batch_reader, make_reader  # noqa: E402
from tuneloader._parquet.metadata import stored_unischema, unpickled  # noqa: E402
from tuneloader.codecs import CompressedImageCodec, CompressedNdarrayCodec, NdarrayCodec, ScalarCodec  # noqa: E402
from tuneloader.errors import DecodeFieldError, PetastormMetadataError  # noqa: E402
from tuneloader.etl.dataset_metadata import get_schema_from_dataset_url, materialize_dataset  # noqa: E402
from tuneloader.ngram import NGram  # noqa: E402
from tuneloader.predicates import in_intersection, in_lambda, in_negate, in_pseudorandom_split, in_reduce, in_set  # noqa: E402
from tuneloader.selectors import IntersectIndexSelector, SingleIndexSelector, UnionIndexSelector  # noqa: E402
from tuneloader.unischema import Unischema, UnischemaField, encode_row  # noqa: E402
from tuneloader.weighted_sampling_reader import WeightedSamplingReader  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "petastorm"
GOLDEN = json.loads((HERE / "golden.json").read_text())
ROWS = f"file://{HERE}/rows"
PLAIN = f"file://{HERE}/plain"
FIXED = {"shuffle_row_groups": False}


def told(value):
    """A value as make_golden.py tells it."""
    if value is None:
        return None
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
        return [row.id.tolist() for row in reader]


def windows_of(reader):
    with reader:
        return [{str(step): {k: told(v) for k, v in row._asdict().items()} for step, row in window.items()} for window in reader]


@pytest.mark.parametrize("pool", ["dummy", "thread", "process"])
def test_rows_are_those_of_petastorm(pool):
    assert rows_of(make_reader(ROWS, reader_pool_type=pool, **FIXED)) == GOLDEN["rows"]["rows"]


def test_the_schema_is_that_of_petastorm():
    schema = get_schema_from_dataset_url(ROWS)
    assert list(schema.fields) == [
        "id", "time", "image", "grey", "deep", "matrix", "packed", "name", "flag", "small", "short", "real", "plain", "amount",
        "when", "half",
    ]  # fmt: skip
    assert schema.matrix == UnischemaField("matrix", np.float32, (3, None), None, False)
    assert isinstance(schema.matrix.codec, NdarrayCodec) and str(schema.image.codec) == "CompressedImageCodec('png', 80)"
    assert str(schema.amount.codec) == "ScalarCodec(DecimalType(10,2))" and schema.amount.numpy_dtype is decimal.Decimal
    assert schema.packed.nullable and schema.name.numpy_dtype is np.str_ and schema.when.numpy_dtype is np.datetime64
    assert pickle.loads(pickle.dumps(schema)).fields == schema.fields


@pytest.mark.parametrize("workers", [1, 5])
def test_orders_and_shards_are_those_of_petastorm(workers):
    threads = {"workers_count": workers, "schema_fields": ["id"]}
    for seed, ids in GOLDEN["rows"]["ids by seed"].items():
        assert ids_of(make_reader(ROWS, seed=int(seed), num_epochs=2, **threads)) == ids
    for shard, ids in enumerate(GOLDEN["rows"]["ids by shard"]):
        assert ids_of(make_reader(ROWS, seed=5, cur_shard=shard, shard_count=3, **threads)) == ids
    assert ids_of(make_reader(ROWS, seed=3, shuffle_row_drop_partitions=2, **threads)) == GOLDEN["rows"]["ids in two parts"]
    for seed, ids in GOLDEN["plain"]["ids by seed"].items():
        assert ids_of(make_batch_reader(PLAIN, seed=int(seed), num_epochs=2, **threads)) == ids
    for shard, ids in enumerate(GOLDEN["plain"]["ids by shard"]):
        assert ids_of(make_batch_reader(PLAIN, seed=4, cur_shard=shard, shard_count=4, **threads)) == ids


def test_predicates_choose_what_petastorm_chooses():
    golden = GOLDEN["rows"]
    for part, ids in enumerate(golden["split"]):
        split = in_pseudorandom_split([0.3, 0.7], part, "id")
        assert ids_of(make_reader(ROWS, ["id", "name"], predicate=split, **FIXED)) == ids
    late = in_lambda(["flag", "id"], lambda flag, id_: flag and id_ > 9)
    assert ids_of(make_reader(ROWS, ["id", "flag"], predicate=late, **FIXED)) == golden["lambda"]
    assert rows_of(make_reader(ROWS, ["id", "na.*"], predicate=in_set({3, 4, 39}, "id"), **FIXED)) == golden["set"]
    golden = GOLDEN["plain"]
    high = in_lambda(["y"], lambda y: y > 2)
    assert ids_of(make_batch_reader(PLAIN, ["id", "y"], predicate=high, **FIXED)) == golden["lambda"]
    assert ids_of(make_batch_reader(PLAIN, predicate=in_set({1}, "part"), **FIXED)) == golden["partition"]
    assert ids_of(make_batch_reader(PLAIN, ["id"], filters=[("part", "=", 1)], **FIXED)) == golden["filtered"]


def test_predicates_together_in_rows_and_in_batches():
    few = in_reduce([in_set(range(10), "id"), in_negate(in_set({3, 4}, "id"))], all)
    assert ids_of(make_reader(ROWS, ["id"], predicate=few, **FIXED)) == [0, 1, 2, 5, 6, 7, 8, 9]
    assert sum(ids_of(make_batch_reader(PLAIN, ["id"], predicate=few, **FIXED)), []) == [0, 1, 2, 5, 6, 7, 8, 9]
    with pytest.raises(ValueError, match="looks at vector, which is not among the fields that are read: id"):
        make_batch_reader(PLAIN, ["id"], predicate=in_intersection([1.0], "vector"))
    found = in_intersection([7.0], "vector")
    assert ids_of(make_batch_reader(PLAIN, ["id", "vector"], predicate=found, **FIXED)) == [[7], [37]]
    with pytest.raises(ValueError, match="is no predicate"):
        in_negate(3)


def test_windows_are_those_of_petastorm():
    schema = get_schema_from_dataset_url(ROWS)
    fields = {-1: [schema.id, schema.time], 0: ["time", "flag"], 1: [schema.id]}
    assert windows_of(make_reader(ROWS, NGram(fields, 2, "time"), **FIXED)) == GOLDEN["rows"]["windows"]
    apart = NGram(dict(fields), 2, schema.time, timestamp_overlap=False)
    assert windows_of(make_reader(ROWS, apart, **FIXED)) == GOLDEN["rows"]["apart"]
    halves = windows_of(make_reader(ROWS, NGram(fields, 2, "time"), shuffle_row_drop_partitions=2, **FIXED))
    texts = [sorted(json.dumps(window, sort_keys=True) for window in windows) for windows in (halves, GOLDEN["rows"]["windows"])]
    assert texts[0] == texts[1], "the windows of parts make up the whole"
    with pytest.raises(NotImplementedError, match="sorted by 'half'"):
        windows_of(make_reader(ROWS, NGram({0: ["half"], 1: ["id"]}, 9, "half"), shuffle_rows=True, seed=1))
    with pytest.raises(NotImplementedError, match="no NGrams"):
        make_batch_reader(PLAIN, NGram(fields, 2, "time"))
    assert NGram(fields, 2, "time") == NGram(fields, 5, "id") != NGram({0: ["id"]}, 2, "time")


def test_row_group_selectors_read_the_stored_indexes():
    golden = GOLDEN["rows"]
    one = SingleIndexSelector("by_id", [3, 38])
    assert ids_of(make_reader(ROWS, ["id"], rowgroup_selector=one, **FIXED)) == golden["one index"]
    two = [SingleIndexSelector("by_id", [9]), SingleIndexSelector("by_name", ["row 25 é"])]
    assert ids_of(make_reader(ROWS, ["id"], rowgroup_selector=UnionIndexSelector(two), **FIXED)) == golden["two indexes"]
    with pytest.warns(UserWarning, match="no row group is left"):
        assert ids_of(make_reader(ROWS, ["id"], rowgroup_selector=IntersectIndexSelector(two), **FIXED)) == []
    with pytest.raises(ValueError, match="no index nothing; it has by_id, by_name, has_packed"):
        make_reader(ROWS, rowgroup_selector=SingleIndexSelector("nothing", [1]))


def test_transformed_rows_and_batches():
    def doubled(row):
        row["double"] = np.float32(row["id"] * 2)
        return row

    spec = TransformSpec(doubled, edit_fields=[("double", np.float32, (), False)], removed_fields=["image", "grey", "deep"])
    reader = make_reader(ROWS, transform_spec=spec, **FIXED)
    assert "image" not in reader.schema.fields and reader.schema.double.numpy_dtype is np.float32
    assert rows_of(reader)[:3] == GOLDEN["rows"]["transformed"]

    def with_square(frame):
        frame["square"] = frame["y"] ** 2
        frame["cube"] = [np.full((2, 2), value, np.float32) for value in frame["y"]]
        return frame

    edits = [("square", np.float32, (), False), ("cube", np.float32, (2, 2), False)]
    spec = TransformSpec(with_square, edit_fields=edits, selected_fields=["cube", "id", "square"])
    assert rows_of(make_batch_reader(PLAIN, transform_spec=spec, **FIXED))[:2] == GOLDEN["plain"]["transformed"]
    wrong = TransformSpec(with_square, edit_fields=edits[:1])
    with make_batch_reader(PLAIN, transform_spec=wrong) as reader, pytest.raises(ValueError, match="by edit_fields"):
        next(reader)
    only_less = TransformSpec(removed_fields=["vector"])
    with make_batch_reader(PLAIN, transform_spec=only_less) as reader:
        assert "vector" not in next(reader)._fields
    with pytest.raises(ValueError, match="not both"):
        TransformSpec(removed_fields=["a"], selected_fields=["b"])


@pytest.mark.parametrize("pool", ["dummy", "thread"])
def test_batches_are_those_of_petastorm(pool):
    assert rows_of(make_batch_reader(PLAIN, reader_pool_type=pool, **FIXED)) == GOLDEN["plain"]["batches"]


def test_batches_with_nulls_and_lists_that_differ(tmp_path):
    table = pa.table({"i": [1, None], "t": ["a", None], "l": [[1, 2], [3]], "d": pa.array(["x", "x"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    with make_batch_reader(str(tmp_path), ["i", "t", "d"]) as reader:
        batch = next(reader)
    assert np.isnan(batch.i[1]) and batch.i.dtype == np.float64 and batch.t.tolist() == ["a", None] and batch.d.tolist() == ["x", "x"]
    with make_batch_reader(str(tmp_path), ["l"]) as reader, pytest.raises(RuntimeError, match="the lengths 1, 2"):
        next(reader)
    batch.i[0] = 7  # arrays are the user's own
    structs = pa.table({"s": [{"a": 1}], "id": [1]})
    pq.write_table(structs, tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="'s' has the unsupported type"), make_batch_reader(str(tmp_path)) as reader:
        assert next(reader)._fields == ("id",)


def test_rows_are_shuffled_the_same_way_whatever_the_threads():
    def ids(**options):
        return ids_of(make_reader(ROWS, ["id"], shuffle_rows=True, num_epochs=2, **options))

    first = ids(seed=3, workers_count=1)
    assert first == ids(seed=3, workers_count=7) == ids(seed=3, reader_pool_type="dummy")
    assert first != ids(seed=4) and sorted(first[:40]) == sorted(first[40:]) == list(range(40))
    assert first[:40] != first[40:], "rows have another order in each epoch"
    halves = ids_of(make_reader(ROWS, ["id"], shuffle_rows=True, seed=3, shuffle_row_drop_partitions=2))
    assert sorted(halves) == list(range(40))
    batches = ids_of(make_batch_reader(PLAIN, ["id", "y"], shuffle_rows=True, seed=1))
    assert sorted(sum(batches, [])) == list(range(60)) and all(batch != sorted(batch) for batch in batches)


def test_a_predicate_and_shuffled_rows_keep_the_rows_whole():
    even = in_lambda(["id"], lambda ids: ids % 2 == 0)
    with make_batch_reader(PLAIN, ["id", "y"], predicate=even, shuffle_rows=True, seed=2) as reader:
        for batch in reader:
            assert (batch.y == (batch.id % 30) / 4).all() and (batch.id % 2 == 0).all()


def test_endless_epochs_end_with_the_block_and_readers_reset():
    with make_reader(ROWS, ["id"], num_epochs=None, workers_count=3, seed=1) as reader:
        ids = [int(next(reader).id) for _ in range(130)]
        assert ids[:40] == ids[40:80] == ids[80:120] and not reader.last_row_consumed
        with pytest.raises(NotImplementedError, match="when all its rows were read"):
            reader.reset()
    with pytest.raises(RuntimeError, match="was stopped"):
        next(reader)
    reader = make_batch_reader(PLAIN, ["id"], seed=1)
    once = [batch.id.tolist() for batch in reader]
    assert reader.last_row_consumed and reader.batched_output
    reader.reset()
    again = [batch.id.tolist() for batch in reader]
    assert again != once and sorted(again) == sorted(once)
    reader.stop()
    reader.join()


def test_fewer_row_groups_than_shards_and_wrong_arguments(tmp_path):
    with pytest.raises(NoDataAvailableError, match="5 row groups, too few for 6 shards"):
        make_reader(ROWS, cur_shard=0, shard_count=6)
    for wrong, message in [
        ({"cur_shard": 0}, "given together"),
        ({"cur_shard": 3, "shard_count": 3}, "0 <= cur_shard < shard_count"),
        ({"reader_pool_type": "fiber"}, "must be one of thread, process, dummy"),
        ({"num_epochs": 0}, "num_epochs must be a positive number or None"),
        ({"workers_count": 0}, "workers_count must be a positive"),
        ({"schema_fields": "id"}, "a list of fields"),
        ({"cache_type": "redis"}, "cache_type must be"),
        ({"cache_type": "local-disk"}, "needs cache_location"),
        ({"predicate": lambda row: True}, "derived from tuneloader's PredicateBase"),
        ({"filters": [("id", "~", 1)]}, "the operator '~'"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_reader(ROWS, **wrong)
    with pytest.raises(RuntimeError, match="no field of .* matches"):
        make_reader(ROWS, ["nothing.*"])
    with pytest.raises(ValueError, match="does not belong to the schema"):
        make_reader(ROWS, [UnischemaField("other", np.int32, ())])
    with pytest.raises(RuntimeError, match="read plain Parquet with make_batch_reader"):
        make_reader(PLAIN)
    with pytest.warns(UserWarning, match="make_reader decodes its fields"):
        make_batch_reader(ROWS, ["id"]).stop()
    with pytest.raises(FileNotFoundError, match="nothing_here"):
        make_batch_reader(str(tmp_path / "nothing_here"))


def test_a_forked_child_is_told_that_the_threads_are_not_there():
    with make_batch_reader(PLAIN, ["id"], workers_count=2) as reader:
        next(reader)
        pid = os.fork()
        if pid == 0:
            try:
                next(reader)
            except RuntimeError as error:
                os._exit(0 if "open it in this process" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        assert len(list(reader)) == 5


class Evil:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def test_pickles_of_strangers_run_nothing(tmp_path):
    target = tmp_path / "made"
    attacks = [
        pickle.dumps(Evil(os.mkdir, str(target)), protocol) for protocol in range(5)
    ] + [
        pickle.dumps(Evil(eval, f"__import__('os').mkdir({str(target)!r})")),
        pickle.dumps({"a": Evil(collections.OrderedDict.fromkeys, [Evil(exec, f"open({str(target)!r}, 'w')")])}),
        b"cos\nmkdir\n(V" + str(target).encode() + b"\ntR.",
        # BUILD on a class: a pickle may try to change what the classes of this module do.
        b"\x80\x02cpetastorm.unischema\nUnischema\n(N}X\x06\x00\x00\x00fieldscbuiltins\neval\nstb.",
    ]  # fmt: skip
    for attack in attacks:
        try:
            made = unpickled(attack, "it")
        except PetastormMetadataError:
            continue
        assert type(made).__module__.startswith(("tuneloader", "builtins", "collections")), made
        with pytest.raises(PetastormMetadataError):
            stored_unischema({b"dataset-toolkit.unischema.v1": attack}, "a place")
    assert not target.exists() and isinstance(Unischema.fields, property)
    with pytest.raises(PetastormMetadataError, match="cannot be read"):
        stored_unischema({b"dataset-toolkit.unischema.v1": b"\x80\x04garbage"}, "a place")


def test_damaged_pickles_are_errors_and_no_more():
    whole = pq.read_schema(HERE / "rows" / "_common_metadata").metadata[b"dataset-toolkit.unischema.v1"]
    random = np.random.default_rng(1)
    for _ in range(300):
        damaged = bytearray(whole[: random.integers(1, len(whole))] if random.random() < 0.3 else whole)
        for _ in range(random.integers(1, 4)):
            damaged[random.integers(len(damaged))] = random.integers(256)
        try:
            stored_unischema({b"dataset-toolkit.unischema.v1": bytes(damaged)}, "it")
        except (PetastormMetadataError, ValueError, TypeError) as error:
            assert str(error)


def write_rows(folder, schema, rows):
    table = pa.Table.from_pylist([encode_row(schema, row) for row in rows])
    with materialize_dataset(None, f"file://{folder}", schema):
        os.makedirs(folder, exist_ok=True)
        pq.write_table(table, pathlib.Path(folder) / "part-0.parquet", row_group_size=4)


def test_what_is_written_here_is_read_here(tmp_path):
    schema = Unischema("Mine", [
        UnischemaField("id", np.int32, (), ScalarCodec("IntegerType"), False),
        UnischemaField("image", np.uint8, (None, None, 3), CompressedImageCodec("png"), False),
        UnischemaField("photo", np.uint8, (16, 16), CompressedImageCodec("jpeg", 95), False),
        UnischemaField("array", np.float64, (2, None), NdarrayCodec(), True),
        UnischemaField("packed", np.int16, (4,), CompressedNdarrayCodec(), False),
        UnischemaField("text", np.str_, (), ScalarCodec("StringType"), True),
    ])  # fmt: skip
    random = np.random.default_rng(3)
    rows = [
        {"id": i, "image": random.integers(0, 255, (3 + i, 5, 3), np.uint8), "photo": np.full((16, 16), i * 20, np.uint8),
         "array": None if i == 2 else np.asfortranarray(random.normal(size=(2, i + 1))),
         "packed": np.arange(4, dtype=np.int16) * i, "text": f"t{i}" if i % 2 else None}
        for i in range(9)
    ]  # fmt: skip
    write_rows(tmp_path / "mine", schema, rows)
    with make_reader(f"file://{tmp_path}/mine", **FIXED) as reader:
        for row, wanted in zip(reader, rows, strict=True):
            assert row.id == wanted["id"] and row.id.dtype == np.int32 and row.text == wanted["text"]
            assert (row.image == wanted["image"]).all() and (row.packed == wanted["packed"]).all()
            assert np.abs(row.photo.astype(int) - wanted["photo"]).max() <= 2
            assert row.array is None if wanted["array"] is None else (row.array == wanted["array"]).all()
            row.image[0] = 0  # arrays are the user's own
    for wrong, message in [
        ({**rows[0], "packed": np.zeros(4)}, "not of float64"),
        ({**rows[0], "packed": np.zeros(3, np.int16)}, r"the shape \(4,\), not \(3,\)"),
        ({**rows[0], "id": None}, "not nullable"),
        ({**rows[0], "more": 1}, "the schema has not: more"),
        ({**rows[0], "text": 3}, "takes text"),
    ]:
        with pytest.raises(ValueError, match=message):
            encode_row(schema, wrong)


def test_values_that_are_not_what_the_codec_writes_are_named(tmp_path):
    schema = Unischema("S", [UnischemaField("a", np.float64, (2,), NdarrayCodec(), False)])
    write_rows(tmp_path / "d", schema, [{"a": np.zeros(2)}])
    for stored in (b"", b"\x93NUMPY\x01\x00\xff\xff{", pickle.dumps(3), _npy_of_objects()):
        pq.write_table(pa.table({"a": [stored]}), tmp_path / "d" / "part-0.parquet")
        with make_reader(f"file://{tmp_path}/d") as reader, pytest.raises(DecodeFieldError, match="the field 'a' cannot be decoded"):
            next(reader)


def _npy_of_objects():
    import io

    file = io.BytesIO()
    np.save(file, np.array([{}, None]), allow_pickle=True)
    return file.getvalue()


def test_weighted_readers_are_mixed():
    np.random.seed(4)
    readers = [make_reader(ROWS, ["id"], num_epochs=None, seed=1), make_reader(ROWS, ["id"], num_epochs=None, predicate=in_set({3}, "id"))]
    with WeightedSamplingReader(readers, [1, 3]) as mixed:
        ids = [int(next(mixed).id) for _ in range(200)]
    assert 120 < ids.count(3) < 175
    with pytest.raises(ValueError, match="needs two readers"):
        WeightedSamplingReader(readers[:1], [1])


def test_files_given_one_by_one_keep_their_order(tmp_path):
    for i in range(3):
        pq.write_table(pa.table({"id": [i]}), tmp_path / f"{i}.parquet")
    urls = [f"file://{tmp_path}/{i}.parquet" for i in (2, 0, 1)]
    assert ids_of(make_batch_reader(urls, **FIXED)) == [[2], [0], [1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ids_of(make_batch_reader(urls[:1], **FIXED)) == [[2]]


def test_a_cache_keeps_files_of_elsewhere(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for i in range(3):
        with memory.open(f"/petastorm/{i}.parquet", "wb") as file:
            pq.write_table(pa.table({"id": [i]}), file)
    size = memory.size("/petastorm/0.parquet")
    options = {"filesystem": memory, "cache_type": "local-disk", "cache_location": str(tmp_path / "cache"), **FIXED}
    for _ in range(2):
        assert ids_of(make_batch_reader("memory://petastorm", **options)) == [[0], [1], [2]]
    assert len(os.listdir(tmp_path / "cache")) == 3
    options["cache_location"] = str(tmp_path / "small")
    options["workers_count"] = 1
    assert ids_of(make_batch_reader("memory://petastorm", cache_size_limit=2 * size, **options)) == [[0], [1], [2]]
    assert len(os.listdir(tmp_path / "small")) == 2

"""tune-data and the real mosaicml-streaming 0.13.0 against each other: what one writes the other reads, byte for byte
where bytes are promised. The order of samples is tested against its recorded orders in tests/loader, and here against
the live package."""

import csv
import hashlib
import json
import math
import os
import pathlib
import subprocess

import numpy as np
import pytest

mosaic = pytest.importorskip("mosaic", reason="mosaicml-streaming is not installed; run ./setup.sh")

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))


def tune_data(*arguments, expect=0):
    result = subprocess.run([BIN / "tune-data", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert result.returncode == expect, result.stderr
    return result.stdout if expect == 0 else result.stderr + result.stdout


def write_csv(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def files_of(directory):
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in sorted(pathlib.Path(directory).rglob("*.*"))
    }


SCALARS = {
    "a_int": ("int", lambda r: int(r.integers(-(2**62), 2**62))),
    "b_u8": ("uint8", lambda r: int(r.integers(0, 256))),
    "c_i8": ("int8", lambda r: int(r.integers(-128, 128))),
    "d_u16": ("uint16", lambda r: int(r.integers(0, 2**16))),
    "e_i16": ("int16", lambda r: int(r.integers(-(2**15), 2**15))),
    "f_u32": ("uint32", lambda r: int(r.integers(0, 2**32))),
    "g_i32": ("int32", lambda r: int(r.integers(-(2**31), 2**31))),
    "h_u64": ("uint64", lambda r: int(r.integers(0, 2**63)) * 2 + 1),
    "i_i64": ("int64", lambda r: int(r.integers(-(2**63), 2**63 - 1))),
    "j_f16": ("float16", lambda r: float(np.float16(r.normal()))),
    "k_f32": ("float32", lambda r: float(np.float32(r.normal()))),
    "l_f64": ("float64", lambda r: float(r.normal())),
    "m_str": ("str", lambda r: "".join(r.choice(list("aé,\"\n€😀 "), r.integers(0, 9)))),
    "n_bytes": ("bytes", lambda r: "x" * int(r.integers(0, 5))),
    "o_strint": ("str_int", lambda r: int(r.integers(0, 2**62)) ** 3),
    "p_strfloat": ("str_float", lambda r: float(10.0 ** r.integers(-30, 30) * r.normal())),
}


def random_rows(count, seed=7):
    random = np.random.default_rng(seed)
    return [{name: make(random) for name, (_, make) in SCALARS.items()} for _ in range(count)]


def mosaic_value(name, value):
    return value.encode() if name == "n_bytes" else value


@pytest.mark.parametrize("size_limit", [2000, 67108864])
def test_shards_and_index_are_the_same_bytes(tmp_path, size_limit):
    rows = random_rows(200)
    columns = {name: encoding for name, (encoding, _) in SCALARS.items()}
    write_csv(tmp_path / "rows.csv", columns, [[row[name] for name in columns] for row in rows])
    tune_data(
        "convert", tmp_path / "rows.csv", tmp_path / "ours", "--size-limit", size_limit, "--hashes", "md5,sha1,xxh3_64",
        "--columns", ",".join(f"{name}:{encoding}" for name, encoding in columns.items()),
    )  # fmt: skip
    with mosaic.MDSWriter(
        out=str(tmp_path / "theirs"), columns=columns, size_limit=size_limit, hashes=["md5", "sha1", "xxh3_64"]
    ) as writer:
        for row in rows:
            writer.write({name: mosaic_value(name, value) for name, value in row.items()})
    ours, theirs = files_of(tmp_path / "ours"), files_of(tmp_path / "theirs")
    assert ours.keys() == theirs.keys()
    for name in theirs:
        assert ours[name] == theirs[name], name


@pytest.mark.parametrize("compression", [None, "zstd", "zstd:9", "gz"])
def test_mosaic_reads_what_we_write(tmp_path, compression):
    rows = random_rows(150, seed=3)
    columns = {name: encoding for name, (encoding, _) in SCALARS.items()}
    write_csv(tmp_path / "rows.csv", columns, [[row[name] for name in columns] for row in rows])
    tune_data(
        "convert", tmp_path / "rows.csv", tmp_path / "ours", "--size-limit", "4kb",
        *(["--compression", compression] if compression else []),
        "--columns", ",".join(f"{name}:{encoding}" for name, encoding in columns.items()),
    )  # fmt: skip
    mosaic.clean_stale_shared_memory()
    dataset = mosaic.StreamingDataset(local=str(tmp_path / "ours"), batch_size=1, shuffle=False, validate_hash="xxh3_64")
    read = list(dataset)
    assert len(read) == len(rows)
    for sample, row in zip(read, rows):
        for name, value in row.items():
            expected = mosaic_value(name, value)
            assert sample[name] == pytest.approx(expected, rel=1e-15) if name == "p_strfloat" else sample[name] == expected


@pytest.mark.parametrize("compression", [None, "zstd", "gz"])
def test_we_read_what_mosaic_writes(tmp_path, compression):
    random = np.random.default_rng(5)
    columns = {
        "image": "ndarray:uint8:4,3",
        "free": "ndarray",
        "typed": "ndarray:float32",
        "text": "str",
        "meta": "json",
        "blob": "bytes",
        "label": "int",
        "half": "float16",
    }
    with mosaic.MDSWriter(
        out=str(tmp_path / "theirs"), columns=columns, size_limit=3000, hashes=["sha256", "xxh64"], compression=compression
    ) as writer:
        for i in range(60):
            writer.write(
                {
                    "image": random.integers(0, 255, (4, 3), dtype=np.uint8),
                    "free": random.integers(-9, 9, (1 + i % 3, 2), dtype=np.int16),
                    "typed": random.normal(size=1 + i).astype(np.float32),
                    "text": "é" * i,
                    "meta": {"i": i, "x": [None, math.nan, math.inf, 0.5]},
                    "blob": bytes(i),
                    "label": -i,
                    "half": np.float16(i / 3),
                }
            )
    assert "60 samples good, 0 faulty shards" in tune_data("verify", tmp_path / "theirs")
    [report] = json.loads(tune_data("inspect", tmp_path / "theirs", "--json", "--rows", "60"))
    assert report["samples"] == 60
    assert [row["label"] for row in report["rows"]] == [-i for i in range(60)]
    assert report["rows"][7]["half"] == float(np.float16(7 / 3))
    assert {column["name"]: column["encoding"] for column in report["columns"]} == columns
    tune_data("bench", tmp_path / "theirs", "--seconds", "0", "--batch-size", "7")


def test_every_hash_is_mosaics(tmp_path):
    from streaming.base.hashing import get_hash, get_hashes

    names = sorted(name for name in get_hashes() if not name.startswith("shake"))
    write_csv(tmp_path / "rows.csv", ["x"], [[i] for i in range(100)])
    tune_data("convert", tmp_path / "rows.csv", tmp_path / "ours", "--hashes", ",".join(names))
    [shard] = json.loads((tmp_path / "ours" / "index.json").read_text())["shards"]
    data = (tmp_path / "ours" / "shard.00000.mds").read_bytes()
    assert shard["raw_data"]["hashes"] == {name: get_hash(name, data) for name in names}
    assert len(names) == 17


def test_packed_columns_become_arrays(tmp_path):
    random = np.random.default_rng(2)
    pixels = random.integers(0, 17, (40, 6))
    write_csv(tmp_path / "t.csv", [f"p{i}" for i in range(6)] + ["label"], [[*row, i] for i, row in enumerate(pixels)])
    tune_data("convert", tmp_path / "t.csv", tmp_path / "o", "--pack", "image=p0..p5:uint8:2,3", "--columns", "label:int")
    dataset = mosaic.LocalDataset(str(tmp_path / "o"))
    for i in range(40):
        assert dataset[i]["label"] == i
        assert (dataset[i]["image"] == pixels[i].reshape(2, 3)).all() and dataset[i]["image"].dtype == np.uint8


def test_splits_are_exact_and_repeatable(tmp_path):
    write_csv(tmp_path / "t.csv", ["x"], [[i] for i in range(1003)])

    def split(name, seed):
        tune_data("convert", tmp_path / "t.csv", tmp_path / name, "--split", "train=0.7,val=0.2,test=0.1", "--seed", seed)
        return {
            part: [int(sample["x"]) for sample in mosaic.LocalDataset(str(tmp_path / name / part))]
            for part in ("train", "val", "test")
        }

    first, again, other = split("a", 1), split("b", 1), split("c", 2)
    assert [len(first[part]) for part in ("train", "val", "test")] == [702, 201, 100]
    assert sorted(sum(first.values(), [])) == list(range(1003))
    assert first == again and first != other
    assert all(part == sorted(part) for part in first.values())


def test_usage_and_errors_have_their_exit_codes(tmp_path):
    tune_data("convert", tmp_path / "only-one-path", expect=2)
    tune_data("convert", expect=2)
    tune_data("explode", expect=2)
    assert "is not a number of bytes" in tune_data("convert", "a.csv", tmp_path / "o", "--size-limit", "big", expect=1)
    assert "holds no data set" in tune_data("verify", tmp_path, expect=1)
    assert tune_data("--version").startswith("tune-data ")


def test_a_damaged_shard_is_named_with_both_hashes(tmp_path):
    write_csv(tmp_path / "t.csv", ["x"], [[i] for i in range(100)])
    tune_data("convert", tmp_path / "t.csv", tmp_path / "o", "--size-limit", 400, "--hashes", "sha1,xxh64")
    shard = tmp_path / "o" / "shard.00001.mds"
    data = bytearray(shard.read_bytes())
    stored = hashlib.sha1(data).hexdigest()
    data[-1] ^= 1
    shard.write_bytes(data)
    message = tune_data("verify", tmp_path / "o", expect=1)
    assert "shard.00001.mds" in message and stored in message and hashlib.sha1(data).hexdigest() in message
    shard.write_bytes(data[:-3])
    message = tune_data("bench", tmp_path / "o", expect=1)
    assert "shard.00001.mds" in message and f"it has {len(data) - 3} bytes, the index states {len(data)}" in message


def has_parquet():
    return "no Parquet" not in tune_data("--help") + tune_data("convert", "--help")


@pytest.mark.skipif(not (BIN / "tune-data").exists() or not has_parquet(), reason="a build without Arrow")
class TestParquet:
    def write(self, path, **columns):
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.table(columns), path, row_group_size=7)

    def test_types_keep_their_values(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        self.write(
            tmp_path / "t.parquet",
            struct=pa.array([{"a": 1, "b": 2}] * 20),
            small=pa.array(range(-10, 10), pa.int8()),
            big=pa.array([2**63 + i for i in range(20)], pa.uint64()),
            flag=pa.array([i % 2 == 0 for i in range(20)]),
            real=pa.array([i / 7 for i in range(20)], pa.float32()),
            word=pa.array([f"é{i}" for i in range(20)]),
            kind=pa.array(["x", "y"] * 10).dictionary_encode(),
            blob=pa.array([bytes([i]) * i for i in range(20)]),
            row=pa.array([[i, i + 1, i + 2] for i in range(20)], pa.list_(pa.int16(), 3)),
            rest=pa.array([[0.5] * (1 + i) for i in range(20)], pa.list_(pa.float64())),
            when=pa.array(range(20), pa.timestamp("ms")),
        )
        names = "small,big,flag,real,word,kind,blob,row,rest,when"
        tune_data("convert", tmp_path / "t.parquet", tmp_path / "o", "--columns", names)
        dataset = mosaic.LocalDataset(str(tmp_path / "o"))
        assert len(dataset) == 20
        for i, sample in enumerate(dataset):
            assert (sample["small"], sample["big"], sample["flag"]) == (i - 10, 2**63 + i, i % 2 == 0)
            assert (sample["real"], sample["word"], sample["kind"]) == (np.float32(i / 7), f"é{i}", "xy"[i % 2])
            assert (sample["blob"], sample["when"]) == (bytes([i]) * i, i)
            assert sample["row"].tolist() == [i, i + 1, i + 2] and sample["row"].dtype == np.int16
            assert sample["rest"].tolist() == [0.5] * (1 + i)
        [report] = json.loads(tune_data("inspect", tmp_path / "o", "--json"))
        encodings = {column["name"]: column["encoding"] for column in report["columns"]}
        assert encodings["row"] == "ndarray:int16:3" and encodings["rest"] == "ndarray:float64"
        assert "which no encoding takes" in tune_data("convert", tmp_path / "t.parquet", tmp_path / "p", expect=1)

    def test_several_files_and_a_pack(self, tmp_path):
        for part in range(3):
            self.write(tmp_path / f"{part}.parquet", a=[float(part)] * 10, b=list(range(10)), c=[part] * 10)
        files = [tmp_path / f"{part}.parquet" for part in range(3)]
        tune_data("convert", *files, tmp_path / "o", "--pack", "v=b,a:float32", "--columns", "c:uint8")
        samples = list(mosaic.LocalDataset(str(tmp_path / "o")))
        assert [int(sample["c"]) for sample in samples] == [0] * 10 + [1] * 10 + [2] * 10
        assert samples[13]["v"].tolist() == [3.0, 1.0]

    def test_nulls_and_damage_are_named(self, tmp_path):
        self.write(tmp_path / "t.parquet", a=[1, 2, None, 4])
        message = tune_data("convert", tmp_path / "t.parquet", tmp_path / "o", expect=1)
        assert "t.parquet: row 3, column 'a': a null" in message
        whole = (tmp_path / "t.parquet").read_bytes()
        (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
        assert "cut.parquet" in tune_data("convert", tmp_path / "cut.parquet", tmp_path / "o", expect=1)
        assert not list(tmp_path.glob("*o*"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("algo", ["naive", "py1s", "py2s", "py1br", "py1e"])
def test_a_live_order_equals_ours(tmp_path, algo, seed):
    """The ids that mosaicml-streaming yields, against those of our loader through the program below."""
    probe = BIN / "loader_order_probe"
    if not probe.exists():
        pytest.skip("built with the tests only")
    random = np.random.default_rng(seed)
    count = int(random.integers(60, 400))
    with mosaic.MDSWriter(
        out=str(tmp_path / "d"), columns={"x": "int"}, size_limit=int(random.integers(300, 1500))
    ) as writer:
        for i in range(count):
            writer.write({"x": i})
    block = int(random.integers(20, 200))
    nodes = int(random.integers(1, 5))
    epoch_size = None if seed % 2 else int(random.integers(30, 900))
    mosaic.clean_stale_shared_memory()
    dataset = mosaic.StreamingDataset(
        local=str(tmp_path / "d"), shuffle=True, shuffle_algo=algo, shuffle_seed=seed, shuffle_block_size=block,
        num_canonical_nodes=nodes, batch_size=4, epoch_size=epoch_size,
    )  # fmt: skip
    expected = [[int(sample["x"]) for sample in dataset] for _ in range(3)]
    output = subprocess.run(
        [probe, tmp_path / "d", algo, str(seed), str(block), str(nodes), str(epoch_size or 0), "3"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    assert [list(map(int, line.split())) for line in output.splitlines()] == expected

"""Shards of text, plain files, tar archives and folders of images as a Dataset reads them."""

import hashlib
import io
import json
import random
import tarfile

import numpy as np
import pytest

import rows

WORDS = ["", "é", "a b", '"quoted"', "back\\slash", "😀", "tab\there", "null"]


def numbers(count, seed=1):
    r = random.Random(seed)
    return [{"n": r.randrange(-(2**60), 2**60), "f": r.choice([0.5, 1e-05, -1e300, 3.0]), "s": r.choice(WORDS[:3] + WORDS[5:6])} for _ in range(count)]


def write_split(path, kind, samples, **options):
    """As mosaicml-streaming 0.13.0 writes it, by its own writer where that is installed."""
    pytest.importorskip("mosaic", reason="mosaicml-streaming is not installed; run ./setup.sh")
    from streaming.base.format.json.writer import JSONWriter
    from streaming.base.format.xsv.writer import CSVWriter, TSVWriter, XSVWriter

    writer = {"json": JSONWriter, "csv": CSVWriter, "tsv": TSVWriter, "xsv": XSVWriter}[kind]
    if kind == "xsv":
        options["separator"] = "|"
    with writer(out=str(path), columns={"n": "int", "f": "float", "s": "str"}, **options) as out:
        for sample in samples:
            out.write(sample)


@pytest.mark.parametrize("kind", ["json", "csv", "tsv", "xsv"])
@pytest.mark.parametrize("compression", [None, "zstd", "gz"])
def test_mosaics_text_shards(tmp_path, kind, compression):
    samples = numbers(200)
    write_split(tmp_path / "d", kind, samples, compression=compression, size_limit=1500, hashes=["sha1", "xxh64"])
    columns, read = rows.read(tmp_path / "d")
    assert columns == {"f": "float64", "n": "int64", "s": "str"}
    assert rows.in_order(read) == samples
    _, shuffled = rows.read(tmp_path / "d", shuffle=True, bytes_max=1, columns=["n"])
    assert sorted(row["n"] for row in shuffled) == sorted(sample["n"] for sample in samples)


def test_the_recorded_bytes_of_a_text_shard(tmp_path):
    """The golden shard of the format, written here byte by byte."""
    data = b'{"f": 0.5, "n": 1, "s": "\\u00e9"}\n{"f": 1e-05, "n": -2, "s": ""}\n'
    config = (b'{"columns": {"f": "float", "n": "int", "s": "str"}, "compression": null, "format": "json", "hashes": [], '
              b'"newline": "\\n", "size_limit": 67108864, "version": 2}')  # fmt: skip
    meta = bytes.fromhex("02000000000000002200000041000000") + config
    assert hashlib.sha256(data).hexdigest()[:16] == "b614a9d2d3448aba"
    assert hashlib.sha256(meta).hexdigest()[:16] == "23d71d1f0947e99c"
    (tmp_path / "shard.00000.json").write_bytes(data)
    (tmp_path / "shard.00000.json.meta").write_bytes(meta)
    file = lambda name, content: {"basename": name, "bytes": len(content), "hashes": {}}  # noqa: E731
    shard = {**json.loads(config), "raw_data": file("shard.00000.json", data), "raw_meta": file("shard.00000.json.meta", meta),
             "samples": 2, "zip_data": None, "zip_meta": None}  # fmt: skip
    index = json.dumps({"shards": [shard], "version": 2}, sort_keys=True)
    assert hashlib.sha256(index.encode()).hexdigest()[:16] == "18e684949e031d01"
    (tmp_path / "index.json").write_text(index)
    assert rows.in_order(rows.read(tmp_path)[1]) == [{"f": 0.5, "n": 1, "s": "é"}, {"f": 1e-05, "n": -2, "s": ""}]

    def fault(name, content):
        kept = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content)
        message = rows.fault(tmp_path)
        (tmp_path / name).write_bytes(kept)
        return message

    assert "shard.00000.json" in fault("shard.00000.json", data[:-1]) 
    assert "it has 64 bytes, the index states 65" in fault("shard.00000.json", data[:-1])
    assert "row 1" in fault("shard.00000.json", data.replace(b"-2", b"xx"))
    assert "row 0: the offset" in fault("shard.00000.json.meta", meta[:8] + b"\xff\xff\xff\xff" + meta[12:]).replace("the offset of row 0", "row 0: the offset")
    assert "do" in fault("shard.00000.json.meta", b"\x03" + meta[1:])
    (tmp_path / "index.json").write_text(index.replace("shard.00000.json.meta", "../../etc/passwd"))
    assert "leads out of the data set's directory" in rows.fault(tmp_path)


def test_jsonl_files(tmp_path):
    samples = [
        {"a": 1, "b": 1.5, "c": "é\n", "d": {"x": [1, "}"]}, "e": True},
        {"a": -(2**63), "b": 2, "c": '"\\', "d": [], "e": False},
        {"a": 7, "b": float("inf"), "c": "😀", "d": "text", "e": True},
    ]
    (tmp_path / "one.jsonl").write_text("".join(json.dumps(s, ensure_ascii=i == 0) + "\n" for i, s in enumerate(samples)) + "\n")
    (tmp_path / "two.jsonl").write_text(json.dumps(samples[0]))  # no newline at its end
    columns, read = rows.read(tmp_path)
    assert columns == {"a": "int64", "b": "float64", "c": "str", "d": "json", "e": "int64"}
    wanted = [{**s, "e": int(s["e"]), "b": "Infinity" if s["b"] == float("inf") else s["b"]} for s in samples + samples[:1]]
    assert [{**row, "b": str(row["b"]).replace("inf", "Infinity") if row["b"] not in (1.5, 2) else row["b"]} for row in rows.in_order(read)] == [
        {**row, "b": str(row["b"]) if row["b"] not in (1.5, 2) else row["b"]} for row in wanted
    ]
    (tmp_path / "three.jsonl").write_text('{"a": null}\n')
    assert "three.jsonl" in rows.fault(tmp_path) and "a null" in rows.fault(tmp_path)
    assert sum(row["a"] is None for row in rows.read(tmp_path, nulls="mask")[1]) == 1
    (tmp_path / "three.jsonl").write_text('{"a": 1}\n{"a": 1,}\n')
    assert "three.jsonl': line 2, column" in rows.fault(tmp_path)


def test_csv_files_larger_than_a_window(tmp_path):
    count = 300_000
    with open(tmp_path / "t.csv", "w") as file:
        file.write("id,text,real\n")
        for i in range(count):
            file.write(f'{i},"line {i}\nwith, ""quotes""",{i / 4}\n')
    columns, read = rows.read(tmp_path, batch_size=4096, threads=3)
    assert columns == {"id": "int64", "real": "float64", "text": "str"}
    assert [row["__id"] for row in read] == [row["id"] for row in read] == list(range(count))
    assert all(row["text"] == f'line {row["id"]}\nwith, "quotes"' and row["real"] == row["id"] / 4 for row in read[::997])
    (tmp_path / "t.csv").write_text("a,b\n1\n")
    assert "t.csv': line 2: 1 fields for 2 columns" in rows.fault(tmp_path)
    (tmp_path / "t.csv").write_text('a,b\n1,"x\n')
    assert "t.csv" in rows.fault(tmp_path) and "never closed" in rows.fault(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,\n,x\n")
    assert "column 'a': a null" in rows.fault(tmp_path)
    assert rows.in_order(rows.read(tmp_path, nulls="mask")[1]) == [{"a": 1, "b": ""}, {"a": None, "b": "x"}]
    (tmp_path / "t.csv").unlink()
    (tmp_path / "t.tsv").write_text("a\tb\n1\tx,y\n")
    assert rows.in_order(rows.read(tmp_path)[1]) == [{"a": 1, "b": "x,y"}]


def write_tar(path, members, format=tarfile.PAX_FORMAT):
    with tarfile.open(path, "w", format=format) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_webdataset_archives(tmp_path, format):
    folder = "f" * 60 + "/" + ("g" * 70 if format != tarfile.USTAR_FORMAT else "g" * 30)
    samples = [(f"{folder}/{i:03}", bytes([i]) * i, i) for i in range(50)]
    for part in range(2):
        write_tar(
            tmp_path / f"{part}.tar",
            [
                (f"{key}.{extension}", data)
                for key, image, label in samples[part * 25 : part * 25 + 25]
                for extension, data in (("JPG", image), ("cls", f"{label}\n".encode()), ("meta.json", json.dumps({"l": label}).encode()))
            ],
            format,
        )
    columns, read = rows.read(tmp_path)
    assert columns == {"__key__": "str", "cls": "int64", "jpg": "jpeg", "meta.json": "json"}
    wanted = [{"__key__": key, "cls": label, "jpg": image.hex(), "meta.json": {"l": label}} for key, image, label in samples]
    assert rows.in_order(read) == wanted
    columns, read = rows.read(tmp_path, shuffle=True, columns=["cls"], column_options=[{"name": "cls", "dtype": "float32", "allows_narrowing": True}])
    assert columns == {"cls": "float32"} and sorted(row["cls"] for row in read) == [float(i) for i in range(50)]


def test_a_sample_that_lacks_a_part_is_a_null(tmp_path):
    write_tar(tmp_path / "a.tar", [("1.jpg", b"x"), ("1.cls", b"1"), ("2.jpg", b"y"), (".hidden.jpg", b"")])
    assert "a.tar': row 1 has no 'cls'" in rows.fault(tmp_path)
    assert [row["cls"] for row in rows.read(tmp_path, nulls="mask")[1]] == [1, None]
    assert [row["cls"] for row in rows.read(tmp_path, column_options=[{"name": "cls", "nulls": "fill", "fill": "-1"}])[1]] == [1, -1]


def test_hostile_archives_are_named_and_never_crash(tmp_path):
    for name in ("/etc/passwd.jpg", "../x.jpg", "a/../../x.jpg"):
        write_tar(tmp_path / "a.tar", [(name, b"x")])
        assert "a.tar'" in rows.fault(tmp_path) and "leads out of the archive, at byte" in rows.fault(tmp_path)
    write_tar(tmp_path / "a.tar", [("1.cls", b"one")])
    assert "'one' is no whole number" in rows.fault(tmp_path)
    write_tar(tmp_path / "a.tar", [("1.jpg", b"x"), ("1.jpg", b"y")])
    assert "has 'jpg' twice" in rows.fault(tmp_path)
    write_tar(tmp_path / "a.tar", [(f"{i}.bin", bytes(100)) for i in range(20)])
    whole = (tmp_path / "a.tar").read_bytes()
    r = np.random.default_rng(4)
    for attempt in range(60):
        data = bytearray(whole)
        if attempt % 2:
            data = data[: int(r.integers(1, len(data)))]
        else:
            data[int(r.integers(20 * 1024))] ^= 1 << int(r.integers(8))
        (tmp_path / "a.tar").write_bytes(data)
        result = rows.run_probe(tmp_path)
        assert result.returncode in (0, 1), (attempt, result.returncode, result.stderr)
        assert result.returncode == 0 or "a.tar" in result.stderr or "no samples" in result.stderr, result.stderr


def test_image_folders(tmp_path):
    files = {f"{name}/deep/{i}.{extension}": bytes([i]) * i for name, extension in (("cat", "jpg"), ("ant", "JPEG")) for i in range(30)}
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    columns, read = rows.read(tmp_path)
    assert columns == {"class": "str", "image": "jpeg", "label": "int64", "path": "str"}
    assert {row["path"]: row["image"] for row in read} == {path: data.hex() for path, data in files.items()}
    assert {(row["class"], row["label"]) for row in read} == {("ant", 0), ("cat", 1)}
    assert len(rows.read(tmp_path, shuffle=True, epochs=2)[1]) == 120


def test_nothing_and_other_things_are_said(tmp_path):
    assert "there is no data set" in rows.fault(tmp_path) and "index.json" in rows.fault(tmp_path)
    (tmp_path / "t.csv").write_text("a\n")
    assert "no samples" in rows.fault(tmp_path)
    assert "there is no format 'zip'" in rows.fault(tmp_path, format="zip")
    (tmp_path / "t.csv").write_text("a\n1\n")
    assert "filters need a table of Parquet or Delta" in rows.fault(tmp_path, filters=[["a > 0"]])
    assert "only a Delta table has versions" in rows.fault(tmp_path, version=0)

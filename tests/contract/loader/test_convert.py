"""tune-data over data sets of every format: convert there and back, kill it in between, verify, stats."""

import json
import signal
import subprocess
import time

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
import rows  # noqa: E402
from test_files import write_tar  # noqa: E402

pytestmark = pytest.mark.skipif(not rows.has_arrow(), reason="a build without Arrow")


def command(*arguments):
    return [rows.BIN / "tune-data", *map(str, arguments)]


def tune_data(*arguments, expect=0):
    result = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=120)
    assert result.returncode == expect, result.stderr + result.stdout
    return result.stdout if expect == 0 else result.stderr


def sample_table(count):
    r = np.random.default_rng(1)
    return pa.table(
        {
            "id": range(count),
            "x": r.normal(size=count).astype("f4"),
            "word": [f"é{i % 17}" for i in range(count)],
            "blob": [bytes([i % 256]) * (i % 9) for i in range(count)],
            "row": pa.FixedSizeListArray.from_arrays(pa.array(r.integers(0, 9, 3 * count).astype("i2")), 3),
            "many": [[float(k) for k in range(1 + i % 4)] for i in range(count)],
        }
    )


def make_set(path, kind, table):
    path.mkdir()
    if kind == "parquet":
        pq.write_table(table, path / "a.parquet", row_group_size=97)
    elif kind == "delta":
        pytest.importorskip("deltalake").write_deltalake(path, table)
    elif kind == "jsonl":
        lines = [json.dumps({key: row[key] for key in ("id", "x", "word")}) for row in table.to_pylist()]
        (path / "a.jsonl").write_text("\n".join(lines))
    elif kind == "csv":
        (path / "a.csv").write_text("id,word\n" + "".join(f"{row['id']},{row['word']}\n" for row in table.to_pylist()))
    elif kind == "webdataset":
        members = [(f"{row['id']:06}.{ext}", data) for row in table.to_pylist() for ext, data in (("bin", row["blob"]), ("cls", b"%d" % row["id"]))]
        write_tar(path / "a.tar", members)
    elif kind == "images":
        for row in table.to_pylist():
            file = path / f"c{row['id'] % 3}" / f"{row['id']}.jpg"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(b"\xff\xd8" + row["blob"])


@pytest.mark.parametrize("kind", ["parquet", "delta", "jsonl", "csv", "webdataset", "images"])
def test_into_mds_and_parquet_and_back(tmp_path, kind):
    make_set(tmp_path / "in", kind, sample_table(300))
    columns, wanted = rows.read(tmp_path / "in")
    tune_data("convert", tmp_path / "in", tmp_path / "p", "--to", "parquet")
    _, parquet = rows.read(tmp_path / "p")
    assert rows.in_order(parquet) == rows.in_order(wanted)
    tune_data("convert", tmp_path / "in", tmp_path / "m", "--size-limit", "4kb")
    assert "300 samples good, 0 faulty" in tune_data("verify", tmp_path / "m")
    _, mds = rows.read(tmp_path / "m")
    mosaic = pytest.importorskip("mosaic")
    theirs = mosaic.LocalDataset(str(tmp_path / "m"))
    assert len(theirs) == len(mds) == 300
    plain = [name for name in columns if not columns[name].startswith("list:") and columns[name] != "jpeg"]
    for name in plain:
        assert [row[name] for row in rows.in_order(mds)] == [row[name] for row in rows.in_order(wanted)], name
    if kind in ("parquet", "delta"):
        assert [list(sample["many"]) for sample in theirs] == [row["many"] for row in rows.in_order(wanted)]
    assert "300 samples good" in tune_data("verify", tmp_path / "in")
    [report] = json.loads(tune_data("inspect", tmp_path / "in", "--json", "--rows", 2))
    assert report["samples"] == 300 and report["format"] == kind and len(report["rows"]) == 2
    tune_data("bench", tmp_path / "in", "--seconds", 0)


def test_what_mds_cannot_hold_is_said(tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"a": [1, None]}), tmp_path / "in" / "a.parquet")
    assert "row 1, column 'a': a null" in tune_data("convert", tmp_path / "in", tmp_path / "m", expect=1)
    assert "nulls, which MDS has not" in tune_data("convert", tmp_path / "in", tmp_path / "m", "--nulls", "mask", expect=1)
    tune_data("convert", tmp_path / "in", tmp_path / "m", "--nulls", "fill", "--fill", "-1")
    assert [row["a"] for row in rows.read(tmp_path / "m")[1]] == [1, -1]
    assert "is not empty" in tune_data("convert", tmp_path / "in", tmp_path / "m", "--nulls", "fill", expect=1)
    tune_data("convert", tmp_path / "in", tmp_path / "m", "--nulls", "mask", "--to", "parquet", "--overwrite")
    assert [row["a"] for row in rows.read(tmp_path / "m", nulls="mask")[1]] == [1, None]
    assert not list(tmp_path.glob(".m*"))


@pytest.mark.parametrize("target", ["mds", "parquet"])
def test_a_killed_conversion_goes_on_where_it_stood(tmp_path, target):
    count = 400_000
    (tmp_path / "in").mkdir()
    pq.write_table(sample_table(count).drop(["many"]), tmp_path / "in" / "a.parquet", row_group_size=2000)
    convert = ["convert", tmp_path / "in", tmp_path / "out", "--to", target, "--size-limit", "20kb"]
    folder = tmp_path / ".out.converting"

    def finished():
        steps = [path for path in folder.glob("[0-9p]*") if path.suffix != ".partial" and path.name != "plan.json"]
        return {path: path.stat().st_ino for path in steps}

    kept = {}
    for _ in range(3):
        process = subprocess.Popen(command(*convert), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while len(finished()) <= len(kept) + 1 and process.poll() is None and time.monotonic() < deadline:
            pass  # until it has finished a step more
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (tmp_path / "out").exists():
            break
        now = finished()
        assert kept.items() <= now.items(), "a finished step was written again"
        kept = now
    if not (tmp_path / "out").exists():
        assert kept
        tune_data(*convert)
        after = {path.stat().st_ino for path in (tmp_path / "out").glob("*")}
        assert set(kept.values()) <= after
    assert f"{count:,} samples good, 0 faulty" in tune_data("verify", tmp_path / "out")
    read = rows.read(tmp_path / "out", columns=["id"], batch_size=4096)[1]
    assert [row["id"] for row in read] == list(range(count))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_stats_are_numpys_and_are_kept(tmp_path):
    table = sample_table(500)
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=60)
    stats = json.loads(tune_data("stats", tmp_path / "in", "--json", "--threads", 3))
    x = np.array(table["x"])
    assert stats["columns"]["x"]["mean"] == pytest.approx(float(x.mean(dtype="f8")), rel=1e-9)
    assert stats["columns"]["x"]["std"] == pytest.approx(float(x.std(dtype="f8")), rel=1e-9)
    assert stats["columns"]["x"]["min"] == x.min() and stats["columns"]["x"]["max"] == x.max()
    assert stats["columns"]["many"]["elements"] == sum(1 + i % 4 for i in range(500))
    assert stats["columns"]["many"]["length"] == {"mean": pytest.approx(2.5), "std": pytest.approx(1.25**0.5), "min": 1, "max": 4}
    assert stats["columns"]["blob"]["length"]["max"] == 8 and stats["columns"]["id"]["nulls"] == 0
    kept = tmp_path / "in" / "_tune_stats.json"
    assert json.loads(kept.read_text()) == stats
    kept.write_text(kept.read_text().replace('"samples":500', '"samples":7'))
    assert json.loads(tune_data("stats", tmp_path / "in", "--json"))["samples"] == 7, "what was kept is used"
    assert json.loads(tune_data("stats", tmp_path / "in", "--json", "--fresh"))["samples"] == 500
    assert rows.read(tmp_path / "in")[0].keys() == set(table.column_names)


def test_a_damaged_shard_of_a_table_is_named_and_the_others_are_good(tmp_path):
    (tmp_path / "in").mkdir()
    for part in range(3):
        pq.write_table(pa.table({"a": range(1000)}), tmp_path / "in" / f"{part}.parquet", use_dictionary=False, compression="zstd")
    path = tmp_path / "in" / "1.parquet"
    data = bytearray(path.read_bytes())
    data[100:160] = bytes(60)
    path.write_bytes(data)
    result = subprocess.run(command("verify", tmp_path / "in"), capture_output=True, text=True)
    assert result.returncode == 1 and "1.parquet, row group 0" in result.stdout
    assert "2,000 samples good, 1 faulty shard of 3" in result.stdout

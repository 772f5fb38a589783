"""Tables, text, archives and images on an S3 (moto), read through the cache that MDS has: the rows of the files themselves in the same order,
each byte asked for once, whatever breaks. What was asked for is counted by a proxy in front of the server."""

import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tarfile
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import rows  # noqa: E402
from servers import FaultProxy, start_moto  # noqa: E402
from test_remote import needs_arrow, put_set, s3_environment  # noqa: E402

pytestmark = needs_arrow


@pytest.fixture(scope="module")
def moto():
    process, url = start_moto()
    yield url
    process.stdin.close()
    process.wait()


def write_parquet(folder, count=600, groups=100, files=3):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    dice = random.Random(5)
    for part in range(files):
        ids = range(part * count // files, (part + 1) * count // files)
        table = pyarrow.table({"id": ids, "text": [f"t{i}" * (i % 7) for i in ids], "noise": [dice.randbytes(300) for _ in ids]})
        pyarrow.parquet.write_table(table, folder / f"{part}.parquet", row_group_size=groups)


def write_delta(folder):
    pyarrow = pytest.importorskip("pyarrow")
    deltalake = pytest.importorskip("deltalake")
    for part in range(3):
        table = pyarrow.table({"id": [part * 100 + i for i in range(100)], "text": [f"{part}-{i}" for i in range(100)]})
        deltalake.write_deltalake(str(folder), table, mode="append")


def write_jsonl(folder):
    for part in range(2):
        lines = [json.dumps({"id": part * 200 + i, "s": "é" * (i % 5)}) for i in range(200)]
        (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n")


def write_csv(folder):
    """More than two windows of 8 MiB."""
    pad = "x" * 40_000
    (folder / "a.csv").write_text("id,s\n" + "".join(f"{i},{pad}{i}\n" for i in range(450)))


def write_tsv(folder):
    (folder / "a.tsv").write_text("id\ts\n" + "".join(f"{i}\tv{i}\n" for i in range(300)))


def write_split(folder, compression=None):
    pytest.importorskip("mosaic")
    from streaming.base.format.json.writer import JSONWriter

    columns = {"n": "int", "s": "str"}
    with JSONWriter(out=str(folder), columns=columns, size_limit=1500, compression=compression, hashes=["sha1"], exist_ok=True) as out:
        for i in range(300):
            out.write({"n": i, "s": f"row {i}"})


def write_tar(folder):
    dice = random.Random(6)
    for part in range(2):
        with tarfile.open(folder / f"{part}.tar", "w") as archive:
            for i in range(40):
                for name, data in (("bin", dice.randbytes(dice.randrange(150_000))), ("cls", str(i % 3).encode())):
                    info = tarfile.TarInfo(f"{part}/{i:03}.{name}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))


def write_images(folder):
    dice = random.Random(7)
    for i in range(60):
        (folder / f"class{i % 3}").mkdir(exist_ok=True)
        (folder / f"class{i % 3}" / f"{i}.jpg").write_bytes(dice.randbytes(dice.randrange(2000)))


WRITERS = {
    "parquet": write_parquet,
    "delta": write_delta,
    "jsonl": write_jsonl,
    "csv": write_csv,
    "tsv": write_tsv,
    "split": write_split,
    "split-zstd": lambda folder: write_split(folder, "zstd"),
    "tar": write_tar,
    "images": write_images,
}


class FarSet:
    """A data set of one kind here and on the server, behind a proxy that counts and breaks."""

    def __init__(self, moto, tmp_path, kind, name=None):
        self.moto = moto
        self.kind = kind
        self.folder = tmp_path / "set"
        self.folder.mkdir(exist_ok=True)
        self.bucket = f"files-{name or tmp_path.name}".replace("_", "-").lower()[:60].strip("-")
        self.cache = tmp_path / "cache"
        self.proxy = FaultProxy(moto)
        WRITERS[kind](self.folder)
        self.url = put_set(moto, self.bucket, self.folder)

    def command(self, **options):
        return [rows.PROBE, json.dumps({"directory": "", "remote": self.url, "local": str(self.cache), **options})]

    def run(self, expect=0, **options):
        done = subprocess.run(self.command(**options), capture_output=True, timeout=120, env=s3_environment(self.proxy.url))
        assert done.returncode == expect, done.stderr
        return done

    def read(self, **options):
        """Rows in their order, and the units that were fetched for them."""
        done = self.run(**options)
        return [json.loads(line) for line in done.stdout.splitlines()[1:]], json.loads(done.stderr.splitlines()[-1])

    def expected(self, **options):
        return rows.read(self.folder, **options)[1]

    def asked(self):
        """Requests for contents of files, and forgets them; the index of shards is always asked for."""
        with self.proxy.lock:
            requests, self.proxy.requests = self.proxy.requests, []
        prefix = f"/{self.bucket}/set/"
        return [
            (path, headers.get("Range") or headers.get("range"))
            for method, path, headers in requests
            if method == "GET" and path.startswith(prefix) and not path.endswith("/index.json")
        ]

    def units(self):
        """The files of units in the cache."""
        if self.kind.startswith("split"):
            return sorted(path for path in self.cache.glob("shard.*"))
        return sorted(path for path in (self.cache / ".tune-cache" / "units").rglob("*") if path.is_file())


def bytes_of(requests):
    total = 0
    for _, wanted in requests:
        first, last = map(int, wanted.removeprefix("bytes=").split("-"))
        total += last - first + 1
    return total


@pytest.mark.parametrize("kind", WRITERS)
def test_the_rows_of_the_files_in_their_order_and_nothing_twice(moto, tmp_path, kind):
    far = FarSet(moto, tmp_path, kind, f"same-{kind}")
    order = {"shuffle": True, "epochs": 2}
    read, fetched = far.read(**order)
    assert read == far.expected(**order)
    assert fetched["units"] == len(far.units()) > 0
    asked = far.asked()
    assert len(asked) == len(set(asked)), "one request for each range"
    again, fetched = far.read(**order)
    assert again == read and fetched == {"bytes": 0, "units": 0}
    assert far.asked() == []


@pytest.mark.parametrize("kind", WRITERS)
def test_processes_fetch_each_unit_once(moto, tmp_path, kind):
    far = FarSet(moto, tmp_path, kind, f"shared-{kind}")
    processes = [
        subprocess.Popen(
            far.command(shuffle=True, epochs=2, batch_size=5 + i),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=s3_environment(far.proxy.url),
        )
        for i in range(2)
    ]  # fmt: skip
    done = [process.communicate(timeout=120) for process in processes]
    for i, (out, _) in enumerate(done):
        expected = far.expected(shuffle=True, epochs=2, batch_size=5 + i)
        assert [json.loads(line) for line in out.splitlines()[1:]] == expected
    assert sum(json.loads(error.splitlines()[-1])["units"] for _, error in done) == len(far.units())


@pytest.mark.parametrize("kind", ["parquet", "csv", "split", "tar", "images"])
def test_a_limit_is_kept_and_every_row_comes(moto, tmp_path, kind):
    far = FarSet(moto, tmp_path, kind, f"limit-{kind}")
    whole = sum(path.stat().st_size for path in far.folder.rglob("*") if path.is_file())
    limit = whole // 2
    read, _ = far.read(shuffle=True, epochs=3, cache_limit=limit)
    assert read == far.expected(shuffle=True, epochs=3)
    kept = sum(path.stat().st_size for path in far.units())
    assert 0 < kept <= limit or kind == "csv"


def test_of_a_wide_table_only_the_columns_that_are_read_are_fetched(moto, tmp_path):
    far = FarSet(moto, tmp_path, "parquet", "projection")
    read, fetched = far.read(columns=["id"])
    assert read == far.expected(columns=["id"])
    footers = 3 * 64 * 1024
    assert bytes_of(far.asked()) <= footers + fetched["bytes"] and fetched["bytes"] < 20_000
    both, fetched = far.read(columns=["id", "text"])
    assert both == far.expected(columns=["id", "text"])
    assert fetched["units"] == 6 and bytes_of(far.asked()) == fetched["bytes"], "what is known of the table, and `id`, is here"
    filtered, fetched = far.read(columns=["text"], filters=[["id < 250"]])
    assert filtered == far.expected(columns=["text"], filters=[["id < 250"]]) and fetched["units"] == 0


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "tar", "images"])
def test_a_file_that_was_replaced_is_fetched_anew(moto, tmp_path, kind):
    far = FarSet(moto, tmp_path, kind, f"replaced-{kind}")
    far.read()
    old = set(far.units())
    changed = sorted(path for path in far.folder.rglob("*") if path.is_file())[0]
    if kind == "parquet":
        write_parquet(far.folder, count=300)
    elif kind == "jsonl":
        changed.write_text(changed.read_text().replace('"s": "', '"s": "new '))
    elif kind == "tar":
        with tarfile.open(changed, "a") as archive:
            for name, data in (("bin", b"n" * 20_000), ("cls", b"1")):
                info = tarfile.TarInfo(f"0/999.{name}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    else:
        changed.write_bytes(b"new" * 1000)
    put_set(moto, far.bucket, far.folder)
    read, fetched = far.read()
    assert read == far.expected() and fetched["units"] > 0
    assert not old & set(far.units()) or kind != "parquet"


FAULTS = [(kind, fault) for kind in ("parquet", "jsonl", "split", "tar", "images") for fault in ("503", "short")]
FAULTS += [("parquet", "stall"), ("tar", "stall")]  # a quarter of a minute each: all of them wait in the same place


@pytest.mark.parametrize(("kind", "fault"), FAULTS)
def test_what_stays_broken_is_named_with_the_reason(moto, tmp_path, kind, fault):
    far = FarSet(moto, tmp_path, kind, f"broken-{fault}-{kind}")
    name = {"parquet": "1.parquet", "jsonl": "1.jsonl", "split": "shard.00001.json", "tar": "1.tar", "images": "class1/1.jpg"}[kind]
    far.proxy.fault = lambda method, path, _: fault if method == "GET" and path.endswith("/" + name) else None
    error = far.run(expect=1, retry=1, timeout=1).stderr.decode()
    far.proxy.release()
    assert name in error and "2 attempts" in error


@pytest.mark.parametrize(("kind", "last"), [("parquet", "2.parquet"), ("split", "json"), ("images", "class2/59.jpg")])
def test_what_stalls_stalls_nothing_that_does_without_it(moto, tmp_path, kind, last):
    far = FarSet(moto, tmp_path, kind, f"stalled-{kind}")
    expected, _ = far.read()
    if kind == "split":
        last = sorted(path.name for path in far.folder.glob("*.json"))[-1]
    for unit in far.units():
        unit.unlink()
    asked = threading.Event()

    def never_comes(method, path, _):
        if method != "GET" or not path.endswith("/" + last):
            return None
        asked.set()
        return "slow"

    far.proxy.fault = never_comes
    before = {"parquet": 400, "split": 250, "images": 57}[kind]
    read, _ = far.read(batch_size=19, batches=before // 19, timeout=15)
    assert read == expected[: len(read)] and len(read) == before // 19 * 19
    whole = subprocess.Popen(far.command(timeout=15), stdout=subprocess.PIPE, env=s3_environment(far.proxy.url))
    assert asked.wait(60) and whole.poll() is None
    far.proxy.release()
    assert [json.loads(line) for line in whole.communicate(timeout=60)[0].splitlines()[1:]] == expected


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "split-zstd", "tar", "images"])
def test_killed_at_any_moment_it_starts_again_with_the_same_rows(moto, tmp_path, kind):
    far = FarSet(moto, tmp_path, kind, f"killed-{kind}")
    expected = far.expected(shuffle=True)
    for kill_at in (2, 6, 10, 14, 20):
        reached = threading.Event()
        seen, lock = iter(range(1, 10**9)), threading.Lock()

        def count(method, path, _, reached=reached, seen=seen, lock=lock, kill_at=kill_at):
            if method == "GET" and f"/{far.bucket}/set/" in path:
                with lock:
                    if next(seen) >= kill_at:
                        reached.set()
                        return "slow"
            return None

        far.proxy.fault = count
        process = subprocess.Popen(far.command(shuffle=True), stdout=subprocess.DEVNULL, env=s3_environment(far.proxy.url))
        while not reached.wait(0.05) and process.poll() is None:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        far.proxy.release()
        far.proxy.close()
        far.proxy = FaultProxy(moto)
    read, _ = far.read(shuffle=True)
    assert read == expected
    control = far.cache / ".tune-cache"
    assert not [path for path in control.iterdir() if path.name.startswith("part.")]
    again, fetched = far.read(shuffle=True)
    assert again == expected and fetched["units"] == 0


def test_a_cache_is_listed_and_deleted(moto, tmp_path):
    far = FarSet(moto, tmp_path, "parquet", "deleted")
    far.read()
    tool = [str(pathlib.Path(os.environ.get("TUNE_BIN_DIR", rows.BIN)) / "tune-data"), "cache"]
    [usage] = json.loads(subprocess.run([*tool, "ls", far.cache, "--json"], capture_output=True, check=True).stdout)
    assert usage["files"] == len(far.units())
    subprocess.run([*tool, "rm", far.cache], check=True)
    assert not far.cache.exists()

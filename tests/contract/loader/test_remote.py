"""Data sets behind real servers: an S3 (moto), web servers, and a proxy that breaks what passes it; one cache for several
processes, killed at any moment. Compared is what every sample held."""

import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import threading
import urllib.request

import pytest
from servers import FaultProxy, FileServer, start_moto

mosaic = pytest.importorskip("mosaic", reason="mosaicml-streaming is not installed; run ./setup.sh")

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
AWS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}

needs_arrow = pytest.mark.skipif(
    not (BIN / "libtune_object_store.so").exists(), reason="this build has no Arrow"
)


def environment(**settings):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HF_", "DATABRICKS_"))}
    return clean | {name: str(value) for name, value in settings.items()}


def probe_command(remote, local, **numbers):
    return [str(BIN / "loader_cache_probe"), str(remote), str(local), *(f"{k}={v}" for k, v in numbers.items())]


def probe(remote, local, env=None, expect=0, **numbers):
    done = subprocess.run(
        probe_command(remote, local, **numbers), capture_output=True, text=True, timeout=120, env=env or environment()
    )
    assert done.returncode == expect, done.stderr
    return json.loads(done.stdout) if expect == 0 else done.stderr


def tune_data(*arguments, env=None, expect=0):
    done = subprocess.run(
        [BIN / "tune-data", *map(str, arguments)], capture_output=True, text=True, timeout=120, env=env or environment()
    )
    assert done.returncode == expect, done.stderr
    return done.stdout if expect == 0 else done.stderr


def write_set(folder, count=400, sample_bytes=1000, shard_bytes=20_000, compression=None, hashes=("xxh3_64",)):
    """`payload` is of any length, so that places in a shard must be looked up."""
    dice = random.Random(7)
    columns = {"id": "int", "payload": "bytes"}
    with mosaic.MDSWriter(
        out=str(folder), columns=columns, size_limit=shard_bytes, compression=compression, hashes=list(hashes)
    ) as writer:
        for i in range(count):
            writer.write({"id": i, "payload": dice.randbytes(dice.randrange(sample_bytes // 2, sample_bytes))})
    return folder


def shard_count(folder):
    return len(json.loads((folder / "index.json").read_text())["shards"])


@pytest.fixture(scope="module")
def moto():
    process, url = start_moto()
    yield url
    process.stdin.close()
    process.wait()


def s3_environment(url):
    return environment(**AWS, AWS_ENDPOINT_URL=url)


def put_set(moto, bucket, folder):
    """By the protocol itself: moto checks no signature."""
    for path in [None, *sorted(folder.rglob("*"))]:
        if path is None or path.is_file():
            key = f"/{path.relative_to(folder)}" if path else ""
            data = path.read_bytes() if path else b""
            request = urllib.request.Request(f"{moto}/{bucket}{'/set' + key if path else ''}", data, method="PUT")
            request.add_header("Content-Type", "application/octet-stream")
            request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request")
            urllib.request.urlopen(request).read()
    return f"s3://{bucket}/set"


@needs_arrow
@pytest.mark.parametrize("compression", [None, "zstd", "gz", "br:5", "bz2", "snappy"])
def test_s3_gives_the_same_samples_and_is_asked_once(moto, tmp_path, compression):
    folder = write_set(tmp_path / "set", compression=compression)
    url = put_set(moto, f"all-{(compression or 'raw').replace(':', '-')}", folder)
    expected = probe(folder, "", epochs=4)
    first = probe(url, tmp_path / "cache", s3_environment(moto), epochs=4)
    assert (first["samples"], first["digest"]) == (expected["samples"], expected["digest"])
    while probe(url, tmp_path / "cache", s3_environment(moto), epochs=4)["shards"]:
        pass  # a short run may end before every shard has come
    again = probe(url, tmp_path / "cache", s3_environment(moto), epochs=4)
    assert (again["bytes"], again["digest"]) == (0, expected["digest"])


@needs_arrow
def test_s3_names_what_is_missing_or_forbidden(moto, tmp_path):
    error = probe("s3://no-such-bucket/set", tmp_path / "cache", s3_environment(moto), expect=1)
    assert "s3://no-such-bucket/set/index.json" in error and "there is no data set" in error


@needs_arrow
def test_convert_writes_to_s3_and_the_verbs_read_it(moto, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n" + "".join(f"{i},x{i}\n" for i in range(500)))
    put_set(moto, "tables", tmp_path)
    env = s3_environment(moto)
    url = "s3://tables/out"
    tune_data("convert", "s3://tables/set/rows.csv", url, "--split", "train=0.8,val=0.2", "--size-limit", "2kb", env=env)
    tune_data("convert", tmp_path / "rows.csv", tmp_path / "out", "--split", "train=0.8,val=0.2", "--size-limit", "2kb")
    report = json.loads(tune_data("inspect", url, "--json", env=env))
    assert [(s["directory"], s["samples"]) for s in report] == [(f"{url}/train", 400), (f"{url}/val", 100)]
    assert "400 samples good" in tune_data("verify", url, env=env)
    assert probe(f"{url}/train", tmp_path / "c", env)["digest"] == probe(tmp_path / "out/train", "")["digest"]
    error = tune_data("convert", tmp_path / "rows.csv", url, env=env, expect=1)
    assert "holds something already" in error
    bench = json.loads(tune_data("bench", f"{url}/train", "--local", tmp_path / "b", "--seconds", "0.1", "--json", env=env))
    assert bench["samples_per_s"] > 0
    caches = json.loads(tune_data("cache", "ls", tmp_path, "--json"))
    assert [cache["directory"] for cache in caches] == [str(tmp_path / "b"), str(tmp_path / "c")]
    tune_data("cache", "rm", tmp_path / "b")
    assert not (tmp_path / "b").exists()


@needs_arrow
def test_tables_are_read_by_url(moto, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    folder = tmp_path / "table"
    folder.mkdir()
    for part in range(3):
        rows = range(part * 100, part * 100 + 100)
        pyarrow.parquet.write_table(pyarrow.table({"x": rows, "t": [f"t{i}" for i in rows]}), folder / f"{part}.parquet")
    url = put_set(moto, "parquet", folder)
    env = s3_environment(moto)
    [there] = json.loads(tune_data("inspect", url, "--json", env=env))
    [here] = json.loads(tune_data("inspect", folder, "--json"))
    assert there["samples"] == 300 and {**there, "directory": ""} == {**here, "directory": ""}
    assert "300 samples good" in tune_data("verify", url, env=env)
    tune_data("convert", url, tmp_path / "mds", env=env)
    tune_data("convert", folder, tmp_path / "same")
    assert probe(tmp_path / "mds", "")["digest"] == probe(tmp_path / "same", "")["digest"]


@needs_arrow
@pytest.mark.parametrize("target", ["mds", "parquet"])
def test_a_data_set_is_converted_from_store_to_store(moto, tmp_path, target):
    if target == "parquet":
        pytest.importorskip("pyarrow")
    folder = write_set(tmp_path / "set", count=300)
    env = s3_environment(moto) | {"TMPDIR": str(tmp_path)}
    url = f"{put_set(moto, f'far-{target}', folder)[: -len('/set')]}/out"
    options = ("--to", target, "--size-limit", "10kb", "--jobs", "2")
    said = tune_data("convert", f"s3://far-{target}/set", url, *options, env=env)
    assert "wrote 300 samples" in said and url in said
    assert not list(tmp_path.glob("tune-convert-*")) and not list(pathlib.Path.cwd().glob("s3:*"))
    assert "300 samples good" in tune_data("verify", url, env=env)
    tune_data("convert", url, tmp_path / "back", "--jobs", "1", env=env)
    tune_data("convert", folder, tmp_path / "here", "--jobs", "1")
    assert probe(tmp_path / "back", "")["digest"] == probe(tmp_path / "here", "")["digest"]
    error = tune_data("convert", folder, url, *options, env=env, expect=1)
    assert f"'{url}' holds something already" in error
    error = tune_data("convert", folder, "https://example.org/out", *options, env=env, expect=1)
    assert "can be read, not written" in error


@needs_arrow
def test_a_conversion_to_a_store_goes_on_behind_what_was_sent(moto, tmp_path):
    folder = write_set(tmp_path / "set", count=300)
    put_set(moto, "broken-off", folder)
    sent, lock = [], threading.Lock()
    is_down = threading.Event()

    def fails_after_two_steps(method, path, _):
        with lock:
            if method == "PUT" and path.startswith("/broken-off/out/") and not is_down.is_set():
                sent.append(path.partition("?")[0])
                if path.startswith("/broken-off/out/00002/"):
                    is_down.set()
        return "503" if is_down.is_set() and method != "GET" else None

    proxy = FaultProxy(moto, fails_after_two_steps)
    env = s3_environment(proxy.url) | {"TMPDIR": str(tmp_path)}
    command = ("convert", folder, "s3://broken-off/out", "--size-limit", "10kb", "--jobs", "1")
    error = tune_data(*command, env=env, expect=1)
    assert "s3://broken-off/out/00002/" in error and "the same command continues" in error
    assert not any(path.endswith("index.json") for path in sent)
    proxy.fault, already = lambda *_: None, {path for path in sent if "/00002/" not in path}
    proxy.requests.clear()
    tune_data(*command, env=env)
    put = [path.partition("?")[0] for method, path, _ in proxy.requests if method == "PUT"]
    assert not already & set(put) and put[-1].endswith("/out/index.json")
    found = probe("s3://broken-off/out", tmp_path / "cache", env)
    assert (found["samples"], found["digest"]) == (300, probe(folder, "")["digest"])


FAULTS = {
    "503": lambda dice: "503" if dice.random() < 0.2 else None,
    "cut": lambda dice: "cut" if dice.random() < 0.2 else None,
    "short": lambda dice: "short" if dice.random() < 0.2 else None,
}


@pytest.mark.parametrize("kind", ["http", pytest.param("s3", marks=needs_arrow)])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_that_pass_cost_time_and_nothing_else(moto, tmp_path, kind, fault):
    folder = write_set(tmp_path / "set", count=100)
    upstream = FileServer(tmp_path) if kind == "http" else None
    if kind == "s3":
        put_set(moto, f"faulty-{fault}", folder)
    dice, lock = random.Random(3), threading.Lock()

    def broken(*_):
        with lock:
            return FAULTS[fault](dice)

    proxy = FaultProxy(upstream.url if upstream else moto, broken)
    url = f"{proxy.url}/set" if upstream else f"s3://faulty-{fault}/set"
    found = probe(url, tmp_path / "cache", s3_environment(proxy.url), epochs=2, retry=30)
    expected = probe(folder, "", epochs=2)
    assert (found["samples"], found["digest"]) == (expected["samples"], expected["digest"])


@pytest.mark.parametrize("kind", ["http", pytest.param("s3", marks=needs_arrow)])
@pytest.mark.parametrize("fault", ["503", "cut", "stall", "slow"])
def test_faults_that_stay_are_named_with_the_number_of_attempts(moto, tmp_path, kind, fault):
    folder = write_set(tmp_path / "set", count=50)
    put_set(moto, f"broken-{fault}", folder)
    upstream = FileServer(tmp_path)
    proxy = FaultProxy(upstream.url if kind == "http" else moto, lambda _, path, __: fault if "shard" in path else None)
    url = f"{proxy.url}/set" if kind == "http" else f"s3://broken-{fault}/set"
    error = probe(url, tmp_path / "cache", s3_environment(proxy.url), expect=1, retry=1, timeout=1)
    proxy.release()
    assert "shard.0" in error and "2 attempts" in error
    if fault == "503":
        assert "503" in error
    if fault in ("stall", "slow"):
        assert "no byte came for 1 s" in error or "imeout" in error or "timed out" in error, error


def test_a_stalled_shard_stalls_no_batch_that_does_without_it(tmp_path):
    folder = write_set(tmp_path / "set")
    upstream = FileServer(tmp_path)
    while probe(f"{upstream.url}/set", tmp_path / "cache", epochs=3)["shards"]:
        pass
    (tmp_path / "cache" / "shard.00009.mds").unlink()
    asked = threading.Event()

    def never_comes(_, path, __):
        if "shard.00009" not in path:
            return None
        asked.set()
        return "slow"

    proxy = FaultProxy(upstream.url, never_comes)
    # 9 shards of about 26 samples come before the one that never comes.
    found = probe(f"{proxy.url}/set", tmp_path / "cache", shuffle=0, batch=20, batches=10, timeout=100)
    assert found["samples"] == 200
    whole = subprocess.Popen(
        probe_command(f"{proxy.url}/set", tmp_path / "cache", shuffle=0, timeout=100), stdout=subprocess.PIPE, text=True
    )
    assert asked.wait(60) and whole.poll() is None
    proxy.release()
    assert json.loads(whole.communicate(timeout=60)[0])["digest"] == probe(folder, "")["digest"]


def bytes_before_the_first_shard(requests, folder):
    """What was asked for, the index included, until whole shards were begun: they are 2 MB, samples 20 kB at the most."""
    total = 0
    for method, path, headers in requests:
        wanted = headers.get("Range")
        first, last = map(int, wanted.removeprefix("bytes=").split("-")) if wanted else (0, -1)
        if path.endswith("index.json") and method == "GET":
            total += last + 1 - first if wanted else (folder / "index.json").stat().st_size
        elif ".mds" in path and last - first > 1_000_000:
            return total
        else:
            total += last + 1 - first
    return total


def check_same_samples_and_each_shard_once(url, folder, cache, env):
    """Of a set on a store that has every byte of `folder`'s."""
    expected = probe(folder, "", epochs=3)
    first = probe(url, cache, env, epochs=3)
    assert (first["samples"], first["digest"]) == (expected["samples"], expected["digest"])
    while probe(url, cache, env)["shards"]:
        pass  # a short run may end before every shard has come
    assert len(list(cache.glob("shard.*"))) == shard_count(folder)
    again = probe(url, cache, env, epochs=3)
    assert (again["bytes"], again["digest"]) == (0, expected["digest"])


@pytest.mark.parametrize("shuffle", [0, 1])
def test_the_first_batch_costs_at_most_twice_its_samples(tmp_path, shuffle):
    """As the server counts it: while the first batch is handed out, shards may come already."""
    folder = write_set(tmp_path / "set", count=1000, sample_bytes=20_000, shard_bytes=2_000_000)
    server = FileServer(tmp_path)
    url = f"{server.url}/set"
    found = probe(url, tmp_path / "cache", batch=16, batches=1, shuffle=shuffle)
    assert found["ranged"] >= 1 and found["first_bytes"] > 0
    asked = bytes_before_the_first_shard(server.requests, folder)
    # All batches that are decoded ahead, of 15 kB a sample, are fetched sample by sample before a shard is.
    assert 16 * 10_000 < asked <= 2 * 16 * 15_000 * (found["ranged"] + 1)


@pytest.mark.parametrize("ranges", [True, False])
def test_plain_web_servers_with_and_without_ranges(tmp_path, ranges):
    folder = write_set(tmp_path / "set", count=600, sample_bytes=40_000, shard_bytes=9_000_000, hashes=())
    server = FileServer(tmp_path, ranges=ranges)
    found = probe(f"{server.url}/set", tmp_path / "cache", epochs=2)
    assert found["digest"] == probe(folder, "", epochs=2)["digest"]
    error = probe(f"{server.url}/none", tmp_path / "cache2", expect=1)
    assert "/none/index.json' does not exist (HTTP status 404)" in error


def test_a_file_that_is_replaced_while_it_is_read_is_noticed(tmp_path):
    write_set(tmp_path / "set", count=400, sample_bytes=40_000, shard_bytes=12_000_000, hashes=())
    server = FileServer(tmp_path)
    counter, lock = iter(range(10**9)), threading.Lock()

    def etag(path):
        with lock:
            return f'"{next(counter)}"' if "shard" in path.name else '"index"'

    server.etag = etag
    error = probe(f"{server.url}/set", tmp_path / "cache", expect=1, epochs=50)
    assert "was changed while it was read" in error and "shard.0" in error


def test_hugging_face_tokens_stay_with_hugging_face(tmp_path):
    folder = write_set(tmp_path / "set", count=100)
    files = FileServer(tmp_path)
    hub = FileServer(tmp_path, respond=lambda h: plain_redirect(h, files))
    env = environment(HF_ENDPOINT=hub.url, HF_TOKEN="secret")
    found = probe("hf://datasets/me/set@v1/data", tmp_path / "cache", env)
    assert found["digest"] == probe(folder, "")["digest"]
    assert {h.get("Authorization") for _, _, h in hub.requests} == {"Bearer secret"}
    assert {h.get("Authorization") for _, _, h in files.requests} == {None}


def plain_redirect(handler, files):
    prefix = "/datasets/me/set/resolve/v1/data"
    handler.answer(302, Location=f"http://localhost:{files.server_address[1]}/set{handler.path[len(prefix):]}")
    return True


def test_unity_catalog_volumes_are_read_with_the_bearer(tmp_path):
    folder = tmp_path / "api/2.0/fs/files/Volumes/main/default/data/my set"
    folder.parent.mkdir(parents=True)
    write_set(folder, count=100)
    server = FileServer(tmp_path)
    env = environment(DATABRICKS_HOST=server.url, DATABRICKS_TOKEN="dapi")
    found = probe("dbfs:/Volumes/main/default/data/my set", tmp_path / "cache", env)
    assert found["digest"] == probe(folder, "")["digest"]
    assert {h.get("Authorization") for _, _, h in server.requests} == {"Bearer dapi"}
    (tmp_path / ".databrickscfg").write_text(f"[DEFAULT]\nhost = {server.url}\ntoken = from-file\n")
    server.requests.clear()
    probe("dbfs:/Volumes/main/default/data/my set", tmp_path / "cache2", environment(HOME=tmp_path))
    assert {h.get("Authorization") for _, _, h in server.requests} == {"Bearer from-file"}
    error = probe("dbfs:/Volumes/main/default/data/x", tmp_path / "c3", environment(HOME=tmp_path / "none"), expect=1)
    assert "DATABRICKS_TOKEN" in error


@pytest.mark.parametrize("processes", [2, 4])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_processes_that_share_a_cache_fetch_each_shard_once(tmp_path, processes, compression):
    folder = write_set(tmp_path / "set", compression=compression)
    upstream = FileServer(tmp_path)
    cache = tmp_path / "cache"
    running = [
        subprocess.Popen(
            probe_command(f"{upstream.url}/set", cache, epochs=30, seed=i, batch=8 + i), stdout=subprocess.PIPE, text=True
        )
        for i in range(processes)
    ]
    reports = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    expected = probe(folder, "", epochs=30)
    assert {report["digest"] for report in reports} == {expected["digest"]}
    assert sum(report["shards"] for report in reports) == shard_count(folder)


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_processes_that_share_a_small_cache_keep_to_its_limit_and_end(tmp_path, compression):
    folder = write_set(tmp_path / "set", compression=compression)
    server = FileServer(tmp_path)
    cache = tmp_path / "cache"
    running = [
        subprocess.Popen(
            probe_command(f"{server.url}/set", cache, epochs=3, seed=i, limit=100_000), stdout=subprocess.PIPE, text=True
        )
        for i in range(3)
    ]
    reports = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    assert {report["digest"] for report in reports} == {probe(folder, "", epochs=3)["digest"]}
    assert sum(path.stat().st_size for path in cache.glob("shard.*")) <= 100_000


@pytest.mark.parametrize("limit", [0, 150_000])
def test_killed_at_any_moment_it_starts_again_with_a_cache_that_is_right(tmp_path, limit):
    folder = write_set(tmp_path / "set", compression="zstd" if limit else None)
    upstream = FileServer(tmp_path)
    cache = tmp_path / "cache"
    expected = probe(folder, "", epochs=2)
    for kill_at in (3, 8, 15, 25, 40, 60):
        reached = threading.Event()
        seen, lock = iter(range(1, 10**9)), threading.Lock()

        def count(*_, reached=reached, seen=seen, lock=lock, kill_at=kill_at):
            with lock:
                if next(seen) >= kill_at:
                    reached.set()

        proxy = FaultProxy(upstream.url, count)
        process = subprocess.Popen(
            probe_command(f"{proxy.url}/set", cache, epochs=1000, limit=limit), stdout=subprocess.DEVNULL
        )
        while not reached.wait(0.2) and process.poll() is None:
            if len(list(cache.glob("shard.*"))) == shard_count(folder):
                break  # everything is there: nothing more will be asked for
        process.send_signal(signal.SIGKILL)
        process.wait()
        proxy.close()
        found = probe(f"{upstream.url}/set", cache, epochs=2, limit=limit)
        assert (found["samples"], found["digest"]) == (expected["samples"], expected["digest"])
        names = {path.name for path in (cache / ".tune-cache").iterdir()}
        assert not any(name.startswith("part.") for name in names - {"files", "locks", "table"}) or limit
        if limit:
            assert sum(path.stat().st_size for path in cache.glob("shard.*")) <= limit


def test_a_disk_that_is_full_slows_and_stops_nothing(tmp_path):
    for compression in (None, "zstd"):
        folder = write_set(tmp_path / f"set-{compression}", compression=compression)
        server = FileServer(tmp_path)

        def no_room():
            resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))  # less than a shard

        done = subprocess.run(
            probe_command(f"{server.url}/{folder.name}", tmp_path / f"cache-{compression}", epochs=2),
            capture_output=True, text=True, timeout=120, preexec_fn=no_room, restore_signals=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["digest"] == probe(folder, "", epochs=2)["digest"]
        kept = list((tmp_path / f"cache-{compression}").glob("shard.*"))
        assert all(path.stat().st_size <= 16_384 for path in kept) and len(kept) < shard_count(folder)


def test_a_small_file_system_takes_what_it_can(tmp_path):
    folder = write_set(tmp_path / "set")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", small], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        server = FileServer(tmp_path)
        found = probe(f"{server.url}/set", small / "cache", epochs=3)
        assert found["digest"] == probe(folder, "", epochs=3)["digest"]
        assert 0 < len(list((small / "cache").glob("shard.*"))) < shard_count(folder)
    finally:
        subprocess.run(["umount", small], check=True)


def test_an_index_serves_when_the_server_is_gone(tmp_path):
    folder = write_set(tmp_path / "set", count=100)
    server = FileServer(tmp_path)
    url = f"{server.url}/set"
    while probe(url, tmp_path / "cache", epochs=3)["shards"]:
        pass
    server.close()
    found = probe(url, tmp_path / "cache", retry=0)
    assert found["digest"] == probe(folder, "")["digest"]
    shutil.rmtree(tmp_path / "cache")
    assert "cannot be read" in probe(url, tmp_path / "cache", retry=0, expect=1)

"""What Python writes to object stores: MDSWriter, merge_index and dataframe_to_mds, against moto's S3 and a proxy that breaks what
passes it."""

import json
import pathlib
import threading
import urllib.request

import pytest
from servers import FaultProxy, start_moto

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
BIN = pathlib.Path(tuneloader.__file__).parents[2] / "bin"
if not (BIN / "libtune_object_store.so").exists():
    pytest.skip("a build without Arrow", allow_module_level=True)


@pytest.fixture(scope="module")
def moto():
    process, url = start_moto()
    request = urllib.request.Request(f"{url}/bucket", method="PUT")
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request")
    urllib.request.urlopen(request).read()
    yield url
    process.stdin.close()
    process.wait()


@pytest.fixture(autouse=True)
def login(moto, monkeypatch, tmp_path):
    for name, value in {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1", "ENDPOINT_URL": moto}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()


def write(out, numbers, **options):
    with tuneloader.MDSWriter(out=out, columns={"x": "int"}, size_limit=100, **options) as writer:
        for number in numbers:
            writer.write({"x": number})
    return writer


def read(url, tmp_path):
    with tuneloader.Dataset(remote=url, local=str(tmp_path / "cache"), batch_size=7) as dataset:
        return [number for batch in dataset for number in batch["x"].tolist()]


def puts(proxy):
    return [path.partition("?")[0] for method, path, _ in proxy.requests if method == "PUT"]  # each in one part


def test_a_writer_sends_each_shard_when_it_is_full_and_the_index_last(moto, monkeypatch, tmp_path, capsys):
    proxy = FaultProxy(moto)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    first, wait = [], threading.Event()

    def noted(method, path, _):
        if method == "PUT":
            first.append(path)
            wait.set()

    proxy.fault = noted
    with tuneloader.MDSWriter(out="s3://bucket/each", columns={"x": "int"}, size_limit=100, max_workers=2, progress_bar=True) as writer:
        for number in range(20):
            writer.write({"x": number})
        assert wait.wait(60), "nothing was sent while it was still writing"
        for number in range(20, 100):
            writer.write({"x": number})
    sent = puts(proxy)
    assert len(sent) > 5 and sent[-1].endswith("/each/index.json") and len(set(sent)) == len(sent)
    assert not list((tmp_path / "temporary").iterdir()), "what was sent is gone from here"
    assert f"sent {len(sent)} of {len(sent)} files to s3://bucket/each" in capsys.readouterr().err
    assert read("s3://bucket/each", tmp_path) == list(range(100))


@pytest.mark.parametrize("keep_local", [False, True])
def test_a_folder_and_a_url(tmp_path, keep_local):
    write((str(tmp_path / "here"), "s3://bucket/both"), range(50), keep_local=keep_local)
    assert (tmp_path / "here" / "index.json").exists() == keep_local
    assert read("s3://bucket/both", tmp_path / str(keep_local)) == list(range(50))


def test_a_failure_ends_the_writer_and_leaves_no_index(moto, monkeypatch, tmp_path):
    proxy = FaultProxy(moto, lambda method, path, _: "503" if method == "PUT" and "shard.00001" in path else None)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    with pytest.raises(Exception, match="s3://bucket/broken/shard.00001.mds' cannot be written.*2 attempts"):
        write("s3://bucket/broken", range(100), retry=1)
    assert not any("index.json" in path for path in puts(proxy))
    assert len([path for path in puts(proxy) if "shard.00001" in path]) == 2
    assert not list((tmp_path / "temporary").iterdir())


def test_an_exception_in_the_block_sends_no_index(moto, monkeypatch, tmp_path):
    proxy = FaultProxy(moto)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    with pytest.raises(RuntimeError, match="mine"):
        with tuneloader.MDSWriter(out="s3://bucket/mine", columns={"x": "int"}) as writer:
            writer.write({"x": 1})
            raise RuntimeError("mine")
    assert not puts(proxy) and not list((tmp_path / "temporary").iterdir())


def test_indexes_are_merged_there(tmp_path):
    for part, numbers in (("a", range(30)), ("b", range(30, 40)), ("deep/c", range(40, 70))):
        write(f"s3://bucket/parts/{part}", numbers)
    tuneloader.merge_index("s3://bucket/parts")
    assert read("s3://bucket/parts", tmp_path) == list(range(70))
    tuneloader.merge_index("s3://bucket/parts")  # its own index is no part
    files = [f"s3://bucket/parts/{part}/index.json" for part in ("b", "a")]
    tuneloader.merge_index(files, (str(tmp_path / "out"), "s3://bucket/parts"))
    assert read("s3://bucket/parts", tmp_path / "chosen") == [*range(30, 40), *range(30)]
    merged = json.loads((tmp_path / "out" / "index.json").read_text())
    assert sum(shard["samples"] for shard in merged["shards"]) == 40
    with pytest.raises(ValueError, match="'s3://other/a/index.json' does not lie beneath 's3://bucket/parts'"):
        tuneloader.merge_index(["s3://other/a/index.json"], "s3://bucket/parts")
    with pytest.raises(FileNotFoundError):
        tuneloader.merge_index("s3://bucket/nothing-there")


def test_a_frame_of_pandas_is_written_there(tmp_path):
    pandas = pytest.importorskip("pandas")
    done = tuneloader.dataframe_to_mds(pandas.DataFrame({"x": range(25)}), mds_kwargs={"out": "s3://bucket/frame", "size_limit": 100})
    assert done[1] == "s3://bucket/frame" and read("s3://bucket/frame", tmp_path) == list(range(25))

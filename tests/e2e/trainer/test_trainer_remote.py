"""The trainer's data lie at a URL: read through the loader's cache, with the results of the same data in a folder."""

import pathlib
import sys

import pytest

from trainer_support import BAD_CONFIG, DONE, ROOT, train, write_digits

sys.path.insert(0, str(ROOT / "tests" / "contract" / "loader"))
import servers  # noqa: E402

COMMON = dict(epochs=2, batch_size=48, seed=3, log_every=5, model="mlp", width=16)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("remote") / "digits", train_count=400, val_count=100)


@pytest.fixture
def server(data):
    server = servers.FileServer(data)
    yield server
    server.close()


def shards_asked_for(server):
    return [path for method, path, _ in server.requests if method == "GET" and path.endswith(".mds")]


def values(result):
    return [(line["train_loss"], line["val_loss"], line["val_accuracy"]) for line in result.epochs()]


def test_data_at_a_url_train_the_model_of_the_same_folder(data, server, tmp_path):
    here = train(data=data, **COMMON)
    assert here.code == DONE, here.stderr
    there = train(data=server.url, data_cache=tmp_path / "cache", **COMMON)
    assert there.code == DONE, there.stderr
    assert values(there) == values(here) != []
    assert pathlib.Path(tmp_path / "cache" / "train").is_dir()


def test_another_trial_downloads_nothing_and_needs_no_server(data, tmp_path):
    server = servers.FileServer(data)
    first = train(data=server.url, data_cache=tmp_path / "cache", **COMMON)
    assert first.code == DONE and shards_asked_for(server), first.stderr
    server.requests.clear()
    second = train(data=server.url, data_cache=tmp_path / "cache", **COMMON)
    assert second.code == DONE and shards_asked_for(server) == [], second.stderr
    server.close()
    third = train(data=server.url, data_cache=tmp_path / "cache", **COMMON)
    assert third.code == DONE, third.stderr
    assert values(first) == values(second) == values(third)


def test_a_limit_is_kept(data, server, tmp_path):
    limit = (data / "train" / "shard.00000.mds").stat().st_size + 4096
    result = train(data=server.url, data_cache=tmp_path / "cache", data_cache_limit=limit, **COMMON)
    assert result.code == DONE, result.stderr
    for split in ("train", "val"):
        kept = sum(path.stat().st_size for path in (tmp_path / "cache" / split).rglob("*.mds"))
        assert 0 < kept <= limit


def test_what_is_wrong_is_said(data, server, tmp_path):
    missing = train(data=server.url + "/nothing", data_cache=tmp_path / "cache", **COMMON)
    assert missing.code == BAD_CONFIG and server.url + "/nothing/train" in missing.stderr, missing.stderr
    unknown = train(data="gopher://host/digits", **COMMON)
    assert unknown.code == BAD_CONFIG and "gopher" in unknown.stderr
    local = train(data=data, data_cache=tmp_path / "cache", **COMMON)
    assert local.code == BAD_CONFIG and "--data-cache" in local.stderr and "read where it lies" in local.stderr

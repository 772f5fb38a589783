"""What was fetched from URLs, as Python lists and deletes it."""

import pytest
from servers import FileServer

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")


def fetched(url, local=None, **options):
    """A data set that was read until some shards were here: its first batches need but samples of them."""
    dataset = tuneloader.Dataset(remote=url, local=local, batch_size=10, **options)
    while True:
        assert sum(len(batch["x"]) for batch in dataset) == 100
        if tuneloader.find_caches(local or url)[0].files > 3:
            return dataset


def test_caches_are_listed_and_deleted(tmp_path, monkeypatch):
    monkeypatch.setenv("TUNE_CACHE_DIR", str(tmp_path / "caches"))
    assert tuneloader.find_caches() == []
    with tuneloader.MDSWriter(out=str(tmp_path / "far" / "set"), columns={"x": "int"}, size_limit=300) as writer:
        for i in range(100):
            writer.write({"x": i})
    server = FileServer(tmp_path / "far")
    url = f"{server.url}/set"
    with fetched(url):
        [open_one] = tuneloader.find_caches(url)
        assert open_one.in_use and open_one.directory.startswith(str(tmp_path / "caches"))
        with pytest.raises(RuntimeError, match="a process reads from the cache"):
            open_one.delete()
    [cache] = tuneloader.find_caches()
    assert cache.directory == open_one.directory and not cache.in_use and cache.files > 1 and cache.bytes > 400
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.txt").write_text("kept")
    fetched(url, tmp_path / "own").close()
    [own] = tuneloader.find_caches(tmp_path / "own")
    own.delete()
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["mine.txt"]
    cache.delete()
    assert tuneloader.find_caches() == [] and tuneloader.find_caches(url) == []
    with pytest.raises(FileNotFoundError):
        cache.delete()

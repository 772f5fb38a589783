"""merge_index: one index over the shards of several parts, here or in a store."""

from __future__ import annotations

import json
import os
import posixpath
import tempfile
from typing import Any

from .._core import Sink, list_objects, read_object
from .._stream import _is_local, _path

_INDEX = "index.json"
_RETRY = 5


def merge_index(*args: Any, keep_local: bool = True, download_timeout: int = 60) -> None:
    """Makes one index.json out of those of several parts.

    merge_index(out): of all parts beneath `out`, in the order of their paths.
    merge_index([index files], out): of these, in this order; the parts must lie beneath `out`.

    Shards are named by their whole path beneath `out`, so parts may lie at any depth.

    Args:
        args: `out` is a folder, a URL, or (folder, URL), whose parts are the same: an index that is not in the folder is read
            from the URL, and the merged one is written to both. Index files are given likewise.
        keep_local: With a folder and a URL: whether the merged index stays in the folder.
        download_timeout: Seconds without a byte after which a request has failed.
    """
    if len(args) == 2 and isinstance(args[0], (list, tuple)):
        out = _Out(args[1], download_timeout)
        parts = [out.part_of(file) for file in args[0]]
    elif len(args) == 1:
        out = _Out(args[0], download_timeout)
        parts = out.parts()
    else:
        raise ValueError("merge_index takes a folder, or a list of index files and a folder")
    if not parts:
        raise FileNotFoundError(f"there is no index.json beneath '{out}'")
    shards = [shard for part in dict.fromkeys(parts) for shard in out.shards_of(part)]
    out.write(json.dumps({"version": 2, "shards": shards}), keep_local)


class _Out:
    """Where the parts lie: a folder, a URL, or both."""

    def __init__(self, out: Any, timeout: float) -> None:
        places = [os.fspath(place) for place in (out if isinstance(out, tuple) else (out,)) if place]
        if not 1 <= len(places) <= 2:
            raise ValueError(f"out must be a folder, a URL or (folder, URL), not {out!r}")
        is_local = len(places) == 2 or _is_local(places[0])
        self.local = os.path.abspath(_path(places[0])) if is_local else None
        self.remote = places[-1].rstrip("/") if len(places) == 2 or not is_local else None
        self.timeout = float(timeout)

    def __str__(self) -> str:
        return self.remote or str(self.local)

    def parts(self) -> list[str]:
        """Paths of index files beneath, without the merged one."""
        if self.remote is not None:
            paths = [path for path, _ in list_objects(self.remote, self.timeout, _RETRY)]
        else:
            paths = [
                os.path.relpath(os.path.join(folder, name), self.local)
                for folder, _, names in os.walk(str(self.local))
                for name in names
            ]
        return sorted(path for path in paths if posixpath.basename(path) == _INDEX and path != _INDEX)

    def part_of(self, file: Any) -> str:
        """The path beneath `out` of an index file, given as a path, a URL or both."""
        names = [os.fspath(name) for name in (file if isinstance(file, tuple) else (file,)) if name]
        for name in names:
            if _is_local(name) and self.local is not None:
                path = os.path.relpath(os.path.abspath(_path(name)), self.local)
                if not path.startswith(".."):
                    return path
            if self.remote is not None and name.startswith(self.remote + "/"):
                return name[len(self.remote) + 1 :]
        raise ValueError(f"'{names[0] if names else file}' does not lie beneath '{self}'")

    def shards_of(self, part: str) -> list[dict[str, Any]]:
        """The entries of one index, with their files named from `out`."""
        index = json.loads(self._read(part))
        if index.get("version") != 2:
            raise ValueError(f"'{part}' of '{self}' is of version {index.get('version')}, not 2")
        folder = posixpath.dirname(part)
        for shard in index["shards"]:
            for key in ("raw_data", "zip_data", "raw_meta", "zip_meta"):
                if shard.get(key):
                    shard[key]["basename"] = posixpath.normpath(posixpath.join(folder, shard[key]["basename"]))
        return list(index["shards"])

    def _read(self, part: str) -> str | bytes:
        path = os.path.join(self.local, part) if self.local is not None else None
        if path is not None and (self.remote is None or os.path.exists(path)):
            with open(path, encoding="utf-8") as file:
                return file.read()
        return read_object(str(self.remote), part, self.timeout, _RETRY)

    def write(self, text: str, keep_local: bool) -> None:
        if self.remote is not None:
            with tempfile.TemporaryDirectory(prefix="tuneloader-") as folder:
                path = os.path.join(folder, _INDEX)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                Sink(self.remote, self.timeout, _RETRY).put(path, _INDEX)
        if self.local is not None and (keep_local or self.remote is None):
            os.makedirs(self.local, exist_ok=True)
            path = os.path.join(self.local, _INDEX)
            with open(path + ".part", "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(path + ".part", path)

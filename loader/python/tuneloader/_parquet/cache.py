"""cache_type="local-disk": files of elsewhere are kept in a folder, for all readers of the machine."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
import threading
from typing import Any

from .arrow import arrow
from .files import DataFiles


def check_cache(cache_type: str | None, location: str | None) -> None:
    """ValueError for arguments that name no cache."""
    if cache_type not in (None, "null", "local-disk"):
        raise ValueError(f"cache_type must be 'null' or 'local-disk', not {cache_type!r}")
    if cache_type == "local-disk" and not location:
        raise ValueError("cache_type='local-disk' needs cache_location, the folder to keep files in")


def cached_files(files: DataFiles, location: str, size_limit: int | None) -> DataFiles:
    """The data set, read through the cache; one of this machine stays as it is."""
    fs = arrow().fs
    if isinstance(files.filesystem, fs.LocalFileSystem):
        return files
    os.makedirs(location, exist_ok=True)
    handler = _handler_class()(files.filesystem, location, size_limit)
    return files._replace(filesystem=fs.PyFileSystem(handler))


@functools.cache
def _handler_class() -> Any:
    # Made when pyarrow is there: its base class is pyarrow's.
    fs = arrow().fs

    class CachingHandler(fs.FileSystemHandler):  # type: ignore[misc, name-defined]
        """Opens files of another file system by a copy in a folder."""

        def __init__(self, source: Any, location: str, size_limit: int | None) -> None:
            self._source = source
            self._location = location
            self._size_limit = size_limit
            self._lock = threading.Lock()
            self._coming: dict[str, int] = {}
            """Bytes of copies that are being made."""
            self._turns: dict[str, threading.Lock] = {}

        def _open(self, path: str) -> Any:
            info = self._source.get_file_info(path)
            version = f"{self._source.type_name}:{path}:{info.size}:{info.mtime_ns}"
            copy = os.path.join(self._location, hashlib.sha256(version.encode()).hexdigest())
            with self._lock:
                turn = self._turns.setdefault(copy, threading.Lock())
            with turn:  # one thread fetches it, the others wait for that
                try:
                    os.utime(copy)
                    return arrow().OSFile(copy)
                except FileNotFoundError:  # not there yet, or removed for the room of another since
                    return self._fetch(path, copy, info.size or 0)

        def _fetch(self, path: str, copy: str, size: int) -> Any:
            """The copy, open: from then on nobody who makes room can take it away."""
            with self._lock:
                self._coming[copy] = size
                self._make_room(sum(self._coming.values()))
            # It appears complete or not at all, whoever else fetches it and whenever this process ends.
            with tempfile.NamedTemporaryFile(dir=self._location, suffix=".part", delete=False) as part:
                try:
                    with self._source.open_input_stream(path) as stream:
                        shutil.copyfileobj(stream, part, 1 << 20)
                    part.flush()
                    opened = arrow().OSFile(part.name)
                    os.replace(part.name, copy)
                    return opened
                except BaseException:
                    os.unlink(part.name)
                    raise
                finally:
                    with self._lock:
                        del self._coming[copy]
                        # More may have come at once than there is room for.
                        self._make_room(sum(self._coming.values()))

        def _make_room(self, wanted: int) -> None:
            if self._size_limit is None:
                return
            kept = []
            for entry in os.scandir(self._location):
                with contextlib.suppress(FileNotFoundError):  # other processes make room, too
                    if entry.is_file() and not entry.name.endswith(".part"):
                        kept.append((entry.stat(), entry.path))
            kept.sort(key=lambda entry: entry[0].st_mtime)
            total = sum(stat.st_size for stat, _ in kept) + wanted
            while kept and total > self._size_limit:
                oldest, path = kept.pop(0)
                total -= oldest.st_size
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)  # a reader that has it open keeps it

        def open_input_file(self, path: str) -> Any:
            return self._open(path)

        def open_input_stream(self, path: str) -> Any:
            return self._open(path)

        def get_file_info(self, paths: list[str]) -> Any:
            return self._source.get_file_info(paths)

        def get_file_info_selector(self, selector: Any) -> Any:
            return self._source.get_file_info(selector)

        def get_type_name(self) -> str:
            return "cached"

        def normalize_path(self, path: str) -> str:
            return path

        def _refuse(self, *_: Any) -> Any:
            raise NotImplementedError("a cached data set is only read")

        create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
        delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse

    return CachingHandler

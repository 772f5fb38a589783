"""MDSWriter with the arguments of mosaicml-streaming 0.13.0, and its bytes."""

from __future__ import annotations

import os
import shutil
import tempfile
from types import TracebackType
from typing import Any

from ._core import Writer, check_encoding
from ._encodings import encoder_of
from ._numbers import bytes_of
from ._stream import _is_local, _path

_UPLOAD_OPTIONS = {"progress_bar", "max_workers", "retry", "exist_ok"}


class MDSWriter:
    """Writes samples to shards; raw shards and index.json are the bytes that mosaicml-streaming writes.

        with MDSWriter(out="digits", columns={"image": "ndarray:uint8:28,28", "label": "int"}) as writer:
            writer.write({"image": image, "label": 3})

    The index is written last, on `finish()` or at the end of `with`; when the block ends in an exception it is not, so what
    was not finished cannot be read by mistake.

    Args:
        columns: Name and encoding of each column.
        out: A folder, or (folder, another folder) to be copied to at the end.
        keep_local: With two folders: whether the first one stays.
        compression: "zstd", "zstd:9", "gz", ...; None: none.
        hashes: Names of hashes to store, e.g. ["sha1", "xxh64"].
        size_limit: Bytes of a shard, uncompressed, e.g. 1 << 26 or "64mb"; None: one shard.
        exist_ok: Whether a folder that holds something is emptied first.
        progress_bar, max_workers, retry: As in mosaicml-streaming; without effect on local folders.

    Raises:
        ValueError: for a value that does not fit its column, naming both.
        FileExistsError: when the folder holds something.
    """

    def __init__(
        self,
        *,
        columns: dict[str, str],
        out: str | os.PathLike[str] | tuple[str, str],
        keep_local: bool = False,
        compression: str | None = None,
        hashes: list[str] | None = None,
        size_limit: int | str | None = 1 << 26,
        **kwargs: Any,
    ) -> None:
        unknown = sorted(set(kwargs) - _UPLOAD_OPTIONS)
        if unknown:
            raise TypeError(f"MDSWriter has no argument {', '.join(unknown)}")
        for name in columns.values():
            check_encoding(name)
        self.local, self.remote = _places(out)
        self.keep_local = keep_local
        self.columns = dict(columns)
        if kwargs.get("exist_ok") and os.path.isdir(self.local):
            shutil.rmtree(self.local)
        limit = None if not size_limit else bytes_of(size_limit)
        self._writer = Writer(self.local, list(columns.items()), compression or "", sorted(hashes or []), limit, False)
        self._encoders = [(name, encode) for name in columns if (encode := encoder_of(columns[name])) is not None]
        self._is_finished = False

    def write(self, sample: dict[str, Any]) -> None:
        """Appends a sample. A value that is bytes is stored as it is, whatever the column's encoding."""
        if self._encoders:
            sample = dict(sample)
            for name, encode in self._encoders:
                if not isinstance(sample[name], bytes):
                    sample[name] = encode(sample[name])
        self._writer.write(sample)

    def finish(self) -> None:
        """Writes the last shard and the index."""
        if self._is_finished:
            return
        self._is_finished = True
        self._writer.finish()
        if self.remote is not None:
            shutil.copytree(self.local, self.remote, dirs_exist_ok=True)
            if not self.keep_local:
                shutil.rmtree(self.local)

    def __enter__(self) -> MDSWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()


def _places(out: str | os.PathLike[str] | tuple[str, str]) -> tuple[str, str | None]:
    """(folder to write to, folder to copy to)."""
    local, remote = (out[0], out[1]) if isinstance(out, tuple) else (os.fspath(out), None)
    if remote is None and not _is_local(local):
        local, remote = tempfile.mkdtemp(prefix="tuneloader-"), local
    if remote is not None and not _is_local(remote):
        raise NotImplementedError(
            f"out={remote!r} is not written to yet; write to a folder and copy it there with the store's own tool"
        )
    return _path(local), None if remote is None else _path(remote)

"""MDSWriter with the arguments of mosaicml-streaming 0.13.0, and its bytes."""

from __future__ import annotations

import os
import shutil
import tempfile
from types import TracebackType
from typing import Any

from .._core import Writer, check_encoding
from .._encodings import encoder_of
from .._numbers import bytes_of
from .._stream import _is_local, _path
from .upload import Uploads

_UPLOAD_OPTIONS = {"progress_bar", "max_workers", "retry", "exist_ok"}


class MDSWriter:
    """Writes samples to shards; raw shards and index.json are the bytes that mosaicml-streaming writes.

        with MDSWriter(out="digits", columns={"image": "ndarray:uint8:28,28", "label": "int"}) as writer:
            writer.write({"image": image, "label": 3})

    The index is written last, on `finish()` or at the end of `with`; when the block ends in an exception it is not, so what
    was not finished cannot be read by mistake.

    Args:
        columns: Name and encoding of each column.
        out: A folder, a URL of an object store (s3://, gs://, az://, ...), or (folder, where its files are sent to). Each shard
            is sent when it is full, the index last.
        keep_local: Whether files that were sent stay in the folder.
        compression: "zstd", "zstd:9", "gz", ...; None: none.
        hashes: Names of hashes to store, e.g. ["sha1", "xxh64"].
        size_limit: Bytes of a shard, uncompressed, e.g. 1 << 26 or "64mb"; None: one shard.
        exist_ok: Whether a folder that holds something is emptied first.
        progress_bar: Shows on stderr how many files were sent.
        max_workers: Files that are sent at once; None: as many as ThreadPoolExecutor thinks right.
        retry: Further attempts to send a file, for reasons that may pass.

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
        self.local, self.remote, self._is_temporary = places_of(out)
        self.keep_local = keep_local
        self.columns = dict(columns)
        if kwargs.get("exist_ok") and os.path.isdir(self.local):
            shutil.rmtree(self.local)
        limit = None if not size_limit else bytes_of(size_limit)
        self._uploads = self._open_uploads(kwargs)
        self._writer = Writer(
            self.local,
            list(columns.items()),
            compression or "",
            sorted(hashes or []),
            limit,
            False,
            files_may_leave=self._uploads is not None,
        )
        self._sent_count = 0
        self._encoders = [(name, encode) for name in columns if (encode := encoder_of(columns[name])) is not None]
        self._is_finished = False

    def _open_uploads(self, options: dict[str, Any]) -> Uploads | None:
        if self.remote is None:
            return None
        try:
            return Uploads(
                self.local,
                self.remote,
                max_workers=options.get("max_workers"),
                retry=options.get("retry", 2),
                keeps_files=self.keep_local,
                shows_progress=bool(options.get("progress_bar", False)),
            )
        except BaseException:
            if self._is_temporary:
                os.rmdir(self.local)
            raise

    def write(self, sample: dict[str, Any]) -> None:
        """Appends a sample. A value that is bytes is stored as it is, whatever the column's encoding."""
        if self._encoders:
            sample = dict(sample)
            for name, encode in self._encoders:
                if not isinstance(sample[name], bytes):
                    sample[name] = encode(sample[name])
        self._writer.write(sample)
        if self._uploads is not None and self._writer.closed_count > self._sent_count:
            self._send_closed(self._uploads)

    def _send_closed(self, uploads: Uploads) -> None:
        for name in self._writer.closed_files(self._sent_count):
            self._sent_count += 1
            uploads.send(name)

    def finish(self) -> None:
        """Writes the last shard and the index."""
        if self._is_finished:
            return
        self._is_finished = True
        self._writer.finish()
        if self._uploads is None:
            return
        try:
            self._send_closed(self._uploads)
            self._uploads.finish("index.json")
        except BaseException:
            self.cancel()
            raise
        if not self.keep_local:
            shutil.rmtree(self.local)

    def cancel(self) -> None:
        """Sends nothing more. No index is written; a folder of our own for what was to be sent is removed."""
        self._is_finished = True
        if self._uploads is not None:
            self._uploads.cancel()
        if self._is_temporary:
            shutil.rmtree(self.local, ignore_errors=True)

    def __enter__(self) -> MDSWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.cancel()


def places_of(out: str | os.PathLike[str] | tuple[str, str]) -> tuple[str, str | None, bool]:
    """(folder to write to, where its files are sent to, whether the folder is a temporary one)."""
    if isinstance(out, tuple):
        return _path(os.fspath(out[0])), os.fspath(out[1]), False
    place = os.fspath(out)
    if _is_local(place):
        return _path(place), None, False
    return tempfile.mkdtemp(prefix="tuneloader-"), place, True

"""The folders that hold what was fetched from URLs."""

from __future__ import annotations

import os
from typing import NamedTuple

from . import _core
from ._stream import _is_local


class Cache(NamedTuple):
    """A folder as it was found; others may use it meanwhile."""

    directory: str
    bytes: int
    """On disk, as far as it was fetched."""
    files: int
    in_use: bool
    """A process has it open."""

    def delete(self) -> None:
        """Deletes what was fetched, and the folder if nothing else is in it.

        Raises:
            RuntimeError: when a process reads from it.
            FileNotFoundError: when it is gone.
        """
        _core.cache_delete(self.directory)


def find_caches(place: str | os.PathLike[str] | None = None) -> list[Cache]:
    """The caches in a folder, beneath it too, or the one of a URL that was read without a `local`.

    Args:
        place: A folder or a URL, split and all; None: the folder where caches lie without a `local`.

    Returns:
        What is there, by its path; nothing when nothing was ever fetched.
    """
    if place is None:
        folder = _core.default_caches()
    else:
        folder = os.fspath(place)
        if not _is_local(folder):
            folder = _core.default_cache(folder)
    try:
        return [Cache(*found) for found in _core.find_caches(folder)]
    except FileNotFoundError:
        return []

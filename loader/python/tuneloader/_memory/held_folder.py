"""Folders for data sets that live as long as an object of this process."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from typing import Any


def cache_folder() -> str:
    """Where the loader keeps what it fetched: $TUNE_CACHE_DIR, else ~/.cache/tune/data."""
    return os.environ.get("TUNE_CACHE_DIR") or os.path.join(os.path.expanduser("~"), ".cache", "tune", "data")


class HeldFolder:
    """An empty folder beneath the cache, deleted with this object. A lock on a file in it, which the kernel releases when the
    process ends however it ends, says that it is in use; folders without one are deleted by the next process."""

    def __init__(self) -> None:
        parent = os.path.join(cache_folder(), "in-memory")
        os.makedirs(parent, exist_ok=True)
        _sweep(parent)
        # Locked before it has its name: nobody sees it without its lock.
        made = tempfile.mkdtemp(prefix=".new-", dir=parent)
        lock = open(os.path.join(made, ".lock"), "w")  # noqa: SIM115
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.path = os.path.join(parent, os.path.basename(made).replace(".new-", f"{os.getpid()}-"))
        os.rename(made, self.path)
        self._finalizer = weakref.finalize(self, _delete, self.path, lock, os.getpid())

    def delete(self) -> None:
        """Deletes it now."""
        self._finalizer()


def _delete(path: str, lock: Any, process: int) -> None:
    # A child of fork() has the same object; the folder is its parent's.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
        lock.close()


def _sweep(parent: str) -> None:
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if name.startswith("."):
            continue
        try:
            with open(os.path.join(path, ".lock")) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except OSError:  # in use, or another process deletes it
            continue

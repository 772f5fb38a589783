"""Files that are sent to a store, or another folder, while others are still being written."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from .._core import Sink

# Seconds without a byte after which a request has failed.
_TIMEOUT = 60.0


class Uploads:
    """Sends files beneath `folder` to `url`, on threads of its own; what failed is raised by the next call."""

    def __init__(
        self, folder: str, url: str, *, max_workers: int | None, retry: int, keeps_files: bool, shows_progress: bool
    ) -> None:
        if retry < 0:
            raise ValueError(f"retry must not be negative, but is {retry}")
        self._sink = Sink(url, _TIMEOUT, retry)
        self._folder = folder
        self._keeps_files = keeps_files
        self._pool = ThreadPoolExecutor(max_workers, thread_name_prefix="tuneloader-upload")
        self._pending: list[Future[None]] = []
        self._progress = _Progress(url) if shows_progress else None

    def send(self, name: str) -> None:
        """Puts the file in line."""
        self._raise_what_failed()
        if self._progress:
            self._progress.add(1, 0)
        self._pending.append(self._pool.submit(self._put, name))

    def finish(self, last: str) -> None:
        """Waits until all files are there, then sends the last one."""
        for sent in self._pending:
            sent.result()
        self._pending.clear()
        if self._progress:
            self._progress.add(1, 0)
        self._put(last)
        self._pool.shutdown()
        if self._progress:
            self._progress.end()

    def cancel(self) -> None:
        """Sends nothing more; what is on its way ends first."""
        self._pool.shutdown(cancel_futures=True)

    def _raise_what_failed(self) -> None:
        waiting = []
        for sent in self._pending:
            if sent.done():
                sent.result()
            else:
                waiting.append(sent)
        self._pending = waiting

    def _put(self, name: str) -> None:
        path = os.path.join(self._folder, name)
        self._sink.put(path, name)
        if not self._keeps_files:
            os.remove(path)
        if self._progress:
            self._progress.add(0, 1)


class _Progress:
    """One line on stderr."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.lock = threading.Lock()
        self.queued = 0
        self.sent = 0

    def add(self, queued: int, sent: int) -> None:
        with self.lock:
            self.queued += queued
            self.sent += sent
            print(f"\rsent {self.sent} of {self.queued} files to {self.url}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        print(file=sys.stderr)

"""Work on row groups, some of them ahead, on threads; results come in the order of the work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Pipeline(Generic[Item, Result]):
    """Results of `work` for each item, in the order of the items.

    Args:
        work: Called on the threads; its exceptions come out of next_result().
        threads: 0: next_result() does the work itself.
        ahead: Results that are worked on or wait at once, at most: what memory is bounded by.
    """

    def __init__(self, work: Callable[[Item], Result], threads: int, ahead: int) -> None:
        self._work = work
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="tuneloader") if threads else None
        self._ahead = ahead
        self._items: Iterator[Item] = iter(())
        self._waiting: deque[Future[Result]] = deque()
        self._process = os.getpid()

    def start(self, items: Iterator[Item]) -> None:
        """What next_result() works on from now on."""
        self._items = items

    def next_result(self) -> Result:
        """StopIteration after the last item."""
        if self._process != os.getpid():
            raise RuntimeError(
                "this reader was opened in the parent process, whose threads do not exist here; open it in this process"
            )
        if self._pool is None:
            return self._work(next(self._items))
        while len(self._waiting) < self._ahead and (item := next(self._items, None)) is not None:
            self._waiting.append(self._pool.submit(self._work, item))
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft().result()

    @property
    def waiting(self) -> int:
        """Results that are worked on or wait."""
        return len(self._waiting)

    def stop(self) -> None:
        """Begins no further work."""
        self._items = iter(())
        while self._waiting:
            self._waiting.pop().cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Waits for the work that has begun."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown(wait=True)

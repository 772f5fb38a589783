"""Readers as batches of torch tensors, with the names and arguments of Petastorm's.

    with DataLoader(make_batch_reader("file:///data/table"), batch_size=64) as loader:
        for batch in loader:
            batch["features"]             # torch.Tensor

Types that torch of old lacked are promoted, as in Petastorm: uint16 to int32, uint32 to int64, bool to uint8. Rows of make_reader
may hold text and decimals (they stay lists); batches of make_batch_reader may not, and None may be nowhere.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch.utils.data.dataloader import default_collate

__all__ = ["BatchedDataLoader", "DataLoader", "InMemBatchedDataLoader", "LoaderBase", "decimal_friendly_collate"]

Row = dict[str, Any]


def decimal_friendly_collate(batch: Sequence[Any]) -> Any:
    """torch's default_collate, with decimals and texts as lists."""
    first = batch[0]
    if isinstance(first, (decimal.Decimal, str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {key: decimal_friendly_collate([row[key] for row in batch]) for key in first}
    if isinstance(first, Sequence):
        return [decimal_friendly_collate(values) for values in zip(*batch)]
    return default_collate(list(batch))


def _sanitized(row: Row) -> Row:
    """The row in types that torch has. TypeError naming the field where there is none."""
    for name, value in row.items():
        if isinstance(value, np.ndarray):
            row[name] = _sanitized_array(name, value)
        elif isinstance(value, np.bool_):
            row[name] = np.uint8(value)
        elif isinstance(value, np.uint16):
            row[name] = np.int32(value)
        elif isinstance(value, np.uint32):
            row[name] = np.int64(value)
        elif value is None:
            raise TypeError(f"torch has no None, which the field '{name}' holds; leave it out or fill it in a TransformSpec")
    return row


def _sanitized_array(name: str, value: Any) -> Any:
    if value.dtype == np.uint16:
        return value.astype(np.int32)
    if value.dtype == np.uint32:
        return value.astype(np.int64)
    if value.dtype == np.bool_:
        return value.astype(np.uint8)
    if value.dtype.kind in "SUOMm":
        raise TypeError(f"torch has no arrays of text, dates or objects, which the field '{name}' is; leave it out by schema_fields")
    return value


class LoaderBase:
    """What the loaders have in common: one pass at a time over a reader that is reset for the next."""

    reader: Any

    def __init__(self) -> None:
        self._in_iter: bool | None = None
        self._error: BaseException | None = None

    def _iter_impl(self) -> Iterator[Any]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        if self._error is not None:
            raise RuntimeError(f"the last pass over this loader failed ({self._error!r}); make another one")
        if self._in_iter:
            raise RuntimeError(
                "a pass over this loader has begun and is not finished; to begin anew make another reader and loader"
            )
        if self._in_iter is not None:
            self.reader.reset()
        self._in_iter = True
        try:
            yield from self._iter_impl()
        except Exception as error:
            self._error = error
            raise
        finally:
            self._in_iter = False

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.reader.stop()
        self.reader.join()


class DataLoader(LoaderBase):
    """Batches of rows, collated row by row.

    Args:
        reader: Of make_reader or make_batch_reader; it says how many epochs there are.
        batch_size: Rows of a batch; the last one may have fewer.
        collate_fn: Makes a batch of a list of dicts.
        shuffling_queue_capacity: Rows among which each next one is drawn, by numpy's global generator; 0: no shuffling.
    """

    def __init__(
        self,
        reader: Any,
        batch_size: int = 1,
        collate_fn: Callable[[Any], Any] = decimal_friendly_collate,
        shuffling_queue_capacity: int = 0,
    ) -> None:
        super().__init__()
        self.reader = reader
        self.batch_size = batch_size
        self.collate_fn = collate_fn
        self.shuffling_queue_capacity = shuffling_queue_capacity

    def _iter_impl(self) -> Iterator[Any]:
        if self._takes_columns():
            yield from _tensor_batches(self.reader, self.batch_size, self.shuffling_queue_capacity, torch.as_tensor)
            return
        batch: list[Row] = []
        for row in _shuffled(self._rows(), self.shuffling_queue_capacity):
            batch.append(row)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch:
            yield self.collate_fn(batch)

    def _takes_columns(self) -> bool:
        """Whether cutting columns gives what collating their rows would give, only sooner."""
        return self.reader.batched_output and self.collate_fn is decimal_friendly_collate

    def _rows(self) -> Iterator[Row]:
        for item in self.reader:
            columns = _sanitized(item._asdict())
            if not self.reader.batched_output:
                yield columns
                continue
            for values in zip(*columns.values()):
                yield dict(zip(columns, values))


class BatchedDataLoader(LoaderBase):
    """Batches that are cut out of columns: much faster for small rows; no texts and no decimals.

    Args:
        reader, batch_size, shuffling_queue_capacity: As of DataLoader.
        transform_fn: Makes a tensor of an array of a column; None: torch.as_tensor.
    """

    def __init__(
        self,
        reader: Any,
        batch_size: int = 1,
        transform_fn: Callable[[Any], Any] | None = None,
        shuffling_queue_capacity: int = 0,
    ) -> None:
        super().__init__()
        self.reader = reader
        self.batch_size = batch_size
        self.transform_fn = transform_fn or torch.as_tensor
        self.shuffling_queue_capacity = shuffling_queue_capacity

    def _iter_impl(self) -> Iterator[Row]:
        return _tensor_batches(self.reader, self.batch_size, self.shuffling_queue_capacity, self.transform_fn)


class InMemBatchedDataLoader:
    """Rows that are read once and held in memory, for several epochs. One pass can be made over it.

    Args:
        reader: It is stopped when so many rows are read.
        batch_size: Rows of a batch.
        transform_fn: Makes a tensor of an array of a column; None: torch.as_tensor.
        num_epochs: Epochs of the pass.
        seed: Of the shuffling.
        rows_capacity: Rows that are held, at most; the rest of the data set is not read.
        shuffle: Whether each epoch has an order of its own.
    """

    def __init__(
        self,
        reader: Any,
        batch_size: int = 1,
        transform_fn: Callable[[Any], Any] | None = None,
        num_epochs: int = 1,
        seed: int = 0,
        rows_capacity: int = 1024,
        shuffle: bool = False,
    ) -> None:
        self._batch_size = batch_size
        self._num_epochs = num_epochs
        self._seed = seed
        self._shuffle = shuffle
        self._is_used = False
        parts: list[Row] = []
        count = 0
        for columns in _tensor_columns(reader, transform_fn or torch.as_tensor):
            parts.append(columns)
            count += _rows_of(columns)
            if count >= rows_capacity:
                break
        reader.stop()
        reader.join()
        self._columns = {name: value[:rows_capacity].clone() for name, value in _joined(parts).items()} if parts else {}

    def __iter__(self) -> Iterator[Row]:
        if self._is_used:
            raise RuntimeError("InMemBatchedDataLoader makes one pass; say how many epochs it has by num_epochs")
        self._is_used = True
        size = _rows_of(self._columns) if self._columns else 0
        for epoch in range(self._num_epochs):
            order = torch.arange(size)
            if self._shuffle:
                order = torch.randperm(size, generator=torch.Generator().manual_seed(self._seed + epoch))
            for begin in range(0, size, self._batch_size):
                rows = order[begin : begin + self._batch_size]
                yield {name: value[rows] for name, value in self._columns.items()}

    def __enter__(self) -> InMemBatchedDataLoader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


def _shuffled(rows: Iterator[Row], capacity: int) -> Iterator[Row]:
    """Each row drawn from `capacity` waiting ones."""
    waiting: list[Row] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) >= max(capacity, 1):
            yield _drawn(waiting) if capacity > 1 else waiting.pop()
    while waiting:
        yield _drawn(waiting)


def _drawn(waiting: list[Row]) -> Row:
    at = np.random.randint(len(waiting))
    waiting[at], waiting[-1] = waiting[-1], waiting[at]
    return waiting.pop()


def _rows_of(columns: Row) -> int:
    return len(next(iter(columns.values())))


def _joined(parts: Sequence[Row]) -> Row:
    if len(parts) == 1:
        return parts[0]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _tensor_columns(reader: Any, transform_fn: Callable[[Any], Any]) -> Iterator[Row]:
    """The reader's batches, or its rows in groups, as dicts of tensors."""
    if reader.batched_output:
        for batch in reader:
            yield {name: transform_fn(value) for name, value in _sanitized(batch._asdict()).items()}
        return
    rows: list[Row] = []
    for row in reader:
        rows.append(_sanitized(row._asdict()))
        if len(rows) == 256:
            yield _stacked(rows, transform_fn)
            rows = []
    if rows:
        yield _stacked(rows, transform_fn)


def _stacked(rows: Sequence[Row], transform_fn: Callable[[Any], Any]) -> Row:
    stacked = {}
    for name, first in rows[0].items():
        values = [row[name] for row in rows]
        if torch.is_tensor(first):
            stacked[name] = torch.stack(values)
        else:
            stacked[name] = transform_fn(_sanitized_array(name, np.stack([np.asarray(value) for value in values])))
    return stacked


def _tensor_batches(
    reader: Any, batch_size: int, capacity: int, transform_fn: Callable[[Any], Any]
) -> Iterator[Row]:
    """Batches cut from columns; with a capacity, of rows drawn from so many waiting ones."""
    parts: list[Row] = []
    count = 0
    wanted = batch_size + (capacity if capacity > 1 else 0)
    for columns in _tensor_columns(reader, transform_fn):
        parts.append(columns)
        count += _rows_of(columns)
        if count < wanted:
            continue
        yield from _cut(parts, count, batch_size, wanted, capacity > 1)
        count = _rows_of(parts[0]) if parts else 0
    if count:
        yield from _cut(parts, count, batch_size, 1, capacity > 1)


def _cut(parts: list[Row], count: int, batch_size: int, wanted: int, is_shuffled: bool) -> Iterator[Row]:
    """Batches, until fewer than `wanted` rows are left; what is left stays in `parts`."""
    columns = _joined(parts)
    if is_shuffled:
        order = torch.from_numpy(np.random.permutation(count))
        columns = {name: value[order] for name, value in columns.items()}
    begin = 0
    while count - begin >= wanted:
        yield {name: value[begin : begin + batch_size] for name, value in columns.items()}
        begin = min(begin + batch_size, count)
    # What waits is copied, or a few rows would hold the memory of a whole row group.
    parts[:] = [{name: value[begin:].clone() for name, value in columns.items()}] if begin < count else []

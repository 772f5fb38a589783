"""Row groups: which there are, which of them filters and shards leave, and one of them as a table."""

from __future__ import annotations

import operator
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from ..errors import NoDataAvailableError
from .arrow import arrow
from .files import DataFile, DataFiles

_FOOTER_THREADS = 16
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, known: value in known,
    "not in": lambda value, known: value not in known,
}


class RowGroup(NamedTuple):
    """One row group."""

    file: DataFile
    number: int
    """In its file."""


class RowGroups:
    """The row groups of a data set, by path and number.

    Args:
        files: Of the data set.
        stored_counts: Row groups by file name, where metadata says so; otherwise the footers are read.
        filters: As pyarrow's: a list of (column, operator, value), or a list of such lists. Row groups of folders that do not
            match are left out here, rows when they are read.
    """

    def __init__(self, files: DataFiles, stored_counts: dict[str, int], filters: Any) -> None:
        self.files = files
        self.filters = _alternatives(filters)
        self._lock = threading.Lock()
        self._footers: dict[str, Any] = {}
        kept = [file for file in files.files if self._may_match(file)]
        if all(file.name in stored_counts for file in kept):
            counts = [stored_counts[file.name] for file in kept]
        else:
            with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
                counts = [footer.num_row_groups for footer in pool.map(self.footer, kept)]
        self.groups = [RowGroup(file, number) for file, count in zip(kept, counts) for number in range(count)]
        self._expression = arrow().parquet.filters_to_expression(self.filters) if self.filters else None
        self._filter_columns = [column for alternative in self.filters for column, _, _ in alternative]

    def footer(self, file: DataFile) -> Any:
        """The file's metadata, read once."""
        with self._lock:
            known = self._footers.get(file.path)
        if known is None:
            with self.files.filesystem.open_input_file(file.path) as opened:
                known = arrow().parquet.read_metadata(opened)
            with self._lock:
                self._footers[file.path] = known
        return known

    def schema(self) -> Any:
        """The pyarrow schema of the first file."""
        return self.footer(self.files.files[0]).schema.to_arrow_schema()

    def partition_value(self, file: DataFile, name: str) -> Any:
        """What the names of the file's folders say of a column, in its type."""
        text = file.partition.get(name)
        return None if text is None else self.files.partition_types[name](text).item()

    def read(self, group: RowGroup, columns: Sequence[str]) -> Any:
        """A pyarrow table with these columns of the rows that match the filters, in the order of the file."""
        pa = arrow()
        wanted = list(dict.fromkeys([*columns, *self._filter_columns]))
        stored = [name for name in wanted if name not in self.files.partition_types]
        with self.files.filesystem.open_input_file(group.file.path) as opened:
            file = pa.parquet.ParquetFile(opened, metadata=self.footer(group.file))
            rows = file.metadata.row_group(group.number).num_rows
            table = file.read_row_group(group.number, columns=stored, use_threads=False)
        for name in wanted:
            if name in self.files.partition_types:
                type_ = pa.string() if self.files.partition_types[name].__name__ == "str_" else pa.int64()
                value = pa.scalar(self.partition_value(group.file, name), type_)
                table = table.append_column(name, pa.repeat(value, rows))
        missing = [name for name in wanted if name not in table.column_names]
        if missing:
            raise ValueError(f"'{group.file.path}' has no column {', '.join(missing)}")
        if self._expression is not None:
            table = table.filter(self._expression)
        return table.select(list(columns))

    def _may_match(self, file: DataFile) -> bool:
        if not self.filters:
            return True
        types = self.files.partition_types
        return any(
            all(
                column not in types or _compare(self.partition_value(file, column), op, value)
                for column, op, value in alternative
            )
            for alternative in self.filters
        )


def _alternatives(filters: Any) -> list[list[tuple[str, str, Any]]]:
    if not filters:
        return []
    alternatives = [filters] if isinstance(filters[0], tuple) else filters
    for column, op, _ in (comparison for alternative in alternatives for comparison in alternative):
        if op not in _COMPARE:
            raise ValueError(f"the filter on '{column}' has the operator {op!r}; known are {', '.join(_COMPARE)}")
    return [[(column, op, value) for column, op, value in alternative] for alternative in alternatives]


def _compare(value: Any, op: str, known: Any) -> bool:
    if value is None:
        return op == "not in"
    if isinstance(value, str) and not isinstance(known, str) and op not in ("in", "not in"):
        known = str(known)
    return _COMPARE[op](value, known)


def shard_of(
    numbers: list[int], group_count: int, cur_shard: int | None, shard_count: int | None, seed: int | None
) -> list[int]:
    """The row groups of one shard: those whose number, modulo shard_count, is cur_shard. `seed` changes their order only.
    NoDataAvailableError when there are fewer row groups than shards."""
    if cur_shard is None and shard_count is None:
        return numbers
    if not isinstance(cur_shard, int) or not isinstance(shard_count, int) or not 0 <= cur_shard < shard_count:
        raise ValueError(f"cur_shard and shard_count are given together, 0 <= cur_shard < shard_count, not {cur_shard}, {shard_count}")
    if group_count < shard_count:
        raise NoDataAvailableError(
            f"the data set has {group_count} row groups, too few for {shard_count} shards; write it with smaller row groups"
        )
    shuffled = list(numbers)
    if seed is not None:
        random.Random(seed).shuffle(shuffled)
    return [number for number in shuffled if number % shard_count == cur_shard]

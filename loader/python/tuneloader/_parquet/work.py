"""From a row group to what a reader gives out: batches of columns, or rows."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from ..errors import DecodeFieldError
from ..ngram import NGram
from ..predicates import PredicateBase
from ..transform import TransformSpec
from ..unischema import Unischema, UnischemaField
from .arrow import arrow
from .row_groups import RowGroup, RowGroups


class WorkItem(NamedTuple):
    """A part of a row group."""

    group: int
    part: int
    """Of `parts`: these rows of the row group are given out."""
    parts: int
    seed: tuple[int, ...] | None
    """Of the order of its rows; None: the file's."""


class Work(abc.ABC):
    """What is done with each row group, on any thread.

    Args:
        groups: Of the data set.
        schema: Of what is read.
        out_schema: Of what is given out, after the transformation.
    """

    def __init__(
        self,
        groups: RowGroups,
        schema: Unischema,
        out_schema: Unischema,
        predicate: PredicateBase | None,
        transform_spec: TransformSpec | None,
        ngram: NGram | None = None,
    ) -> None:
        self.groups = groups
        self.schema = schema
        self.out_schema = out_schema
        self.predicate = predicate
        self.transform_spec = transform_spec
        self.ngram = ngram
        self._names = list(schema.fields)
        self._predicate_names = sorted(predicate.get_fields()) if predicate is not None else []
        if predicate is not None:
            self._check_predicate()

    @abc.abstractmethod
    def __call__(self, item: WorkItem) -> list[Any]:
        """What comes of it: at most one batch, or any number of rows."""

    def _check_predicate(self) -> None:
        if not self._predicate_names:
            raise ValueError("the predicate names no field: get_fields() is empty")
        unknown = sorted(set(self._predicate_names) - set(self._names))
        if unknown:
            raise ValueError(
                f"the predicate looks at {', '.join(unknown)}, which is not among the fields that are read: {', '.join(self._names)}"
            )

    def _table(self, item: WorkItem, names: Sequence[str], picked: Any = None) -> Any:
        """The rows of the part; with `picked` those of these numbers (of the rows of the part)."""
        group: RowGroup = self.groups.groups[item.group]
        table = self.groups.read(group, names)
        rows = self._rows_of_part(item, table.num_rows)
        if rows is None and picked is None:
            return table
        rows = np.arange(table.num_rows) if rows is None else rows
        return table.take(arrow().array(rows if picked is None else rows[picked]))

    def _rows_of_part(self, item: WorkItem, count: int) -> Any:
        """Numbers of the rows, in their order; None: all as they are."""
        if item.seed is None and item.parts == 1:
            return None
        order = np.arange(count) if item.seed is None else np.random.default_rng(item.seed).permutation(count)
        if item.parts == 1 or count == 0:
            return order
        part_of = np.floor(np.arange(count) / (count / min(count, item.parts)))
        if self.ngram is not None:  # windows that begin in this part end in the next one
            following = np.where(part_of >= item.part + 1)[0]
            part_of[following[: self.ngram.length - 1]] = item.part
        return order[part_of == item.part]


class BatchWork(Work):
    """A row group as a named tuple of arrays."""

    def __call__(self, item: WorkItem) -> list[Any]:
        if self.predicate is None:
            table = self._table(item, self._names)
        else:
            looked_at = self._table(item, self._predicate_names)
            picked = np.flatnonzero(self.predicate.mask(looked_at.to_pandas()))
            if picked.size == 0:
                return []
            table = self._table(item, self._names, picked)
        if table.num_rows == 0:
            return []
        if self.transform_spec is None:
            columns = {name: column_array(table.column(name), self.schema.fields[name]) for name in self._names}
        else:
            columns = self._transformed(table, self.transform_spec)
        return [self.out_schema.make_namedtuple(**columns)] if columns else []

    def _transformed(self, table: Any, spec: TransformSpec) -> dict[str, Any]:
        frame = table.to_pandas()
        if spec.func is not None:
            frame = spec.func(frame)
        given = [name for name in frame.columns if name not in spec.removed_fields]
        if spec.selected_fields is not None:
            given = [name for name in given if name in spec.selected_fields]
        expected = list(self.out_schema.fields)
        if set(given) != set(expected):
            raise ValueError(
                f"the TransformSpec's function gave the columns {', '.join(map(str, given))}, but by edit_fields, removed_fields "
                f"and selected_fields they should be {', '.join(expected)}"
            )
        if len(frame) == 0:
            return {}
        return {name: _series_array(frame[name], self.out_schema.fields[name]) for name in expected}


class RowWork(Work):
    """A row group as dicts of decoded values, or as windows of them."""

    def __call__(self, item: WorkItem) -> list[Any]:
        if self.predicate is None:
            rows = self._rows(self._table(item, self._names))
        else:
            looked_at = self._rows(self._table(item, self._predicate_names))
            picked = [i for i, row in enumerate(looked_at) if self.predicate.do_include(row)]
            if not picked:
                return []
            others = [name for name in self._names if name not in self._predicate_names]
            rest: list[dict[str, Any]] = [{} for _ in picked]
            if others:
                rest = self._rows(self._table(item, others, np.asarray(picked)))
            rows = [{**row, **looked_at[i]} for i, row in zip(picked, rest)]
        if self.transform_spec is not None:
            rows = [_transformed_row(row, self.transform_spec) for row in rows]
        if self.ngram is None:
            return rows
        return self.ngram.form_ngram(rows, self.schema)

    def _rows(self, table: Any) -> list[dict[str, Any]]:
        names = table.column_names
        columns = [decoded_column(table.column(name), self.schema.fields[name]) for name in names]
        return [dict(zip(names, values)) for values in zip(*columns)]


def _transformed_row(row: dict[str, Any], spec: TransformSpec) -> dict[str, Any]:
    made = dict(spec.func(row) if spec.func is not None else row)
    for name in spec.removed_fields:
        made.pop(name, None)
    if spec.selected_fields is not None:
        made = {name: made[name] for name in spec.selected_fields if name in made}
    return made


def decoded_column(column: Any, field: UnischemaField) -> list[Any]:
    """The values of a column of Petastorm's data set. DecodeFieldError naming the field."""
    types = arrow().types
    stored: list[Any] = column.to_pylist()
    if types.is_floating(column.type):  # as pandas: a null is NaN
        stored = [float("nan") if value is None else value for value in stored]
    try:
        if field.codec is not None:
            decode = field.codec.decode
            return [None if value is None else decode(field, value) for value in stored]
        dtype = field.numpy_dtype
        if isinstance(dtype, type) and issubclass(dtype, (np.generic, Decimal)):
            if field.shape:
                return [None if value is None else np.asarray(value, dtype) for value in stored]
            return [None if value is None else dtype(value) for value in stored]
        return stored
    except Exception as error:
        raise DecodeFieldError(f"the field '{field.name}' cannot be decoded: {error}") from error


def column_array(column: Any, field: UnischemaField) -> Any:
    """A column of plain Parquet as one array [rows, ...]. Numbers with nulls become float64 with NaN, as in pandas; text
    without nulls an array of text, everything else with nulls an array of objects. RuntimeError for lists of differing sizes."""
    pa = arrow()
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_list(column.type) or types.is_large_list(column.type) or types.is_fixed_size_list(column.type):
        return _list_array(column.combine_chunks(), field)
    if types.is_date(column.type):
        return _objects(column.to_pylist())
    values = column.to_numpy()
    is_text = types.is_string(column.type) or types.is_large_string(column.type)
    if is_text and column.null_count == 0:
        return values.astype(np.str_)
    # The arrays of a batch are the user's own: Arrow's memory must not be written to.
    return values if values.flags.writeable else values.copy()


def _objects(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _list_array(array: Any, field: UnischemaField) -> Any:
    chunks = array.chunks if isinstance(array, arrow().ChunkedArray) else [array]
    array = chunks[0] if len(chunks) == 1 else arrow().concat_arrays(chunks)
    lengths = {len(value) if value is not None else None for value in array} if array.null_count else None
    if lengths is None:
        sizes = arrow().compute.list_value_length(array).unique().to_pylist()
        lengths = set(sizes)
    if len(lengths) > 1 or None in lengths:
        raise RuntimeError(
            f"the lists of column '{field.name}' must all have the same length to become one array; they have the lengths "
            f"{', '.join(sorted(map(str, lengths)))}. Pad them with a TransformSpec"
        )
    values = array.flatten().to_numpy(zero_copy_only=False)
    made = values.reshape(len(array), -1)
    shape = tuple(field.shape)
    if len(shape) > 1:
        made = made.reshape(len(array), *shape)
    if made.dtype == object and arrow().types.is_string(array.type.value_type):
        made = made.astype(np.str_)
    return made if made.flags.writeable else made.copy()


def _series_array(series: Any, field: UnischemaField) -> Any:
    """A column that a TransformSpec's function made."""
    values = series.to_numpy()
    first = values[0] if values.dtype == object and len(values) else None
    if isinstance(first, (np.ndarray, list, tuple)):
        parts = [np.asarray(value) for value in values]
        shapes = {part.shape for part in parts}
        if len(shapes) > 1:
            raise RuntimeError(
                f"the arrays of column '{field.name}' must all have the same shape to become one; they have {sorted(shapes)}"
            )
        stacked = np.stack(parts)
        if len(field.shape) > 1:
            if None in field.shape:
                raise ValueError(f"the shape {field.shape} of '{field.name}' must be constant: a batch is one array")
            if stacked.shape[1:] != tuple(field.shape):
                raise ValueError(f"the field '{field.name}' must have the shape {field.shape}, not {stacked.shape[1:]}")
        return stacked
    if isinstance(first, str) and all(isinstance(value, str) for value in values):
        return values.astype(np.str_)
    return values if values.flags.writeable else values.copy()  # pandas gives views that are not

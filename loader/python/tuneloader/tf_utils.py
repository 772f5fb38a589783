"""Readers as tf.data.Dataset, with the names of Petastorm's. TensorFlow is imported when a function is called."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from .unischema import Unischema, UnischemaField

__all__ = ["make_petastorm_dataset", "tf_tensors"]

_PROMOTED = {"uint16": "int32", "uint32": "int64", "datetime64": "int64", "str_": "string", "bytes_": "string", "bool_": "bool"}


def tensorflow() -> Any:
    """The module, or a sentence that says what to install."""
    try:
        import tensorflow
    except ImportError as error:
        raise ImportError("tf.data.Dataset needs TensorFlow: pip install tensorflow") from error
    return tensorflow


def make_petastorm_dataset(reader: Any) -> Any:
    """A tf.data.Dataset of what the reader gives: named tuples of tensors, of an NGram a dict by time step of them.

    Types that TensorFlow lacks are changed: uint16 to int32, uint32 to int64, decimals to text, times to nanoseconds since
    1970 (int64). None is refused with a RuntimeError that names the field. `repeat()` resets the reader when it has ended; say
    num_epochs to the reader instead.
    """
    tf = tensorflow()
    names = _field_names(reader)
    signature = tuple(_spec(tf, schema.fields[name], reader.batched_output) for schema, name in names)

    def rows() -> Iterator[tuple[Any, ...]]:
        if reader.last_row_consumed:
            reader.reset()
        for row in reader:
            yield tuple(_values(reader, row))

    dataset = tf.data.Dataset.from_generator(rows, output_signature=signature)
    return dataset.map(_structure(reader))


def tf_tensors(reader: Any, shuffling_queue_capacity: int = 0, min_after_dequeue: int = 0) -> Any:
    """The next row as tensors of a graph of TensorFlow 1 (tf.compat.v1): each run of a session reads another one.

    Args:
        shuffling_queue_capacity: Rows among which the next one is drawn; 0: no shuffling. Not for readers of batches.
        min_after_dequeue: Rows that wait in that queue, at least.
    """
    if reader.batched_output and shuffling_queue_capacity > 0:
        raise ValueError("batches are not shuffled by a queue; shuffle row groups and rows by the reader")
    tf = tensorflow().compat.v1
    specs = [_spec(tensorflow(), schema.fields[name], reader.batched_output) for schema, name in _field_names(reader)]
    dtypes = [spec.dtype for spec in specs]
    tensors = tf.py_func(lambda _: _values(reader, next(reader)), [tf.constant(1)], dtypes)
    if shuffling_queue_capacity > 0:
        queue = tf.RandomShuffleQueue(shuffling_queue_capacity, min_after_dequeue, dtypes)
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(tensors)]))
        tensors = queue.dequeue()
    for tensor, spec in zip(tensors, specs):
        tensor.set_shape(spec.shape)
    return _structure(reader)(*tensors)


def _field_names(reader: Any) -> list[tuple[Unischema, str]]:
    """(schema, field) of each tensor, by time step for an NGram."""
    if reader.ngram is None:
        return [(reader.schema, name) for name in reader.schema.fields]
    schemas = [reader.ngram.get_schema_at_timestep(reader.schema, step) for step in sorted(reader.ngram.fields)]
    return [(schema, name) for schema in schemas for name in schema.fields]


def _structure(reader: Any) -> Callable[..., Any]:
    """From flat tensors to what the reader's rows look like."""
    if reader.ngram is None:
        row_type = reader.schema._get_namedtuple()
        return lambda *tensors: row_type(*tensors)

    def windows(*tensors: Any) -> dict[int, Any]:
        rest = iter(tensors)
        made = {}
        for step in sorted(reader.ngram.fields):
            schema = reader.ngram.get_schema_at_timestep(reader.schema, step)
            made[step] = schema.make_namedtuple(**{name: next(rest) for name in schema.fields})
        return made

    return windows


def _values(reader: Any, row: Any) -> list[Any]:
    rows = [row] if reader.ngram is None else [row[step] for step in sorted(reader.ngram.fields)]
    return [_value(name, value) for each in rows for name, value in each._asdict().items()]


def _spec(tf: Any, field: UnischemaField, is_batch: bool) -> Any:
    shape = ([None] if is_batch else []) + list(field.shape)
    name = "string" if field.numpy_dtype is Decimal else np.dtype(field.numpy_dtype).type.__name__
    return tf.TensorSpec(shape=shape, dtype=getattr(tf, _PROMOTED.get(name, name.rstrip("_"))))


def _value(name: str, value: Any) -> Any:
    """A value in a type that TensorFlow has."""
    if value is None:
        raise RuntimeError(f"TensorFlow has no None, which the field '{name}' holds; leave such rows out by a predicate")
    if isinstance(value, Decimal):
        return str(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    if value.dtype.kind == "M":
        return value.astype("datetime64[ns]").astype(np.int64)
    if value.dtype == object:
        return _objects(name, np.asarray(value))
    promoted = {"uint16": np.int32, "uint32": np.int64}.get(value.dtype.name)
    return value if promoted is None else value.astype(promoted)


def _objects(name: str, values: Any) -> Any:
    flat = values.reshape(-1).tolist()
    if any(value is None for value in flat):
        raise RuntimeError(f"TensorFlow has no None, which the field '{name}' holds; leave such rows out by a predicate")
    if flat and isinstance(flat[0], Decimal):
        return np.array([str(value) for value in flat]).reshape(values.shape)
    if flat and hasattr(flat[0], "timetuple"):
        return np.array([calendar.timegm(day.timetuple()) * 10**9 for day in flat], np.int64).reshape(values.shape)
    return values

"""Data sets of Petastorm as RDDs of Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .etl.dataset_metadata import get_schema_from_dataset_url
from .unischema import Unischema


def dataset_as_rdd(
    dataset_url: str, spark_session: Any, schema_fields: Iterable[Any] | None = None, hdfs_driver: str = "libhdfs3"
) -> Any:
    """An RDD of decoded rows (named tuples). Classic Spark only: Spark Connect has no RDDs.

    Args:
        schema_fields: Fields and regular expressions of names; None: all.
    """
    schema = get_schema_from_dataset_url(dataset_url)
    view = schema if schema_fields is None else schema.create_schema_view(schema_fields)
    frame = spark_session.read.parquet(dataset_url).select(*view.fields)
    return frame.rdd.map(lambda row: _decoded(row.asDict(), view))


def _decoded(row: dict[str, Any], schema: Unischema) -> Any:
    values = {}
    for name, value in row.items():
        field = schema.fields[name]
        if value is not None and field.codec is not None:
            value = field.codec.decode(field, value)
        elif value is not None and isinstance(field.numpy_dtype, type):
            value = field.numpy_dtype(value)
        values[name] = value
    return schema.make_namedtuple(**values)

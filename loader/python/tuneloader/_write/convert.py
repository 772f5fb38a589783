"""to_mds, and what it knows of types."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from .writer import MDSWriter

_NUMPY_COLUMNS = {
    "bool": "uint8",
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: name for name in ("float16", "float32", "float64")},
}


def to_mds(
    source: Any,
    out: str | os.PathLike[str] | tuple[str, str],
    *,
    columns: dict[str, str] | None = None,
    **options: Any,
) -> int:
    """Writes samples that are in memory, or come one by one, as MDS.

    Args:
        source: A dict of arrays or lists of equal length, a pandas DataFrame (without its index), a Hugging Face data set, or
            anything that yields samples as dicts.
        out: As in MDSWriter.
        columns: Encodings; those that are not given follow from the dtypes, or from the first sample. Arrays of a stated shape
            get it in their encoding, so that batches hold them as one array.
        options: Further arguments of MDSWriter.

    Returns:
        The number of samples.
    """
    given = columns or {}
    if is_dataframe(source):
        if len(source) == 0:
            raise ValueError("the DataFrame has no rows")
        encodings = {str(name): given.get(str(name)) or _encoding_of(str(name), source[name]) for name in source.columns}
        samples = rows_of(source)
    elif isinstance(source, dict):
        encodings, samples = _of_arrays(source, given)
    else:
        samples = iter(source)
        first = next(samples, None)
        if not isinstance(first, dict):
            raise ValueError(
                "the source has no samples" if first is None else f"a sample must be a dict by column, not {type(first).__name__}"
            )
        encodings = {name: given.get(name) or _encoding_of_value(name, value) for name, value in first.items()}
        samples = itertools.chain([first], samples)
    unknown = sorted(set(given) - set(encodings))
    if unknown:
        raise ValueError(f"the source has no column {', '.join(unknown)}; it has {', '.join(encodings)}")
    count = 0
    lists = [name for name, encoding in encodings.items() if encoding.startswith("ndarray")]
    with MDSWriter(out=out, columns=encodings, **options) as writer:
        for count, sample in enumerate(samples, 1):
            writer.write(_with_arrays(sample, lists))
    return count


def _of_arrays(source: dict[str, Any], given: dict[str, str]) -> tuple[dict[str, str], Iterator[dict[str, Any]]]:
    """(encodings, samples) of columns that are arrays or lists."""
    import numpy as np

    lengths = {name: len(values) for name, values in source.items()}
    if len(set(lengths.values())) != 1 or not min(lengths.values()):
        raise ValueError(f"the columns must have the same number of samples, at least one; they have {lengths}")
    encodings = {}
    for name, values in source.items():
        if name in given:
            encodings[name] = given[name]
        elif isinstance(values, np.ndarray) and values.dtype.name in _NUMPY_COLUMNS:
            kind = _NUMPY_COLUMNS[values.dtype.name]
            encodings[name] = f"ndarray:{kind}:{','.join(map(str, values.shape[1:]))}" if values.ndim > 1 else kind
        else:
            encodings[name] = _encoding_of_value(name, values[0])
    return encodings, (dict(zip(source, row)) for row in zip(*source.values()))


def _encoding_of_value(name: str, value: Any) -> str:
    """The encoding that takes a value and its like."""
    simple = {bool: "uint8", int: "int64", float: "float64", str: "str", bytes: "bytes", dict: "json", Decimal: "str_decimal"}
    if type(value) in simple:
        return simple[type(value)]
    dtype = getattr(getattr(value, "dtype", None), "name", None)
    if dtype in _NUMPY_COLUMNS and hasattr(value, "ndim"):
        return "ndarray" if value.ndim else _NUMPY_COLUMNS[dtype]
    if isinstance(value, list) and value and isinstance(value[0], (int, float, list)):
        return "ndarray"
    if type(value).__module__.startswith("PIL."):
        return "png"
    raise ValueError(
        f"column '{name}' holds {type(value).__name__}, which has no encoding of its own; name one in columns, e.g. 'json'"
    )


def _with_arrays(sample: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The sample with lists made arrays, and truth values numbers, in the columns of arrays."""
    if not names:
        return sample
    import numpy as np

    made = dict(sample)
    for name in names:
        value = np.asarray(made[name])
        made[name] = value.view(np.uint8) if value.dtype == bool else value
    return made


def is_dataframe(source: Any) -> bool:
    return hasattr(source, "to_dict") and hasattr(source, "dtypes") and hasattr(source, "iloc")


def rows_of(dataframe: Any) -> Iterator[dict[str, Any]]:
    import numpy as np

    names = [str(name) for name in dataframe.columns]
    for row in dataframe.itertuples(index=False, name=None):
        yield {name: np.asarray(value) if isinstance(value, list) else value for name, value in zip(names, row)}


def columns_of(dataframe: Any) -> dict[str, str]:
    return {str(name): _encoding_of(str(name), dataframe[name]) for name in dataframe.columns}


def _encoding_of(name: str, series: Any) -> str:
    if series.isna().any():
        raise ValueError(f"column '{name}' has missing values, which MDS cannot hold; fill or drop them first")
    known = _NUMPY_COLUMNS.get(str(series.dtype))
    if known:
        return known
    value = series.iloc[0]
    if isinstance(value, str):
        return "str"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, Decimal):
        return "str_decimal"
    if isinstance(value, dict):
        return "json"
    if isinstance(value, list) or hasattr(value, "__array__") and value.ndim > 0:
        return "ndarray"
    raise ValueError(f"column '{name}' of type {series.dtype} has no encoding of its own; name one in mds_kwargs['columns']")

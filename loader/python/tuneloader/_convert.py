"""merge_index, dataframe_to_mds and to_mds."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

from ._writer import MDSWriter

_NUMPY_COLUMNS = {
    "bool": "uint8",
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: name for name in ("float16", "float32", "float64")},
}


def merge_index(*args: Any, keep_local: bool = True, download_timeout: int = 60) -> None:
    """Makes one index.json out of those of several parts.

    merge_index(out): of all parts beneath the folder `out`, in the order of their paths.
    merge_index([index files], out): of these, in this order; the parts must lie beneath `out`.

    Shards are named by their whole path beneath `out`, so parts may lie at any depth. `keep_local` and `download_timeout` are
    those of mosaicml-streaming and have no effect on local folders.
    """
    if len(args) == 2 and isinstance(args[0], (list, tuple)):
        files = [os.fspath(file[0] if isinstance(file, tuple) else file) for file in args[0]]
        out = args[1]
    elif len(args) == 1:
        out = args[0]
        files = []
    else:
        raise ValueError("merge_index takes a folder, or a list of index files and a folder")
    out = os.fspath(out[0] if isinstance(out, tuple) else out)
    if "://" in out:
        raise NotImplementedError(f"out={out!r}: only local folders are merged yet")
    files = list(dict.fromkeys(files)) or _parts_beneath(out)
    if not files:
        raise FileNotFoundError(f"there is no index.json beneath '{out}'")
    shards = [shard for file in files for shard in _shards_of(file, out)]
    path = os.path.join(out, "index.json")
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump({"version": 2, "shards": shards}, file)
    os.replace(path + ".part", path)


def _parts_beneath(out: str) -> list[str]:
    found = []
    for folder, _, names in os.walk(out):
        if "index.json" in names and os.path.abspath(folder) != os.path.abspath(out):
            found.append(os.path.join(folder, "index.json"))
    return sorted(found)


def _shards_of(file: str, out: str) -> list[dict[str, Any]]:
    """The entries of one index, with their files named from `out`."""
    folder = os.path.relpath(os.path.dirname(os.path.abspath(file)), os.path.abspath(out))
    if folder.startswith(".."):
        raise ValueError(f"'{file}' does not lie beneath '{out}'")
    with open(file, encoding="utf-8") as opened:
        index = json.load(opened)
    if index.get("version") != 2:
        raise ValueError(f"'{file}' is of version {index.get('version')}, not 2")
    for shard in index["shards"]:
        for key in ("raw_data", "zip_data", "raw_meta", "zip_meta"):
            if shard.get(key):
                shard[key]["basename"] = os.path.normpath(os.path.join(folder, shard[key]["basename"]))
    return list(index["shards"])


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
    if _is_dataframe(source):
        if len(source) == 0:
            raise ValueError("the DataFrame has no rows")
        encodings = {str(name): given.get(str(name)) or _encoding_of(str(name), source[name]) for name in source.columns}
        samples = _rows(source)
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


def dataframe_to_mds(
    dataframe: Any,
    merge_index: bool = True,
    mds_kwargs: dict[str, Any] | None = None,
    udf_iterable: Callable[..., Iterable[dict[str, Any]]] | None = None,
    udf_kwargs: dict[str, Any] | None = None,
) -> tuple[str, str]:
    """Writes a pandas DataFrame as MDS.

    Args:
        dataframe: Its index is not stored.
        merge_index: One data set is written, so there is nothing to merge.
        mds_kwargs: Arguments of MDSWriter; `out` is needed, `columns` follow from the dtypes, `compression` is zstd.
        udf_iterable: Makes the samples to write out of the DataFrame; `columns` must then be given.
        udf_kwargs: Its further arguments.

    Returns:
        (folder, folder it was copied to or "").
    """
    if not _is_dataframe(dataframe):
        raise NotImplementedError(
            f"dataframe_to_mds takes a pandas DataFrame, not {type(dataframe).__module__}.{type(dataframe).__name__}; for "
            "Spark call toPandas(), or save as Parquet and use `tune-data convert`"
        )
    if len(dataframe) == 0:
        raise ValueError("the DataFrame has no rows")
    wanted = {"compression": "zstd", **(mds_kwargs or {})}
    if "out" not in wanted:
        raise ValueError("mds_kwargs must hold `out`, the folder to write to")
    if "columns" not in wanted:
        if udf_iterable is not None:
            raise ValueError("with udf_iterable, mds_kwargs must hold `columns`: the function may make any")
        wanted["columns"] = _columns_of(dataframe)
    with MDSWriter(**wanted) as writer:
        for sample in udf_iterable(dataframe, **(udf_kwargs or {})) if udf_iterable else _rows(dataframe):
            writer.write(sample)
    return writer.local, writer.remote or ""


def _is_dataframe(source: Any) -> bool:
    return hasattr(source, "to_dict") and hasattr(source, "dtypes") and hasattr(source, "iloc")


def _rows(dataframe: Any) -> Iterator[dict[str, Any]]:
    import numpy as np

    names = [str(name) for name in dataframe.columns]
    for row in dataframe.itertuples(index=False, name=None):
        yield {name: np.asarray(value) if isinstance(value, list) else value for name, value in zip(names, row)}


def _columns_of(dataframe: Any) -> dict[str, str]:
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

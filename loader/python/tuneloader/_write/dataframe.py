"""dataframe_to_mds, of pandas and of Spark."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .convert import columns_of, is_dataframe, rows_of
from .merge import merge_index as merge
from .writer import MDSWriter, places_of

_logger = logging.getLogger("tuneloader")

# By the name of Spark's type; whole numbers keep their sign (mosaicml-streaming stores ByteType and ShortType unsigned).
_SPARK_COLUMNS = {
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "string": "str",
    "binary": "bytes",
    **{
        f"array<{name}>": f"ndarray:{dtype}"
        for name, dtype in {
            "smallint": "int16", "int": "int32", "bigint": "int64", "float": "float32", "double": "float64"
        }.items()
    },
}  # fmt: skip


def dataframe_to_mds(
    dataframe: Any,
    merge_index: bool = True,
    mds_kwargs: dict[str, Any] | None = None,
    udf_iterable: Callable[..., Iterable[dict[str, Any]]] | None = None,
    udf_kwargs: dict[str, Any] | None = None,
) -> tuple[str, str]:
    """Writes a DataFrame of Spark (classic or Connect) or pandas as MDS.

    Spark's executors write a part each, into a folder of its own beneath `out`: give a URL or a path that all of them and the
    driver see. tuneloader must be installed on them. Of a task that is tried again only the parts of the attempt that
    succeeded are in the merged index.

    Args:
        dataframe: pandas' index is not stored.
        merge_index: Whether one index is made of those of the parts. pandas' data is one part.
        mds_kwargs: Arguments of MDSWriter; `out` is needed, `columns` follow from the types, `compression` is zstd.
        udf_iterable: Makes the samples to write out of a pandas DataFrame: all of it, or some rows of a Spark partition;
            `columns` must then be given.
        udf_kwargs: Its further arguments.

    Returns:
        (folder, where it was sent to or "").
    """
    is_spark = hasattr(dataframe, "mapInPandas")
    if not is_spark and not is_dataframe(dataframe):
        raise TypeError(
            f"dataframe_to_mds takes a DataFrame of Spark or pandas, not {type(dataframe).__module__}.{type(dataframe).__name__}"
        )
    if dataframe.isEmpty() if is_spark else len(dataframe) == 0:
        raise ValueError("the DataFrame has no rows")
    wanted = {"compression": "zstd", **(mds_kwargs or {})}
    if "out" not in wanted:
        raise ValueError("mds_kwargs must hold `out`, the folder to write to")
    if "columns" not in wanted:
        if udf_iterable is not None:
            raise ValueError("with udf_iterable, mds_kwargs must hold `columns`: the function may make any")
        wanted["columns"] = _spark_columns(dataframe) if is_spark else columns_of(dataframe)
    elif udf_iterable is None:
        unknown = sorted(set(wanted["columns"]) - set(map(str, dataframe.columns)))
        if unknown:
            raise ValueError(f"the DataFrame has no column {', '.join(unknown)}; it has {', '.join(map(str, dataframe.columns))}")
    make = _Samples(udf_iterable, udf_kwargs)
    if is_spark:
        return _write_spark(dataframe, merge_index, wanted, make)
    with MDSWriter(**wanted) as writer:
        for sample in make(dataframe):
            writer.write(sample)
    return writer.local, writer.remote or ""


class _Samples:
    """From a pandas DataFrame to samples."""

    def __init__(self, function: Callable[..., Iterable[dict[str, Any]]] | None, arguments: dict[str, Any] | None) -> None:
        self.function = function
        self.arguments = dict(arguments or {})

    def __call__(self, frame: Any) -> Iterable[dict[str, Any]]:
        return rows_of(frame) if self.function is None else self.function(frame, **self.arguments)


def _spark_columns(dataframe: Any) -> dict[str, str]:
    columns = {}
    for field in dataframe.schema.fields:
        name = field.dataType.simpleString()
        encoding = "str_decimal" if name.startswith("decimal") else _SPARK_COLUMNS.get(name)
        if encoding is None:
            raise ValueError(
                f"column '{field.name}' of type {name} has no encoding of its own; name one in mds_kwargs['columns'], e.g. 'json'"
            )
        columns[field.name] = encoding
    return columns


def _write_spark(dataframe: Any, merges: bool, wanted: dict[str, Any], make: _Samples) -> tuple[str, str]:
    out = wanted.pop("out")
    keep_local = bool(wanted.get("keep_local", False))
    local, remote, is_ours = places_of(out)
    if remote is None:
        _logger.info("'%s' must be a folder that Spark's driver and executors share", local)
    _prepare(local, bool(wanted.pop("exist_ok", False)))
    # What executors hold is sent at once; only the driver's own folder may be looked at later.
    written = dataframe.mapInPandas(_PartWriter(local, remote, wanted, make), "part string").collect()
    parts = [row["part"] for row in written]
    if merges:
        if remote is None:
            merge([os.path.join(local, part, "index.json") for part in parts], local)
        else:
            merge([f"{remote.rstrip('/')}/{part}/index.json" for part in parts], remote if not keep_local else (local, remote))
    if remote is not None and (is_ours or not keep_local):
        shutil.rmtree(local, ignore_errors=True)
    return local, remote or ""


def _prepare(folder: str, empties: bool) -> None:
    if os.path.isdir(folder) and os.listdir(folder):
        if not empties:
            raise FileExistsError(f"'{folder}' is not empty; give another folder, or exist_ok=True")
        shutil.rmtree(folder)


class _PartWriter:
    """What runs in each of Spark's tasks."""

    def __init__(self, local: str, remote: str | None, options: dict[str, Any], make: _Samples) -> None:
        self.local = local
        self.remote = remote
        self.options = options
        self.make = make

    def __call__(self, frames: Iterator[Any]) -> Iterator[Any]:
        import pandas as pd
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            raise RuntimeError("this is no task of Spark")
        # Of the attempt, so that one that failed, or is tried twice at once, is in nobody's way.
        part = f"{context.partitionId():05d}-{context.taskAttemptId()}"
        place: Any = os.path.join(self.local, part)
        if self.remote is not None:
            place = (place, f"{self.remote.rstrip('/')}/{part}")
        writer = None
        try:
            for frame in frames:
                for sample in self.make(frame):
                    if writer is None:
                        writer = MDSWriter(out=place, **self.options)
                    writer.write(sample)
            if writer is not None:
                writer.finish()
        except BaseException:
            if writer is not None:
                writer.cancel()
            raise
        if writer is not None:
            yield pd.DataFrame({"part": [part]})

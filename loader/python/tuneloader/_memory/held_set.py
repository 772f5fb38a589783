"""Arrays, DataFrames and Hugging Face data sets as files that the loader reads: MDS where every column has a fixed size,
written a shard at a time by numpy; Parquet, by pyarrow, where there are texts, lists or missing values."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .held_folder import HeldFolder

_SHARD_BYTES = 1 << 26
_DTYPES = {
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *(f"float{bits}" for bits in (16, 32, 64)),
}  # fmt: skip


class HeldSet:
    """A data set in a folder that is deleted with this object."""

    def __init__(self) -> None:
        self._folder = HeldFolder()
        self.folder = os.path.join(self._folder.path, "set")
        self.format = "mds"
        self.has_nulls = False

    def delete(self) -> None:
        """Deletes it now."""
        self._folder.delete()

    @classmethod
    def of(cls, source: Any) -> HeldSet:
        """TypeError for what is none of the kinds of data that are known."""
        held = cls()
        try:
            held._write(source)
        except BaseException:
            held.delete()
            raise
        return held

    def _write(self, source: Any) -> None:
        if hasattr(source, "with_format"):
            self._write_batches(_hugging_face_tables(source))
        elif isinstance(source, Mapping):
            self._write_arrays({str(name): values for name, values in source.items()})
        elif hasattr(source, "iloc") and hasattr(source, "dtypes"):
            self._write_frame(source)
        else:
            raise TypeError(
                "a Dataset is made of a folder, a URL, a dict of arrays, a pandas DataFrame or a Hugging Face data set, not of "
                f"{type(source).__module__}.{type(source).__name__}"
            )

    def _write_frame(self, frame: Any) -> None:
        arrays = {str(name): frame[name] for name in frame.columns}
        if len(arrays) != len(frame.columns):
            raise ValueError(f"the DataFrame has two columns of the same name: {', '.join(map(str, frame.columns))}")
        if all(isinstance(series.dtype, np.dtype) and _is_plain(series.dtype) for series in arrays.values()):
            self._write_arrays({name: series.to_numpy() for name, series in arrays.items()})
        else:
            pa = _pyarrow("a DataFrame with columns of other types than numbers")
            self._write_batches(iter([pa.Table.from_pandas(frame, preserve_index=False)]))

    def _write_arrays(self, columns: dict[str, Any]) -> None:
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) != 1 or not min(lengths.values()):
            raise ValueError(f"the columns must have the same number of samples, at least one; they have {lengths}")
        made = {name: values if isinstance(values, np.ndarray) else _as_array(values) for name, values in columns.items()}
        if all(isinstance(values, np.ndarray) and _is_plain(values.dtype) for values in made.values()):
            _write_mds(self.folder, made)
        else:
            pa = _pyarrow("arrays of other types than numbers")
            self._write_batches(iter([pa.table({name: _arrow_array(pa, values) for name, values in made.items()})]))

    def _write_batches(self, tables: Iterator[Any]) -> None:
        import pyarrow.parquet as parquet

        os.makedirs(self.folder)
        self.format = "parquet"
        writer = None
        rows = 0
        try:
            for table in tables:
                if writer is None:
                    path = os.path.join(self.folder, "data.parquet")
                    writer = parquet.ParquetWriter(path, table.schema, compression="none", use_dictionary=False)
                self.has_nulls = self.has_nulls or any(column.null_count for column in table.columns)
                rows += table.num_rows
                group = max(1, min(1 << 16, _SHARD_BYTES // max(1, table.nbytes // max(1, table.num_rows))))
                writer.write_table(table, row_group_size=group)
        finally:
            if writer is not None:
                writer.close()
        if rows == 0:
            raise ValueError("the data has no rows")


def _is_plain(dtype: Any) -> bool:
    return dtype.name in _DTYPES or dtype.name == "bool"


def _as_array(values: Any) -> Any:
    """A list of numbers as an array; other lists stay lists."""
    if hasattr(values, "__array__") or hasattr(values, "__dlpack__"):
        return np.asarray(values)
    try:
        made = np.asarray(values)
    except ValueError:  # lists of differing lengths
        return list(values)
    return made if _is_plain(made.dtype) else list(values)


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(f"{what} is stored as Parquet, which needs pyarrow: pip install 'pyarrow==26.*'") from error
    return pyarrow


def _arrow_array(pa: Any, values: Any) -> Any:
    if not isinstance(values, np.ndarray) or values.ndim == 1:
        return pa.array(values)
    array = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array


def _write_mds(folder: str, columns: dict[str, Any]) -> None:
    """Shards of rows whose columns all have a fixed size: the bytes that MDSWriter would write, a shard in one piece."""
    os.makedirs(folder)
    names = sorted(columns)
    arrays = [columns[name].view(np.uint8) if columns[name].dtype == bool else columns[name] for name in names]
    fields = [(name, array.dtype.newbyteorder("<"), array.shape[1:]) for name, array in zip(names, arrays)]
    row = np.dtype(fields)
    if row.itemsize == 0:
        raise ValueError("the columns hold no elements")
    config = {
        "column_encodings": [_encoding(array) for array in arrays],
        "column_names": names,
        "column_sizes": [row[name].itemsize for name in names],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": None,
        "version": 2,
    }
    header = json.dumps(config, sort_keys=True).encode()
    total = len(arrays[0])
    at_once = max(1, _SHARD_BYTES // (row.itemsize + 4))
    shards = []
    for number, begin in enumerate(range(0, total, at_once)):
        count = min(at_once, total - begin)
        packed = np.empty(count, row)
        for name, array in zip(names, arrays):
            packed[name] = array[begin : begin + count]
        first = 4 + 4 * (count + 1) + len(header)
        if first + count * row.itemsize >= 1 << 32:
            raise ValueError(f"a sample of {row.itemsize} bytes is too large")
        offsets = (first + np.arange(count + 1, dtype=np.int64) * row.itemsize).astype("<u4")
        basename = f"shard.{number:05}.mds"
        with open(os.path.join(folder, basename), "wb") as file:
            file.write(np.uint32(count).astype("<u4").tobytes())
            file.write(offsets.tobytes())
            file.write(header)
            packed.tofile(file)
        size = first + count * row.itemsize
        raw = {"basename": basename, "bytes": size, "hashes": {}}
        shards.append({**config, "raw_data": raw, "samples": count, "zip_data": None})
    with open(os.path.join(folder, "index.json"), "w", encoding="utf-8") as index:
        json.dump({"shards": shards, "version": 2}, index, sort_keys=True)


def _encoding(array: Any) -> str:
    kind = array.dtype.newbyteorder("=").name
    return f"ndarray:{kind}:{','.join(map(str, array.shape[1:]))}" if array.ndim > 1 else kind


def _hugging_face_tables(source: Any) -> Iterator[Any]:
    """The rows in their order, of what select() and shuffle() left, as tables; files of images and sound as bytes."""
    import pyarrow as pa

    if hasattr(source, "keys") or not hasattr(source, "num_rows"):
        raise TypeError("Hugging Face data sets are read split by split, and not streamed: give load_dataset(..., split=\"train\")")
    features = source.features
    for batch in source.with_format("arrow").iter(batch_size=10_000):
        table = batch if isinstance(batch, pa.Table) else pa.table(batch)
        for at, name in enumerate(table.column_names):
            column = _plain_column(pa, table.column(name), features[name])
            table = table.set_column(at, name, column)
        yield table.replace_schema_metadata(None)


def _plain_column(pa: Any, column: Any, feature: Any) -> Any:
    column = column.combine_chunks()
    chunk = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    kind = type(feature).__name__
    if kind in ("Image", "Audio", "Video"):
        files = zip(chunk.field("bytes").to_pylist(), chunk.field("path").to_pylist(), chunk.is_valid().to_pylist())
        return pa.array([_file_bytes(data, path) if valid else None for data, path, valid in files], pa.large_binary())
    if kind.startswith("Array") and None not in feature.shape and chunk.null_count == 0:
        values = chunk
        for _ in feature.shape:
            values = values.flatten()
        for size in reversed(feature.shape):
            values = pa.FixedSizeListArray.from_arrays(values, size)
        return values
    return chunk


def _file_bytes(data: bytes | None, path: str | None) -> bytes | None:
    if data is not None or path is None:
        return data
    with open(path, "rb") as file:
        return file.read()

"""make_spark_converter: a DataFrame is written once as Parquet and read by any number of loaders, in this process and others.

Only functions of DataFrames are used that classic Spark and Spark Connect have alike.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from .._dataset import Dataset
from .._parquet.files import find_data_files, local_path, open_place
from .._parquet.row_groups import RowGroups
from ..reader import Reader, make_batch_reader
from . import cache

__all__ = ["SparkDatasetConverter", "from_spark", "make_spark_converter", "register_delete_dir_handler"]

DEFAULT_ROW_GROUP_SIZE_BYTES = 32 * 1024 * 1024
_CODECS = ("uncompressed", "bzip2", "gzip", "lz4", "snappy", "zstd", "deflate")
_SMALL_FILE_BYTES = 50 * 1024 * 1024

logger = logging.getLogger(__name__)
register_delete_dir_handler = cache.register_delete_dir_handler


class SparkDatasetConverter:
    """A DataFrame that lies as Parquet in a folder. It can be pickled, and used in other processes that see the folder.

    Attributes:
        cache_dir_url: The folder.
        file_urls: Its Parquet files.
        dataset_size: Rows; also len().
    """

    PARENT_CACHE_DIR_URL_CONF = "petastorm.spark.converter.parentCacheDirUrl"

    def __init__(self, cache_dir_url: str, file_urls: list[str], dataset_size: int) -> None:
        self.cache_dir_url = cache_dir_url
        self.file_urls = file_urls
        self.dataset_size = dataset_size

    def __len__(self) -> int:
        return self.dataset_size

    def make_torch_dataloader(
        self,
        batch_size: int = 32,
        num_epochs: int | None = None,
        workers_count: int | None = None,
        shuffling_queue_capacity: int = 0,
        data_loader_fn: Callable[..., Any] | None = None,
        **petastorm_reader_kwargs: Any,
    ) -> TorchDatasetContextManager:
        """A context manager whose value is a loader of torch tensors.

        Args:
            batch_size: Rows of a batch.
            num_epochs: None: for ever.
            workers_count: Threads; None: 4.
            shuffling_queue_capacity: Rows among which each next one is drawn; 0: no shuffling of rows.
            data_loader_fn: Makes the loader; None: tuneloader.pytorch.DataLoader.
            petastorm_reader_kwargs: Further arguments of make_batch_reader, e.g. cur_shard and shard_count.
        """
        options = _reader_options(petastorm_reader_kwargs, num_epochs, workers_count)
        return TorchDatasetContextManager(self.file_urls, batch_size, options, shuffling_queue_capacity, data_loader_fn)

    def make_tf_dataset(
        self,
        batch_size: int | None = None,
        prefetch: int | None = None,
        num_epochs: int | None = None,
        workers_count: int | None = None,
        shuffling_queue_capacity: int | None = None,
        **petastorm_reader_kwargs: Any,
    ) -> TFDatasetContextManager:
        """A context manager whose value is a tf.data.Dataset of batches.

        Args:
            batch_size: Rows of a batch; None: 32.
            prefetch: Batches; None: as many as TensorFlow thinks good.
            The others: As of make_torch_dataloader.
        """
        options = _reader_options(petastorm_reader_kwargs, num_epochs, workers_count)
        return TFDatasetContextManager(self.file_urls, batch_size, prefetch, options, shuffling_queue_capacity)

    def make_dataset(self, **options: Any) -> Dataset:
        """The rows as a tuneloader.Dataset, shuffled and resumable; `options` are its arguments."""
        opened, path = open_place(self.cache_dir_url)
        is_local = type(opened).__name__ == "LocalFileSystem"
        return Dataset(path if is_local else self.cache_dir_url, format="parquet", **options)

    def delete(self) -> None:
        """Deletes the folder."""
        cache.forget(self.cache_dir_url)


class TorchDatasetContextManager:
    """Opens a reader and a loader at the beginning of a `with` block, and closes them at its end."""

    def __init__(
        self,
        parquet_file_url_list: list[str],
        batch_size: int,
        petastorm_reader_kwargs: dict[str, Any],
        shuffling_queue_capacity: int,
        data_loader_fn: Callable[..., Any] | None,
    ) -> None:
        self.parquet_file_url_list = parquet_file_url_list
        self.batch_size = batch_size
        self.petastorm_reader_kwargs = petastorm_reader_kwargs
        self.shuffling_queue_capacity = shuffling_queue_capacity
        self.data_loader_fn = data_loader_fn
        self.reader: Reader | None = None

    def __enter__(self) -> Any:
        from ..pytorch import DataLoader

        self.reader = make_batch_reader(self.parquet_file_url_list, **self.petastorm_reader_kwargs)
        make_loader = self.data_loader_fn or DataLoader
        self.loader = make_loader(
            reader=self.reader, batch_size=self.batch_size, shuffling_queue_capacity=self.shuffling_queue_capacity
        )
        return self.loader

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _close(self.reader)


class TFDatasetContextManager:
    """Opens a reader and a tf.data.Dataset at the beginning of a `with` block, and closes the reader at its end."""

    def __init__(
        self,
        parquet_file_url_list: list[str],
        batch_size: int | None,
        prefetch: int | None,
        petastorm_reader_kwargs: dict[str, Any],
        shuffling_queue_capacity: int | None,
    ) -> None:
        self.parquet_file_url_list = parquet_file_url_list
        self.batch_size = batch_size
        self.prefetch = prefetch
        self.petastorm_reader_kwargs = petastorm_reader_kwargs
        self.shuffling_queue_capacity = shuffling_queue_capacity
        self.reader: Reader | None = None

    def __enter__(self) -> Any:
        from ..tf_utils import make_petastorm_dataset, tensorflow

        tf = tensorflow()
        self.reader = make_batch_reader(self.parquet_file_url_list, **self.petastorm_reader_kwargs)
        dataset = make_petastorm_dataset(self.reader).unbatch()
        if self.shuffling_queue_capacity:
            dataset = dataset.shuffle(self.shuffling_queue_capacity)
        dataset = dataset.batch(self.batch_size or 32)
        return dataset.prefetch(tf.data.AUTOTUNE if self.prefetch is None else self.prefetch)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _close(self.reader)


def _close(reader: Reader | None) -> None:
    if reader is not None:
        reader.stop()
        reader.join()


def make_spark_converter(
    df: Any,
    parquet_row_group_size_bytes: int = DEFAULT_ROW_GROUP_SIZE_BYTES,
    compression_codec: str | None = None,
    dtype: str | None = "float32",
) -> SparkDatasetConverter:
    """Writes a DataFrame as Parquet into a folder of its own beneath the one that the setting
    petastorm.spark.converter.parentCacheDirUrl (or tuneloader.spark.converter.parentCacheDirUrl) of Spark names: a URL that
    driver and workers see. A DataFrame of the same plan, written with the same arguments, is not written again. The folder
    is deleted by `delete()`, or when this process ends.

    Args:
        df: Of classic Spark or Spark Connect; or the URL of a folder of Parquet files, which is taken as it is.
        parquet_row_group_size_bytes: Row groups are the units of shards and of shuffling.
        compression_codec: "snappy", "zstd", "gzip", ...; None: none.
        dtype: "float32" or "float64": what floating-point columns, arrays and vectors become; None: they stay as they are
            (and vectors become float64).
    """
    codec = (compression_codec or "uncompressed").lower()
    if codec not in _CODECS:
        raise RuntimeError(f"compression_codec must be one of {', '.join(_CODECS)}, not {compression_codec!r}")
    if dtype not in (None, "float32", "float64"):
        raise ValueError(f"dtype must be 'float32', 'float64' or None, not {dtype!r}")
    if isinstance(df, str):
        url = _databricks_url(df)
    else:
        plan = cache.Plan(df, parquet_row_group_size_bytes, codec, dtype, cache.parent_url(df.sparkSession))
        url = cache.written(plan)
    files = find_data_files(url, None, None)
    groups = RowGroups(files, {}, None)
    footers = [groups.footer(file) for file in files.files]
    _warn_of_small_files(files, url)
    scheme = url.split("://")[0] if "://" in url and not url.startswith("file:") else ""
    urls = [f"{scheme}://{file.path}" if scheme else f"file://{file.path}" for file in files.files]
    return SparkDatasetConverter(url, urls, sum(footer.num_rows for footer in footers))


def from_spark(
    df: Any,
    *,
    row_group_bytes: int = DEFAULT_ROW_GROUP_SIZE_BYTES,
    compression: str | None = None,
    dtype: str | None = "float32",
) -> SparkDatasetConverter:
    """make_spark_converter by other names: `from_spark(df).make_dataset(batch_size=256, shuffle=True)`."""
    return make_spark_converter(df, row_group_bytes, compression, dtype)


def _databricks_url(url: str) -> str:
    """On Databricks a folder is one that all machines see."""
    if "DATABRICKS_RUNTIME_VERSION" not in os.environ:
        return url
    if not url.startswith(("file:/dbfs/", "file:///dbfs/", "file:/Volumes/", "file:///Volumes/", "dbfs:/")):
        raise ValueError(f"on Databricks the folder must lie on DBFS, as 'file:/dbfs/...' or 'dbfs:/...', not '{url}'")
    return "file://" + local_path(url) if url.startswith("dbfs:") else url


def _warn_of_small_files(files: Any, url: str) -> None:
    sizes = sorted(info.size or 0 for info in files.filesystem.get_file_info([file.path for file in files.files]))
    if len(sizes) > 1 and sizes[len(sizes) // 2] < _SMALL_FILE_BYTES:
        logger.warning(
            "half of the %d Parquet files in %s are smaller than %d bytes, which is slow to read; df.coalesce(n) makes fewer",
            len(sizes), url, _SMALL_FILE_BYTES,
        )  # fmt: skip


def _reader_options(options: dict[str, Any], num_epochs: int | None, workers_count: int | None) -> dict[str, Any]:
    made = {**options, "num_epochs": num_epochs, "workers_count": 4 if workers_count is None else workers_count}
    _check_rank(made)
    return made


class _Rank(NamedTuple):
    rank: int
    size: int


def _rank_of_environment() -> _Rank | None:
    """Of a run of Horovod or MPI."""
    for launcher in ("HOROVOD_{}", "OMPI_COMM_WORLD_{}", "PMI_{}"):
        rank, size = (os.environ.get(launcher.format(name)) for name in ("RANK", "SIZE"))
        if rank is not None and size is not None:
            return _Rank(int(rank), int(size))
    return None


def _check_rank(options: dict[str, Any]) -> None:
    found = _rank_of_environment()
    if found is not None and (options.get("cur_shard"), options.get("shard_count")) != found:
        logger.warning(
            "cur_shard=%s and shard_count=%s are not this process's rank %d of %d; for each to read its own part pass these",
            options.get("cur_shard"), options.get("shard_count"), found.rank, found.size,
        )  # fmt: skip



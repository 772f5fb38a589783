"""materialize_dataset: what Petastorm stores beside the Parquet files of a data set, readable by Petastorm too."""

from __future__ import annotations

import contextlib
import json
import posixpath
from collections.abc import Callable, Iterator
from typing import Any

from .._parquet.arrow import arrow
from .._parquet.files import find_data_files
from .._parquet.metadata import ROW_GROUPS_KEY, UNISCHEMA_KEY, common_metadata, stored_unischema
from .._parquet.petastorm_pickle import pickled_unischema
from .._parquet.row_groups import RowGroups
from ..errors import PetastormMetadataError, PetastormMetadataGenerationError
from ..unischema import Unischema

__all__ = [
    "PetastormMetadataError",
    "PetastormMetadataGenerationError",
    "get_schema_from_dataset_url",
    "materialize_dataset",
    "write_metadata",
]


@contextlib.contextmanager
def materialize_dataset(
    spark: Any,
    dataset_url: str,
    schema: Unischema,
    row_group_size_mb: int | None = None,
    use_summary_metadata: bool = False,
    filesystem_factory: Callable[[], Any] | None = None,
) -> Iterator[None]:
    """Around the code that writes encoded rows (dict_to_spark_row) as Parquet to `dataset_url`: afterwards the schema is
    stored beside them, so that make_reader decodes them.

    Args:
        spark: The SparkSession; with Spark Connect, which has no Hadoop settings, row_group_size_mb is given to the writer
            instead: `.option("parquet.block.size", ...)`. None: the files are written by something else.
        row_group_size_mb: Of the Parquet files.
        use_summary_metadata: Taken, without effect: numbers of row groups are always stored.
        filesystem_factory: Makes the file system to write the metadata by, of pyarrow or fsspec.
    """
    with _hadoop_settings(spark, row_group_size_mb):
        yield
    write_metadata(dataset_url, schema, filesystem_factory() if filesystem_factory else None)


def write_metadata(dataset_url: str, schema: Unischema, filesystem: Any = None) -> None:
    """Stores the schema, and how many row groups each file has, in _common_metadata."""
    files = find_data_files(dataset_url, None, filesystem)
    groups = RowGroups(files, {}, None)
    counts = {file.name: groups.footer(file).num_row_groups for file in files.files}
    stored = groups.schema()
    metadata = {
        **(stored.metadata or {}),
        UNISCHEMA_KEY: pickled_unischema(schema),
        ROW_GROUPS_KEY: json.dumps(counts).encode(),
    }
    root = files.roots[0]
    with files.filesystem.open_output_stream(posixpath.join(root, "_common_metadata")) as out:
        arrow().parquet.write_metadata(stored.with_metadata(metadata), out)
    # Spark's checksum of an older _common_metadata would be wrong now.
    with contextlib.suppress(OSError):
        files.filesystem.delete_file(posixpath.join(root, "._common_metadata.crc"))
    try:
        stored_unischema(common_metadata(files.filesystem, root), root)
    except PetastormMetadataError as error:
        raise PetastormMetadataGenerationError(f"the metadata of '{dataset_url}' cannot be read back: {error}") from error


def get_schema_from_dataset_url(
    dataset_url_or_urls: Any, hdfs_driver: str = "libhdfs3", storage_options: Any = None, filesystem: Any = None
) -> Unischema:
    """The schema that is stored with a data set. PetastormMetadataError when there is none."""
    files = find_data_files(dataset_url_or_urls, storage_options, filesystem)
    return stored_unischema(common_metadata(files.filesystem, files.roots[0]), files.roots[0])


@contextlib.contextmanager
def _hadoop_settings(spark: Any, row_group_size_mb: int | None) -> Iterator[None]:
    context = getattr(spark, "_jsc", None) or getattr(getattr(spark, "_sc", None), "_jsc", None)
    if context is None:
        yield
        return
    settings = context.hadoopConfiguration()
    wanted = {"parquet.summary.metadata.level": "NONE", "parquet.block.size.row.check.min": "3"}
    if row_group_size_mb:
        wanted["parquet.block.size"] = str(row_group_size_mb * 1024 * 1024)
    before = {name: settings.get(name) for name in wanted}
    for name, value in wanted.items():
        settings.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            settings.set(name, value) if value is not None else settings.unset(name)

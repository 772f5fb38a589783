"""The folders that DataFrames are written to: one for each plan, deleted when the process ends."""

from __future__ import annotations

import atexit
import datetime
import logging
import os
import shutil
import threading
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from .._parquet.files import local_path, open_place

SETTINGS = ("tuneloader.spark.converter.parentCacheDirUrl", "petastorm.spark.converter.parentCacheDirUrl")

logger = logging.getLogger(__name__)


class Plan(NamedTuple):
    """What is written, and how."""

    frame: Any
    row_group_bytes: int
    codec: str
    dtype: str | None
    parent_url: str

    def is_same(self, other: Plan) -> bool:
        """Whether the files would be the same."""
        return self[1:] == other[1:] and _same_semantics(self.frame, other.frame)


class _Written(NamedTuple):
    plan: Plan
    url: str


_lock = threading.Lock()
_written: list[_Written] = []


def parent_url(spark: Any) -> str:
    """The folder that Spark's settings name. ValueError when they name none, or a path that is no URL."""
    for name in SETTINGS:
        url = spark.conf.get(name, None)
        if not url:
            continue
        url = str(url).rstrip("/")
        if ":" not in url.split("/")[0]:
            raise ValueError(f"the setting {name} must be a URL; for a folder of this machine prepend 'file://' to '{url}'")
        _warn_of_private_folder(spark, name, url)
        return url
    raise ValueError(f"set the Spark setting {SETTINGS[1]} to a URL that driver and workers see, e.g. file:///dbfs/tmp/cache")


def _warn_of_private_folder(spark: Any, name: str, url: str) -> None:
    is_cluster = "DATABRICKS_RUNTIME_VERSION" in os.environ and not str(spark.conf.get("spark.master", "")).startswith("local")
    if is_cluster and url.startswith("file:") and not local_path(url).startswith(("/dbfs/", "/Volumes/")):
        logger.warning("%s is '%s', which each machine of a Databricks cluster has its own of; use 'file:/dbfs/...'", name, url)


def written(plan: Plan) -> str:
    """The folder of the plan's rows, written now if it was not before."""
    with _lock:
        for known in _written:
            if known.plan.is_same(plan):
                return known.url
        url = f"{plan.parent_url}/{_folder_name(plan.frame.sparkSession)}"
        frame = _with_precision(_with_arrays(plan.frame, plan.dtype), plan.dtype)
        # Before the first byte is there, so that an interrupted write is deleted too.
        atexit.register(_delete_at_exit, url)
        writer = frame.write.option("compression", plan.codec).option("parquet.block.size", plan.row_group_bytes)
        writer.parquet(url)
        _written.append(_Written(plan, url))
        return url


def forget(url: str) -> None:
    """Deletes the folder, and writes its plan anew when it is asked for again."""
    with _lock:
        _written[:] = [known for known in _written if known.url != url]
    _delete_dir_handler(url)


def _same_semantics(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one.sparkSession is not other.sparkSession:
        return False
    return bool(one.semanticHash() == other.semanticHash() and one.sameSemantics(other))


def _folder_name(spark: Any) -> str:
    """With the application's id, so that what a killed process left behind can be told apart."""
    time = datetime.datetime.now().strftime("%Y%m%d%H%M%S")
    return f"{time}-appid-{spark.conf.get('spark.app.id', 'connect')}-{uuid.uuid4()}"


def _with_arrays(frame: Any, dtype: str | None) -> Any:
    """Vectors of pyspark.ml and pyspark.mllib as arrays."""
    from pyspark.ml.functions import vector_to_array

    for field in frame.schema:
        if type(field.dataType).__name__ == "VectorUDT":
            frame = frame.withColumn(field.name, vector_to_array(frame[field.name], dtype or "float64"))
    return frame


def _with_precision(frame: Any, dtype: str | None) -> Any:
    from pyspark.sql.types import ArrayType, DoubleType, FloatType

    if dtype is None:
        return frame
    source, target = (DoubleType, FloatType()) if dtype == "float32" else (FloatType, DoubleType())
    for field in frame.schema:
        kind = field.dataType
        if isinstance(kind, source):
            frame = frame.withColumn(field.name, frame[field.name].cast(target))
        elif isinstance(kind, ArrayType) and isinstance(kind.elementType, source):
            frame = frame.withColumn(field.name, frame[field.name].cast(ArrayType(target)))
    return frame


def _delete_folder(url: str) -> None:
    filesystem, path = open_place(url)
    if type(filesystem).__name__ == "LocalFileSystem":
        if os.path.exists(path):
            shutil.rmtree(path)
    elif filesystem.get_file_info(path).type.name == "Directory":
        filesystem.delete_dir(path)


_delete_dir_handler: Callable[[str], Any] = _delete_folder


def register_delete_dir_handler(handler: Callable[[str], Any] | None) -> None:
    """How folders are deleted from now on: a function of a URL; None: as at first."""
    global _delete_dir_handler
    _delete_dir_handler = handler or _delete_folder


def _delete_at_exit(url: str) -> None:
    try:
        _delete_dir_handler(url)
    except Exception as error:  # the process ends whatever happens
        logger.warning("the folder %s was not deleted: %r", url, error)

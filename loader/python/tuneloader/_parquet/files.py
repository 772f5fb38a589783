"""The Parquet files of a data set, wherever it lies: URLs, folders, partitions by folders' names."""

from __future__ import annotations

import os
import posixpath
import urllib.parse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .arrow import arrow

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class DataFile(NamedTuple):
    """One Parquet file."""

    path: str
    """On the file system."""
    name: str
    """From the data set's folder."""
    partition: dict[str, str | None]
    """What the names of its folders say, as text; None: null."""


class DataFiles(NamedTuple):
    """The files of a data set, sorted by path."""

    filesystem: Any
    roots: list[str]
    files: list[DataFile]
    partition_types: dict[str, Any]
    """numpy.int64 or numpy.str_ by name, in the order of the folders."""

    @property
    def is_folder(self) -> bool:
        """Whether the data set is one folder, which may have metadata beside the files."""
        return len(self.roots) == 1 and [file.path for file in self.files] != self.roots


def find_data_files(urls: str | Sequence[str], storage_options: dict[str, Any] | None, filesystem: Any) -> DataFiles:
    """The Parquet files of a folder, or of a list of files or folders of the same kind of URL. FileNotFoundError when
    there are none."""
    places = [urls] if isinstance(urls, (str, os.PathLike)) else list(urls)
    if not places:
        raise ValueError("the list of URLs is empty")
    found_on, roots = None, []
    for place in places:
        opened, path = open_place(os.fspath(place), storage_options, filesystem)
        found_on = found_on or opened
        roots.append(path)
    files = [file for root in roots for file in _list(found_on, root)]
    if not files:
        raise FileNotFoundError(f"there are no Parquet files in {', '.join(map(str, places))}")
    if len(roots) == 1:
        files.sort(key=lambda file: file.path)
    return DataFiles(found_on, roots, files, _partition_types(files))


def open_place(url: str, storage_options: dict[str, Any] | None = None, filesystem: Any = None) -> tuple[Any, str]:
    """(pyarrow file system, path on it) of a URL or path."""
    scheme, _, rest = url.partition(":") if "://" in url or url.startswith(("file:", "dbfs:")) else ("", "", url)
    if filesystem is not None:
        return _wrapped(filesystem), urllib.parse.unquote(urllib.parse.urlsplit(url).path) if scheme == "file" else (
            url.split("://", 1)[1] if scheme else url
        )
    if scheme in ("", "file", "dbfs"):
        return arrow().fs.LocalFileSystem(), local_path(url)
    if storage_options:
        return _fsspec(scheme, url, storage_options)
    try:
        return _by_arrow(scheme, url)
    except (arrow().ArrowInvalid, arrow().ArrowNotImplementedError):
        return _fsspec(scheme, url, {})


def local_path(url: str) -> str:
    """The path of a file: or dbfs: URL, or the path itself."""
    if url.startswith("dbfs:"):
        path = "/" + url[len("dbfs:") :].lstrip("/")
        return path if path.startswith("/Volumes/") else "/dbfs" + path
    if not url.startswith("file:"):
        return os.path.abspath(url)
    return urllib.parse.unquote(urllib.parse.urlsplit(url).path).rstrip("/") or "/"


def _by_arrow(scheme: str, url: str) -> tuple[Any, str]:
    fs = arrow().fs
    endpoint = next(
        (os.environ[name] for name in ("S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") if os.environ.get(name)), ""
    )
    if scheme in ("s3", "s3a", "s3n"):
        path = url.split("://", 1)[1].strip("/")
        if endpoint:
            return fs.S3FileSystem(endpoint_override=endpoint), path
        return fs.S3FileSystem(region=fs.resolve_s3_region(path.split("/")[0])), path
    if scheme == "gcs":
        url = "gs" + url[len("gcs") :]
    opened, path = fs.FileSystem.from_uri(url)
    return opened, path.rstrip("/")


def _fsspec(scheme: str, url: str, storage_options: dict[str, Any]) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"URLs of the kind {scheme}://, and storage_options, need fsspec: pip install fsspec") from error
    opened, path = fsspec.core.url_to_fs(url, **storage_options)
    return _wrapped(opened), path.rstrip("/")


def _wrapped(filesystem: Any) -> Any:
    """As a file system of pyarrow, whether it is one or fsspec's."""
    fs = arrow().fs
    if isinstance(filesystem, fs.FileSystem):
        return filesystem
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem))


def _list(filesystem: Any, root: str) -> list[DataFile]:
    fs = arrow().fs
    info = filesystem.get_file_info(root)
    if info.type == fs.FileType.File:
        return [DataFile(root, posixpath.basename(root), _partition_of(root))]
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"there is no '{root}'")
    infos = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
    found = []
    for info in infos:
        name: str = posixpath.relpath(info.path.lstrip("/"), root.lstrip("/") or ".")
        if info.type == fs.FileType.File and info.size != 0 and not _is_hidden(name):
            found.append(DataFile(info.path, name, _partition_of(posixpath.dirname(name) + "/")))
    return [file for file in found if ".parq" in posixpath.basename(file.name)] or found


def _is_hidden(name: str) -> bool:
    parts: list[str] = name.split("/")
    is_hidden: bool = any(part.startswith((".", "_")) and "=" not in part for part in parts)
    return is_hidden or name.endswith(".crc")


def _partition_of(name: str) -> dict[str, str | None]:
    parts = [part.partition("=") for part in posixpath.dirname(name).split("/") if "=" in part]
    unquote = urllib.parse.unquote
    return {unquote(key): None if value == _NULL_PARTITION else unquote(value) for key, _, value in parts if key}


def _partition_types(files: Sequence[DataFile]) -> dict[str, Any]:
    names = dict.fromkeys(name for file in files for name in file.partition)
    types = {}
    for name in names:
        values = {file.partition.get(name) for file in files} - {None}
        types[name] = np.int64 if values and all(_is_integer(value) for value in values) else np.str_
    return types


def _is_integer(text: Any) -> bool:
    try:
        return bool(str(int(text)) == text)
    except ValueError:
        return False

"""Stream: one of several data sets that are read as one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any


class Stream:
    """One data set among several, with its weight; the arguments of mosaicml-streaming's Stream.

    At most one of `proportion`, `repeat` and `choose` is given; all streams of a data set have proportions or none has.

    Args:
        remote: Where the data lies: a folder or a URL (s3://, gs://, az://, hdfs://, https://, hf://, dbfs:/, ...).
        local: Folder in which what is fetched from a URL is kept, for all processes and epochs; None: one in the user's cache.
            Alone, or beside a folder, it is the folder that is read when an index is there.
        split: Subfolder.
        proportion: Part of the epoch, relative to the other streams'.
        repeat: How often each sample comes in an epoch; 0.5: half of them.
        choose: Samples of an epoch.
        validate_hash: As in mosaicml-streaming.
        download_retry, download_timeout, keep_zip: The same; those of the first stream that has them hold for all.
    """

    def __init__(
        self,
        *,
        remote: str | None = None,
        local: str | None = None,
        split: str | None = None,
        proportion: float | None = None,
        repeat: float | None = None,
        choose: int | None = None,
        download_retry: int | None = None,
        download_timeout: float | None = None,
        validate_hash: str | None = None,
        keep_zip: bool | None = None,
    ) -> None:
        weights = {"proportion": proportion, "repeat": repeat, "choose": choose}
        given = [name for name, value in weights.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"a stream takes at most one of proportion, repeat and choose, not {' and '.join(given)}")
        for name in given:
            if weights[name] < 0:  # type: ignore[operator]
                raise ValueError(f"a stream's {name} must not be negative")
        if download_retry is not None and download_retry < 0:
            raise ValueError("download_retry must not be negative")
        if download_timeout is not None and download_timeout <= 0:
            raise ValueError("download_timeout must be positive")
        self.remote = remote
        self.local = local
        self.split = split or ""
        self.download_retry = download_retry
        self.download_timeout = download_timeout
        self.validate_hash = validate_hash
        self.keep_zip = keep_zip
        self._weight = {name: weights[name] for name in given}

    def __repr__(self) -> str:
        return f"Stream({self.local or self.remote!r}, split={self.split!r}, {self._weight})"

    @property
    def is_fetched(self) -> bool:
        """Whether the data is read through a cache."""
        return self.remote is not None and not _is_local(self.remote)

    def options(self, split: str | None = None) -> dict[str, Any]:
        """What the reader is told of it."""
        place = {"remote": self.remote, "local": self.local or ""} if self.is_fetched else {"directory": self.directory(split)}
        return {**place, "split": self.split or split or "", **self._weight}

    def directory(self, split: str | None = None) -> str:
        """The local folder that is read."""
        places = [_path(place) for place in (self.local, self.remote) if place]
        if not places:
            raise ValueError("a stream needs local or remote")
        for place in places:
            if os.path.exists(os.path.join(place, self.split or split or "", "index.json")):
                return place
        return places[0]


def _is_local(place: str) -> bool:
    return "://" not in place and not place.startswith("dbfs:") or place.startswith("file://")


def _path(place: str) -> str:
    return place.removeprefix("file://")


def weights_are_relative(streams: Sequence[Stream]) -> bool:
    """Whether the streams have proportions."""
    return any("proportion" in stream._weight for stream in streams)

"""LocalDataset: samples by number from a local folder."""

from __future__ import annotations

import os
from typing import Any

from .samples import Array, SampleReader
from .._torch import MapDataset


class LocalDataset(Array, MapDataset):  # type: ignore[type-arg, misc, unused-ignore]
    """The samples of a local data set by number, for a torch DataLoader with a sampler of its own.

    Args:
        local: Folder of the data set.
        split: Subfolder.
        allow_unsafe_types: Whether columns of pickles are opened.
    """

    def __init__(
        self, local: str | os.PathLike[str], split: str | None = None, allow_unsafe_types: bool = False
    ) -> None:
        self._options = {"directory": os.fspath(local), "split": split or ""}
        self._allow_unsafe_types = allow_unsafe_types
        self._samples = SampleReader(self._options, allow_unsafe_types)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_samples": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._samples = SampleReader(self._options, self._allow_unsafe_types)

    @property
    def size(self) -> int:
        """Number of samples."""
        return self._samples.count

    def __len__(self) -> int:
        return self.size

    def get_item(self, sample_id: int) -> Any:
        """The sample with this number: a dict by column."""
        return self._samples.sample(sample_id)

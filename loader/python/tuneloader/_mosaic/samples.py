"""Samples by number, as mosaicml-streaming gives them: a dict of Python and numpy objects each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core import Reader
from .._encodings import decoder_of

Sample = dict[str, Any]


class SampleReader:
    """A Reader whose samples are decoded to what was written.

    Args:
        options: Of the Reader.
        allow_unsafe_types: Whether pickles are opened; opening one can run any code.
    """

    def __init__(self, options: dict[str, Any], allow_unsafe_types: bool) -> None:
        self.reader = Reader({**options, "threads": 0})
        self.count = self.reader.sample_count
        self._decoders = []
        for name, encoding, *_ in self.reader.columns():
            if encoding == "pkl" and not allow_unsafe_types:
                raise ValueError(
                    f"column '{name}' holds pickles, which can run any code when they are opened; "
                    "pass allow_unsafe_types=True if you trust whoever wrote them"
                )
            decode = decoder_of(encoding)
            if decode is not None:
                self._decoders.append((name, decode))

    def sample(self, sample_id: int) -> Sample:
        """The sample with this number, in memory of its own."""
        sample = self.reader.sample(sample_id)
        if self._decoders:
            for name, decode in self._decoders:
                sample[name] = decode(sample[name])
        return sample


class Array:
    """Indexing by number, slice, list or array of numbers; subclasses give `size` and `get_item`."""

    @property
    def size(self) -> int:
        """Number of samples."""
        raise NotImplementedError

    def get_item(self, sample_id: int) -> Any:
        """The sample with this number, 0 <= sample_id < size."""
        raise NotImplementedError

    def __getitem__(self, at: Any) -> Any:
        """A sample, or a list of samples for a slice, list or array. Negative numbers count from the end."""
        if isinstance(at, (int, np.integer)):
            number, size = int(at), self.size
            if -size <= number < 0:
                number += size
            if not 0 <= number < size:
                raise IndexError(f"there is no sample {at}; the data set has {size}")
            return self.get_item(number)
        if isinstance(at, slice):
            return [self.get_item(number) for number in _slice_numbers(at, self.size)]
        if isinstance(at, (list, np.ndarray)):
            return [self[number] for number in at]
        raise ValueError(f"a data set is indexed by numbers, slices, lists and arrays of numbers, not by {type(at)}")


def _slice_numbers(at: slice, size: int) -> Iterator[int]:
    yield from range(*at.indices(size))

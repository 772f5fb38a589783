"""Several readers as one, with the arguments of Petastorm's."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np


class WeightedSamplingReader:
    """Each row (or batch) comes from one of the readers, drawn by numpy's global generator. It ends with the first reader
    that ends.

    Args:
        readers: Two or more, with the same fields; all of make_reader or all of make_batch_reader.
        probabilities: One for each reader; they are made to sum to 1.
    """

    def __init__(self, readers: Sequence[Any], probabilities: Sequence[float]) -> None:
        if len(readers) < 2:
            raise ValueError(f"a WeightedSamplingReader needs two readers or more, not {len(readers)}")
        if len(readers) != len(probabilities):
            raise ValueError(f"{len(readers)} readers need as many probabilities, not {len(probabilities)}")
        first = readers[0]
        for other in readers[1:]:
            if other.batched_output != first.batched_output:
                raise ValueError("readers of rows and readers of batches cannot be mixed")
            if set(other.schema.fields) != set(first.schema.fields):
                raise ValueError("all readers must have the same fields")
            if other.ngram != first.ngram:
                raise ValueError("all readers must have the same NGram")
        self._readers = list(readers)
        self._bounds = np.cumsum(np.asarray(probabilities, dtype=np.float64) / np.sum(probabilities))
        self.batched_output = first.batched_output
        self.ngram = first.ngram
        self.schema = first.schema

    @property
    def last_row_consumed(self) -> bool:
        """Whether one of the readers has ended."""
        return any(reader.last_row_consumed for reader in self._readers)

    def __iter__(self) -> WeightedSamplingReader:
        return self

    def __next__(self) -> Any:
        drawn = int(np.searchsorted(self._bounds, np.random.random(), side="right"))
        return next(self._readers[min(drawn, len(self._readers) - 1)])

    def next(self) -> Any:
        """The next row or batch."""
        return self.__next__()

    def stop(self) -> None:
        """Stops all readers."""
        for reader in self._readers:
            reader.stop()

    def join(self) -> None:
        """Waits for the threads of all readers."""
        for reader in self._readers:
            reader.join()

    def __enter__(self) -> WeightedSamplingReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self.join()

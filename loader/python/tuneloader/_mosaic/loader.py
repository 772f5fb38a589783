"""StreamingDataLoader: a torch DataLoader that knows where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from typing import Any

from torch.utils.data import DataLoader

from .streaming import StreamingDataset
from .._world import World


class StreamingDataLoader(DataLoader):  # type: ignore[type-arg, misc, unused-ignore]
    """torch's DataLoader over a StreamingDataset, with `state_dict` and `load_state_dict`.

    A state counts the samples that the training loop was given, not what workers have read ahead.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.num_samples_yielded = 0

    def _get_batch_size(self, batch: Any) -> int:
        """Samples of a batch: the length of its first part."""
        if isinstance(batch, Mapping) or hasattr(batch, "values"):
            for value in batch.values():
                return len(value)
            raise ValueError("Batch is empty")
        if hasattr(batch, "shape") and isinstance(batch, Sized):
            return len(batch)
        return len(batch[0])

    def __iter__(self) -> Iterator[Any]:
        self.num_samples_yielded = 0
        for batch in super().__iter__():
            self.num_samples_yielded += self._get_batch_size(batch)
            yield batch

    def state_dict(self) -> dict[str, Any] | None:
        """The position after the last batch; None over another kind of data set."""
        if not isinstance(self.dataset, StreamingDataset):
            return None
        num_samples = self.num_samples_yielded * World.detect().num_ranks // (self.dataset.replication or 1)
        return self.dataset.state_dict(num_samples, False)

    def load_state_dict(self, obj: dict[str, Any]) -> None:
        """The next iteration resumes from `obj`."""
        if isinstance(self.dataset, StreamingDataset):
            self.dataset.load_state_dict(obj)

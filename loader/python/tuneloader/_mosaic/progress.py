"""The epochs that the processes of one DataLoader have begun, shared between them without locks and without files.

The process that makes the data set and the DataLoader workers it starts see one array in memory. Every worker has a slot of
its own: (workers of its DataLoader, next epoch, epoch of the first pass with so many workers). A worker's next epoch is its
own slot's, or, when the number of workers has changed since, the furthest that was reached before. Slots are written by their
owner alone, so the workers of a pass agree whichever of them is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.context import get_spawning_popen
from multiprocessing.sharedctypes import RawArray
from typing import Any, NamedTuple

_WORKERS_MAX = 1024
_RESUME = 6


class Resume(NamedTuple):
    """What load_state_dict was given."""

    epoch: int
    sample_in_epoch: int
    num_canonical_nodes: int
    shuffle_seed: int
    initial_physical_nodes: int | None


class Progress:
    """See the head of this file."""

    def __init__(self, values: Sequence[int] | None = None) -> None:
        self._values: Any = RawArray("q", list(values) if values else [0] * (_RESUME + 3 * (_WORKERS_MAX + 1)))

    def __getstate__(self) -> Any:
        # The memory itself goes to a process that is being started; into a file goes what it holds.
        return self._values if get_spawning_popen() is not None else list(self._values)

    def __setstate__(self, state: Any) -> None:
        self._values = RawArray("q", state) if isinstance(state, list) else state

    @property
    def resume(self) -> Resume | None:
        """The state that was loaded last."""
        given, epoch, sample, canonical, seed, initial = self._values[:_RESUME]
        return Resume(epoch, sample, canonical, seed, initial - 1 if initial else None) if given else None

    @resume.setter
    def resume(self, state: Resume) -> None:
        initial = 0 if state.initial_physical_nodes is None else state.initial_physical_nodes + 1
        self._values[:_RESUME] = [1, *state[:4], initial]

    @property
    def next_epoch(self) -> int:
        """The epoch that nobody has begun yet."""
        return int(max(self._values[_RESUME + 1 :: 3]))

    def presumed_epoch(self, worker: int, workers: int) -> int:
        """The epoch that this worker begins now, apart from a loaded state. `workers` 0: no worker process."""
        slots = [self._values[at : at + 3] for at in range(_RESUME, len(self._values), 3)]
        used, following, _ = slots[worker if workers == 0 else worker + 1]
        epoch = following if used == workers + 1 else 0
        for others_used, others_following, others_first in slots:
            if others_used:
                epoch = max(epoch, others_first if others_used == workers + 1 else others_following)
        return int(epoch)

    def begin(self, worker: int, workers: int, epoch: int) -> None:
        """Notes that this worker has begun `epoch`."""
        if workers > _WORKERS_MAX:
            raise ValueError(f"a DataLoader with {workers} workers; at most {_WORKERS_MAX} share a data set")
        at = _RESUME + 3 * (worker if workers == 0 else worker + 1)
        used, following, first = self._values[at : at + 3]
        goes_on = used == workers + 1 and following == epoch
        self._values[at : at + 3] = [workers + 1, epoch + 1, first if goes_on else epoch]



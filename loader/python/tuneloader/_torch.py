"""torch's base classes where torch is there, stand-ins where it is not: nothing else of it is needed to read data."""

from __future__ import annotations

from typing import Any

try:
    from torch.utils.data import Dataset as MapDataset
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError:

    class MapDataset:  # type: ignore[no-redef]
        """In place of torch.utils.data.Dataset."""

    class IterableDataset:  # type: ignore[no-redef]
        """In place of torch.utils.data.IterableDataset."""

    def get_worker_info() -> Any:
        """No worker process exists without torch."""
        return None


__all__ = ["IterableDataset", "MapDataset", "worker_of_rank"]


def worker_of_rank() -> tuple[int, int]:
    """(this DataLoader worker, workers of the DataLoader); (0, 0) in a process that is none."""
    info = get_worker_info()
    return (info.id, info.num_workers) if info else (0, 0)

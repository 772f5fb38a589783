"""Data sets for training in any framework: batches as arrays without copying, in an exact, resumable order.

    from tuneloader import Dataset

    for batch in Dataset("digits/train", batch_size=256, shuffle=True):
        batch["image"]                    # numpy.ndarray, uint8 [256, 28, 28]

`StreamingDataset`, `StreamingDataLoader`, `Stream`, `MDSWriter`, `LocalDataset`, `merge_index` and `dataframe_to_mds` take
the arguments of their namesakes in mosaicml-streaming and read the same samples in the same order. Nothing beyond the
standard library is imported until it is needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

try:
    from ._core import DataLossError
except ModuleNotFoundError as _error:
    raise ImportError(
        "tuneloader was built for another Python than this one; install it with `pip install ./loader/python` from a checkout"
    ) from _error
from ._dataset import Column, Dataset

if TYPE_CHECKING:
    from ._convert import dataframe_to_mds, merge_index, to_mds
    from ._loader import StreamingDataLoader
    from ._local import LocalDataset
    from ._stream import Stream
    from ._streaming import StreamingDataset
    from ._writer import MDSWriter

__version__ = "0.1.0"

__all__ = [
    "Column",
    "DataLossError",
    "Dataset",
    "LocalDataset",
    "MDSWriter",
    "Stream",
    "StreamingDataLoader",
    "StreamingDataset",
    "dataframe_to_mds",
    "merge_index",
    "to_mds",
]

# Where the names live whose modules import numpy or torch.
_LATER = {
    "LocalDataset": "_local",
    "MDSWriter": "_writer",
    "Stream": "_stream",
    "StreamingDataLoader": "_loader",
    "StreamingDataset": "_streaming",
    "dataframe_to_mds": "_convert",
    "merge_index": "_convert",
    "to_mds": "_convert",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'tuneloader' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Data sets for training in any framework: batches as arrays without copying, in an exact, resumable order.

    from tuneloader import Dataset

    for batch in Dataset("digits/train", batch_size=256, shuffle=True):
        batch["image"]                    # numpy.ndarray, uint8 [256, 28, 28]

`StreamingDataset`, `StreamingDataLoader`, `Stream`, `MDSWriter`, `LocalDataset`, `merge_index` and `dataframe_to_mds` take
the arguments of their namesakes in mosaicml-streaming and read the same samples in the same order. `make_reader`,
`make_batch_reader`, `TransformSpec` and the modules `pytorch`, `predicates`, `unischema`, `codecs`, `ngram`, `spark` and
so on take those of Petastorm. Nothing beyond the standard library is imported until it is needed.
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
    from ._cache import Cache, find_caches
    from ._mosaic.loader import StreamingDataLoader
    from ._mosaic.local import LocalDataset
    from ._mosaic.streaming import StreamingDataset
    from ._packed import PackedDataset
    from ._stream import Stream
    from ._write.convert import to_mds
    from ._write.dataframe import dataframe_to_mds
    from ._write.merge import merge_index
    from ._write.writer import MDSWriter
    from .errors import NoDataAvailableError
    from .reader import make_batch_reader, make_reader
    from .spark import from_spark, make_spark_converter
    from .transform import TransformSpec
    from .transforms import Image, Pad

__version__ = "0.1.0"

__all__ = [
    "Cache",
    "Column",
    "DataLossError",
    "Dataset",
    "Image",
    "LocalDataset",
    "MDSWriter",
    "NoDataAvailableError",
    "PackedDataset",
    "Pad",
    "Stream",
    "StreamingDataLoader",
    "StreamingDataset",
    "TransformSpec",
    "dataframe_to_mds",
    "find_caches",
    "from_spark",
    "make_batch_reader",
    "make_reader",
    "make_spark_converter",
    "merge_index",
    "to_mds",
]

# Where the names live whose modules import numpy or torch.
_LATER = {
    "Cache": "_cache",
    "Image": "transforms",
    "LocalDataset": "_mosaic.local",
    "MDSWriter": "_write.writer",
    "NoDataAvailableError": "errors",
    "PackedDataset": "_packed",
    "Pad": "transforms",
    "Stream": "_stream",
    "StreamingDataLoader": "_mosaic.loader",
    "StreamingDataset": "_mosaic.streaming",
    "TransformSpec": "transform",
    "dataframe_to_mds": "_write.dataframe",
    "find_caches": "_cache",
    "from_spark": "spark",
    "make_batch_reader": "reader",
    "make_reader": "reader",
    "make_spark_converter": "spark",
    "merge_index": "_write.merge",
    "to_mds": "_write.convert",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'tuneloader' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

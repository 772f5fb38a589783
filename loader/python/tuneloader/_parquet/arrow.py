"""pyarrow, or a sentence that says what to install."""

from __future__ import annotations

from typing import Any


def arrow() -> Any:
    """The module pyarrow with its submodules compute, fs and parquet."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.fs
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("make_reader and make_batch_reader read Parquet by pyarrow: pip install pyarrow") from error
    return pyarrow

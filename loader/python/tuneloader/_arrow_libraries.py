"""Finding Arrow's libraries where the loader's own search does not: in the pyarrow that Python would import."""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os


def load_arrow(reason: str) -> bool:
    """Whether libraries of Arrow were loaded into the process, for an error that says that one of them is missing. They are
    loaded by their names with versions, so that only those the loader was built with can serve."""
    if "libarrow" not in reason and "libparquet" not in reason:
        return False
    found = importlib.util.find_spec("pyarrow")
    if found is None or not found.origin:
        return False
    folder = os.path.dirname(found.origin)
    loaded = 0
    for name in ("libarrow", "libarrow_s3", "libparquet"):
        for path in glob.glob(os.path.join(glob.escape(folder), f"{name}.so.*")):
            ctypes.CDLL(path)
            loaded += 1
    return loaded > 0

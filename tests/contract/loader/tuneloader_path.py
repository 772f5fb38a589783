"""Finds the module tuneloader in the build, and makes torch importable where CUDA's libraries are not."""

import importlib.util
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
MODULE = BIN.parent / "python"

sys.path.insert(0, str(MODULE))
if "torch" not in sys.modules and importlib.util.find_spec("torch") is not None:
    sys.path.insert(0, str(ROOT / "tests" / "contract" / "frameworks"))
    import absent_cuda

    # Before a test module is read: what tries `import torch` in vain cannot try again in the same process.
    with tempfile.TemporaryDirectory(prefix="absent-cuda-") as _folder:
        absent_cuda.prepare(_folder)
        import torch  # noqa: F401

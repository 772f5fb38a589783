"""torchrun, also on a machine without CUDA's libraries."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "contract" / "frameworks"))

import absent_cuda  # noqa: E402

with tempfile.TemporaryDirectory(prefix="absent-cuda-") as folder:
    absent_cuda.prepare(folder)
    from torch.distributed.run import main

if __name__ == "__main__":
    main()

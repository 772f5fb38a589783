"""libtune_train_cuda.so, as far as a machine without a GPU can tell: it is complete, and refuses in clear words."""

import os
import pathlib
import subprocess
import sys

import pytest

from trainer_support import BAD_CONFIG, BIN_DIR, ROOT, TIMEOUT_S, TRAINER, clean_environment

LIBRARY = BIN_DIR / "libtune_train_cuda.so"
SITE_PACKAGES = next((ROOT / ".venv/lib").glob("python3*")) / "site-packages"
TORCH = pathlib.Path(os.environ.get("Torch_ROOT", SITE_PACKAGES / "torch"))

if not LIBRARY.exists():
    pytest.skip("built without the headers of CUDA", allow_module_level=True)


def names(path, kind):
    output = subprocess.run(["nm", "-D", kind, str(path)], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0]: line.split()[-2] for line in output.splitlines()}


def test_every_symbol_is_exported_by_a_library_that_it_names():
    wanted = names(LIBRARY, "--undefined-only")
    assert any("ProcessGroupNCCL" in name for name in wanted) and any("CUDAGraph" in name for name in wanted)
    exported = set()
    for library in [*(TORCH / "lib").glob("lib*.so"), *(TORCH.parent / "nvidia").glob("*/lib/libcudart.so*"),
                    *(pathlib.Path(p) for p in ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
                                                "/lib/x86_64-linux-gnu/libgcc_s.so.1",
                                                "/lib/x86_64-linux-gnu/libstdc++.so.6"])]:
        exported |= names(library, "--defined-only").keys()
    missing = {name for name, kind in wanted.items() if kind != "w"} - exported
    assert not missing


def test_it_exports_one_function():
    """What else it exports are the types of others' headers, which have to be the same everywhere."""
    own = {name for name, kind in names(LIBRARY, "--defined-only").items() if kind == "T"}
    assert own == {"tune_train_open_cuda_device"}


NO_GPU = pytest.mark.skipif(pathlib.Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")

STAND_INS = """
import pathlib, subprocess, sys, tempfile
sys.path.insert(0, sys.argv[1])
import absent_cuda
folder = pathlib.Path(sys.argv[2])
absent_cuda.prepare(folder)
absent_cuda.make_library("libcuda.so.1", set(), folder)
"""


@NO_GPU
def test_it_loads_and_says_that_there_is_no_gpu(tmp_path):
    """Stand-ins for CUDA's libraries: LibTorch's own are the real ones."""
    subprocess.run([sys.executable, "-c", STAND_INS, str(ROOT / "tests/contract/frameworks"), str(tmp_path)],
                   check=True, timeout=TIMEOUT_S)
    process = subprocess.run([str(TRAINER), "selfcheck", "--device=cuda", "--step=device"], capture_output=True,
                             text=True, timeout=TIMEOUT_S,
                             env=clean_environment(LD_LIBRARY_PATH=str(tmp_path), LD_BIND_NOW="1"))
    assert process.returncode == 0, process.stderr
    assert '"status":"failed"' in process.stdout
    assert "CUDA shows no GPU" in process.stdout


@NO_GPU
def test_a_gpu_that_is_asked_for_and_not_there(tmp_path):
    process = subprocess.run([str(TRAINER), "train", f"--data={tmp_path}", "--device=cuda"], capture_output=True,
                             text=True, timeout=TIMEOUT_S, env=clean_environment())
    assert process.returncode == BAD_CONFIG
    assert "device cuda: this machine has no NVIDIA driver (libcuda.so.1); give --device cpu" in process.stderr

"""Lets the torch of PyPI, which is linked with CUDA, be imported on a machine without CUDA's libraries.

The wheels of those libraries are 2.5 GB, and on a CPU nothing in them is ever called; but the loader asks for them. For each one
that is missing a shared object is made that has the names which torch asks of it, and ends the program should one be called.
All that a test does with torch is done by torch itself.
"""

import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

# Libraries whose names carry no version, by how their functions begin.
BEGINNINGS = {"libcufile.so.0": "cuFile", "libcusparseLt.so.0": "cusparseLt", "libnccl.so.2": "nccl"}
OWNERS = {"NVSHMEM": "libnvshmem_host.so.3"}
ORDER = ["libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9", "libcufile.so.0", "libcusparse.so.12", "libcufft.so.12",
         "libcusparseLt.so.0", "libnccl.so.2", "libnvrtc.so.13", "libnvshmem_host.so.3", "libcupti.so.13", "libcudart.so.13"]


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def asked_names(libraries):
    """{library: {(name, version)}} of what torch's own libraries want from others."""
    wanted = {}
    for library in libraries:
        for line in run("nm", "-D", "--undefined-only", "--with-symbol-versions", str(library)).splitlines():
            name, _, version = line.split()[-1].partition("@")
            owner = OWNERS.get(version, version)
            if owner.startswith("lib"):
                wanted.setdefault(owner, set()).add((name, version))
            for missing, beginning in BEGINNINGS.items():
                if not version and name.startswith(beginning):
                    wanted.setdefault(missing, set()).add((name, ""))
    return wanted


def make_library(name, names, folder):
    lines = ["#include <stdlib.h>", f'static const char kName[] __attribute__((used)) = "{name} is not on this machine";',
             "__attribute__((used, visibility(\"default\"))) void absent_cuda(void) { abort(); }"]
    lines += [f'__asm__(".globl {each}\\n.set {each}, absent_cuda");' for each, _ in sorted(names)]
    (folder / "absent.c").write_text("\n".join(lines) + "\n")
    versions = sorted({version for _, version in names if version})
    script = "".join(f"{version} {{ global: {' '.join(each + ';' for each, v in sorted(names) if v == version)} }};\n"
                     for version in versions)
    (folder / "absent.map").write_text(script)
    command = ["gcc", "-shared", "-fPIC", "-O0", f"-Wl,-soname,{name}", "-o", str(folder / name), str(folder / "absent.c")]
    run(*command, *([f"-Wl,--version-script={folder}/absent.map"] if versions else []))


def prepare(folder):
    """Makes and loads what is missing; afterwards `import torch` works in this process. Nothing is missing: nothing is made."""
    torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
    libraries = sorted((torch / "lib").glob("lib*.so"))
    missing = set()
    for library in libraries:
        missing |= set(re.findall(r"(\S+) => not found", run("ldd", str(library))))
    missing -= {"libcuda.so.1"}  # the driver's: asked for when a GPU is used, not before
    wanted = asked_names(libraries) if missing else {}
    for name in sorted(missing, key=lambda each: ORDER.index(each) if each in ORDER else len(ORDER)):
        make_library(name, wanted.get(name, set()), pathlib.Path(folder))
        # The loader takes a library that is loaded already, by its name, before it looks for a file.
        ctypes.CDLL(str(pathlib.Path(folder) / name), mode=ctypes.RTLD_LOCAL)


def for_processes(folder):
    """What processes need in their environment so that `import torch` works in them, tried in one; nothing is loaded here."""
    script = "import sys, absent_cuda; absent_cuda.prepare(sys.argv[1]); import torch"
    done = subprocess.run([sys.executable, "-c", script, str(folder)], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True,
                          timeout=280, check=False, env={**os.environ, "PYTHONPATH": "."})
    assert done.returncode == 0, done.stderr
    return {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("LD_LIBRARY_PATH"))))}

"""Packs an installed tree (cmake/Package.cmake), the Python client and the loader's Python module into a wheel.

The programs go where pip puts scripts and the libraries beside them, into lib/tune of the environment, so that the programs' search
path $ORIGIN/../lib/tune holds in a virtual environment as it does under /usr. The wheel is of no particular Python, but for the
module tuneloader, which says so when another Python imports it; its platform tag is that of the newest glibc symbol in it.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import zipfile

METADATA = """Metadata-Version: 2.1
Name: tune
Version: {version}
Summary: Hyperparameter tuning and experiment tracking: the programs and the Python client
Requires-Python: >=3.10
Provides-Extra: data
Requires-Dist: pyarrow=={pyarrow}; extra == "data"
Provides-Extra: loader
Requires-Dist: numpy; extra == "loader"
Provides-Extra: train
Requires-Dist: pyarrow=={pyarrow}; extra == "train"
Requires-Dist: torch=={torch}; extra == "train"
"""

WHEEL = """Wheel-Version: 1.0
Generator: tune
Root-Is-Purelib: false
Tag: {tag}
"""

# What other packages find of us: MLflow's client takes our login and makes its calls safe to repeat.
ENTRY_POINTS = """[mlflow.request_header_provider]
tune = tune_client.mlflow_plugin:TuneHeaderProvider
"""


def newest_glibc(files):
    """(2, 36) for files that use symbols of glibc up to 2.36."""
    newest = (2, 17)
    for file in files:
        table = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
        for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", table):
            newest = max(newest, (int(major), int(minor)))
    return newest


def pinned(requirements, name):
    return re.search(rf"^{name}==(\S+)$", requirements, re.MULTILINE).group(1)


class Wheel:
    """A zip archive that lists itself in RECORD."""

    def __init__(self, path, info):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.info = info
        self.record = []

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))  # the same bytes from the same tree
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        name = f"{self.info}/RECORD"
        self.archive.writestr(name, "\n".join([*self.record, f"{name},,", ""]))
        self.archive.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--tree", "--python", "--loader", "--requirements", "--output"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    wanted = parser.parse_args()

    programs = sorted((wanted.tree / "bin").iterdir())
    libraries = sorted((wanted.tree / "lib" / "tune").iterdir())
    extensions = sorted((wanted.tree / "tuneloader").glob("_core*.so"))
    major, minor = newest_glibc([*programs, *libraries, *extensions])
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    info = f"tune-{wanted.version}.dist-info"
    data = f"tune-{wanted.version}.data"
    requirements = wanted.requirements.read_text()

    wanted.output.mkdir(parents=True, exist_ok=True)
    path = wanted.output / f"tune-{wanted.version}-{tag}.whl"
    wheel = Wheel(path, info)
    modules = [(wanted.python, sorted(wanted.python.rglob("*")))]
    if extensions:
        modules.append((wanted.loader, sorted((wanted.loader / "tuneloader").rglob("*"))))
    for folder, files in modules:
        for module in files:
            if module.is_file() and "__pycache__" not in module.parts:
                wheel.add(str(module.relative_to(folder)), module.read_bytes())
    for extension in extensions:
        wheel.add(f"tuneloader/{extension.name}", extension.read_bytes(), 0o755)
    for program in programs:
        wheel.add(f"{data}/scripts/{program.name}", program.read_bytes(), 0o755)
    for library in libraries:
        wheel.add(f"{data}/data/lib/tune/{library.name}", library.read_bytes(), 0o755)
    for file in sorted((wanted.tree / "share").rglob("*")):
        if file.is_file() and "python" not in file.parts:
            wheel.add(f"{data}/data/{file.relative_to(wanted.tree)}", file.read_bytes())
    wheel.add(f"{info}/METADATA", METADATA.format(
        version=wanted.version, pyarrow=pinned(requirements, "pyarrow"), torch=pinned(requirements, "torch")).encode())
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
    wheel.add(f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
    wheel.close()
    print(path)


if __name__ == "__main__":
    main()

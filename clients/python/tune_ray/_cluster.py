"""What our tasks on a Ray cluster share: our packages and the program, sent to every node, and bundles of resources."""

from __future__ import annotations

import functools
import io
import os
import pathlib
import tarfile
import time
import zipfile
from typing import Any, Callable

from tune_client._errors import TuneError
from tune_client._serve import program

_FOR_PLACES_S = 10.0  # before it is said what the cluster lacks
# Of the bundles that fit each node, how many may be used at once by strategies that bind nodes.
_PLACES: dict[str, Callable[[list[int]], int]] = {
    "STRICT_SPREAD": lambda by_node: sum(places > 0 for places in by_node),
    "STRICT_PACK": lambda by_node: max(by_node, default=0),
}


def started() -> Any:
    """The module ray, connected to a cluster: the one that runs here or that RAY_ADDRESS names, else one of this machine."""
    try:
        import ray  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise TuneError("Ray is not installed: pip install ray") from error
    if not ray.is_initialized():
        ray.init(ignore_reinit_error=True, log_to_driver=True)
    return ray


def by_value(ray: Any) -> Any:
    """The module with what runs on nodes, which Ray sends whole."""
    from tune_ray import _node

    ray.cloudpickle.register_pickle_by_value(_node)
    return _node


def packed_packages() -> bytes:
    """Our packages, as an archive that Python imports from."""
    folder = pathlib.Path(__file__).resolve().parents[1]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in ("tune_client", "tune_ray"):
            for file in sorted((folder / package).rglob("*.py")):
                archive.write(file, file.relative_to(folder))
    return data.getvalue()


def packed_program() -> bytes:
    """The program `tune` with the libraries beside it, as an archive."""
    binary = pathlib.Path(program()).resolve()
    found = binary.stat()
    return _packed(binary, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=1)
def _packed(binary: pathlib.Path, _mtime_ns: int, _size: int) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as archive:
        archive.add(binary, "bin/tune")
        libraries = binary.parent.parent / "lib" / "tune"
        for library in sorted(libraries.glob("*.so*")) if libraries.is_dir() else []:
            archive.add(library.resolve(), f"lib/tune/{library.name}")
    return data.getvalue()


def check_fits(ray: Any, count: int, bundle: dict[str, float], strategy: str = "PACK") -> None:
    """TuneError where the cluster's nodes could never hold so many bundles; a cluster that grows by itself is not asked."""
    if os.environ.get("RAY_ADDRESS", "").startswith("autoscaler"):
        return
    deadline = time.monotonic() + _FOR_PLACES_S
    while True:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        by_node = [min((int(node.get(name, 0) // need) for name, need in bundle.items() if need), default=count) for node in nodes]
        places = _PLACES.get(strategy, sum)(by_node)
        if places >= count:
            return
        if nodes and time.monotonic() >= deadline:
            what = ", ".join(f"{need:g} {name}" for name, need in bundle.items() if need)
            raise TuneError(f"{count} slots of {what} were asked for, and the cluster's {len(nodes)} nodes have room for {places}"
                            + (f" with the strategy {strategy}" if strategy in _PLACES else ""))
        time.sleep(0.2)

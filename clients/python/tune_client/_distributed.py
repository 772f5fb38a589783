"""A decorator for functions that run as several processes, on whichever engine is there."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable, Generic, TypeVar

from tune_client._errors import TuneError
from tune_client._gang import Training, run_here

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Distributed(Generic[_Function]):
    """A function with `.distributed(...)`, which runs it in all processes and returns the values of all ranks. Called, it runs here."""

    def __init__(self, function: _Function, processes: int, gpus: int, is_remote: bool) -> None:
        functools.update_wrapper(self, function)
        self._function, self._processes, self._gpus, self._is_remote = function, processes, gpus, is_remote

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def distributed(self, *args: Any, **kwargs: Any) -> list[Any]:
        """What the function returned in each rank, with these arguments. RuntimeError when a rank failed, with the end of its output."""
        if not self._is_remote:
            return run_here(Training(self._function, args, kwargs), self._processes, _gpus_here(self._gpus))
        found: list[Any]
        if _active_spark() is not None:
            from tune_spark import TuneDistributor  # type: ignore[import-untyped,import-not-found,unused-ignore]

            found = TuneDistributor(self._processes, False, self._gpus > 0).run_all(self._function, *args, **kwargs)
        elif _has_ray():
            from tune_ray._gangs import RayGang  # type: ignore[import-untyped,import-not-found,unused-ignore]

            found = RayGang(self._processes, gpus=self._gpus / self._processes).run(Training(self._function, args, kwargs))
        else:
            raise TuneError("remote=True needs an engine: make a SparkSession or call ray.init() first, or leave it out to run on this machine")
        return found


def distributed(gpus: int = 0, gpu_type: str | None = None, remote: bool = False, *,
                processes: int | None = None) -> Callable[[_Function], Distributed[_Function]]:
    """`@distributed(gpus=8, remote=True)` for a function that trains; `train.distributed(lr=0.1)` runs it and gives all ranks' values.

    A process a GPU, or `processes` of them; each has torchrun's variables. `remote`: on the executors of the active Spark session, else
    on the Ray cluster that this process is connected to; left out, on this machine. `gpu_type`: noted, not looked at: an engine's session has the GPUs that it has. Data sets are opened within the
    function: what it refers to outside of itself is sent to each process.
    """
    count = processes if processes is not None else gpus
    if count < 1 or gpus < 0 or (gpus and count % gpus != 0 and gpus % count != 0):
        raise ValueError(f"distributed() needs gpus or processes of at least 1 that fit each other, found gpus={gpus} and processes={processes}")
    if gpu_type is not None and not isinstance(gpu_type, str):
        raise TypeError(f"gpu_type is a name, found {gpu_type!r}")
    return lambda function: Distributed(function, count, gpus, remote)


def _gpus_here(count: int) -> list[str]:
    """So many of those that this process may use."""
    visible = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
    if visible and len(visible) < count:
        raise TuneError(f"{count} GPUs were asked for, and CUDA_VISIBLE_DEVICES names {len(visible)}")
    return visible[:count] or [str(i) for i in range(count)]


def _active_spark() -> Any:
    module = sys.modules.get("pyspark.sql")
    return module.SparkSession.getActiveSession() if module is not None else None


def _has_ray() -> bool:
    module = sys.modules.get("ray")
    return module is not None and bool(module.is_initialized())

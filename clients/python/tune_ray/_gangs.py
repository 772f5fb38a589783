"""The ranks of a training as actors of a Ray cluster, each with a bundle of a placement group: all of them start, or none."""

from __future__ import annotations

import contextlib
import dataclasses
import pickle
import uuid
from typing import Any

from tune_client._errors import say
from tune_client._gang import Place, Training
from tune_client._workers import pickled
from tune_ray._cluster import by_value, check_fits, packed_packages, started

_ATTEMPTS_MAX = 4  # of a training whose nodes are lost, as on Spark


class RayGang:
    """A world of processes on the cluster, one actor a rank, each with `cpus` and `gpus` to itself."""

    def __init__(self, processes: int, *, cpus: float = 1, gpus: float = 0) -> None:
        self._ray, self._processes = started(), processes
        self._bundle = {"CPU": float(cpus), **({"GPU": float(gpus)} if gpus else {})}
        check_fits(self._ray, processes, self._bundle)

    def run(self, training: Training) -> list[Any]:
        """What each rank returned (of a file: None each). RuntimeError when a rank failed, with the end of its output.

        TuneError where the cluster has no room for all of them. A training whose actor is lost with its node begins anew.
        """
        whole = pickled(training, "the function")
        packages = self._ray.put(packed_packages())
        for attempt in range(_ATTEMPTS_MAX):
            with _Actors(self._ray, self._processes, self._bundle) as actors:
                try:
                    return self._values(actors, packages, whole)
                except self._ray.exceptions.RayActorError as error:
                    if attempt + 1 == _ATTEMPTS_MAX:
                        raise RuntimeError(f"a process of the training was lost {_ATTEMPTS_MAX} times: {error}") from error
                    say("a process was lost with its node; the training begins anew")
        raise AssertionError("not reached")

    def _values(self, actors: _Actors, packages: Any, training: bytes) -> list[Any]:
        address, port = self._ray.get(actors.all[0].meet.remote(packages))
        run_id = uuid.uuid4().hex
        running = {}
        for rank, actor in enumerate(actors.all):
            place = Place(world=self._processes, first=rank, node=rank, address=address, port=port, run_id=run_id)
            running[actor.run.remote(packages, training, dataclasses.asdict(place), "GPU" in self._bundle)] = rank
        values: dict[int, Any] = {}
        while running:
            (ended,), _ = self._ray.wait(list(running), num_returns=1)
            rank = running.pop(ended)
            error, data = self._ray.get(ended)
            if error is not None:
                raise RuntimeError(error)
            values[rank] = pickle.loads(data) if data is not None else None
        return [values[rank] for rank in range(self._processes)]


class _Actors:
    """Actors in the bundles of a placement group, from its first moment to the end of the block."""

    def __init__(self, ray: Any, count: int, bundle: dict[str, float]) -> None:
        from ray.util.placement_group import placement_group  # type: ignore[import-untyped,import-not-found,unused-ignore]
        from ray.util.scheduling_strategies import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
            PlacementGroupSchedulingStrategy,
        )

        self._ray = ray
        self._group = placement_group([bundle] * count, strategy="PACK")
        made = ray.remote(by_value(ray).Ranks)
        self.all = [made.options(num_cpus=bundle["CPU"], num_gpus=bundle.get("GPU", 0), max_concurrency=2,
                                 scheduling_strategy=PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=index))
                    .remote() for index in range(count)]

    def __enter__(self) -> _Actors:
        return self

    def __exit__(self, *_: object) -> None:
        from ray.util.placement_group import remove_placement_group

        with contextlib.suppress(Exception):  # those that are lost do not answer
            self._ray.wait([actor.stop.remote() for actor in self.all], num_returns=len(self.all), timeout=10)
        for actor in self.all:
            with contextlib.suppress(Exception):
                self._ray.kill(actor)
        with contextlib.suppress(Exception):
            remove_placement_group(self._group)

"""Agents on the nodes of a Ray cluster: a placement group with a bundle for each."""

from __future__ import annotations

import contextlib
import threading
import types
from typing import Any

from tune_client._errors import TuneError, say
from tune_client._server import Server
from tune_client._study import load_study
from tune_ray._cluster import by_value, check_fits, packed_packages, packed_program, started

_LOOK_MS = 10_000
_LOOK_S = 2.0
_ENDS = ("completed", "stopped")


def run_agents(server: str | None = None, study: str | None = None, slots: int = 1, *, cpus: int = 1, gpus: int = 0,
               resources: dict[str, float] | None = None, strategy: str = "PACK", token: str | None = None) -> Agents:
    """Starts agents on the cluster: one actor, and one agent, a slot. Returns at once.

    `server`: its address, as nodes reach it. `study`: end with this one; without it they run until stop(), and take trials of all
    studies. `slots`: how many trials at a time, each with `cpus`, `gpus` and further `resources` of Ray's own to itself, in a
    bundle of a placement group with this `strategy`. `token`: of `tune token create --scope agent`; left out, this process's login.

    An agent that is lost with its node is started elsewhere once there is room; its trials go to others when their leases end. All
    end with this process. TuneError where the server does not answer, the study is not there or has no command, or the nodes
    have no room for so many.
    """
    if slots < 1 or cpus < 1 or gpus < 0:
        raise ValueError(f"slots and cpus must be at least 1 and gpus at least 0, found {slots}, {cpus} and {gpus}")
    connection = Server(server)
    connection.call("/studies", retry_for_s=0)
    if study is not None and not load_study(study, connection.url).info().get("command"):
        raise TuneError(f"study {study!r} has no command that agents could run: its trials are for those who ask")
    if token is None:
        kind, _, found = connection.headers.get("Authorization", "").partition(" ")
        token = found if kind == "Bearer" else None
    bundle = {"CPU": float(cpus), **({"GPU": float(gpus)} if gpus else {}), **(resources or {})}
    return Agents(connection.url, study, slots, bundle, strategy, token)


class Agents:
    """Agents on a Ray cluster. As a context manager it stops them at the end of the block."""

    def __init__(self, server: str, study: str | None, slots: int, bundle: dict[str, float], strategy: str, token: str | None) -> None:
        self._ray = started()
        check_fits(self._ray, slots, bundle, strategy)
        from ray.util.placement_group import placement_group  # type: ignore[import-untyped,import-not-found,unused-ignore]

        self.slots = slots
        self._server, self._study, self._bundle, self._token = server, study, bundle, token
        self._group = placement_group([bundle] * slots, strategy=strategy)
        self._packages = self._ray.put(packed_packages())
        self._program = self._ray.put(packed_program())
        self._running: dict[Any, tuple[int, Any]] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="tune-agents", daemon=True)
        self._thread.start()
        if study is not None:
            threading.Thread(target=self._watch, name="tune-agents-study", daemon=True).start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the study has ended and the agents with it; False when the time was over before. Ctrl-C stops them."""
        if self._study is None:
            raise TuneError("these agents serve all studies and end by stop(): there is nothing to wait for")
        try:
            if not self._is_over.wait(timeout_s):
                return False
        except KeyboardInterrupt:
            self.stop()
            raise
        self.stop()
        return True

    def stop(self) -> None:
        """Ends the agents: trials that run are told to checkpoint, and wait for others. Safe to call twice."""
        self._is_over.set()
        self._thread.join(120)

    def __enter__(self) -> Agents:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.stop()

    def _keep(self) -> None:
        from ray.util.placement_group import remove_placement_group

        try:
            for index in range(self.slots):
                self._start(index)
            while not self._is_over.wait(_LOOK_S):
                ended, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
                for future in ended:
                    index, _ = self._running.pop(future)
                    say(f"the agent of slot {index} is gone ({_reason(self._ray, future)}); another one takes its place")
                    self._start(index)
        finally:
            for _, actor in self._running.values():
                with contextlib.suppress(Exception):
                    actor.stop.remote()
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=60)
            for _, actor in self._running.values():
                with contextlib.suppress(Exception):
                    self._ray.kill(actor)
            remove_placement_group(self._group)

    def _start(self, index: int) -> None:
        from ray.util.scheduling_strategies import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
            PlacementGroupSchedulingStrategy,
        )

        place = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=index)
        more = {name: need for name, need in self._bundle.items() if name not in ("CPU", "GPU")}
        made = self._ray.remote(num_cpus=self._bundle["CPU"], num_gpus=self._bundle.get("GPU", 0), resources=more,
                                scheduling_strategy=place, max_concurrency=2)(by_value(self._ray).Agent)
        actor = made.remote()
        future = actor.run.remote(self._packages, self._program, self._server, self._token, int(self._bundle["CPU"]), "GPU" in self._bundle)
        self._running[future] = (index, actor)

    def _watch(self) -> None:
        version = 0
        while not self._is_over.is_set():
            with contextlib.suppress(TuneError):
                study = load_study(str(self._study), self._server)
                info = study._connection.call(f"{study._path}?version={version}&wait_ms={_LOOK_MS}")
                version = info["version"]
                if info["state"] in _ENDS:
                    self._is_over.set()


def _reason(ray: Any, future: Any) -> str:
    try:
        return f"it ended with exit code {ray.get(future)}"
    except Exception as error:
        return str(error)[:200]

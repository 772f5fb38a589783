"""Workers of a study's driver as actors of Ray, for objectives of Python."""

from __future__ import annotations

import contextlib
import pickle
import time
from typing import Any

from tune_client._errors import TuneError, say
from tune_client._workers import Ticket
from tune_ray._cluster import by_value, packed_packages, started

_RESTARTS_MAX = 100
_LASTS_S = 300.0  # without a loss for so long, earlier ones are forgotten: nodes that are taken away now and then are no fault


class RayActors:
    """Each worker is an actor that lasts until the study has ended: no actor and no import for each trial.

    `cpus`, `gpus`: what each has to itself. An actor whose node is gone is started elsewhere, and its trial is run again.
    """

    is_remote = True

    def __init__(self, cpus: float = 1, gpus: float = 0) -> None:
        self._cpus, self._gpus = cpus, gpus
        self._running: dict[Any, Any] = {}  # actors by what their work() will give
        self._restarts = 0
        self._lost_at_s = 0.0

    def start(self, ticket: Ticket, count: int) -> None:
        """See tune_client._workers.Engine."""
        self._ray = started()
        self._ticket = pickle.dumps(vars(ticket))
        self._packages = self._ray.put(packed_packages())
        self._made = self._ray.remote(num_cpus=self._cpus, num_gpus=self._gpus)(by_value(self._ray).Worker)
        for _ in range(count):
            self._one()

    def _one(self) -> None:
        actor = self._made.remote()
        self._running[actor.work.remote(self._packages, self._ticket)] = actor

    def check(self) -> None:
        """See tune_client._workers.Engine."""
        ended, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        for future in ended:
            del self._running[future]
            try:
                self._ray.get(future)
                reason = "it found no driver"
            except Exception as error:
                reason = str(error)
            now_s = time.monotonic()
            self._restarts = 1 if now_s - self._lost_at_s > _LASTS_S else self._restarts + 1
            self._lost_at_s = now_s
            if self._restarts > _RESTARTS_MAX:
                raise TuneError(f"{self._restarts} workers on Ray died, the last one: {reason}")
            say(f"a worker on Ray is gone ({reason[:200]}); another one takes its place")
            self._one()

    def stop(self) -> None:
        """See tune_client._workers.Engine."""
        for actor in self._running.values():
            with contextlib.suppress(Exception):
                self._ray.kill(actor)
        self._running = {}

"""The thread that renews the leases of the trials which this process runs."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    from tune_client._trial import Trial

LEASE_S = 60.0


class Keeper:
    """Renews the leases of the trials that this process runs, in a daemon thread that lives while there are any."""

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._trials: weakref.WeakSet[Trial] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Keeper, (self.lease_s,)

    def keep(self, trials: Iterable[Trial]) -> None:
        """Renews these too, until each is told, lost or referred to by nobody."""
        if self.lease_s <= 0:
            return
        if self._process != os.getpid():  # a fork: the thread and what it renews stayed with the parent
            self._begin()
        with self._lock:
            self._trials.update(trials)
            if self._trials and self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tune-leases", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        pause_s = self.lease_s / 3
        while True:
            time.sleep(pause_s)
            begin = time.monotonic()
            with self._lock:
                held = [weakref.ref(trial) for trial in self._trials if trial._is_held()]
                if not held:
                    self._thread = None
                    return
            all_heard = True
            for reference in held:
                trial = reference()
                all_heard = (trial is None or trial._renew(self.lease_s / 3)) and all_heard
                del trial  # or the last one would never be let go
            interval_s = self.lease_s / (3 if all_heard else 10)
            pause_s = max(interval_s - (time.monotonic() - begin), 0.001)


def keeper_of(lease_s: float) -> Keeper:
    """A keeper of leases of so many seconds; 0: of none. ValueError for what is no time."""
    lease_s = float(lease_s)
    if not 0 <= lease_s <= 30 * 86400 or 0 < lease_s < 0.001:
        raise ValueError(f"lease_s must be 0 (no lease) or 0.001..{30 * 86400} seconds, found {lease_s}")
    return Keeper(lease_s)

"""Workers of a study's driver as tasks of Spark, for objectives of Python."""

from __future__ import annotations

import pickle
import time
from typing import Any, Iterable

from tune_client._errors import TuneError, say
from tune_client._workers import Ticket
from tune_spark._session import Job, check_supported, reason_of, send_packages

_RESTARTS_MAX = 20
_LASTS_S = 300.0  # a job that ran for so long does not count as one that ends at once


class SparkTasks:
    """Each worker is a task that lasts until the study has ended: no job, no closure and no task start for each trial.

    The tasks are no barrier stage, so that a lost executor costs one worker: Spark starts its task elsewhere, and the trial is run
    again. `profile`: a ResourceProfile for the tasks.
    """

    is_remote = True

    def __init__(self, spark: Any, profile: Any = None) -> None:
        check_supported(spark)
        self._spark, self._profile = spark, profile
        self._job: Job | None = None
        self._restarts = 0

    def start(self, ticket: Ticket, count: int) -> None:
        """See tune_client._workers.Engine."""
        send_packages(self._spark)
        self._function, self._count = _Worker(pickle.dumps(vars(ticket))), count
        self._begin()

    def _begin(self) -> None:
        self._began_s = time.monotonic()
        self._job = Job(self._spark, self._function, self._count, profile=self._profile, what="tune-workers")

    def check(self) -> None:
        """See tune_client._workers.Engine. Spark gives a job up when one of its tasks was lost four times."""
        if self._job is None or not self._job.has_ended:
            return
        self._restarts = 0 if time.monotonic() - self._began_s > _LASTS_S else self._restarts + 1
        if self._restarts > _RESTARTS_MAX:
            raise TuneError(f"the workers' job of Spark ended {self._restarts} times: {reason_of(self._job.error)}")
        say(f"the workers' job of Spark ended ({reason_of(self._job.error)}); it begins anew")
        self._begin()

    def stop(self) -> None:
        """See tune_client._workers.Engine."""
        if self._job is not None:
            self._job.stop()


class _Worker:
    def __init__(self, ticket: bytes) -> None:
        self._ticket = ticket

    def __call__(self, index: int) -> Iterable[bytes]:
        from tune_client._workers import Ticket, serve

        serve(Ticket(**pickle.loads(self._ticket)))
        return []

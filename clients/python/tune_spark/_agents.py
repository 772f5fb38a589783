"""Agents on executors: tasks of Spark that run the trials of a study of commands."""

from __future__ import annotations

import contextlib
import threading
import types
from typing import Any, Iterable

from tune_client._errors import TuneError, say
from tune_client._server import Server
from tune_client._study import load_study
from tune_spark._session import Job, check_supported, reason_of, send_packages, send_program, setting, slots_of

_AGAIN_S = 2.0  # before a job that ended begins anew
_LOOK_MS = 10_000
_ENDS = ("completed", "stopped")


def run_agents(spark: Any, server: str | None = None, study: str | None = None, slots: int | None = None, *,
               token: str | None = None, profile: Any = None) -> Agents:
    """Starts agents on the executors of a session: one task of Spark, and one agent, a slot. Returns at once.

    `server`: its address, as executors reach it. `study`: end with this one; without it they run until stop(), and take trials of
    all studies. `slots`: how many trials at a time; left out, as many as Spark runs tasks. An agent hands out what its task was
    given: spark.task.cpus cores, and the GPUs of resources(). `token`: of `tune token create --scope agent`; left out, the
    login of this process. `profile`: a ResourceProfile for the tasks.

    They are no barrier stage: a lost executor costs the agents on it, whose trials go to others when their leases end, and Spark
    starts as many elsewhere; with dynamic allocation waiting tasks bring executors. They end with the application, however that
    ends. TuneError where the server does not answer, the study is not there, or it has no command for an agent to run.
    """
    check_supported(spark)
    connection = Server(server)
    connection.call("/studies", retry_for_s=0)
    if study is not None and not load_study(study, connection.url).info().get("command"):
        raise TuneError(f"study {study!r} has no command that agents could run: its trials are for those who ask")
    count = slots_of(spark) if slots is None else slots
    if count < 1:
        raise ValueError(f"slots must be at least 1, found {slots}")
    if token is None:
        kind, _, found = connection.headers.get("Authorization", "").partition(" ")
        token = found if kind == "Bearer" else None
    return Agents(spark, connection.url, study, count, token, profile)


class Agents:
    """Agents that run on executors. As a context manager it stops them at the end of the block."""

    def __init__(self, spark: Any, server: str, study: str | None, count: int, token: str | None, profile: Any) -> None:
        self.slots = count
        self._spark, self._server, self._study, self._profile = spark, server, study, profile
        send_packages(spark)
        self._function = _Agent(server, token, send_program(spark), int(setting(spark, "spark.task.cpus", "1")))
        self._is_over = threading.Event()
        self._job: Job | None = None
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
        if self._job is not None:
            self._job.stop()
        self._thread.join(60)

    def __enter__(self) -> Agents:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.stop()

    def _keep(self) -> None:
        """Spark gives a job up when one of its tasks was lost four times; the study has not ended by that."""
        while not self._is_over.is_set():
            self._job = Job(self._spark, self._function, self.slots, profile=self._profile, what="tune-agents")
            if self._is_over.is_set():  # while the job was made
                self._job.stop()
            self._job.wait()
            if not self._is_over.is_set():
                say(f"the agents' job of Spark ended ({reason_of(self._job.error)}); it begins anew")
                self._is_over.wait(_AGAIN_S)

    def _watch(self) -> None:
        assert self._study is not None
        version = 0
        while not self._is_over.is_set():
            with contextlib.suppress(TuneError):
                study = load_study(self._study, self._server)
                info = study._connection.call(f"{study._path}?version={version}&wait_ms={_LOOK_MS}")
                version = info["version"]
                if info["state"] in _ENDS:
                    self._is_over.set()


class _Agent:
    """What a task runs."""

    def __init__(self, server: str, token: str | None, archive: str, cpus: int) -> None:
        self._server, self._token, self._archive, self._cpus = server, token, archive, cpus

    def __call__(self, index: int) -> Iterable[bytes]:
        from pyspark import SparkFiles, TaskContext
        from tune_client._agent import installed_program, run_agent

        context = TaskContext.get()
        resources = context.resources() if context is not None else {}
        gpus = list(resources["gpu"].addresses) if "gpu" in resources else []
        code = run_agent(installed_program(SparkFiles.get(self._archive)), self._server, self._token, 1, self._cpus, gpus)
        raise RuntimeError(f"the agent of slot {index} ended with exit code {code}; its output is in the executor's stderr")

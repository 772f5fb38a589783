"""What runs on nodes: sent by value, so that it imports nothing of ours before our packages, which it brings, are there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import tempfile
from typing import Any


def bring(packages: bytes) -> None:
    """Puts the archive of our packages on this process's path, where they are not installed. One file a node and content."""
    try:
        import tune_ray  # noqa: F401

        return
    except ImportError:
        pass
    folder = os.path.join(tempfile.gettempdir(), f"tune-packages-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.getuid():
        raise RuntimeError(f"{folder} belongs to somebody else; set TMPDIR to another folder")
    path = os.path.join(folder, hashlib.sha256(packages).hexdigest()[:16] + ".zip")
    if not os.path.exists(path):
        with open(f"{path}.{os.getpid()}", "wb") as file:
            file.write(packages)
        os.replace(f"{path}.{os.getpid()}", path)
    sys.path.append(path)


class Worker:
    """An actor: one call that lasts as long as the driver."""

    def work(self, packages: bytes, ticket: bytes) -> None:
        """Runs trials of the driver that the ticket names."""
        bring(packages)
        from tune_client._workers import Ticket, serve

        serve(Ticket(**pickle.loads(ticket)))


class Agent:
    """An actor with an agent. What Ray gave it is in CUDA_VISIBLE_DEVICES."""

    def __init__(self) -> None:
        self._process: Any = None
        self._is_stopped = False

    def run(self, packages: bytes, program: bytes, server: str, token: str | None, cpus: int, has_gpus: bool) -> int:
        """The agent's exit code."""
        bring(packages)
        from tune_client._agent import run_agent, unpacked_program

        given = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each] if has_gpus else []
        return run_agent(unpacked_program(program), server, token, 1, cpus, given, self._note)

    def stop(self) -> None:
        """Ends the agent, which gives its trials back; one that is about to start, too."""
        self._is_stopped = True
        if self._process is not None:
            self._process.stdin.close()

    def _note(self, process: Any) -> None:
        self._process = process
        if self._is_stopped:
            process.stdin.close()


class Ranks:
    """An actor with one rank of a training. What Ray gave it is in CUDA_VISIBLE_DEVICES."""

    def __init__(self) -> None:
        self._held = contextlib.ExitStack()  # the port where the ranks meet
        self._gang: Any = None
        self._is_stopped = False

    def meet(self, packages: bytes) -> tuple[str, int]:
        """The address and the port where all ranks meet, held for as long as this actor is there."""
        bring(packages)
        import ray  # type: ignore[import-untyped,import-not-found,unused-ignore]

        from tune_client._gang import held_port

        return ray.util.get_node_ip_address(), self._held.enter_context(held_port())

    def run(self, packages: bytes, training: bytes, place: dict[str, Any], has_gpus: bool) -> tuple[str | None, bytes | None]:
        """What went wrong, and what the function returned, pickled."""
        bring(packages)
        from tune_client._gang import Gang, Place

        own = Place(**place)
        if has_gpus:
            own.gpus = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
        self._gang = Gang(pickle.loads(training), own, lambda rank, line: print(line, flush=True))
        if self._is_stopped:
            self._gang.stop()
        try:
            return None, self._gang.run().get(own.first)
        except RuntimeError as error:
            return str(error), None

    def stop(self) -> None:
        """Ends the process; one that is about to start, too."""
        self._is_stopped = True
        if self._gang is not None:
            self._gang.stop()

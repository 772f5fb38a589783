"""What runs on nodes: sent by value, so that it imports nothing of ours before our packages, which it brings, are there."""

from __future__ import annotations

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

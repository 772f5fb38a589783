"""An agent in a task of an engine: the program, what it was given, and its end with the task."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import pkgutil
import shutil
import subprocess
import sys
import tarfile
import tempfile
from typing import Callable, Sequence

from tune_client._errors import TuneError
from tune_client._serve import program

_GRACE_S = 40.0  # an agent gives its trials 30 s to checkpoint


def installed_program(archive: str | None) -> str:
    """The path of `tune`: of an installed wheel, else unpacked from the archive that the driver sent, once a machine."""
    with contextlib.suppress(TuneError):
        return program()
    if archive is None:
        return program()  # which says what is missing
    return _unpacked(archive, os.path.basename(archive).partition(".")[0])


def unpacked_program(data: bytes) -> str:
    """As installed_program, of an archive in memory."""
    with contextlib.suppress(TuneError):
        return program()
    return _unpacked(io.BytesIO(data), f"tune-program-{hashlib.sha256(data).hexdigest()[:16]}")


def _unpacked(archive: str | io.BytesIO, name: str) -> str:
    folder = os.path.join(tempfile.gettempdir(), f"tune-program-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.getuid():
        raise TuneError(f"{folder} belongs to somebody else; set TMPDIR to another folder")
    target = os.path.join(folder, name)
    with open(target + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(target):
            opened = tarfile.open(archive) if isinstance(archive, str) else tarfile.open(fileobj=archive)
            with opened as tar:
                tar.extractall(target + ".new")  # it comes from our own driver
            os.replace(target + ".new", target)
    return os.path.join(target, "bin", "tune")


def run_agent(tune: str, server: str, token: str | None, slots: int, cpus: int | None, gpus: Sequence[str] | None,
              note: Callable[[subprocess.Popen[bytes]], None] = lambda process: None) -> int:
    """Runs an agent until it ends by itself; its exit code. It ends within seconds of this process, however that ends.

    `gpus`: those that the task was given, as CUDA_VISIBLE_DEVICES has them; None: all that the machine shows, empty: none.
    `note` gets the process, whose standard input the agent ends with.
    """
    state = tempfile.mkdtemp(prefix="tune-agent-")
    command = [tune, "agent", "--server", server, "--state", state, "--slots", str(slots)]
    environment = dict(os.environ)
    if cpus is not None:
        command += ["--cpus", str(cpus)]
    if gpus is not None and not gpus:
        command.append("--no-gpus")
    elif gpus is not None:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    if token:
        environment["TUNE_TOKEN"] = token
    source = pkgutil.get_data("tune_client", "_guard.py")
    assert source is not None
    # The state goes with the guard, which outlives this process where that is killed.
    words = [sys.executable, "-c", source.decode(), str(_GRACE_S), *command]
    try:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)
        note(process)
        return process.wait()
    finally:
        shutil.rmtree(state, ignore_errors=True)

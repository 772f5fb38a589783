"""The processes of one training on one machine: some of the ranks of a world, in torchrun's environment.

What torchrun does for one node and without elastic restarts, but each rank is a child of ours: its output is streamed, its error carries
the last lines, and when one fails the others of this machine end at once.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import pickle
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from typing import Any, Callable, Iterator, Mapping, Sequence

from tune_client._rendezvous import Rendezvous, interface_of
from tune_client._workers import pickled

TAIL_LINES = 100  # of a failed rank's output in its error, as TorchDistributor keeps
_GRACE_S = 5.0  # from SIGTERM to SIGKILL


class RankError(RuntimeError):
    """A rank failed; the message has the last lines of what it wrote."""


@dataclasses.dataclass
class Training:
    """What all ranks run: a function with its arguments, or a Python file with arguments for its command line."""

    what: Callable[..., Any] | str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.what, str) and self.kwargs:
            raise ValueError("a Python file takes no key-word arguments: give them as words of its command line")
        if not isinstance(self.what, str) and not callable(self.what):
            raise TypeError(f"what to train is a function or the path of a Python file, found {self.what!r}")


@dataclasses.dataclass
class Place:
    """Which ranks of the world run here, and where they meet."""

    world: int
    first: int = 0  # rank of the first process here
    count: int = 1  # processes here
    node: int = 0  # index of this machine or task
    address: str = "127.0.0.1"
    port: int = 0
    run_id: str = ""
    gpus: Sequence[str] = ()  # of this machine's processes together; as many for each
    more: Mapping[str, str] = dataclasses.field(default_factory=dict)  # further variables
    own_address: str = ""  # of this machine, for Horovod

    def environment(self, local: int) -> dict[str, str]:
        """torchrun's variables of the process `local` of this machine, and Horovod's names for the same. Where Horovod's processes meet,
        `more` says."""
        rank = self.first + local
        nodes = -(-self.world // self.count)
        named = {"RANK": rank, "LOCAL_RANK": local, "WORLD_SIZE": self.world, "LOCAL_WORLD_SIZE": self.count,
                 "GROUP_RANK": self.node, "NODE_RANK": self.node, "GROUP_WORLD_SIZE": nodes, "ROLE_RANK": rank, "ROLE_NAME": "default",
                 "ROLE_WORLD_SIZE": self.world, "MASTER_ADDR": self.address, "MASTER_PORT": self.port,
                 "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_RUN_ID": self.run_id,
                 "HOROVOD_RANK": rank, "HOROVOD_SIZE": self.world, "HOROVOD_LOCAL_RANK": local, "HOROVOD_LOCAL_SIZE": self.count,
                 "HOROVOD_CROSS_RANK": self.node, "HOROVOD_CROSS_SIZE": nodes, "HOROVOD_HOSTNAME": f"node-{self.node}"}
        found = {**os.environ, **{name: str(value) for name, value in named.items()}, "PYTHONUNBUFFERED": "1", **self.more}
        if self.count > 1:
            found.setdefault("OMP_NUM_THREADS", "1")
        if self.own_address and (interface := interface_of(self.own_address)):
            found["HOROVOD_GLOO_IFACE"] = interface
        if self.gpus:
            found["CUDA_VISIBLE_DEVICES"] = ",".join(self.gpus)
        return found


def scope_sizes(world: int, count: int) -> dict[str, int]:
    """Of Rendezvous, for a world with `count` processes on each machine."""
    return {"global": world, "local": count, "cross": -(-world // count)}


@contextlib.contextmanager
def held_port(address: str = "") -> Iterator[int]:
    """A free port that nobody else gets until the block ends, though rank 0 may listen on it.

    A socket that is bound and does not listen keeps the port from all who ask for any; SO_REUSEADDR on both, as libuv and torch set it,
    lets the one listen that asks for this port by its number. So there is no moment in which the port is free for others.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((address, 0))
        yield held.getsockname()[1]


class Gang:
    """The ranks of one machine. `write` gets each line that a rank writes, with its rank; it is called in threads."""

    def __init__(self, training: Training, place: Place, write: Callable[[int, str], None]) -> None:
        self._training, self._place, self._write = training, place, write
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._is_stopped = False

    def run(self) -> dict[int, bytes]:
        """Runs them to their end; pickled, what the function returned in each rank. Raises RankError; RuntimeError after stop()."""
        folder = tempfile.mkdtemp(prefix="tune-gang-")
        try:
            return self._run(folder)
        finally:
            self.stop()
            shutil.rmtree(folder, ignore_errors=True)

    def stop(self) -> None:
        """Ends all that still runs: SIGTERM, then SIGKILL. From any thread; safe to call twice."""
        with self._lock:
            self._is_stopped = True
            processes = list(self._processes)
        _end(processes)

    def _run(self, folder: str) -> dict[int, bytes]:
        words = self._words(folder)
        tails: list[collections.deque[str]] = [collections.deque(maxlen=TAIL_LINES) for _ in range(self._place.count)]
        readers = []
        with self._lock:
            if self._is_stopped:
                raise RuntimeError("another part of the training failed before this one began")
            for local in range(self._place.count):
                process = subprocess.Popen(words, env={**self._place.environment(local), "TUNE_GANG_PARENT": "1"},
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                           start_new_session=True)
                self._processes.append(process)
                readers.append(threading.Thread(target=self._read, args=(process, local, tails[local]), daemon=True))
        for reader in readers:
            reader.start()
        failed = self._wait()
        if failed is not None:
            _end(self._processes)
        for reader in readers:
            reader.join()
        if failed is not None:
            self._raise(failed, tails[failed])
        return {self._place.first + local: _read_file(f"{folder}/output-{self._place.first + local}")
                for local in range(self._place.count) if not isinstance(self._training.what, str)}

    def _words(self, folder: str) -> list[str]:
        if isinstance(self._training.what, str):
            program = [self._training.what, *map(str, self._training.args)]
        else:
            with open(f"{folder}/function", "wb") as file:
                whole = (self._training.what, tuple(self._training.args), dict(self._training.kwargs))
                file.write(pickle.dumps(([os.path.abspath(each) for each in sys.path], pickled(whole, "the function"))))
            program = ["--function", folder]
        source = pkgutil.get_data("tune_client", "_rank.py")  # by source: this package may lie in an archive
        assert source is not None
        return [sys.executable, "-c", source.decode(), *program]

    def _wait(self) -> int | None:
        """The first one that failed, once it has; None when all ended well."""
        left = {os.pidfd_open(process.pid): local for local, process in enumerate(self._processes)}
        try:
            while left:
                poll = select.poll()
                for descriptor in left:
                    poll.register(descriptor, select.POLLIN)
                for descriptor, _ in poll.poll():
                    local = left.pop(descriptor)
                    os.close(descriptor)
                    if self._processes[local].wait() != 0:
                        return local
            return None
        finally:
            for descriptor in left:
                os.close(descriptor)

    def _raise(self, local: int, tail: collections.deque[str]) -> None:
        if self._is_stopped:
            raise RuntimeError("another part of the training failed, which ended this one")
        code = self._processes[local].returncode
        ending = f"return code {code}" if code >= 0 else signal.Signals(-code).name
        shown = f"last {TAIL_LINES} lines of the task output are" if len(tail) == TAIL_LINES else "task output is"
        what = self._training.what if isinstance(self._training.what, str) else getattr(self._training.what, "__name__", "function")
        raise RankError(f"{what} failed with {ending} in rank {self._place.first + local} of {self._place.world} "
                        f"({socket.gethostname()}). The {shown} included below: {''.join(tail)}")

    def _read(self, process: subprocess.Popen[bytes], local: int, tail: collections.deque[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.decode("utf-8", errors="replace")
            tail.append(text)
            with contextlib.suppress(OSError, ValueError):
                self._write(self._place.first + local, text.rstrip("\n"))


def run_here(training: Training, count: int, gpus: Sequence[str] = ()) -> list[Any]:
    """A world of `count` processes on this machine; what each returned (of a file: None each). Raises RankError."""
    lock = threading.Lock()

    def write(rank: int, line: str) -> None:
        del rank
        with lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    with held_port("127.0.0.1") as port, Rendezvous(scope_sizes(count, count), "127.0.0.1") as rendezvous:
        place = Place(world=count, count=count, port=port, run_id=uuid.uuid4().hex, gpus=gpus, own_address="127.0.0.1",
                      more=rendezvous.variables("127.0.0.1"))
        found = Gang(training, place, write).run()
    return [pickle.loads(found[rank]) if rank in found else None for rank in range(count)]


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise RankError("the function left its process by os._exit() or the like, and so returned nothing") from None


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for kind in (signal.SIGTERM, signal.SIGKILL):  # the second for what the ranks started, too
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            for process in processes:
                process.wait(_GRACE_S)
    for process in processes:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()

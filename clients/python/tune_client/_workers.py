"""Processes that run the trials of a study for one that drives it: on this machine, or on an engine's.

The driver asks the server for trials and holds them; each worker keeps the objective from trial to trial, so that a trial costs no start
of Python and no import. Workers come to the driver, as the tasks of an engine can, and get trials over that connection; when it ends, the
driver knows at once that the worker is gone, and the worker that the driver is. What a trial reports or logs goes straight to the server.

The messages are pickled, which is why the connection begins with a proof that both sides know the pool's secret
(multiprocessing.connection). They are not encrypted: on a network that others read, use an engine that encrypts and its own tunnel.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import pickle
import queue
import secrets
import signal
import socket
import subprocess
import sys
import threading
import traceback
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, Callable, Mapping, Protocol

from tune_client import _current
from tune_client._errors import Pruned, TuneError, say
from tune_client._leases import keeper_of
from tune_client._server import Server
from tune_client._study import Study
from tune_client._trial import Trial

Outcome = Mapping[str, Any]  # {"result": what the objective returned}, {"pruned": why} or {"error": (type, traceback, words)}
_BACKLOG = 1024  # workers that come at the same moment
_RESTARTS_MAX = 20  # of workers of this machine that died: an objective that kills its process would do so for ever


def pickled(thing: Any, what: str = "the objective", pickler: str | None = None) -> bytes:
    """By cloudpickle, which takes functions of scripts and notebooks with all they refer to. TuneError where it cannot.

    `pickler`: an engine's copy of it, which is the same on all its machines where the package itself may be another version.
    """
    try:
        data: bytes = _cloudpickle(pickler).dumps(thing)
    except TuneError:
        raise
    except Exception as error:
        raise TuneError(f"{what} cannot be sent to other processes: {error}") from error
    return data


def _cloudpickle(pickler: str | None) -> Any:
    for name in filter(None, (pickler, "cloudpickle", "pyspark.cloudpickle")):  # executors may have Spark's own alone
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise TuneError("functions are sent to other processes with cloudpickle: pip install cloudpickle")


@dataclasses.dataclass
class Ticket:
    """What a worker needs to come to the driver. It holds the secret: send it only where the work may run."""

    addresses: list[tuple[str, int]]  # where the driver may be reached, tried in turn
    secret: bytes
    path: list[str]  # where the driver imports from


class Engine(Protocol):
    """Starts workers somewhere. Each calls serve(ticket)."""

    is_remote: bool  # whether they may run on other machines

    def start(self, ticket: Ticket, count: int) -> None:
        """Starts so many, and does not wait for them."""

    def check(self) -> None:
        """Starts those again that are gone, where the engine does not. TuneError when that makes no sense any more."""

    def stop(self) -> None:
        """Ends them with what they run; returns once they are gone. Safe to call twice."""


class Pool:
    """The workers of one study, as its driver sees them. Threads: its own; callers use one thread.

    `events` gets (trial, outcome) for each trial that was given to `run`, (None, "came") for a worker that came and (trial or None,
    None) for one that is gone, with the trial that it had.
    """

    def __init__(self, study: Study, objective: Callable[[Trial], Any], engine: Engine,
                 answer: Callable[[Any], Any] = lambda question: None) -> None:
        """`answer`: what ask_driver() gives in a worker; called in threads, one at a time, and does not raise."""
        self.events: queue.SimpleQueue[tuple[Trial | None, Outcome | str | None]] = queue.SimpleQueue()
        self._study, self._engine, self._answer = study, engine, answer
        self._answering = threading.Lock()
        self._hello = {"server": study._connection.url, "authorization": study._connection.headers.get("Authorization"),
                       "study": study.name, "objective": pickled(objective)}
        self._todo: queue.SimpleQueue[Trial | None] = queue.SimpleQueue()
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._connections: set[Connection[Any, Any]] = set()
        self._is_over = False
        self._listener: Listener | None = None

    def start(self, count: int) -> None:
        """Starts so many workers."""
        host = "0.0.0.0" if self._engine.is_remote else "127.0.0.1"
        self._listener = Listener((host, 0), backlog=_BACKLOG)
        port = self._listener.address[1]
        threading.Thread(target=self._accept, name="tune-pool", daemon=True).start()
        path = [os.path.abspath(each) for each in sys.path]
        hosts = _own_hosts() if self._engine.is_remote else ["127.0.0.1"]
        self._engine.start(Ticket([(each, port) for each in hosts], self._secret, path), count)

    def run(self, trial: Trial) -> None:
        """Gives the trial to the next worker that is free."""
        self._todo.put(trial)

    def check(self) -> None:
        """See Engine."""
        self._engine.check()

    def stop(self) -> None:
        """Ends the workers and what they run. Safe to call twice."""
        self._is_over = True
        if self._listener is not None:
            _close(self._listener)
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):  # wakes its thread, which close() would not
                with socket.socket(fileno=os.dup(connection.fileno())) as raw:
                    raw.shutdown(socket.SHUT_RDWR)
        self._engine.stop()
        for _ in connections:
            self._todo.put(None)

    def _accept(self) -> None:
        assert self._listener is not None
        while not self._is_over:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="tune-worker", daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        """One worker, until it or the pool is gone."""
        from multiprocessing.connection import answer_challenge, deliver_challenge

        trial: Trial | None = None
        has_come = False
        with self._lock:
            self._connections.add(connection)
        try:
            deliver_challenge(connection, self._secret)
            answer_challenge(connection, self._secret)
            connection.send(self._hello)
            has_come = True
            self.events.put((None, "came"))
            while not self._is_over:
                trial = self._next(connection)
                if trial is None:
                    return
                connection.send(trial._asked)
                self.events.put((trial, self._outcome(connection)))
                trial = None
        except (OSError, EOFError, pickle.UnpicklingError, AuthenticationError):
            pass
        finally:
            with self._lock:
                self._connections.discard(connection)
            _close(connection)
            if has_come:
                self.events.put((trial, None))

    def _outcome(self, connection: Connection[Any, Any]) -> Outcome:
        """How the worker's trial ended; what it asks meanwhile is answered."""
        while True:
            found: Outcome = connection.recv()
            if "asks" not in found:
                return found
            with self._answering:
                connection.send(self._answer(found["asks"]))

    def _next(self, connection: Connection[Any, Any]) -> Trial | None:
        """The next trial; None when the worker or the pool is gone. An idle worker says nothing: what can be read is its end."""
        while not self._is_over:
            with contextlib.suppress(queue.Empty):
                return self._todo.get(timeout=1.0)
            if connection.poll():
                return None
        return None


_driver: Connection[Any, Any] | None = None  # of the worker that this process is


def ask_driver(question: Any) -> Any:
    """What the driver answers, to the trial that runs here. For the thread that runs it. EOFError or OSError when the driver is gone."""
    if _driver is None:
        raise RuntimeError("ask_driver(): no worker runs here")
    _driver.send({"asks": question})
    return _driver.recv()


def serve(ticket: Ticket, keep_going: Callable[[], bool] = lambda: True) -> int:
    """A worker: runs what the driver gives until it is gone; how many trials that were. TuneError where no driver is found."""
    global _driver
    sys.path.extend(folder for folder in ticket.path if folder not in sys.path)
    connection = _driver = _connect(ticket)
    count = 0
    try:
        hello = connection.recv()
        server = Server(hello["server"])
        if hello["authorization"]:
            server.headers["Authorization"] = hello["authorization"]
        study = Study(server, hello["study"], keeper_of(0))
        objective = _Unpickled(hello["objective"])
        while keep_going():
            outcome = run_one(Trial(study, connection.recv()), objective)
            connection.send_bytes(_sendable(outcome))
            count += 1
    except (EOFError, ConnectionError):
        pass  # the driver has ended
    finally:
        connection.close()
    return count


def run_one(trial: Trial, objective: Callable[[Trial], Any]) -> Outcome:
    """Calls the objective; does not tell the trial."""
    try:
        with _current.running(trial):
            return {"result": objective(trial)}
    except Pruned as error:
        return {"pruned": str(error)}
    except Exception as error:
        return {"error": (str(type(error)), traceback.format_exc(), f"{type(error).__name__}: {error}")}


class _Unpickled:
    """The objective, unpickled at its first call: where a module is missing here, trials fail with a word of it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._objective: Callable[[Trial], Any] | None = None

    def __call__(self, trial: Trial) -> Any:
        if self._objective is None:
            self._objective = pickle.loads(self._data)
        return self._objective(trial)


def _sendable(outcome: Outcome) -> bytes:
    try:
        return pickled(outcome, "what the objective returned")
    except TuneError as error:
        return pickle.dumps({"error": (str(type(error)), str(error), str(error))})


def _connect(ticket: Ticket) -> Connection[Any, Any]:
    errors = []
    for address in ticket.addresses:
        try:
            return Client(address, authkey=ticket.secret)
        except OSError as error:
            errors.append(f"{address[0]}:{address[1]}: {error}")
    raise TuneError("no driver was found at " + ", ".join(errors))


def _own_hosts() -> list[str]:
    """Where other machines may find this one, the likeliest first, and this machine itself."""
    hosts = [os.environ.get("TUNE_DRIVER_HOST", "")]
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: asks for the address that would be used
        hosts.append(probe.getsockname()[0])
    return [*dict.fromkeys(filter(None, hosts)), "127.0.0.1"]


def _close(thing: Any) -> None:
    with contextlib.suppress(OSError):
        thing.close()


class LocalProcesses:
    """Workers on this machine. They end with this process, however it ends."""

    is_remote = False

    def __init__(self) -> None:
        self._ticket = b""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._restarts = 0

    def start(self, ticket: Ticket, count: int) -> None:
        """See Engine."""
        self._ticket = pickle.dumps(ticket)
        self._processes = [self._one() for _ in range(count)]

    def _one(self) -> subprocess.Popen[bytes]:
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen([sys.executable, "-c", "from tune_client._workers import main; main()"], stdin=subprocess.PIPE,
                                   start_new_session=True, env={**os.environ, "PYTHONPATH": path})
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(len(self._ticket).to_bytes(8, "big") + self._ticket)
            process.stdin.flush()
        return process

    def check(self) -> None:
        """See Engine."""
        for i, process in enumerate(self._processes):
            if process.poll() is None:
                continue
            self._restarts += 1
            if self._restarts > _RESTARTS_MAX:
                raise TuneError(f"{self._restarts} worker processes died, the last of them with {_ending(process.returncode)}")
            say(f"a worker process ended with {_ending(process.returncode)}; another one takes its place")
            _close(process.stdin)
            self._processes[i] = self._one()

    def stop(self) -> None:
        """See Engine."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()
            _close(process.stdin)
        self._processes = []


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def main() -> None:
    """A process of LocalProcesses: the ticket comes on its input, whose end is the driver's."""
    source = sys.stdin.buffer
    data = source.read(int.from_bytes(source.read(8), "big"))

    def watch() -> None:
        source.read()
        os.killpg(os.getpgid(0), signal.SIGKILL)  # with what the trial started: it leads a group of its own

    threading.Thread(target=watch, name="tune-driver", daemon=True).start()
    serve(pickle.loads(data))

"""The ranks of a training as tasks of a barrier stage."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import secrets
import socket
import sys
import tempfile
import threading
from typing import Any, Callable, Iterable, Iterator, Mapping

from tune_client._errors import say
from tune_client._gang import Gang, Place, RankError, Training, held_port, scope_sizes
from tune_client._rendezvous import Rendezvous, variables as rendezvous_variables
from tune_client._workers import pickled
from tune_spark._session import Job, check_slots, send_packages, setting

_CHUNK_BYTES = 1 << 18  # of a value on its way back; Connect's batches have 4 MiB
_DONE, _FAILED = b"D", b"F"
_ATTEMPTS_MAX = 4  # as spark.stage.maxConsecutiveAttempts


class SparkGang:
    """A world of processes on executors, one task a machine's share of it. `ports`: each task also holds a port of its own."""

    def __init__(self, spark: Any, tasks: int, processes: int, use_gpu: bool,
                 environment: Callable[[int, list[str]], Mapping[str, str]] | None = None) -> None:
        self._spark, self._tasks, self._processes, self._use_gpu = spark, tasks, processes, use_gpu
        self._environment = environment

    def run(self, training: Training, frame: Any = None) -> list[Any]:
        """What each rank returned (of a file: None each). RuntimeError when a rank failed, with the end of its output.

        TuneError where Spark has fewer places than tasks.
        """
        check_slots(self._spark, self._tasks)
        send_packages(self._spark)
        with _Lines() as lines:
            task = _Task(pickled(training, "the function", "pyspark.cloudpickle"), self._processes // self._tasks, self._processes, self._use_gpu,
                         lines.addresses(self._spark), lines.secret, self._environment, frame.schema.json() if frame is not None else None)
            for attempt in range(_ATTEMPTS_MAX):
                job = Job(self._spark, task, self._tasks, is_barrier=True, what="tune-gang", frame=frame)
                try:
                    job.wait()
                except BaseException:  # Ctrl-C
                    job.stop()
                    raise
                # Some releases of Spark run a barrier stage again themselves when an executor is lost, some give it up.
                if job.error is None or "ExecutorLostFailure" not in str(job.error) or attempt + 1 == _ATTEMPTS_MAX:
                    break
                say("an executor was lost; the training begins anew")
        if job.error is not None:
            raise RuntimeError(f"the training's stage of Spark failed: {job.error}") from job.error
        return self._values(job.rows)

    def _values(self, rows: list[bytes]) -> list[Any]:
        parts: dict[tuple[str, int], list[bytes]] = {}
        for row in rows:
            kind, rank, data = pickle.loads(row)
            parts.setdefault((kind, rank), []).append(data)
        for (kind, _), data in sorted(parts.items()):
            if kind == "error":
                raise RuntimeError(b"".join(data).decode())
        return [pickle.loads(b"".join(parts["value", rank])) if ("value", rank) in parts else None for rank in range(self._processes)]


class _Task:
    """What a task of the stage runs."""

    def __init__(self, training: bytes, count: int, world: int, use_gpu: bool, log: list[tuple[str, int]], secret: bytes,
                 environment: Callable[[int, list[str]], Mapping[str, str]] | None, schema: str | None) -> None:
        self._training, self._count, self._world, self._use_gpu = training, count, world, use_gpu
        self._log, self._secret, self._environment, self._schema = log, secret, environment, schema
        self._path = [os.path.abspath(each) for each in sys.path]

    def __call__(self, index: int, batches: Iterator[Any] | None = None) -> Iterable[bytes]:
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        task = context.partitionId()
        tasks = len(context.getTaskInfos())
        if tasks * self._count != self._world:  # of a data frame: its partitions
            text = (f"the data frame has {tasks} partitions, and the training {self._world} processes: "
                    f"repartition({self._world // self._count}) makes them fit")
            return [pickle.dumps(("error", 0, text.encode()))]
        with held_port() as port, _Peers(task) as peers, _partition(batches, self._schema) as variables, \
                (Rendezvous(scope_sizes(self._world, self._count)) if task == 0 else contextlib.nullcontext()) as meeting:
            mine = [port, peers.port, peers.secret, [meeting.port, meeting.path] if meeting else None]
            told = [json.loads(each) for each in context.allGather(json.dumps(mine))]
            hosts = [each.address.rpartition(":")[0] or each.address for each in context.getTaskInfos()]
            ports = [f"{host}:{one[0]}" for host, one in zip(hosts, told)]
            if self._environment is not None:
                variables = {**variables, **self._environment(task, ports)}
            variables = {**rendezvous_variables(hosts[0], *told[0][3]), **variables}
            place = Place(world=self._world, first=task * self._count, count=self._count, node=task, address=hosts[0], port=told[0][0],
                          run_id=told[0][2][:16], gpus=self._gpus(context), more=variables, own_address=hosts[task])
            # Where the driver imports from: a shared file system has it here, too.
            sys.path.extend(folder for folder in self._path if folder not in sys.path)
            training = pickle.loads(self._training)
            with _Log(self._log, self._secret) as log:
                gang = Gang(training, place, log.write)
                peers.meet(hosts[0], told[0][1], told[0][2], len(told), gang.stop)
                return list(_rows(peers, gang))

    def _gpus(self, context: Any) -> list[str]:
        """Those of the task. Without GPUs none may be used, as with TorchDistributor."""
        if not self._use_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
            return []
        if os.environ.get("CUDA_VISIBLE_DEVICES"):
            return []  # the executor's own, which the processes inherit
        return list(context.resources()["gpu"].addresses)


def _rows(peers: _Peers, gang: Gang) -> Iterator[bytes]:
    """The values of this task's ranks. An error is a row, too: were it raised, Spark would run the whole stage again."""
    try:
        values = gang.run()
    except RankError as error:
        peers.fail()
        yield pickle.dumps(("error", 0, str(error).encode()))
        return
    except RuntimeError:
        if peers.is_lost:
            raise  # an executor is gone: Spark runs the stage again
        return  # the one that failed says why
    peers.end()
    for rank, data in values.items():
        for begin in range(0, len(data), _CHUNK_BYTES):
            yield pickle.dumps(("value", rank, data[begin:begin + _CHUNK_BYTES]))


class _Peers:
    """The link by which all tasks of a stage end when one fails: each to the first, which passes the word on."""

    def __init__(self, task: int) -> None:
        self.is_lost = False  # a task is gone that said nothing
        self._task = task
        self._listener = socket.create_server(("", 0), backlog=4096)
        self.port = self._listener.getsockname()[1]
        self.secret = secrets.token_hex(16)
        self._links: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_over = False
        self._left = threading.Semaphore(0)  # released for each other task that has ended
        self._others = 0

    def __enter__(self) -> _Peers:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        for each in [self._listener, *self._links]:
            with contextlib.suppress(OSError):
                each.close()

    def meet(self, host: str, port: int, secret: str, tasks: int, stop: Callable[[], None]) -> None:
        """Links this task with the others. `stop` is called in a thread when one of them failed or is gone."""
        self._stop, self._secret = stop, secret.encode()
        if self._task != 0:
            link = socket.create_connection((host, port), timeout=120)
            link.settimeout(None)
            link.sendall(self._secret)
            self._links.append(link)
            threading.Thread(target=self._listen, args=(link,), daemon=True).start()
            return
        self._others = tasks - 1
        threading.Thread(target=self._accept, daemon=True).start()

    def fail(self) -> None:
        """This task failed: all others are to end."""
        self._is_over = True
        self._send(_FAILED)

    def end(self) -> None:
        """This task ended well. The first one stays until all have ended, to pass on what they say."""
        if self._task == 0:
            for _ in range(self._others):
                self._left.acquire()
        self._is_over = True
        self._send(_DONE)

    def _send(self, word: bytes) -> None:
        with self._lock:
            for link in self._links:
                with contextlib.suppress(OSError):
                    link.sendall(word)

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(link,), daemon=True).start()

    def _greet(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if secrets.compare_digest(_receive(link, len(self._secret)), self._secret):
                with self._lock:
                    self._links.append(link)
                self._listen(link)
                return
        link.close()

    def _listen(self, link: socket.socket) -> None:
        word = b""
        with contextlib.suppress(OSError):
            word = link.recv(1)
        if word != _DONE and not self._is_over:
            self.is_lost = self.is_lost or word != _FAILED
            self._stop()
            if self._task == 0:
                self._send(_FAILED)
        self._left.release()


class _Lines:
    """Prints on the driver what ranks write. Where executors cannot reach it, their own output has the lines."""

    def __init__(self) -> None:
        self.secret = secrets.token_bytes(32)
        self._server = socket.create_server(("", 0), backlog=4096)
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def addresses(self, spark: Any) -> list[tuple[str, int]]:
        """Where executors may find it."""
        port = self._server.getsockname()[1]
        host = setting(spark, "spark.driver.host", "127.0.0.1")
        return [(host, port)]

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._print, args=(link,), daemon=True).start()

    def _print(self, link: socket.socket) -> None:
        with link, contextlib.suppress(OSError):
            if not secrets.compare_digest(_receive(link, len(self.secret)), self.secret):
                return
            with link.makefile("r", encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    with self._lock:
                        sys.stderr.write(line)
                        sys.stderr.flush()
                link.sendall(_DONE)  # all is printed


class _Log:
    """A task's end of _Lines."""

    def __init__(self, addresses: list[tuple[str, int]], secret: bytes) -> None:
        self._link: socket.socket | None = None
        self._lock = threading.Lock()
        for address in addresses:
            with contextlib.suppress(OSError):
                self._link = socket.create_connection(address, timeout=10)
                self._link.sendall(secret)
                return

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *_: object) -> None:
        if self._link is not None:
            with contextlib.suppress(OSError):
                self._link.shutdown(socket.SHUT_WR)
                self._link.recv(1)
            self._link.close()

    def write(self, rank: int, line: str) -> None:
        """One line of a rank. The training continues whether or not anybody takes it."""
        del rank
        with self._lock:
            if self._link is not None:
                try:
                    self._link.sendall(line.encode() + b"\n")
                    return
                except OSError:
                    self._link = None
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


@contextlib.contextmanager
def _partition(batches: Iterator[Any] | None, schema: str | None) -> Iterator[dict[str, str]]:
    """A task's partition of a data frame as an Arrow file, with the variables by which TorchDistributor names it."""
    if batches is None or schema is None:
        yield {}
        return
    import pyarrow

    with tempfile.TemporaryDirectory(prefix="tune-partition-") as folder:
        rows = 0
        writer = None
        with pyarrow.OSFile(f"{folder}/data.arrow", "wb") as file:
            for batch in batches:
                writer = writer or pyarrow.ipc.new_stream(file, batch.schema)
                writer.write_batch(batch)
                rows += batch.num_rows
            if writer is not None:
                writer.close()
        if rows == 0:
            raise ValueError("Empty Spark partition is not allowed in TuneDistributor._train_on_dataframe.")
        with open(f"{folder}/schema.json", "w", encoding="utf-8") as file:
            file.write(schema)
        yield {"SPARK_PARTITION_ARROW_DATA_FILE": f"{folder}/data.arrow", "SPARK_DATAFRAME_SCHEMA_FILE": f"{folder}/schema.json"}


def _receive(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = link.recv(count - len(data))
        if not piece:
            break
        data += piece
    return data

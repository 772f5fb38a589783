"""What classic sessions and Spark Connect do differently: settings, files for executors, jobs that can be ended."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import io
import os
import pathlib
import re
import tarfile
import tempfile
import threading
import time
import uuid
import zipfile
from typing import Any, Callable, Iterable, Iterator

from tune_client._errors import TuneError
from tune_client._serve import program

_FOR_EXECUTORS_S = 10.0  # of a session that has just begun; until then too few of them is no mistake
_LOCK = threading.Lock()
_SENT: dict[str, dict[str, str]] = {}  # by what has executors of its own: what was sent, and under which name


def is_connect(spark: Any) -> bool:
    """Whether the session is one of Spark Connect, whose driver is another process."""
    return ".connect." in type(spark).__module__


def setting(spark: Any, key: str, default: str) -> str:
    """A setting of the session, or of the application."""
    found = spark.conf.get(key, None)
    if found is None and not is_connect(spark):
        found = spark.sparkContext.getConf().get(key)
    return default if found is None else str(found)


def slots_of(spark: Any) -> int:
    """How many tasks of one core each Spark runs at a time: its default parallelism, or as many as executors may come to be."""
    most = setting(spark, "spark.dynamicAllocation.maxExecutors", "")
    if setting(spark, "spark.dynamicAllocation.enabled", "false") == "true" and most.isdigit() and int(most) < 100_000:
        cores, task = (int(setting(spark, key, "1")) for key in ("spark.executor.cores", "spark.task.cpus"))
        return int(most) * max(cores // task, 1)
    if is_connect(spark):
        from pyspark.sql.functions import spark_partition_id

        return int(spark.range(1 << 16).select(spark_partition_id().alias("id")).distinct().count())
    return max(int(spark.sparkContext.defaultParallelism) // int(setting(spark, "spark.task.cpus", "1")), 1)


def check_slots(spark: Any, tasks: int) -> None:
    """TuneError where so many tasks can never run at once: Spark would look for places for ten minutes before it says so."""
    check_supported(spark)
    deadline = time.monotonic() + _FOR_EXECUTORS_S
    while (slots := _tasks_at_once(spark)) < tasks:
        if time.monotonic() >= deadline:
            raise TuneError(f"the training needs {tasks} tasks at once, and this Spark runs {slots}: ask for fewer processes, or give it "
                            "more executors or cores (spark.executor.instances, spark.executor.cores, spark.task.cpus)")
        time.sleep(0.2)


def _tasks_at_once(spark: Any) -> int:
    """As Spark itself counts places for a barrier stage; slots_of() where it has no such count."""
    if not is_connect(spark) and setting(spark, "spark.dynamicAllocation.enabled", "false") != "true":
        with contextlib.suppress(Exception):
            context = spark.sparkContext._jsc.sc()
            return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
    return slots_of(spark)


def _own_name(spark: Any) -> str:
    """Of the application, or the session of Connect: what is sent to one is unknown to the next."""
    return str(spark.session_id if is_connect(spark) else spark.sparkContext.applicationId)


def send_packages(spark: Any) -> None:
    """Sends our packages to the executors, where they are imported like any other. Once a session."""
    with _LOCK:
        sent = _SENT.setdefault(_own_name(spark), {})
        if "packages" in sent:
            return
        path = _zip_of_packages()
        if is_connect(spark):
            spark.addArtifacts(path, pyfile=True)
        else:
            spark.sparkContext.addPyFile(path)
        sent["packages"] = path


def send_program(spark: Any) -> str:
    """Sends the program `tune` with its libraries; the name under which executors find the archive. Once a session."""
    with _LOCK:
        sent = _SENT.setdefault(_own_name(spark), {})
        if "program" not in sent:
            path = _tar_of_program()
            if is_connect(spark):
                spark.addArtifacts(path, file=True)
            else:
                spark.sparkContext.addFile(path)
            sent["program"] = os.path.basename(path)
        return sent["program"]


def _zip_of_packages() -> str:
    folder = pathlib.Path(__file__).resolve().parents[1]
    path = os.path.join(tempfile.mkdtemp(prefix="tune-spark-"), "tune_packages.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in ("tune_client", "tune_spark"):
            for file in sorted((folder / package).rglob("*.py")):
                archive.write(file, file.relative_to(folder))
    return path


def _tar_of_program() -> str:
    """bin/tune, and the lib/tune beside it that the wheel and the packages have."""
    binary = pathlib.Path(program()).resolve()
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as archive:
        archive.add(binary, "bin/tune")
        libraries = binary.parent.parent / "lib" / "tune"
        for library in sorted(libraries.glob("*.so*")) if libraries.is_dir() else []:
            archive.add(library.resolve(), f"lib/tune/{library.name}")
    name = f"tune-program-{hashlib.sha256(binary.read_bytes()).hexdigest()[:16]}.tar.gz"
    path = os.path.join(tempfile.mkdtemp(prefix="tune-spark-"), name)
    pathlib.Path(path).write_bytes(data.getvalue())
    return path


class Job:
    """A job of `count` tasks in a thread of its own. `function` maps the task's index to rows of bytes.

    `frame`: a data frame whose partitions the tasks get, as (index, batches), in the place of empty tasks.
    """

    def __init__(self, spark: Any, function: Callable[..., Iterable[bytes]], count: int, *, is_barrier: bool = False,
                 profile: Any = None, what: str = "tune", frame: Any = None) -> None:
        self.rows: list[bytes] = []
        self.error: BaseException | None = None
        self._spark, self._function, self._count = spark, function, count
        self._is_barrier, self._profile, self._input = is_barrier, profile, frame
        self._tag = f"{what}-{uuid.uuid4().hex}"
        self._ended = threading.Event()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._work, name=self._tag, daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """Whether all its tasks have."""
        return self._ended.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for its end; False when the time was over before. `error` then says what ended it, `rows` what tasks gave."""
        return self._ended.wait(timeout_s)

    def stop(self, timeout_s: float = 30.0) -> None:
        """Cancels its tasks; returns when Spark has. Safe to call twice."""
        self._is_stopped = True
        while not self._ended.is_set():  # a job that is just being submitted has no tag to be found by
            with contextlib.suppress(Exception):
                self._interrupt()
            timeout_s -= 0.5
            if self._ended.wait(0.5) or timeout_s < 0:
                return

    def _interrupt(self) -> None:
        # A classic session keeps the tags that it gave by thread: another one cannot interrupt them. Its context knows them all.
        if is_connect(self._spark):
            self._spark.interruptTag(self._tag)
        else:
            self._spark.sparkContext.cancelJobsWithTag(self._tag)

    def _work(self) -> None:
        try:
            if is_connect(self._spark):
                self._spark.addTag(self._tag)
            else:
                self._spark.sparkContext.addJobTag(self._tag)
            if is_connect(self._spark) or self._input is not None:
                self.rows = [bytes(row.data) for row in self._frame().collect()]
            else:
                self.rows = self._tasks().collect()
        except BaseException as error:
            self.error = error
        finally:
            self._ended.set()

    def _tasks(self) -> Any:
        """The tasks without data frames, which cost a plan and, in each new worker, the import of Arrow and pandas."""
        function = self._function

        def task(index: int, rows: Iterator[int]) -> Iterator[bytes]:
            collections.deque(rows, maxlen=0)
            yield from function(index)

        tasks = self._spark.sparkContext.parallelize(range(self._count), self._count)
        if self._profile is not None:
            tasks = tasks.withResources(self._profile)
        return tasks.barrier().mapPartitionsWithIndex(task) if self._is_barrier else tasks.mapPartitionsWithIndex(task)

    def _frame(self) -> Any:
        function, has_input = self._function, self._input is not None

        def task(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow
            from pyspark import TaskContext

            index = TaskContext.get().partitionId()
            if has_input:
                rows = function(index, batches)
            else:
                collections.deque(batches, maxlen=0)
                rows = function(index)
            for data in rows:
                yield pyarrow.RecordBatch.from_pydict({"data": [data]}, schema=pyarrow.schema([("data", pyarrow.binary())]))

        frame = self._spark.range(0, self._count, 1, self._count) if self._input is None else self._input
        return frame.mapInArrow(task, "data binary", barrier=self._is_barrier, profile=self._profile)


def reason_of(error: BaseException | None) -> str:
    """The line of Spark's long story that says what happened: the last one of a Python traceback, else its first."""
    lines = [line for line in str(error).splitlines() if re.match(r"[\w.]+(Error|Exception|Interrupt|Exit)\b", line)]
    return (lines[-1] if lines else str(error).strip())[:300]


def check_supported(spark: Any) -> None:
    """TuneError for a Spark that lacks what we need."""
    version = tuple(int(part) for part in spark.version.split(".")[:2])
    if version < (4, 0):
        raise TuneError(f"Spark {spark.version} is not supported: 4.0 or later is needed")

"""HorovodRunner and MirroredStrategyRunner: the names and arguments of their packages, on our gangs."""

from __future__ import annotations

import json
import logging
from typing import Any, Callable, Mapping

from tune_client._gang import Training, run_here
from tune_spark._gangs import SparkGang
from tune_spark._session import setting, slots_of

_LOG = logging.getLogger("tune_spark")


class HorovodRunner:
    """`HorovodRunner(np=2).run(main, lr=0.1)`: np tasks of Spark; -np processes on the driver where np is negative; 0: all slots.

    `main` gets the key-word arguments, its value in rank 0 is returned. `driver_log_verbosity`: "all" shows the processes' output here;
    "log_callback_only", the default, shows it too, since nothing else would.

    The processes have Horovod's variables (HOROVOD_RANK, HOROVOD_SIZE, ...) and torchrun's. What hvd.init() asks for, the task of rank 0
    serves, or the driver: Horovod has to be installed on executors, with its Gloo.
    """

    def __init__(self, np: int, driver_log_verbosity: str = "log_callback_only") -> None:
        if driver_log_verbosity not in ("all", "log_callback_only"):
            raise ValueError(f"driver_log_verbosity is 'all' or 'log_callback_only', found {driver_log_verbosity!r}")
        self.num_processor, self.driver_log_verbosity = np, driver_log_verbosity

    def run(self, main: Callable[..., Any], **kwargs: Any) -> Any:
        """The value of main(**kwargs) in rank 0. RuntimeError when a process failed, with the end of its output."""
        if self.num_processor < 0:
            return run_here(Training(main, (), kwargs), -self.num_processor)[0]
        from pyspark.sql import SparkSession

        spark = SparkSession.active()
        count = self.num_processor or slots_of(spark)
        use_gpu = int(float(setting(spark, "spark.task.resource.gpu.amount", "0"))) > 0
        return SparkGang(spark, count, count, use_gpu).run(Training(main, (), kwargs))[0]


class MirroredStrategyRunner:
    """`MirroredStrategyRunner(num_slots=8).run(train)`, as spark_tensorflow_distributor's.

    `num_slots`: processes (with `use_gpu` their GPUs together: each task has what Spark gives it); `local_mode`: one process on the
    driver with all of them. `use_custom_strategy`: `train` makes its own strategy; else it is called within the scope of
    MultiWorkerMirroredStrategy, or MirroredStrategy in local mode, which needs TensorFlow. TF_CONFIG names all processes.
    """

    def __init__(self, *, num_slots: int, local_mode: bool = False, use_gpu: bool = True, gpu_resource_name: str = "gpu",
                 use_custom_strategy: bool = False) -> None:
        if num_slots <= 0:
            raise ValueError(f"num_slots is an int greater than 0, found {num_slots}")
        if gpu_resource_name != "gpu":
            raise ValueError(f"GPUs are the resource 'gpu' of Spark here, found {gpu_resource_name!r}")
        self.num_slots, self.local_mode, self.use_gpu, self.use_custom_strategy = num_slots, local_mode, use_gpu, use_custom_strategy

    def run(self, train_fn: Callable[..., Any], **kwargs: Any) -> Any:
        """The value of train_fn(**kwargs) in the first process. RuntimeError when one failed, with the end of its output."""
        training = Training(_InStrategy(train_fn, self.local_mode, self.use_custom_strategy), (), kwargs)
        if self.local_mode:
            return run_here(training, 1)[0]
        from pyspark.sql import SparkSession

        spark = SparkSession.active()
        amount = max(int(float(setting(spark, "spark.task.resource.gpu.amount", "1"))), 1) if self.use_gpu else 1
        tasks = -(-self.num_slots // amount)
        return SparkGang(spark, tasks, tasks, self.use_gpu, _cluster).run(training)[0]


def _cluster(task: int, addresses: list[str]) -> Mapping[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": task}})}


class _InStrategy:
    def __init__(self, function: Callable[..., Any], is_local: bool, is_custom: bool) -> None:
        self._function, self._is_local, self._is_custom = function, is_local, is_custom

    def __call__(self, **kwargs: Any) -> Any:
        if self._is_custom:
            return self._function(**kwargs)
        import tensorflow  # type: ignore[import-untyped,import-not-found,unused-ignore]

        made = tensorflow.distribute.MirroredStrategy() if self._is_local else tensorflow.distribute.MultiWorkerMirroredStrategy()
        with made.scope():
            return self._function(**kwargs)

"""TuneDistributor: TorchDistributor's names, arguments and behaviour."""

from __future__ import annotations

import logging
import os
from typing import Any, Callable, Sequence

from tune_client._gang import Training, run_here
from tune_spark._gangs import SparkGang
from tune_spark._session import is_connect, setting

_LOG = logging.getLogger("TuneDistributor")


class TuneDistributor:
    """Runs a training of several processes, on the driver or on the executors: `TuneDistributor(2, False, False).run(train, 1e-3)`.

    `num_processes`, `local_mode`, `use_gpu`: as TorchDistributor's. Each process has torchrun's variables, so that
    torch.distributed.init_process_group() needs no arguments, and its function's value in rank 0 is what run() returns. What
    processes write appears here line by line; when one fails, all end, and RuntimeError carries the last 100 lines that it wrote.

    Otherwise than TorchDistributor: a failure of the function is not run again by Spark; the port where the processes meet is
    held from the moment it is chosen; no torchrun is started, so that a rank begins half a second earlier. Needs an active session.
    """

    def __init__(self, num_processes: int = 1, local_mode: bool = True, use_gpu: bool = True,
                 _ssl_conf: str = "pytorch.spark.distributor.ignoreSsl") -> None:
        from pyspark.sql import SparkSession

        self.spark = SparkSession.active()
        if num_processes <= 0:
            raise ValueError("num_processes has to be a positive integer")
        self.num_processes, self.local_mode, self.use_gpu = num_processes, local_mode, use_gpu
        self.ssl_conf = _ssl_conf
        self.num_tasks = self._count_tasks()

    def run(self, train_object: Callable[..., Any] | str, *args: Any, **kwargs: Any) -> Any:
        """The value of the function in rank 0, called with these arguments; None of a Python file, whose words they are."""
        return self.run_all(train_object, *args, **kwargs)[0]

    def run_all(self, train_object: Callable[..., Any] | str, *args: Any, **kwargs: Any) -> list[Any]:
        """As run(), the values of all ranks in their order."""
        training = Training(train_object, args, kwargs)
        if self.local_mode:
            _LOG.info("Started local training with %d processes", self.num_processes)
            return run_here(training, self.num_processes, self._driver_gpus())
        self._check_encryption()
        return SparkGang(self.spark, self.num_tasks, self.num_processes, self.use_gpu).run(training)

    def _train_on_dataframe(self, train_function: Callable[..., Any], spark_dataframe: Any, *args: Any, **kwargs: Any) -> Any:
        """run() with a partition of the data frame for each process, in the files that TorchDistributor's readers look for."""
        if self.local_mode:
            raise RuntimeError("TorchDistributor._train_on_dataframe requires setting local_mode=False")
        self._check_encryption()
        gang = SparkGang(self.spark, self.num_tasks, self.num_processes, self.use_gpu)
        return gang.run(Training(train_function, args, kwargs), spark_dataframe)[0]

    def _count_tasks(self) -> int:
        if not self.use_gpu:
            return self.num_processes
        if self.local_mode:
            found = len(self._driver_gpus())
            if found == 0:
                raise RuntimeError("GPU resources were not configured properly on the driver.")
            if self.num_processes > found:
                _LOG.warning("'num_processes' cannot be set to a value greater than the number of available GPUs on the driver, which "
                             "is %d. 'num_processes' was reset to be equal to the number of available GPUs.", found)
                self.num_processes = found
            return self.num_processes
        amount = int(float(setting(self.spark, "spark.task.resource.gpu.amount", "0")))
        if amount < 1:
            raise RuntimeError("'spark.task.resource.gpu.amount' was unset, so gpu usage is unavailable.")
        if self.num_processes % amount != 0:
            raise RuntimeError(f"TuneDistributor 'num_processes' value ({self.num_processes}) must be a multiple of "
                               f"'spark.task.resource.gpu.amount' ({amount}) value.")
        return self.num_processes // amount

    def _driver_gpus(self) -> Sequence[str]:
        """Those that local training uses: of the driver, within CUDA_VISIBLE_DEVICES."""
        if not self.use_gpu:
            return ()
        visible = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
        if is_connect(self.spark):
            return visible[:self.num_processes]
        owned = self.spark.sparkContext.resources.get("gpu")
        if owned is None:
            raise RuntimeError("GPUs were unable to be found on the driver.")
        addresses = list(owned.addresses)
        return [visible[int(each)] for each in addresses] if visible else addresses

    def _check_encryption(self) -> None:
        if setting(self.spark, "spark.ssl.enabled", "false").lower() != "true":
            return
        if setting(self.spark, self.ssl_conf, "false").lower() == "true":
            _LOG.warning("This cluster has TLS encryption enabled; however, TuneDistributor does not encrypt what processes send to each "
                         "other. The configuration '%s' is 'true', so it starts anyway.", self.ssl_conf)
            return
        raise RuntimeError("This cluster has TLS encryption enabled; however, TuneDistributor does not support data encryption in transit. "
                           f"To override this configuration and use TuneDistributor anyway, you may set '{self.ssl_conf}' to 'true' in "
                           "the Spark configuration. Please note this will cause model parameters and possibly training data to be "
                           "sent between nodes unencrypted.")

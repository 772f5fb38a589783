"""Spark's users: agents and trials as tasks of Spark, and distributed training on barrier stages.

    import tune_spark

    with tune_spark.run_agents(spark, "http://HOST:5000", study="resnet") as agents:   # a study of commands
        agents.wait()

    from tune_client import TuneTrials                                 # a study of Hyperopt's, in the place of SparkTrials
    hyperopt.fmin(..., trials=TuneTrials(parallelism=64, spark_session=spark))

    from tune_spark import TuneDistributor                             # in the place of pyspark.ml.torch.distributor.TorchDistributor
    model = TuneDistributor(num_processes=8, local_mode=False, use_gpu=True).run(train, 1e-3)

HorovodRunner and MirroredStrategyRunner have the names and arguments of their packages. Classic sessions and Spark Connect; pyspark 4.3.0 was
tried. Executors need nothing of ours installed: what they run is sent to them.
"""

from tune_spark._agents import Agents, run_agents
from tune_spark._distributor import TuneDistributor
from tune_spark._runners import HorovodRunner, MirroredStrategyRunner
from tune_spark._session import slots_of
from tune_spark._tasks import SparkTasks

__all__ = ["Agents", "HorovodRunner", "MirroredStrategyRunner", "SparkTasks", "TuneDistributor", "run_agents", "slots_of"]

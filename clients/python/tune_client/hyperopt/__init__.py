"""Hyperopt's users: `TuneTrials` in the place of SparkTrials, and an `fmin` whose points our server suggests.

    from hyperopt import fmin, hp, tpe
    from tune_client.hyperopt import TuneTrials

    best = fmin(objective, space, algo=tpe.suggest, max_evals=100, trials=TuneTrials(parallelism=8))

Needs hyperopt (0.3.0 was tried) and cloudpickle.
"""

from tune_client.hyperopt._fmin import fmin
from tune_client.hyperopt._trials import TuneTrials

__all__ = ["TuneTrials", "fmin"]

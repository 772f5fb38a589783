"""Hyperparameter tuning with a `tune` server, from Python: the standard library only. Copy this folder beside your script.

    import tune_client as tune

    study = tune.create_study("demo", metric="loss", goal="min", trials=50,
                              space={"lr": {"float": [1e-5, 0.1], "log": True}, "layers": {"int": [1, 4]}})
    study.optimize(lambda trial: train(**trial.params))
    print(study.best_value, study.best_params)

or, with the loop in your own hands,

    while trial := study.ask():
        for step in range(10):
            trial.report(loss, step)          # raises tune.Pruned when the trial should stop
        trial.tell(loss)

Several objectives are several metrics, told as several values; a constraint bounds a metric, told by its name:

    study = tune.create_study("two", metric=["loss:min", "accuracy:max"], constraints=[{"name": "latency_ms", "max": 20}], ...)
    trial.tell([loss, accuracy], constraints={"latency_ms": 12.5})
    study.best_trials                         # the Pareto front

Population based training (sampler={"type": "pbt", ...}): a trial trains from step trial.steps[0] to trial.steps[1] and starts from
the checkpoint that you kept of the trial number trial.parent, or from nothing where that is None:

    model = load(trial.parent) if trial.parent is not None else new_model()
    study.best_trial["lineage"]               # the schedule of parameters that led to the best

A budget that counts a metric (budget={"cost": {"metric": "dollars", "max": 20}}) is told of it by either of

    trial.report(0.4, step, metric="dollars")
    trial.tell(loss, cost=1.7)

Optuna's names work where they mean the same: `direction`, `n_trials`, `callbacks`, `trial.should_prune`, `TrialPruned`,
`study.trials_dataframe`, `enqueue_trial` and others. An objective that calls trial.suggest_float, _int and _categorical runs as it
is, but the space is declared to create_study: a suggest_* gives the declared parameter's value, chosen when the trial was asked
for, and raises ValueError, with the words that declare it, for one that is not declared or has another range. So the server knows
the whole space before the first trial, and samples it jointly, for clients in any language. Callbacks for Keras, Lightning, XGBoost
and LightGBM are in tune_client.integration.

Hyperopt's users: tune_client.TuneTrials takes the place of SparkTrials, and tune_client.fmin that of hyperopt.fmin with points of our
server's; both are described in tune_client.hyperopt. tune_client.report(loss, step) reports from an objective that gets parameters only.
On Spark and Ray: the packages tune_spark and tune_ray, beside this one.

A trial is asked for with a lease of 60 seconds (`lease_s` of create_study and load_study), which a thread of this module
renews until the trial is told, however long it reports nothing. When the process is killed or its machine is gone, the lease
ends and the next one to ask gets the trial again. If it was only stopped for so long (a laptop asleep, a debugger), what it
says of the trial later raises Lost; `optimize` and `with trial:` then go on without that trial. `trial.stopping` is True once
a renewal has heard that the trial should stop or is somebody else's. A Trial that nobody refers to is not renewed.

Every call is safe to repeat: what changes the study carries a request id, and connection errors, 429 and 5xx answers are tried
again for about a minute; at first, where nothing listens, for 10 seconds. Credentials and certificates are those of MLflow's
client (MLFLOW_TRACKING_TOKEN, ...). Any number of processes on any number of machines may work on one study.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tune_client._current import current_trial, report
from tune_client._distributed import distributed
from tune_client._errors import Lost, Pruned, TuneError
from tune_client._records import FrozenTrial, TrialState
from tune_client._study import Study, create_study, load_study, restore_study
from tune_client._trial import Trial

TrialPruned = Pruned  # Optuna's name

if TYPE_CHECKING:
    from tune_client.hyperopt import TuneTrials, fmin

__all__ = ["FrozenTrial", "Lost", "Pruned", "Study", "Trial", "TrialPruned", "TrialState", "TuneError", "TuneTrials", "create_study",
           "current_trial", "distributed", "fmin", "load_study", "report", "restore_study"]


def __getattr__(name: str) -> Any:
    if name not in ("TuneTrials", "fmin"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tune_client import hyperopt  # which needs Hyperopt

    return getattr(hyperopt, name)

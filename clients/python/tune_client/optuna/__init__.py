"""Optuna's users: a storage and a sampler that are a server of ours.

    import optuna
    from tune_client.optuna import TuneSampler, TuneStorage

    study = optuna.create_study(study_name="net", storage=TuneStorage("http://HOST:5000"), load_if_exists=True)
    study.optimize(objective, n_trials=100)          # from as many processes and machines as you like

With TuneStorage an Optuna study is one of the server's: its trials have MLflow runs with their parameters, values and attributes, a trial
whose process dies waits and is run again with the same parameters, and nothing but HTTP is needed between machines. Optuna's own
samplers and pruners decide. With TuneSampler the server suggests, in whatever storage:

    space = {"lr": optuna.distributions.FloatDistribution(1e-5, 1e-1, log=True)}
    study = optuna.create_study(sampler=TuneSampler(space, "gp", server="http://HOST:5000"))

Needs optuna; 5.0.0 was tried.
"""

from tune_client.optuna._sampler import TuneSampler
from tune_client.optuna._storage import TuneStorage

__all__ = ["TuneSampler", "TuneStorage"]

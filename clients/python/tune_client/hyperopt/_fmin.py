"""fmin with Hyperopt's spaces and objectives, whose points our server suggests."""

from __future__ import annotations

import datetime
import secrets
from typing import Any, Callable, Mapping, Sequence

from hyperopt import STATUS_OK, space_eval

from tune_client import _mlflow
from tune_client._drive import LEASE_S, Driver, tell
from tune_client._errors import TuneError, say
from tune_client._serve import serving
from tune_client._study import Study, create_study
from tune_client._trial import Trial
from tune_client._workers import Engine, LocalProcesses, Outcome, run_one
from tune_client.hyperopt import _space
from tune_client.hyperopt._objective import Objective

_SAMPLERS = {"hyperopt.tpe": {"type": "tpe", "preset": "hyperopt"}, "hyperopt.rand": {"type": "random"}}


def fmin(fn: Callable[..., Any], space: Any, algo: Any = None, max_evals: int | None = None, timeout: float | None = None,
         loss_threshold: float | None = None, *, points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
         return_argmin: bool = True, parallelism: int = 1, study: str | None = None, server: str | None = None,
         pruner: Any = None, engine: Engine | None = None, **more: Any) -> Any:
    """Minimizes `fn` over a space of Hyperopt's, with points of our server's sampler; returns what hyperopt.fmin returns.

    `algo`: a sampler as in study.yaml ("tpe", "gp", {"type": "tpe", "seed": 7}); Hyperopt's own tpe.suggest and rand.suggest
    mean our samplers by its rules. `loss_threshold`: ends the study with the first loss that is at most this.
    `parallelism`: 1 calls `fn` in this process; more, in so many worker processes, or in those of an `engine`. `study`: its
    name; one that exists goes on until it has `max_evals` trials. `server`: an address; left out, as TuneTrials. `more`: further
    fields of study.yaml. Raises TuneError, also where no evaluation succeeded.
    """
    labels = _space.labels_of(space)
    budget: dict[str, Any] = dict(more.pop("budget", {}))
    for name, value in (("trials", max_evals), ("time", timeout), ("target", loss_threshold)):
        if value is not None:
            budget[name] = value
    if points_to_evaluate:
        more["initial"] = [_space.to_point(labels, point) for point in points_to_evaluate]
    if algo is not None:
        more["sampler"] = _sampler(algo)
    if pruner is not None:
        more["pruner"] = pruner
    name = study or f"hyperopt-{datetime.datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    with serving(server) as url:
        made = create_study(name, space=_space.declared(labels, True), metric={"name": "loss", "goal": "min", "take": "last"},
                            budget=budget, server=url, lease_s=LEASE_S, **more)
        with _mlflow.main_run(made):
            _run(made, Objective(fn, space), parallelism, engine)
        best = made.best_trial
    if best is None:
        raise TuneError(f"study {name!r} has no successful evaluation")
    values = _space.to_values(labels, best.params)
    return values if return_argmin else space_eval(space, values)


def _run(study: Study, objective: Objective, parallelism: int, engine: Engine | None) -> None:
    if parallelism < 1:
        raise ValueError(f"parallelism must be at least 1, found {parallelism}")
    if parallelism == 1 and engine is None:
        while trial := study.ask():
            _tell(trial, run_one(trial, objective))
        return
    driver = Driver(study, objective, engine or LocalProcesses())
    try:
        driver.start(parallelism)
        while driver.ask() or driver.running or study.info()["state"] not in ("completed", "stopped"):
            for trial, outcome in driver.wait():
                _tell(trial, outcome)
    finally:
        driver.cancel("fmin has ended")


def _tell(trial: Trial, outcome: Outcome) -> None:
    if "error" in outcome:
        say(f"trial {trial.number}: {outcome['error'][2]}")
        tell(trial, state="failed", reason=outcome["error"][2])
    elif "pruned" in outcome:
        tell(trial, state="pruned")
    elif outcome["result"]["status"] == STATUS_OK:
        tell(trial, float(outcome["result"]["loss"]))
    else:
        status = outcome["result"]["status"]
        tell(trial, state="failed", reason=str(outcome["result"].get("status_fail", f"its status is {status!r}")))


def _sampler(algo: Any) -> Any:
    if isinstance(algo, (str, Mapping)):
        return algo
    found = _SAMPLERS.get(getattr(algo, "__module__", ""))
    if found is None:
        raise ValueError(f"algo is the name of a sampler, a mapping as in study.yaml, or tpe.suggest or rand.suggest of Hyperopt's; "
                         f"found {algo!r}. Others suggest by themselves in hyperopt.fmin(..., trials=TuneTrials())")
    return found

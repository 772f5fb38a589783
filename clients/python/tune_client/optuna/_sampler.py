"""TuneSampler: the server suggests, in whatever storage Optuna keeps its study."""

from __future__ import annotations

import threading
from typing import Any, Mapping, Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from tune_client._errors import Lost, TuneError
from tune_client._server import to_json_number
from tune_client._study import Study, create_study
from tune_client._trial import Trial


class TuneSampler(BaseSampler):  # type: ignore[misc,unused-ignore]
    """Points of a study on the server: `TuneSampler(space, "gp")`, in any storage of Optuna's.

    `space`: Optuna's distributions by name, or a space as in study.yaml. `sampler`: as in study.yaml. `study`: the server's study, by
    default of the name of Optuna's; processes that work on one Optuna study share it. `server`: as create_study's.

    Each trial of Optuna's is one of the server's, with a run of its own, told of the values when it ends. A parameter that `space` does not
    have is drawn at random; an enqueued trial's point is told as it was. Reports of the objective stay with Optuna, whose pruner decides.
    """

    def __init__(self, space: Mapping[str, Any], sampler: Any = "tpe", *, study: str | None = None, server: str | None = None,
                 lease_s: float = 60.0) -> None:
        self._space = {name: _declared(one) for name, one in space.items()}
        self._sampler, self._name, self._server, self._lease_s = sampler, study, server, lease_s
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._study: Study | None = None
        self._asked: dict[int, Trial] = {}  # by number of Optuna's trial
        self._random = RandomSampler()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_study", "_asked", "_random")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def reseed_rng(self) -> None:
        """See BaseSampler. The server's own numbers need no new seed."""
        self._random.reseed_rng()

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """See BaseSampler."""
        return {}

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        """See BaseSampler. Values come from sample_independent, as the server's space may switch parameters off."""
        return {}

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Asks the server for a point."""
        ours = self._open(study)
        asked = ours.ask_many(1, wait=False)
        if not asked:
            raise TuneError(f"study {ours.name!r} has ended or is paused on the server")
        with self._lock:
            self._asked[trial.number] = asked[0]

    def sample_independent(self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        """The server's value of this parameter. ValueError where the objective asks for another range than `space` has."""
        with self._lock:
            asked = self._asked.get(trial.number)
        if asked is None or param_name not in self._space:
            return self._random.sample_independent(study, trial, param_name, param_distribution)
        wanted = _declared(param_distribution)
        if isinstance(param_distribution, CategoricalDistribution):
            return asked.suggest_categorical(param_name, list(param_distribution.choices))
        if isinstance(param_distribution, IntDistribution):
            low, high = wanted["int"]
            return asked.suggest_int(param_name, low, high, step=wanted.get("step", 1), log=wanted.get("log", False))
        low, high = wanted["float"]
        return asked.suggest_float(param_name, low, high, step=wanted.get("step"), log=wanted.get("log", False))

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Tells the server."""
        with self._lock:
            asked = self._asked.pop(trial.number, None)
        if asked is None:
            return
        try:
            other = {name: value for name, value in trial.params.items() if name in self._space and asked.params.get(name) != value}
            if other:
                asked = self._instead(asked, trial)
            _tell(asked, trial, state, values)
        except Lost:
            pass  # the server took the trial for dead; Optuna keeps what it has

    def _instead(self, asked: Trial, trial: FrozenTrial) -> Trial:
        """The point that was enqueued with Optuna, in the place of the one that was suggested."""
        asked.tell(state="cancelled", reason="Optuna had an enqueued point")
        point = {name: value for name, value in trial.params.items() if name in self._space}
        study = asked._study
        number = study.enqueue(point)["number"]
        [found] = study.ask_many(1, wait=False)
        if found.number != number:
            raise TuneError(f"another process took trial {number} of study {study.name!r}")
        return found

    def _open(self, study: optuna.Study) -> Study:
        with self._lock:
            if self._study is None:
                goals = ["max" if direction == StudyDirection.MAXIMIZE else "min" for direction in study.directions]
                metrics = [{"name": "value" if len(goals) == 1 else f"values_{i}", "goal": goal, "take": "last"}
                           for i, goal in enumerate(goals)]
                self._study = create_study(self._name or study.study_name, space=self._space,
                                           metric=metrics[0] if len(metrics) == 1 else metrics, sampler=self._sampler,
                                           server=self._server, lease_s=self._lease_s, stop_after_failures=0)
            return self._study


def _tell(asked: Trial, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
    if state == TrialState.COMPLETE and values is not None:
        asked.tell([float(value) for value in values] if len(values) > 1 else float(values[0]))
    elif state == TrialState.PRUNED:
        last = max(trial.intermediate_values.items(), default=None)
        if last is not None:
            asked.should_stop(to_json_number(last[1]), last[0])
        asked.tell(state="pruned")
    else:
        asked.tell(state="failed", reason="it failed in Optuna")


def _declared(one: Any) -> dict[str, Any]:
    """A distribution of Optuna's as in study.yaml; what is in that form already stays."""
    if isinstance(one, CategoricalDistribution):
        return {"choice": list(one.choices)}
    if isinstance(one, (FloatDistribution, IntDistribution)):
        kind = "int" if isinstance(one, IntDistribution) else "float"
        spec: dict[str, Any] = {kind: [one.low, one.high]}
        if one.log:
            spec["log"] = True
        elif one.step is not None and not (kind == "int" and one.step == 1):
            spec["step"] = one.step
        return spec
    if isinstance(one, Mapping):
        return dict(one)
    raise TypeError(f"a space has Optuna's distributions or parameters as in study.yaml, found {one!r}")

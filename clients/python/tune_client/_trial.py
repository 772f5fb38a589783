"""One trial that this process runs."""

from __future__ import annotations

import contextlib
import types
import uuid
from typing import TYPE_CHECKING, Any, Mapping, Sequence, TypeVar

from tune_client import _declared
from tune_client._attributes import attributes_of, set_attribute
from tune_client._errors import Lost, Pruned, TuneError, say
from tune_client._records import FrozenTrial, TrialState
from tune_client._server import to_json_number

if TYPE_CHECKING:
    from tune_client._study import Study

_Choice = TypeVar("_Choice")


class Trial:
    """One trial that this process runs: `number`, `params`, `run_id` (its MLflow run), `seed`, `attempt`.

    `token` is the attempt's credential: a process that logs to the run with it, as MLFLOW_TRACKING_TOKEN, can do so only
    while the attempt is the current one. None with a server that gives none.

    In population based training also `parent` (the number of the trial whose checkpoint it continues, or None), `member`,
    `generation` and `steps`: (from, to); None in other studies.
    """

    def __init__(self, study: Study, asked: Mapping[str, Any]) -> None:
        self._study = study
        self._asked = asked
        self.number: int = asked["number"]
        self.attempt: int = asked["attempt"]
        self.params: dict[str, Any] = asked["params"]
        self.run_id: str = asked["run_id"]
        self.experiment_id: str = asked["experiment_id"]
        self.seed: int = asked["seed"]
        self.token: str | None = asked.get("token")
        self.parent: int | None = asked.get("parent")
        self.member: int | None = asked.get("member")
        self.generation: int | None = asked.get("generation")
        self.steps: tuple[int, int] | None = (asked["steps"][0], asked["steps"][1]) if "steps" in asked else None
        self.ended = False
        self._lost = self._told_to_stop = self._reported = self._has_no_value = False
        self._told: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Trial({self.number}, {self.params})"

    @property
    def stopping(self) -> bool:
        """True once a report or a renewal of the lease was told that the trial should stop, or is somebody else's."""
        return not self.ended and (self._lost or self._told_to_stop)

    def should_prune(self) -> bool:
        """True once the trial should stop, for the objective to `raise TrialPruned`; `stopping` by Optuna's name.

        `report` raises by itself. Use should_stop(value, step) where there is something to do before the trial ends.
        """
        return self.stopping

    def should_stop(self, value: Any, step: int, metric: str | None = None) -> bool:
        """Reports a metric at `step`; True when the trial should stop. `metric`: which, where the study has several.

        Raises Lost.
        """
        self._reported = True
        body = {**self._name(), "step": step, "value": to_json_number(value)}
        if metric is not None:
            body["metric"] = metric
        stops = bool(self._call("/report", body)["action"] != "continue")
        self._told_to_stop |= stops
        return stops

    def report(self, value: Any, step: int, metric: str | None = None) -> None:
        """As should_stop, but raises Pruned."""
        if self.should_stop(value, step, metric):
            raise Pruned(f"trial {self.number} was stopped at step {step}")

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False) -> float:
        """The value of this parameter of the declared space. ValueError unless it is declared with this range."""
        wanted = _declared.numeric_spec("float", low, high, step, log)
        call, declared = self._declared(f"trial.suggest_float({name!r}, ...)", name, wanted)
        _declared.check_numeric(call, name, declared, wanted)
        return float(self.params[name])

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """The value of this parameter of the declared space. ValueError unless it is declared with this range."""
        wanted = _declared.numeric_spec("int", low, high, step, log)
        call, declared = self._declared(f"trial.suggest_int({name!r}, ...)", name, wanted)
        _declared.check_numeric(call, name, declared, wanted)
        return int(self.params[name])

    def suggest_categorical(self, name: str, choices: Sequence[_Choice]) -> _Choice:
        """The value of this parameter of the declared space. ValueError unless it is declared with these choices."""
        call, declared = self._declared(f"trial.suggest_categorical({name!r}, ...)", name, {"choice": list(choices)})
        found: _Choice = _declared.choice_of(call, name, declared, choices, self.params[name])
        return found

    def set_user_attr(self, key: str, value: Any) -> None:
        """Notes any JSON value of the trial under this name, as a tag of its MLflow run `run_id`."""
        set_attribute(self._study._connection, self.run_id, key, value)

    @property
    def user_attrs(self) -> dict[str, Any]:
        """What set_user_attr has noted of the trial."""
        return attributes_of(self._study._connection, self.run_id)

    def _declared(self, call: str, name: str, wanted: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        declared: Mapping[str, Any] | None = self._study._space().get(name)
        if declared is None:
            raise _declared.undeclared(call, self._study.name, name, wanted)
        if name not in self.params:
            raise _declared.inactive(call, self.number, declared)
        return call, declared

    def tell(self, value: Any = None, state: TrialState | str | None = None, reason: str = "",
             constraints: Mapping[str, Any] | None = None, cost: Any = None) -> FrozenTrial:
        """Ends the trial: with its value (else the reported one), or as "pruned", "failed" or "cancelled". Raises Lost.

        `value`: a list of one value an objective where there are several. `constraints`: values of the metrics with
        bounds, by name; of those left out what was reported counts. `cost`: the value of the budget's cost metric.
        """
        body = {**self._name(), "request_id": uuid.uuid4().hex, "reason": reason}
        if isinstance(value, (list, tuple)):
            body["values"] = [to_json_number(one) for one in value]
        elif value is not None:
            body["value"] = to_json_number(value)
        if constraints:
            body["constraints"] = {name: to_json_number(bounded) for name, bounded in constraints.items()}
        if cost is not None:
            body["cost"] = to_json_number(cost)
        if state is not None:
            body["state"] = str(state)
        answer: dict[str, Any] = self._call("/tell", body)
        self.ended = True
        self._told = answer
        return self._study._frozen(answer)

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> bool:
        """Ends a trial that was not told: as pruned, failed, or with what was reported (the study's `take` says which of it).

        A trial that was lost meanwhile is left to whoever has it; stderr says so.
        """
        try:
            if isinstance(error, Lost) and self._lost:
                raise error
            if not self.ended:
                self._end(kind, error)
        except Lost as lost:
            say(f"trial {self.number} is no longer this client's, which continues without it: {lost}")
            return kind is None or issubclass(kind, (Pruned, Lost))
        return kind is not None and issubclass(kind, Pruned)

    def _end(self, kind: type[BaseException] | None, error: BaseException | None) -> None:
        if kind is None:
            self._end_without_value()
        elif issubclass(kind, Pruned):
            self.tell(state=TrialState.PRUNED)
        elif issubclass(kind, Exception):
            self.tell(state=TrialState.FAILED, reason=f"{kind.__name__}: {error}"[:1000])
        else:  # KeyboardInterrupt, SystemExit
            self.tell(state=TrialState.CANCELLED, reason=kind.__name__)

    def _end_without_value(self) -> None:
        """Complete with what was reported; failed if that is not all that the study measures."""
        reason = "no value was told, and none was reported"
        if self._reported:
            try:
                self.tell(state=TrialState.COMPLETE)
                return
            except TuneError as error:
                if error.status != 400:
                    raise
                reason = str(error)
        self.tell(state=TrialState.FAILED, reason=reason[:1000])
        self._has_no_value = True

    def _abandon(self, reason: str) -> None:
        """Cancels a trial whose thread keeps running; whatever that reports of it afterwards raises Lost."""
        if self._is_held():
            with contextlib.suppress(TuneError):  # its lease will end
                self._study._call("/tell", {**self._name(), "state": "cancelled", "reason": reason}, retry_for_s=2.0)
            self._lost = True

    def _is_held(self) -> bool:
        return not self.ended and not self._lost

    def _renew(self, timeout_s: float) -> bool:
        """False when the server did not answer."""
        try:
            answer = self._study._call("/renew", self._name(), retry_for_s=0, timeout_s=max(timeout_s, 1.0))
            self._told_to_stop |= answer["action"] != "continue"
        except TuneError as error:
            if error.status not in (404, 409):
                return False
            self._lost = True
        return True

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        try:
            return self._study._call(path, body)
        except TuneError as error:
            if error.status != 409 or self.ended:
                raise
            self._lost = True
            raise Lost(str(error), error.status, error.code) from None

    def _name(self) -> dict[str, Any]:
        return {"number": self.number, "attempt": self.attempt}

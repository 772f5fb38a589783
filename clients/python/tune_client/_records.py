"""Trials as the server lists them."""

from __future__ import annotations

import datetime
import enum
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence, overload

from tune_client._words import counted

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

FRAME_ATTRS = ("number", "value", "datetime_start", "datetime_complete", "duration", "params", "state")


class TrialState(str, enum.Enum):
    """The state of a trial: equal to the server's word for it, with Optuna's names and our own."""

    WAITING = "queued"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    FAIL = "failed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    def __str__(self) -> str:
        return str(self.value)

    def is_finished(self) -> bool:
        """False of a trial that waits or runs."""
        return self not in (TrialState.WAITING, TrialState.RUNNING)


class FrozenTrial(dict[str, Any]):
    """A trial as the server shows it: the fields of REST as a dict, `trial["value"]`, and Optuna's names, `trial.value`.

    It does not change while the trial goes on. What the listing that it came from left out is asked for when it is read.
    """

    def __init__(self, fields: Mapping[str, Any], read: Callable[[int, bool], Mapping[str, Any]],
                 attributes_of: Callable[[str], dict[str, Any]]) -> None:
        super().__init__(fields)
        self._read = read
        self._attributes_of = attributes_of
        self._later: dict[str, Any] = {}  # what was asked for after the listing

    @property
    def number(self) -> int:
        """From 0, in the order in which trials were made."""
        return int(self["number"])

    @property
    def params(self) -> dict[str, Any]:
        """The values of the parameters that are active in this trial."""
        params: dict[str, Any] = self["params"]
        return params

    @property
    def value(self) -> float | None:
        """Of the only, or the first, objective; None where there is none."""
        return _float(self._get("value"))

    @property
    def values(self) -> list[float] | None:  # type: ignore[override]
        """One an objective; None where there are none. (Hides dict.values: iterate over the trial or its items.)"""
        several = self._get("values")
        if several is not None:
            return [number for number in map(_float, several) if number is not None]
        return None if self.value is None else [self.value]

    @property
    def state(self) -> TrialState:
        """Where it stood when it was listed."""
        return TrialState(self._get("state"))

    @property
    def run_id(self) -> str:
        """Its MLflow run."""
        return str(self._get("run_id"))

    @property
    def reason(self) -> str:
        """Why it failed or was stopped."""
        return str(self._get("reason"))

    @property
    def datetime_start(self) -> datetime.datetime | None:
        """When it began, in local time without a zone, as Optuna's; None of one that waits."""
        return _time(self._get("start_ms"))

    @property
    def datetime_complete(self) -> datetime.datetime | None:
        """When it ended, in local time without a zone; None of one that has not."""
        return _time(self._get("end_ms"))

    @property
    def duration(self) -> datetime.timedelta | None:
        """How long it ran, without the time in which it was paused; None of one that has not ended."""
        if self.datetime_start is None or self.datetime_complete is None:
            return None
        return datetime.timedelta(milliseconds=self._get("ran_ms"))

    @property
    def user_attrs(self) -> dict[str, Any]:
        """What trial.set_user_attr has noted, asked for when it is looked at."""
        return self._attributes_of(self.run_id)

    @property
    def intermediate_values(self) -> dict[int, float]:
        """What was reported, by step; the value that the trial was told stands at the last of the steps."""
        if "intermediate" not in self and "intermediate" not in self._later:
            self._later.update(self._read(self.number, True))
        return {step: float(value) for step, value in self._get("intermediate")}

    def _get(self, field: str) -> Any:
        if field not in self and "state" not in self and "state" not in self._later:
            self._later.update(self._read(self.number, False))  # one of the best: those are listed with less
        return self.get(field, self._later.get(field))


class Trials(Sequence[FrozenTrial]):
    """The trials of a study, read from the server whenever they are looked at; called, a selection of them one by one."""

    def __init__(self, pages: Callable[[str | None, bool], Iterator[FrozenTrial]], read: Callable[[int], FrozenTrial],
                 count: Callable[[], int]) -> None:
        self._pages = pages
        self._one = read
        self._count = count

    def __call__(self, state: TrialState | str | None = None, with_intermediate: bool = False) -> Iterator[FrozenTrial]:
        """Those in `state`, or all, one by one; `with_intermediate`: with what they reported, in the same requests."""
        return self._pages(None if state is None else str(state), with_intermediate)

    def __iter__(self) -> Iterator[FrozenTrial]:
        return self()

    def __len__(self) -> int:
        return self._count()

    @overload
    def __getitem__(self, index: int) -> FrozenTrial: ...

    @overload
    def __getitem__(self, index: slice) -> list[FrozenTrial]: ...

    def __getitem__(self, index: int | slice) -> FrozenTrial | list[FrozenTrial]:
        if isinstance(index, slice):
            return list(self())[index]
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"no trial {index}: the study has {counted(count, 'trial')}")
        return self._one(index % count)

    def __repr__(self) -> str:
        return repr(list(self()))


def frame_of(trials: Sequence[FrozenTrial], attrs: Sequence[str], metrics: Sequence[str]) -> pandas.DataFrame:
    """A row a trial, with Optuna's columns; of several objectives a column values_NAME each. ImportError without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("trials_dataframe needs pandas: pip install pandas") from error
    parameters = dict.fromkeys(name for trial in trials for name in trial.params)
    columns: dict[str, list[Any]] = {}
    for attr in attrs:
        if attr == "params":
            for name in parameters:
                columns[f"params_{name}"] = [trial.params.get(name) for trial in trials]
        elif attr == "value" and len(metrics) > 1:
            for i, metric in enumerate(metrics):
                columns[f"values_{metric}"] = [trial.values[i] if trial.values else None for trial in trials]
        elif attr == "state":
            columns[attr] = [trial.state.name for trial in trials]
        elif isinstance(getattr(FrozenTrial, attr, None), property):
            columns[attr] = [getattr(trial, attr) for trial in trials]
        else:
            known = sorted(name for name in vars(FrozenTrial) if isinstance(vars(FrozenTrial)[name], property))
            raise ValueError(f"trials have no {attr!r}; they have {', '.join(known)}")
    return pandas.DataFrame(columns)


def _float(value: Any) -> float | None:
    """A number, or the name of one that JSON has no form for."""
    return None if value is None else float(value)


def _time(time_ms: int | None) -> datetime.datetime | None:
    return None if time_ms is None else datetime.datetime.fromtimestamp(time_ms / 1000)

"""What a trainable calls while it runs: report, get_checkpoint, get_context."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import shutil
import socket
import tempfile
import time
from typing import Any, Callable, Iterator, Mapping

from tune_client._trial import Trial

_RESULTS = "result.json"  # in a trial's folder, as with ray.tune: a line for each report
_ITERATION = "training_iteration"


class Stop(BaseException):
    """Ends a training that has reached the bound of RunConfig.stop. No Exception, so that a training's own `except` lets it by."""


class Checkpoint:
    """A folder with what a training needs to resume, as ray.tune.Checkpoint."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __repr__(self) -> str:
        return f"Checkpoint(path={self.path})"

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """The folder as it is; report() copies it."""
        return cls(path)

    def to_directory(self, path: str | os.PathLike[str] | None = None) -> str:
        """A copy, in `path` or a new temporary folder."""
        target = os.fspath(path) if path is not None else tempfile.mkdtemp(prefix="checkpoint-")
        shutil.copytree(self.path, target, dirs_exist_ok=True)
        return target

    @contextlib.contextmanager
    def as_directory(self) -> Iterator[str]:
        """The folder itself, to read from."""
        yield self.path

    def get_metadata(self) -> dict[str, Any]:
        """What set_metadata wrote."""
        try:
            found: dict[str, Any] = json.loads(pathlib.Path(self.path, ".metadata.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Keeps these JSON values with the folder."""
        pathlib.Path(self.path, ".metadata.json").write_text(json.dumps(dict(metadata)))


@dataclasses.dataclass
class Rules:
    """What holds for each trial of a Tuner. `ask`: called with (trial_id, result) at each report; True ends the training."""

    metric: str | None = None
    stop: Mapping[str, float] = dataclasses.field(default_factory=dict)
    ask: Callable[[str, Mapping[str, Any]], bool] | None = None
    keep: int | None = None  # checkpoints
    score: str | None = None  # by which the best of them are kept; None: the latest
    order: str = "max"
    every: int = 0  # steps between checkpoints of a class
    at_end: bool = False


class Session:
    """One run of a trainable as a trial."""

    def __init__(self, trial: Trial, folder: str, rules: Rules, experiment: str, name: str) -> None:
        self.trial, self.folder, self.rules, self.experiment, self.name = trial, folder, rules, experiment, name
        self.history: list[dict[str, Any]] = []
        os.makedirs(folder, exist_ok=True)
        found = self._checkpoints()
        self.loaded = Checkpoint(found[-1][1]) if found else None
        self.iteration = found[-1][0] if found else 0
        self._rows = {iteration: row for iteration, row in rows_in(folder).items() if iteration <= self.iteration}
        self._write_rows()
        self._before_s = float(self._rows.get(self.iteration, {}).get("time_total_s", 0.0))
        self._began_s = self._reported_s = time.monotonic()

    def report(self, metrics: Mapping[str, Any], checkpoint: Any = None) -> None:
        """See report()."""
        self.iteration += 1
        shown = {**self._auto(), **metrics}
        self._add_row(shown)
        if checkpoint is not None:
            self.persist(checkpoint, shown)
        self.history.append(shown)
        self._log({_ITERATION: self.iteration, **metrics})
        if self.rules.metric is not None:
            if self.rules.metric not in shown:
                raise KeyError(f"report() got no {self.rules.metric!r}, which TuneConfig.metric names; it got {', '.join(map(str, metrics))}")
            self.trial.report(shown[self.rules.metric], self.iteration)
        if self._is_last(shown):
            raise Stop

    def _auto(self) -> dict[str, Any]:
        """What each result has, as with ray.tune."""
        now_s = time.monotonic()
        step_s, self._reported_s = now_s - self._reported_s, now_s
        return {_ITERATION: self.iteration, "time_this_iter_s": step_s, "time_total_s": self._before_s + now_s - self._began_s,
                "timestamp": int(time.time()), "trial_id": self.trial.run_id, "pid": os.getpid(), "hostname": socket.gethostname()}

    def _is_last(self, shown: Mapping[str, Any]) -> bool:
        missing = [name for name in self.rules.stop if name not in shown]
        if missing:
            raise KeyError(f"report() got no {missing[0]!r}, at which RunConfig.stop looks; it got {', '.join(map(str, shown))}")
        if shown.get("done") or any(shown[name] >= bound for name, bound in self.rules.stop.items()):
            return True
        return self.rules.ask is not None and bool(self.rules.ask(self.trial.run_id, shown))

    def _log(self, shown: Mapping[str, Any]) -> None:
        """All numbers but the metric, which the trial's report logs."""
        rows = [{"key": str(name), "value": float(value), "step": self.iteration, "timestamp": round(time.time() * 1000)}
                for name, value in shown.items()
                if name != self.rules.metric and isinstance(value, (int, float)) and math.isfinite(value)]
        body = {"run_id": self.trial.run_id, "metrics": rows}
        if rows:
            self.trial._study._connection.call("/api/2.0/mlflow/runs/log-batch", body)

    def persist(self, checkpoint: Any, metrics: Mapping[str, Any]) -> None:
        """Copied beside and renamed, so that what is there is whole, however this process ends."""
        if self.rules.score is not None and not isinstance(metrics.get(self.rules.score), (int, float)):
            raise KeyError(f"report() got no number {self.rules.score!r}, which CheckpointConfig.checkpoint_score_attribute names")
        target = os.path.join(self.folder, f"checkpoint_{self.iteration:06d}")
        shutil.rmtree(target + ".new", ignore_errors=True)
        shutil.copytree(checkpoint.path, target + ".new")
        shutil.rmtree(target, ignore_errors=True)
        os.replace(target + ".new", target)
        for path in self._surplus():
            shutil.rmtree(path, ignore_errors=True)

    def _add_row(self, shown: Mapping[str, Any]) -> None:
        self._rows[self.iteration] = {name: value for name, value in shown.items() if isinstance(value, (int, float))}
        with open(os.path.join(self.folder, _RESULTS), "a", encoding="utf-8") as file:
            file.write(json.dumps({**shown, _ITERATION: self.iteration}, default=_plain) + "\n")

    def _write_rows(self) -> None:
        """Without what was reported after the checkpoint from which this run resumes."""
        path = os.path.join(self.folder, _RESULTS)
        with open(path + ".new", "w", encoding="utf-8") as file:
            for iteration, row in self._rows.items():
                file.write(json.dumps({**row, _ITERATION: iteration}) + "\n")
        os.replace(path + ".new", path)

    def _surplus(self) -> list[str]:
        """Of the checkpoints those that are not kept. The latest is, to resume from."""
        found, keep, score = self._checkpoints(), self.rules.keep, self.rules.score
        if keep is None or len(found) <= keep:
            return []
        if score is None:
            return [path for _, path in found[:-keep]]
        sign = 1 if self.rules.order == "max" else -1
        by_score = sorted(found, key=lambda one: (sign * self._rows.get(one[0], {}).get(score, -sign * math.inf), one[0]))
        return [path for iteration, path in by_score[:-keep] if iteration != found[-1][0]]

    def _checkpoints(self) -> list[tuple[int, str]]:
        return checkpoints_in(self.folder)


def checkpoints_in(folder: str) -> list[tuple[int, str]]:
    """(iteration, path) of a trial's whole checkpoints, oldest first."""
    names = [name for name in os.listdir(folder)] if os.path.isdir(folder) else []
    return sorted((int(name[11:]), os.path.join(folder, name)) for name in names if name.startswith("checkpoint_") and name[11:].isdigit())


def rows_in(folder: str) -> dict[int, dict[str, Any]]:
    """What a trial reported, by iteration, as far as JSON has it."""
    found = {}
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, _RESULTS), encoding="utf-8") as file:
        for line in file:
            with contextlib.suppress(ValueError, KeyError):  # a line that was cut off with its process
                row = json.loads(line)
                found[int(row.pop(_ITERATION))] = row
    return dict(sorted(found.items()))


def _plain(value: Any) -> Any:
    """numpy's numbers and the like as Python's, other objects in words."""
    return value.tolist() if callable(getattr(value, "tolist", None)) else str(value)


_session: Session | None = None  # of this process: a worker runs one trial at a time


def begin(session: Session | None) -> None:
    """Makes it the session of this process; None: there is none."""
    global _session
    _session = session


def report(metrics: Mapping[str, Any], *, checkpoint: Any = None) -> None:
    """Reports metrics of the next training_iteration, and keeps a checkpoint. Ends the training where the trial should stop."""
    _current("report").report(metrics, checkpoint)


def get_checkpoint() -> Checkpoint | None:
    """The latest checkpoint of this trial, to resume from; None when it begins."""
    return _current("get_checkpoint").loaded


class TuneContext:
    """Which trial this is."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_trial_id(self) -> str:
        """Its MLflow run."""
        return self._session.trial.run_id

    def get_trial_name(self) -> str:
        """The trainable's name with the trial's number."""
        return self._session.name

    def get_trial_dir(self) -> str:
        """Where its checkpoints lie."""
        return self._session.folder

    def get_experiment_name(self) -> str:
        """The study."""
        return self._session.experiment


def get_context() -> TuneContext:
    """Of the trial that runs here."""
    return TuneContext(_current("get_context"))


def _current(what: str) -> Session:
    if _session is None:
        raise RuntimeError(f"tune.{what}(): no trial runs here; call it from a trainable that Tuner.fit() runs")
    return _session


"""What a trainable calls while it runs: report, get_checkpoint, get_context."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import shutil
import tempfile
from typing import Any, Iterator, Mapping

from tune_client._trial import Trial


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


class Session:
    """One run of a trainable as a trial."""

    def __init__(self, trial: Trial, folder: str, metric: str | None, stop: Mapping[str, float], keep: int | None, experiment: str,
                 name: str) -> None:
        self.trial, self.folder, self.experiment, self.name = trial, folder, experiment, name
        self.history: list[dict[str, Any]] = []
        self._metric, self._stop, self._keep = metric, stop, keep
        os.makedirs(folder, exist_ok=True)
        found = self._checkpoints()
        self.loaded = Checkpoint(found[-1][1]) if found else None
        self.iteration = found[-1][0] if found else 0

    def report(self, metrics: Mapping[str, Any], checkpoint: Any = None) -> None:
        """See report()."""
        self.iteration += 1
        if checkpoint is not None:
            self._persist(checkpoint)
        shown = {"training_iteration": self.iteration, **metrics}
        self.history.append(shown)
        self._log(shown)
        if self._metric is not None:
            if self._metric not in shown:
                raise KeyError(f"report() got no {self._metric!r}, which TuneConfig.metric names; it got {', '.join(map(str, metrics))}")
            self.trial.report(shown[self._metric], self.iteration)
        if shown.get("done") or any(name in shown and shown[name] >= bound for name, bound in self._stop.items()):
            raise Stop

    def _log(self, shown: Mapping[str, Any]) -> None:
        """All numbers but the metric, which the trial's report logs."""
        rows = [{"key": str(name), "value": float(value), "step": self.iteration, "timestamp": _now_ms()} for name, value in shown.items()
                if name != self._metric and isinstance(value, (int, float)) and math.isfinite(value)]
        body = {"run_id": self.trial.run_id, "metrics": rows}
        if rows:
            self.trial._study._connection.call("/api/2.0/mlflow/runs/log-batch", body)

    def _persist(self, checkpoint: Any) -> None:
        """Copied beside and renamed, so that what is there is whole, however this process ends."""
        target = os.path.join(self.folder, f"checkpoint_{self.iteration:06d}")
        shutil.rmtree(target + ".new", ignore_errors=True)
        shutil.copytree(checkpoint.path, target + ".new")
        shutil.rmtree(target, ignore_errors=True)
        os.replace(target + ".new", target)
        if self._keep is not None:
            for _, path in self._checkpoints()[:-self._keep]:
                shutil.rmtree(path, ignore_errors=True)

    def _checkpoints(self) -> list[tuple[int, str]]:
        return checkpoints_in(self.folder)


def checkpoints_in(folder: str) -> list[tuple[int, str]]:
    """(iteration, path) of a trial's whole checkpoints, oldest first."""
    names = [name for name in os.listdir(folder)] if os.path.isdir(folder) else []
    return sorted((int(name[11:]), os.path.join(folder, name)) for name in names if name.startswith("checkpoint_") and name[11:].isdigit())


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


def _now_ms() -> int:
    import time

    return round(time.time() * 1000)

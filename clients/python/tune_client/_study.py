"""A study on the server, and how one is made or found."""

from __future__ import annotations

import os
import threading
import time
import urllib.parse
import uuid
import warnings
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Sequence

from tune_client import _words
from tune_client._attributes import attributes_of, set_attribute
from tune_client._errors import TuneError, say
from tune_client._leases import LEASE_S, Keeper, keeper_of
from tune_client._optimize import Callback, Catch, Loop, Objective, collect_garbage, jobs_of, say_progress
from tune_client._records import FRAME_ATTRS, FrozenTrial, Trials, TrialState, frame_of
from tune_client._server import Server
from tune_client._trial import Trial

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

_WAIT_MS = 30_000
_HAS_ENDED = ("completed", "stopped")


def create_study(name: str | None = None, *, space: Mapping[str, Any], metric: Any = None, goal: str | None = None,
                 trials: int | None = None, server: str | None = None, lease_s: float = LEASE_S,
                 study_name: str | None = None, storage: str | None = None, direction: Any = None,
                 directions: Sequence[Any] | None = None, n_trials: int | None = None,
                 load_if_exists: bool | None = None, **more: Any) -> Study:
    """Creates the study, or resumes the one of this name: with its space and metric; what is left out stays as it is.

    Where space or metric differ the study is replaced while no trial of it is complete, and a line on stderr says so (it can be
    brought back, see restore_study); else TuneError (409) says how to go on. `replace=False`: it is never replaced.

    `space`: as in study.yaml, e.g. {"x": {"float": [0, 1]}, "opt": {"choice": ["sgd", "adam"]}}. `metric`: its name (then
    `goal` counts, "min" where it is left out), or as in study.yaml, a list of them for several objectives. `more`: further
    fields of study.yaml, such as sampler="qmc", pruner={"type": "asha"}, budget={"trials": 50, "time": "2h"},
    constraints=[{"name": "ms", "max": 20}]. `lease_s`: how long after this process has died its trials go to others; 0:
    never (end them by hand).

    Optuna's names: `study_name`; `storage` is the server's address; `direction` ("minimize" or "maximize") and `directions`
    are the goals, of metrics that are called "value", or "values_0", "values_1", ... where `metric` does not name them.
    `n_trials` is `trials`. `load_if_exists=False` raises TuneError where the name is taken; left out, as with True, the
    study goes on, which is the other way round in Optuna. `sampler` and `pruner` are names or mappings, no objects.
    """
    keeper = keeper_of(lease_s)
    name = _words.required("a study needs a name: create_study(NAME, ...)", name=name, study_name=study_name)
    metric = _words.metrics_of(metric, goal, direction, directions)
    trials = _words.one_of(trials=trials, n_trials=n_trials)
    for part in ("sampler", "pruner"):
        _words.check_plain(part, more.get(part))
    if trials is not None:
        more["budget"] = {**(more.get("budget") or {}), "trials": trials}
    study = Study(Server(_words.one_of(server=server, storage=storage)), name, keeper)
    if load_if_exists is False:
        study._check_is_absent()
    made = study._connection.call("/studies", {"name": name, "space": space, "metric": metric, "request_id": uuid.uuid4().hex,
                                               "replace": load_if_exists is not False, **more})
    if made.get("replaced"):
        say(f"study {name!r} replaces the earlier one, in which no trial completed ({made['replaced']})")
    for warning in made.get("warnings", ()):
        warnings.warn(warning, stacklevel=2)
    return study


def load_study(name: str | None = None, server: str | None = None, lease_s: float = LEASE_S, *,
               study_name: str | None = None, storage: str | None = None) -> Study:
    """The study of this name; TuneError with status 404 if there is none. `lease_s`: as in create_study."""
    keeper = keeper_of(lease_s)
    name = _words.required("which study? load_study(NAME)", name=name, study_name=study_name)
    study = Study(Server(_words.one_of(server=server, storage=storage)), name, keeper)
    study.info()
    return study


def restore_study(name: str, server: str | None = None, lease_s: float = LEASE_S) -> Study:
    """Brings back a study that was deleted, or whose experiment was: until `tune gc` takes its runs.

    TuneError with status 404 if there is none of this name, 409 if the name is taken by now.
    """
    study = Study(Server(server), name, keeper_of(lease_s))
    study._change("/restore")
    return study


class Study:
    """A study on the server. Safe to use from several threads."""

    def __init__(self, connection: Server, name: str, keeper: Keeper) -> None:
        self._connection = connection
        self._keeper = keeper
        self._declared: dict[str, Any] | None = None
        self.name = name
        self._path = _path_of(name)

    def info(self) -> dict[str, Any]:
        """What the server knows of the study: state, counts, best, space, budget, ..."""
        info: dict[str, Any] = self._connection.call(self._path)
        return info

    @property
    def study_name(self) -> str:
        """Its name."""
        return self.name

    @property
    def metric_names(self) -> list[str]:
        """Of its objectives, in their order."""
        return [metric["name"] for metric in _metrics(self.info())]

    @property
    def directions(self) -> list[str]:
        """"minimize" or "maximize", one an objective."""
        return [{"min": "minimize", "max": "maximize"}[metric["goal"]] for metric in _metrics(self.info())]

    @property
    def direction(self) -> str:
        """"minimize" or "maximize"; ValueError where there are several objectives."""
        [*directions] = self.directions
        if len(directions) > 1:
            raise ValueError(f"study {self.name!r} has {len(directions)} objectives; use study.directions")
        return directions[0]

    def ask(self, wait: bool = True) -> Trial | None:
        """The next Trial; None when the study has ended.

        Where the study allows no further trial at this moment (its `parallel`, a pause), waits for one; `wait=False` gives
        None at once.
        """
        trials = self.ask_many(1, wait=wait)
        return trials[0] if trials else None

    def ask_many(self, count: int, wait: bool = True) -> list[Trial]:
        """At most `count` trials, in one request; an empty list when the study has ended."""
        return self._ask(count, wait, None)

    def tell(self, trial: Trial, values: Any = None, state: TrialState | str | None = None) -> FrozenTrial:
        """Ends a trial of `ask`, in Optuna's words; trial.tell takes more."""
        return trial.tell(values, state)

    def optimize(self, objective: Objective, trials: int | None = None, jobs: int = 1, catch: Catch = (), *,
                 n_trials: int | None = None, timeout: float | None = None, n_jobs: int | None = None,
                 callbacks: Iterable[Callback] | None = None, gc_after_trial: bool = False,
                 show_progress_bar: bool = False) -> Study:
        """Calls `objective(trial)` for trial after trial until the study has ended, or `trials` more were run here.

        The objective returns the value, or the list of values, or None after trial.tell or reports. A trial without any value
        fails; three of them in a row raise TuneError. Exceptions of `catch` (a class or several) end their trial as failed
        and the loop goes on; others end the trial and are raised. `jobs`: threads of this process. Ctrl-C cancels the
        trials that run here; their threads go on until the objective returns, which may look at trial.stopping.

        `timeout`: no trial begins here after so many seconds; those that run end as they would. `callbacks`: functions of
        (study, trial), called after each trial that ended here with that trial as the server has it, a FrozenTrial; what
        they raise ends the loop. A study that its first failures stopped goes on, with the mended objective: they use up no
        budget, and their points are tried again. `n_trials` and `n_jobs` are Optuna's names; n_jobs=-1 is as many as there are processors.
        `gc_after_trial` collects garbage after each trial; `show_progress_bar` says a line on stderr after each.
        """
        trials = _words.one_of(trials=trials, n_trials=n_trials)
        jobs = jobs_of(jobs, n_jobs)
        if jobs < 1 or (trials or 0) < 0:
            raise ValueError(f"jobs must be at least 1 and trials at least 0, found {jobs} and {trials}")
        if timeout is not None and timeout < 0:
            raise ValueError(f"timeout must be at least 0 seconds, found {timeout}")
        if self.info().get("ended_by") == "failures":
            self.resume()
        of_ours = [collect_garbage] * gc_after_trial + [say_progress] * show_progress_bar
        Loop(self, objective, trials, timeout, catch, callbacks, of_ours).run(jobs)
        self._say_if_stopped_by_failures()
        return self

    def _say_if_stopped_by_failures(self) -> None:
        info = self.info()
        if info.get("ended_by") != "failures":
            return
        failed = sorted(self.trials(TrialState.FAILED), key=lambda trial: int(trial["end_ms"]))
        last = f"; the last one: {failed[-1].reason}" if failed and failed[-1].reason else ""
        say(f"study {self.name!r} was stopped: {info.get('note')}{last}\nMend the objective and call optimize again: these trials use up "
            "no budget. With stop_after_failures=0 a study goes on regardless")

    def set_user_attr(self, key: str, value: Any) -> None:
        """Notes any JSON value of the study under this name, as a tag of its MLflow run."""
        set_attribute(self._connection, self.info()["run_id"], key, value)

    @property
    def user_attrs(self) -> dict[str, Any]:
        """What set_user_attr has noted of the study."""
        return attributes_of(self._connection, self.info()["run_id"])

    def enqueue(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Adds a trial with these values; the sampler fills in what they leave open."""
        queued: dict[str, Any] = self._call("/enqueue", {"params": params, "request_id": uuid.uuid4().hex})
        return queued

    def enqueue_trial(self, params: Mapping[str, Any], *, skip_if_exists: bool = False) -> None:
        """enqueue by Optuna's name. `skip_if_exists`: does nothing where a trial has these values already (reads them all)."""
        if skip_if_exists and any(dict(params).items() <= trial.params.items() for trial in self.trials):
            return
        self.enqueue(params)

    @property
    def trials(self) -> Trials:
        """All trials: a sequence of FrozenTrial, read from the server whenever it is looked at.

        Called, study.trials(state="complete", with_intermediate=True), an iterator over a selection. `for` and `len` need
        one request, or one for each 1,000 trials; study.trials[-1] needs two.
        """
        return Trials(self._pages, lambda number: self._frozen(self._read(number, False)), lambda: int(self.info()["trials"]))

    def get_trials(self, states: Iterable[TrialState | str] | None = None) -> list[FrozenTrial]:
        """All trials, or those in one of `states`, as a list."""
        wanted = None if states is None else {str(state) for state in states}
        return [trial for trial in self.trials if wanted is None or trial["state"] in wanted]

    def trials_dataframe(self, attrs: Sequence[str] = FRAME_ATTRS) -> pandas.DataFrame:
        """The trials as a pandas.DataFrame, a row each, with Optuna's columns; ImportError where pandas is not installed.

        `attrs`: which of number, value, datetime_start, datetime_complete, duration, params, state and the other properties
        of FrozenTrial. A parameter becomes params_NAME; of several objectives each becomes values_NAME.
        """
        has_intermediate = "intermediate_values" in attrs
        return frame_of(list(self.trials(with_intermediate=has_intermediate)), attrs, self.metric_names)

    @property
    def best_trial(self) -> FrozenTrial | None:
        """The best complete trial as the server shows it; None if there is none, or several objectives (best_trials)."""
        best = self.info()["best"]
        return self._frozen(best) if best else None

    @property
    def best_trials(self) -> list[FrozenTrial]:
        """The complete trials that no other one dominates: the Pareto front; of one objective the best trial."""
        info = self.info()
        best = info["best_trials"] if "best_trials" in info else [info["best"]] if info["best"] else []
        return [self._frozen(trial) for trial in best]

    @property
    def best_value(self) -> float | None:
        """Of the best trial."""
        best = self.best_trial
        return best.value if best else None

    @property
    def best_params(self) -> dict[str, Any] | None:
        """Of the best trial."""
        best = self.best_trial
        return best.params if best else None

    def pause(self) -> dict[str, Any]:
        """Begins no further trial, here or elsewhere, until `resume`."""
        return self._change("/pause")

    def resume(self) -> dict[str, Any]:
        """Begins trials again after `pause` or `stop`."""
        return self._change("/resume")

    def stop(self) -> dict[str, Any]:
        """Ends the study for all who work on it, and tells the trials that run to stop; `optimize` then returns.

        In Optuna only the loop ends that a callback stopped. `resume` goes on with the study here.
        """
        return self._change("/stop")

    def rename(self, name: str) -> dict[str, Any]:
        """Gives the study another name, which this object then has too. Raises TuneError (409) while trials run."""
        renamed: dict[str, Any] = self._call("/rename", {"name": name})
        self.name = name
        self._path = _path_of(name)
        return renamed

    def delete(self) -> None:
        """Removes the study with its runs, and cancels the trials that run; `restore_study` brings it back."""
        self._connection.call(self._path, method="DELETE")

    def _change(self, path: str) -> dict[str, Any]:
        changed: dict[str, Any] = self._call(path, {})
        return changed

    def _next(self, deadline_s: float | None) -> Trial | None:
        """As ask, but None also once time.monotonic() has come to `deadline_s`."""
        trials = self._ask(1, True, deadline_s)
        return trials[0] if trials else None

    def _ask(self, count: int, wait: bool, deadline_s: float | None) -> list[Trial]:
        while True:
            version = self.info()["version"] if wait else None
            answer = self._call("/ask", {"count": count, "request_id": uuid.uuid4().hex, "worker": _worker(),
                                         "lease_ttl_ms": round(self._keeper.lease_s * 1000)})
            if answer["trials"] or not wait or answer.get("state") in _HAS_ENDED:
                trials = [Trial(self, asked) for asked in answer["trials"]]
                self._keeper.keep(trials)
                return trials
            wait_ms = _WAIT_MS
            if deadline_s is not None:
                wait_ms = min(wait_ms, round((deadline_s - time.monotonic()) * 1000))
            if wait_ms <= 0:
                return []
            query = urllib.parse.urlencode({"version": version, "wait_ms": wait_ms})
            if self._connection.call(f"{self._path}?{query}")["state"] in _HAS_ENDED:
                return []

    def _check_is_absent(self) -> None:
        try:
            self.info()
        except TuneError as error:
            if error.status == 404:
                return
            raise
        raise TuneError(f"study {self.name!r} exists on {self._connection.url}; load_if_exists=True resumes it, "
                        "another name begins a new one", 409, "RESOURCE_ALREADY_EXISTS")

    def _space(self) -> dict[str, Any]:
        """The declared space, asked for once."""
        if self._declared is None:
            self._declared = self.info()["space"]
        return self._declared

    def _frozen(self, fields: Mapping[str, Any]) -> FrozenTrial:
        return FrozenTrial(fields, self._read, self._attributes_of)

    def _attributes_of(self, run_id: str) -> dict[str, Any]:
        return attributes_of(self._connection, run_id)

    def _read(self, number: int, with_intermediate: bool) -> dict[str, Any]:
        if not with_intermediate:
            trial: dict[str, Any] = self._connection.call(f"{self._path}/trials/{number}")
            return trial
        query = urllib.parse.urlencode({"page_token": number, "max_results": 1, "fields": "intermediate"})
        page = self._connection.call(f"{self._path}/trials?{query}")
        found: dict[str, Any] = page["trials"][0]
        return found

    def _pages(self, state: str | None, with_intermediate: bool) -> Iterator[FrozenTrial]:
        query: dict[str, Any] = {"max_results": 1000, **({"state": state} if state else {})}
        if with_intermediate:
            query["fields"] = "intermediate"
        while True:
            page = self._connection.call(f"{self._path}/trials?{urllib.parse.urlencode(query)}")
            yield from map(self._frozen, page["trials"])
            if not page.get("next_page_token"):
                return
            query["page_token"] = page["next_page_token"]

    def _call(self, path: str, body: dict[str, Any], **more: Any) -> Any:
        return self._connection.call(self._path + path, body, **more)


def _metrics(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(info.get("metrics") or [info["metric"]])


def _path_of(name: str) -> str:
    return "/studies/" + urllib.parse.quote(name, safe="")


def _worker() -> str:
    return f"{os.uname().nodename}:{os.getpid()}:{threading.get_ident() % 100_000}"

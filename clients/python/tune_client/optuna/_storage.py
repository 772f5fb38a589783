"""TuneStorage: Optuna's storage on a server of ours."""

from __future__ import annotations

import copy
import threading
import urllib.parse
from typing import Any, Container, Sequence

from optuna.distributions import BaseDistribution
from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.study._frozen import FrozenStudy
from optuna.trial import FrozenTrial, TrialState

from tune_client._errors import Lost, TuneError
from tune_client._leases import LEASE_S, keeper_of
from tune_client._server import Server, to_json_number
from tune_client._study import Study, create_study
from tune_client._trial import Trial
from tune_client.optuna import _records
from tune_client.optuna._records import Known

_TRIALS_MAX = 1 << 32  # of a study: a trial's id is its study's, and its number
_SPACE = {"optuna": {"const": "define-by-run"}}  # an objective of Optuna's says its space while it runs
_SAMPLER = {"type": "random", "duplicates": "allow"}
_GOALS = {StudyDirection.MINIMIZE: "min", StudyDirection.MAXIMIZE: "max"}
_DIRECTIONS = {"min": StudyDirection.MINIMIZE, "max": StudyDirection.MAXIMIZE}


class TuneStorage(BaseStorage):  # type: ignore[misc,unused-ignore]
    """Keeps studies of Optuna's on a server of ours. Safe to use from several threads, and from any number of processes.

    `server`: its address; left out, what TUNE_SERVER or MLFLOW_TRACKING_URI name. `lease_s`: how long after a process has died its trials
    wait again, to be run with the parameters that they had; meanwhile a thread of this process keeps them.

    An Optuna study is a study of the server, of the same name, and a trial is a trial, with its number. Parameters, distributions and
    attributes lie on the trial's MLflow run; a study of the server that Optuna did not make is not shown. Where Optuna's own
    storages keep the times of a trial that is added whole (add_trial), the server has those of the adding.

    Costs a request to begin a trial and one to end it, one a parameter, attribute and report; trials that have ended are read once.
    """

    def __init__(self, server: str | None = None, lease_s: float = LEASE_S) -> None:
        self._server = Server(server)
        self._lease_s = lease_s
        self._begin()

    def _begin(self) -> None:
        self._keeper = keeper_of(self._lease_s)
        self._lock = threading.RLock()
        self._known: dict[int, Known] = {}
        self._mine: dict[int, Trial] = {}  # that run here, by trial id
        self._notes: dict[int, FrozenTrial] = {}  # those, as this process has written them
        self._spare: dict[int, list[Trial]] = {}  # by study: given by the server where another one was wanted

    def __getstate__(self) -> dict[str, Any]:
        return {"server": self._server.url, "lease_s": self._lease_s}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["server"], state["lease_s"])  # type: ignore[misc]

    # --- studies ---------------------------------------------------------------------------------

    def create_new_study(self, directions: Sequence[StudyDirection], study_name: str | None = None) -> int:
        """See BaseStorage."""
        name = study_name or _records.made_up_name()
        goals = [_GOALS.get(direction, "min") for direction in directions]
        metrics = [{"name": "value" if len(goals) == 1 else f"values_{i}", "goal": goal, "take": "last"} for i, goal in enumerate(goals)]
        try:
            study = create_study(name, space=_SPACE, metric=metrics[0] if len(metrics) == 1 else metrics, sampler=_SAMPLER,
                                 server=self._server.url, lease_s=self._lease_s, stop_after_failures=0, load_if_exists=False)
        except TuneError as error:
            if error.status != 409:
                raise
            raise DuplicatedStudyError(f"Another study with name '{name}' already exists. Please specify a different name, or reuse the "
                                       "existing one by setting `load_if_exists` (for Python API) or `--skip-if-exists` flag (for CLI).") from None
        return self._note_study(study).study_id

    def delete_study(self, study_id: int) -> None:
        """See BaseStorage. `tune restore --study NAME` brings it back."""
        self._study(study_id).study.delete()
        with self._lock:
            del self._known[study_id]

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        """See BaseStorage."""
        _records.set_tag(self._server, self._study(study_id).run_id, _records.USER + key, value)

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        """See BaseStorage."""
        _records.set_tag(self._server, self._study(study_id).run_id, _records.SYSTEM + key, value)

    def get_study_id_from_name(self, study_name: str) -> int:
        """See BaseStorage."""
        with self._lock:
            for known in self._known.values():
                if known.study.name == study_name:
                    return known.study_id
        study = Study(self._server, study_name, self._keeper)
        try:
            return self._note_study(study).study_id
        except TuneError as error:
            if error.status == 404:
                raise KeyError(f"No such study {study_name!r} exists on {self._server.url}.") from None
            raise

    def get_study_name_from_id(self, study_id: int) -> str:
        """See BaseStorage."""
        return self._study(study_id).study.name

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        """See BaseStorage."""
        return [_DIRECTIONS[goal] for goal in self._study(study_id).goals]

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        """See BaseStorage."""
        return _records.attributes(_records.tags_of(self._server, self._study(study_id).run_id), _records.USER)

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """See BaseStorage."""
        return _records.attributes(_records.tags_of(self._server, self._study(study_id).run_id), _records.SYSTEM)

    def get_all_studies(self) -> list[FrozenStudy]:
        """See BaseStorage."""
        found = []
        for each in self._server.call("/studies")["studies"]:
            try:
                known = self._note_study(Study(self._server, each["name"], self._keeper))
            except (TuneError, KeyError):  # deleted meanwhile, or not of Optuna's
                continue
            tags = _records.tags_of(self._server, known.run_id)
            found.append(FrozenStudy(study_name=known.study.name, direction=None, directions=self.get_study_directions(known.study_id),
                                     user_attrs=_records.attributes(tags, _records.USER),
                                     system_attrs=_records.attributes(tags, _records.SYSTEM), study_id=known.study_id))
        return found

    def _note_study(self, study: Study) -> Known:
        info = study.info()
        if set(info["space"]) != set(_SPACE):
            raise KeyError(f"study {study.name!r} was not made by Optuna: its space is declared, and its trials are for tune_client")
        study_id = int(info["experiment_id"])
        with self._lock:
            if study_id not in self._known:
                study._keeper = self._keeper
                goals = [metric["goal"] for metric in info.get("metrics") or [info["metric"]]]
                self._known[study_id] = Known(study_id, study, info["run_id"], goals)
            return self._known[study_id]

    def _study(self, study_id: int) -> Known:
        with self._lock:
            if study_id in self._known:
                return self._known[study_id]
        for each in self._server.call("/studies")["studies"]:  # of another process: the id alone is known here
            if str(each.get("experiment_id")) == str(study_id):
                return self._note_study(Study(self._server, each["name"], self._keeper))
        raise KeyError(f"No study with study_id {study_id} exists.")

    # --- trials that run here --------------------------------------------------------------------

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """See BaseStorage."""
        known = self._study(study_id)
        if template_trial is not None and template_trial.state == TrialState.WAITING:
            return self._enqueue(known, template_trial)
        [trial] = self._asked(known)
        trial_id = self._hold(known, trial, {})
        if template_trial is not None:
            self._copy(trial_id, template_trial)
        return trial_id

    def _asked(self, known: Known) -> list[Trial]:
        """A trial of our own. Those that wait are for set_trial_state_values, which also knows what to do with one that comes instead."""
        with self._lock:  # one that came when somebody else was faster to take what waited
            spare = self._spare.setdefault(known.study_id, [])
            for trial in spare:
                if self._is_new(trial):
                    spare.remove(trial)
                    return [trial]
        while True:
            asked = known.study.ask_many(1, wait=False)
            if not asked:
                raise RuntimeError(f"study {known.study.name!r} was stopped or paused on the server")
            if self._is_new(asked[0]):
                return asked
            with self._lock:  # it waited, and _pop_waiting_trial_id will find it among those
                self._spare.setdefault(known.study_id, []).extend(asked)

    def _is_new(self, trial: Trial) -> bool:
        return trial.attempt == 1 and not _records.is_waiting(_records.tags_of(self._server, trial.run_id))

    def _enqueue(self, known: Known, template: FrozenTrial) -> int:
        queued = known.study.enqueue({})
        tags = {_records.USER + key: value for key, value in template.user_attrs.items()}
        tags.update({_records.SYSTEM + key: value for key, value in template.system_attrs.items()})
        _records.log(self._server, queued["run_id"], tags=tags)
        _records.set_tag(self._server, queued["run_id"], _records.WAITS, True)  # last: now it is whole
        return self._trial_id(known, queued["number"])

    def _hold(self, known: Known, trial: Trial, tags: dict[str, Any]) -> int:
        trial_id = self._trial_id(known, trial.number)
        note = _records.frozen(known, trial_id, {"number": trial.number, "state": "running", "start_ms": _records.now_ms()}, tags)
        with self._lock:
            self._mine[trial_id], self._notes[trial_id] = trial, note
        return trial_id

    def _copy(self, trial_id: int, template: FrozenTrial) -> None:
        for name, distribution in template.distributions.items():
            self.set_trial_param(trial_id, name, distribution.to_internal_repr(template.params[name]), distribution)
        for key, value in template.user_attrs.items():
            self.set_trial_user_attr(trial_id, key, value)
        for key, value in template.system_attrs.items():
            self.set_trial_system_attr(trial_id, key, value)
        for step, value in template.intermediate_values.items():
            self.set_trial_intermediate_value(trial_id, step, value)
        if template.state != TrialState.RUNNING:
            self.set_trial_state_values(trial_id, template.state, template.values)

    def set_trial_param(self, trial_id: int, param_name: str, param_value_internal: float, distribution: BaseDistribution) -> None:
        """See BaseStorage."""
        note = self._updatable(trial_id)
        note.params[param_name] = distribution.to_external_repr(param_value_internal)
        note.distributions[param_name] = distribution
        params = {param_name: note.params[param_name]}
        _records.log(self._server, self._mine[trial_id].run_id, params=params,
                     tags={_records.PARAM + param_name: _records.distribution_text(param_value_internal, distribution)})

    def set_trial_intermediate_value(self, trial_id: int, step: int, intermediate_value: float) -> None:
        """See BaseStorage."""
        note = self._updatable(trial_id)
        trial = self._mine[trial_id]
        if len(self._of(trial_id).goals) > 1:
            raise TuneError("a study of several objectives takes no intermediate values")
        try:
            trial.should_stop(intermediate_value, step)
        except Lost as error:
            self._drop(trial_id)
            raise UpdateFinishedTrialError(str(error)) from None
        note.intermediate_values[step] = float(intermediate_value)

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        """See BaseStorage."""
        self._updatable(trial_id).user_attrs[key] = value
        _records.set_tag(self._server, self._mine[trial_id].run_id, _records.USER + key, value)

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """See BaseStorage."""
        self._updatable(trial_id).system_attrs[key] = value
        _records.set_tag(self._server, self._mine[trial_id].run_id, _records.SYSTEM + key, value)

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """See BaseStorage."""
        if state == TrialState.RUNNING:
            return self._claim(trial_id)
        note = self._updatable(trial_id)
        trial = self._mine[trial_id]
        if state == TrialState.WAITING:
            raise TuneError("a trial that runs cannot be made to wait: end it, and enqueue its parameters")
        words = {TrialState.COMPLETE: None, TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}
        told: Any = None
        if state == TrialState.COMPLETE and values is not None:
            told = [float(value) for value in values] if len(values) > 1 else float(values[0])
        # The server shows the value at the last step: what was reported there is kept beside it.
        last = max(note.intermediate_values.items(), default=None)
        if told is not None and (last is None or last[1] != told):
            kept = None if last is None else [last[0], to_json_number(last[1])]
            _records.set_tag(self._server, trial.run_id, _records.LAST, kept)
        try:
            trial.tell(told, state=words[state], reason=str(note.system_attrs.get("fail_reason", "")) if state == TrialState.FAIL else "")
        except Lost as error:
            raise UpdateFinishedTrialError(str(error)) from None
        finally:
            self._drop(trial_id)
        return True

    def _claim(self, trial_id: int) -> bool:
        """Makes a trial that waits run here. The server gives the oldest of them: should it be another one, that one is kept for later."""
        known = self._of(trial_id)
        number = trial_id % _TRIALS_MAX
        with self._lock:
            if trial_id in self._mine:
                return False
            spare = self._spare.setdefault(known.study_id, [])
            if not any(trial.number == number for trial in spare) and any(True for _ in known.study.trials(state="queued")):
                spare += known.study.ask_many(1, wait=False)
            for trial in spare:
                if trial.number == number:
                    spare.remove(trial)
                    self._hold(known, trial, _records.tags_of(self._server, trial.run_id))
                    return True
        if known.study.trials[number]["state"] not in ("queued", "running"):
            raise UpdateFinishedTrialError(f"Trial#{number} has already finished and can not be updated.")
        return False

    def _updatable(self, trial_id: int) -> FrozenTrial:
        with self._lock:
            if trial_id in self._notes:
                return self._notes[trial_id]
        shown = self.get_trial(trial_id)
        if shown.state.is_finished():
            raise UpdateFinishedTrialError(f"Trial#{shown.number} has already finished and can not be updated.")
        trial = Trial(self._of(trial_id).study, {**self._of(trial_id).study.trials[shown.number], "seed": 0,
                                                 "experiment_id": str(self._of(trial_id).study_id)})
        with self._lock:  # of another process, which hands it over by its id
            self._mine[trial_id], self._notes[trial_id] = trial, shown
        return shown

    def _drop(self, trial_id: int) -> None:
        with self._lock:
            self._mine.pop(trial_id, None)
            self._notes.pop(trial_id, None)

    # --- reading ---------------------------------------------------------------------------------

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """See BaseStorage."""
        known, number = self._of(trial_id), trial_id % _TRIALS_MAX
        with self._lock:
            if trial_id in self._notes:
                return copy.deepcopy(self._notes[trial_id])
            if number in known.ended:
                return copy.deepcopy(known.ended[number])
        trials = self._read(known)
        if number not in trials:
            raise KeyError(f"No trial with trial_id {trial_id} exists.")
        return copy.deepcopy(trials[number])

    def get_all_trials(self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None) -> list[FrozenTrial]:
        """See BaseStorage."""
        known = self._study(study_id)
        trials = self._read(known)
        with self._lock:
            mine = {trial_id % _TRIALS_MAX: note for trial_id, note in self._notes.items() if trial_id // _TRIALS_MAX == study_id}
            # Ours to begin: on the server they run.
            for trial in self._spare.get(study_id, []):
                if trial.number in trials:
                    trials[trial.number].state = TrialState.WAITING
            found = [mine.get(number, trials[number]) for number in sorted(trials)]
        found = [trial for trial in found if states is None or trial.state in states]
        return copy.deepcopy(found) if deepcopy else found

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        """See BaseStorage."""
        known = self._study(study_id)
        if not 0 <= trial_number < len(known.study.trials):
            raise KeyError(f"No trial with trial_number {trial_number} exists in study with study_id {study_id}.")
        return self._trial_id(known, trial_number)

    def get_trial_number_from_id(self, trial_id: int) -> int:
        """See BaseStorage."""
        return trial_id % _TRIALS_MAX

    def _read(self, known: Known) -> dict[int, FrozenTrial]:
        """All trials, by number. Those that have ended are read once; the others each time."""
        with known.lock:
            query: dict[str, Any] = {"max_results": 1000, "fields": "intermediate", "page_token": known.first_unfinished()}
            fresh: dict[int, FrozenTrial] = {}
            while True:
                page = self._server.call(f"{known.study._path}/trials?{urllib.parse.urlencode(query)}")
                rows = [row for row in page["trials"] if row["number"] not in known.ended]
                tags = _records.tags_of_many(self._server, known.study_id, [row["run_id"] for row in rows])
                for row in rows:
                    shown = _records.frozen(known, self._trial_id(known, row["number"]), row, tags.get(row["run_id"], {}))
                    if shown.state.is_finished():
                        known.ended[row["number"]] = shown
                    else:
                        fresh[row["number"]] = shown
                if not page.get("next_page_token"):
                    return {**known.ended, **fresh}
                query["page_token"] = page["next_page_token"]

    def _trial_id(self, known: Known, number: int) -> int:
        return known.study_id * _TRIALS_MAX + number

    def _of(self, trial_id: int) -> Known:
        return self._study(trial_id // _TRIALS_MAX)

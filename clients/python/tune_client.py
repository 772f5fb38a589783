"""Hyperparameter tuning with a `tune` server, from Python: one file, the standard library only. Copy it beside your script.

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

Every call is safe to repeat: what changes the study carries a request id, and connection errors, 429 and 5xx answers are tried
again for about a minute. Credentials and certificates are those of MLflow's client (MLFLOW_TRACKING_TOKEN, ...). Any number
of processes on any number of machines may work on one study.
"""

import base64
import configparser
import json
import os
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

__all__ = ["Pruned", "Study", "Trial", "TuneError", "create_study", "load_study"]

_RETRY_FOR_S = 60.0
_TIMEOUT_S = 90.0
_WAIT_MS = 30_000


class TuneError(Exception):
    """What the server answered: `status` (0: it could not be reached), `code` such as RESOURCE_DOES_NOT_EXIST."""

    def __init__(self, message, status=0, code=""):
        super().__init__(message)
        self.status = status
        self.code = code


class Pruned(Exception):
    """The trial should stop; `optimize` and `with trial:` then end it as pruned."""


class _Server:
    def __init__(self, url):
        url = url or os.environ.get("TUNE_SERVER") or os.environ.get("MLFLOW_TRACKING_URI") or "http://127.0.0.1:5000"
        self.url = url.rstrip("/")
        self.headers = {"Content-Type": "application/json", **_authorization()}
        self.tls = _tls() if self.url.startswith("https:") else None

    def call(self, path, body=None, retry_for_s=_RETRY_FOR_S):
        """One REST call; the JSON of the answer. Raises TuneError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + "/api/2.0/tune" + path, data=data, headers=self.headers)
        give_up = time.monotonic() + retry_for_s
        pause_s = 0.1
        while True:
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=self.tls) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                fault = _fault_of(error)
                if error.code not in (429, 500, 502, 503, 504):
                    raise fault from None
            except (OSError, ValueError) as error:  # refused, reset, timed out, half an answer
                fault = TuneError(f"no answer from {self.url}: {error}; is `tune server` running there?")
                if isinstance(getattr(error, "reason", None), ssl.SSLCertVerificationError):
                    raise fault from None
            if time.monotonic() + pause_s > give_up:
                raise fault
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 5.0)


def _authorization():
    """The credentials of MLflow's own client: user and password, else a token."""
    stored = configparser.ConfigParser()
    stored.read(os.path.expanduser("~/.mlflow/credentials"))
    user, password = (os.environ.get(f"MLFLOW_TRACKING_{name.upper()}") or
                      stored.get("mlflow", f"mlflow_tracking_{name}", fallback="") for name in ("username", "password"))
    if user and password:
        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    return {"Authorization": "Bearer " + token} if token else {}


def _tls():
    """The certificates of MLflow's own client."""
    names = ("MLFLOW_TRACKING_SERVER_CERT_PATH", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    trusted = next(filter(None, map(os.environ.get, names)), None)
    is_folder = trusted is not None and os.path.isdir(trusted)
    context = ssl.create_default_context(cafile=None if is_folder else trusted, capath=trusted if is_folder else None)
    if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if os.environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH"):
        context.load_cert_chain(os.environ["MLFLOW_TRACKING_CLIENT_CERT_PATH"])
    return context


def _fault_of(error):
    text = error.read()
    try:
        body = json.loads(text)
        return TuneError(body["message"], error.code, body.get("error_code", ""))
    except (ValueError, KeyError, TypeError):
        return TuneError(f"HTTP {error.code}: {text[:200]!r}", error.code)


def create_study(name, *, space, metric, goal="min", trials=None, server=None, **more):
    """Creates the study, or goes on with the one of this name (whose space and metric must then be the same).

    `space`: as in study.yaml, e.g. {"x": {"float": [0, 1]}, "opt": {"choice": ["sgd", "adam"]}}. `metric`: its name (then
    `goal` counts), or as in study.yaml, a list of them for several objectives. `more`: further fields of study.yaml, such
    as sampler="qmc", pruner={"type": "asha"}, budget={"trials": 50, "time": "2h"}, constraints=[{"name": "ms", "max": 20}].
    """
    if isinstance(metric, str):
        metric = {"name": metric, "goal": goal}
    if trials is not None:
        more["budget"] = {**more.get("budget", {}), "trials": trials}
    connection = _Server(server)
    connection.call("/studies", {"name": name, "space": space, "metric": metric, "request_id": uuid.uuid4().hex, **more})
    return Study(connection, name)


def load_study(name, server=None):
    """The study of this name; TuneError with status 404 if there is none."""
    study = Study(_Server(server), name)
    study.info()
    return study


class Trial:
    """One trial that this process runs: `number`, `params`, `run_id` (its MLflow run), `seed`, `attempt`.

    In population based training also `parent` (the number of the trial whose checkpoint it continues, or None), `member`,
    `generation` and `steps`: (from, to); None in other studies.
    """

    def __init__(self, study, asked):
        self._study = study
        self.number = asked["number"]
        self.attempt = asked["attempt"]
        self.params = asked["params"]
        self.run_id = asked["run_id"]
        self.experiment_id = asked["experiment_id"]
        self.seed = asked["seed"]
        self.parent = asked.get("parent")
        self.member = asked.get("member")
        self.generation = asked.get("generation")
        self.steps = tuple(asked["steps"]) if "steps" in asked else None
        self.ended = False
        self._reported = False

    def __repr__(self):
        return f"Trial({self.number}, {self.params})"

    def should_stop(self, value, step, metric=None):
        """Reports a metric at `step`; True when the trial should stop. `metric`: which, where the study has several."""
        self._reported = True
        body = {**self._name(), "step": step, "value": _number(value)}
        if metric is not None:
            body["metric"] = metric
        answer = self._study._call("/report", body)
        return answer["action"] != "continue"

    def report(self, value, step, metric=None):
        """As should_stop, but raises Pruned."""
        if self.should_stop(value, step, metric):
            raise Pruned(f"trial {self.number} was stopped at step {step}")

    def tell(self, value=None, state=None, reason="", constraints=None):
        """Ends the trial: with its value (else the reported one), or as "pruned", "failed" or "cancelled".

        `value`: a list of one value an objective where there are several. `constraints`: values of the metrics with
        bounds, by name; of those left out what was reported counts.
        """
        body = {**self._name(), "request_id": uuid.uuid4().hex, "reason": reason}
        if isinstance(value, (list, tuple)):
            body["values"] = [_number(one) for one in value]
        elif value is not None:
            body["value"] = _number(value)
        if constraints:
            body["constraints"] = {name: _number(bounded) for name, bounded in constraints.items()}
        if state is not None:
            body["state"] = state
        answer = self._study._call("/tell", body)
        self.ended = True
        return answer

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        """Ends a trial that was not told: as pruned, failed, or with what was reported (the study's `take` says which of it)."""
        if self.ended:
            return kind is not None and issubclass(kind, Pruned)
        if kind is None:
            if self._reported:
                self.tell(state="complete")
            else:
                self.tell(state="failed", reason="no value was told, and none was reported")
        elif issubclass(kind, Pruned):
            self.tell(state="pruned")
            return True
        elif issubclass(kind, Exception):
            self.tell(state="failed", reason=f"{kind.__name__}: {error}"[:1000])
        else:  # KeyboardInterrupt, SystemExit
            self.tell(state="cancelled", reason=kind.__name__)
        return False

    def _name(self):
        return {"number": self.number, "attempt": self.attempt}


class Study:
    """A study on the server. Safe to use from several threads."""

    def __init__(self, connection, name):
        self._connection = connection
        self.name = name
        self._path = "/studies/" + urllib.parse.quote(name, safe="")

    def info(self):
        """What the server knows of the study: state, counts, best, space, budget, ..."""
        return self._connection.call(self._path)

    def ask(self, wait=True):
        """The next Trial; None when the study has ended.

        Where the study allows no further trial at this moment (its `parallel`, a pause), waits for one; `wait=False` gives
        None at once.
        """
        trials = self.ask_many(1, wait=wait)
        return trials[0] if trials else None

    def ask_many(self, count, wait=True):
        """At most `count` trials, in one request; an empty list when the study has ended."""
        while True:
            version = self.info()["version"] if wait else None
            answer = self._call("/ask", {"count": count, "request_id": uuid.uuid4().hex, "worker": _worker()})
            if answer["trials"] or not wait or answer.get("state") in ("completed", "stopped"):
                return [Trial(self, asked) for asked in answer["trials"]]
            query = urllib.parse.urlencode({"version": version, "wait_ms": _WAIT_MS})
            after = self._connection.call(f"{self._path}?{query}")
            if after["state"] in ("completed", "stopped"):
                return []

    def optimize(self, objective, trials=None, jobs=1, catch=()):
        """Calls `objective(trial)` for trial after trial until the study has ended, or `trials` more were run here.

        The objective returns the value, or the list of values (or None after trial.tell). Exceptions named in `catch` end their trial as failed
        and the loop goes on; others end the trial and are raised. `jobs`: threads of this process.
        """
        left = _Counter(trials)
        faults = []

        def work():
            try:
                while not faults and left.take():
                    trial = self.ask()
                    if trial is None:
                        return
                    self._run(objective, trial, catch)
            except BaseException as error:
                faults.append(error)

        if jobs == 1:
            work()
        else:
            threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if faults:
            raise faults[0]
        return self

    def enqueue(self, params):
        """Adds a trial with these values; the sampler fills in what they leave open."""
        return self._call("/enqueue", {"params": params, "request_id": uuid.uuid4().hex})

    def trials(self, state=None, with_intermediate=False):
        """All trials, as the server lists them, one by one."""
        query = {"max_results": 1000}
        if state:
            query["state"] = state
        if with_intermediate:
            query["fields"] = "intermediate"
        while True:
            page = self._connection.call(f"{self._path}/trials?{urllib.parse.urlencode(query)}")
            yield from page["trials"]
            if not page.get("next_page_token"):
                return
            query["page_token"] = page["next_page_token"]

    @property
    def best_trial(self):
        """The best complete trial as the server shows it; None if there is none, or several objectives (best_trials)."""
        return self.info()["best"]

    @property
    def best_trials(self):
        """The complete trials that no other one dominates: the Pareto front; of one objective the best trial."""
        info = self.info()
        return info["best_trials"] if "best_trials" in info else [info["best"]] if info["best"] else []

    @property
    def best_value(self):
        best = self.best_trial
        return best["value"] if best else None

    @property
    def best_params(self):
        best = self.best_trial
        return best["params"] if best else None

    def pause(self):
        return self._call("/pause", {})

    def resume(self):
        return self._call("/resume", {})

    def stop(self):
        return self._call("/stop", {})

    def _run(self, objective, trial, catch):
        try:
            with trial:
                value = objective(trial)
                if value is not None and not trial.ended:
                    trial.tell(value)
        except tuple(catch) if catch else ():
            pass

    def _call(self, path, body):
        return self._connection.call(self._path + path, body)


class _Counter:
    def __init__(self, count):
        self._left = count
        self._lock = threading.Lock()

    def take(self):
        with self._lock:
            if self._left is None:
                return True
            self._left -= 1
            return self._left >= 0


def _number(value):
    """JSON has no NaN and no infinities; the server reads their names."""
    value = float(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _worker():
    return f"{os.uname().nodename}:{os.getpid()}:{threading.get_ident() % 100_000}"

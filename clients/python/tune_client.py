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

A budget that counts a metric (budget={"cost": {"metric": "dollars", "max": 20}}) is told of it by either of

    trial.report(0.4, step, metric="dollars")
    trial.tell(loss, cost=1.7)

A trial is asked for with a lease of 60 seconds (`lease_s` of create_study and load_study), which a thread of this module
renews until the trial is told, however long it reports nothing. When the process is killed or its machine is gone, the lease
ends and the next one to ask gets the trial again. If it was only stopped for so long (a laptop asleep, a debugger), what it
says of the trial later raises Lost; `optimize` and `with trial:` then go on without that trial. `trial.stopping` is True once
a renewal has heard that the trial should stop or is somebody else's. A Trial that nobody refers to is not renewed.

Every call is safe to repeat: what changes the study carries a request id, and connection errors, 429 and 5xx answers are tried
again for about a minute; at first, where nothing listens, for 10 seconds. Credentials and certificates are those of MLflow's
client (MLFLOW_TRACKING_TOKEN, ...). Any number of processes on any number of machines may work on one study.
"""

import base64
import configparser
import contextlib
import http.client
import json
import os
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import weakref

__all__ = ["Lost", "Pruned", "Study", "Trial", "TuneError", "create_study", "load_study"]

_LEASE_S = 60.0
_RETRY_FOR_S = 60.0
_FIRST_CONTACT_S = 10.0  # where nothing listens: a server that starts takes much less
_SILENT_FOR_S = 2.0
_VALUELESS_MAX = 3  # trials in a row without a value: the objective lacks a `return`
_TIMEOUT_S = 90.0
_WAIT_MS = 30_000


class TuneError(Exception):
    """What the server answered: `status` (0: it could not be reached), `code` such as RESOURCE_DOES_NOT_EXIST."""

    def __init__(self, message, status=0, code=""):
        super().__init__(message)
        self.status = status
        self.code = code


class Lost(TuneError):
    """The attempt is no longer this client's: its lease ended and another has the trial, or somebody else ended it."""


class Pruned(Exception):
    """The trial should stop; `optimize` and `with trial:` then end it as pruned."""


class _Server:
    def __init__(self, url):
        url = url or os.environ.get("TUNE_SERVER") or os.environ.get("MLFLOW_TRACKING_URI") or "http://127.0.0.1:5000"
        if not url.lower().startswith(("http://", "https://")):
            raise TuneError(f"{url!r} is no address of a server, as http://host:5000 is; give server= or TUNE_SERVER")
        self.url = url.rstrip("/")
        self.headers = {"Content-Type": "application/json", **_authorization()}
        self.tls = _tls() if self.url.startswith("https:") else None
        self._has_answered = False

    def call(self, path, body=None, retry_for_s=_RETRY_FOR_S, timeout_s=_TIMEOUT_S):
        """One REST call; the JSON of the answer. Raises TuneError."""
        data = None if body is None else json.dumps(body, default=_plain).encode()
        request = urllib.request.Request(self.url + "/api/2.0/tune" + path, data=data, headers=self.headers)
        begin = time.monotonic()
        pause_s = 0.1
        is_silent = True
        while True:
            try:
                with urllib.request.urlopen(request, timeout=timeout_s, context=self.tls) as answer:
                    self._has_answered = True
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                self._has_answered = True
                fault = _fault_of(error)
                reason = f"HTTP {error.code}"
                if error.code not in (429, 500, 502, 503, 504):
                    raise fault from None
            except (OSError, ValueError, http.client.HTTPException) as error:  # refused, reset, timed out, half an answer
                reason = getattr(error, "reason", error)
                fault = TuneError(f"no answer from {self.url}: {reason}; is `tune server` running there? (another address: "
                                  "server=, TUNE_SERVER or MLFLOW_TRACKING_URI)")
                if isinstance(reason, ssl.SSLCertVerificationError):
                    raise fault from None
                if isinstance(reason, ConnectionRefusedError) and not self._has_answered:
                    retry_for_s = min(retry_for_s, _FIRST_CONTACT_S)
            waited_s = time.monotonic() - begin
            if waited_s >= retry_for_s:
                raise fault
            if is_silent and waited_s >= _SILENT_FOR_S:
                is_silent = False
                _say(f"waiting for the server at {self.url}, {retry_for_s:.0f} s at most ({reason})")
            until_s = min(retry_for_s, _SILENT_FOR_S) if is_silent else retry_for_s
            time.sleep(min(pause_s, until_s - waited_s))
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
    text = b""
    try:
        text = error.read()
        body = json.loads(text)
        return TuneError(body["message"], error.code, body.get("error_code", ""))
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return TuneError(f"HTTP {error.code}: {text[:200]!r}", error.code)


class _Keeper:
    """Renews the leases of the trials that this process runs, in a daemon thread that lives while there are any."""

    def __init__(self, lease_s):
        self.lease_s = lease_s
        self._begin()

    def _begin(self):
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._trials = weakref.WeakSet()
        self._thread = None

    def __reduce__(self):
        return _Keeper, (self.lease_s,)

    def keep(self, trials):
        if self.lease_s <= 0:
            return
        if self._process != os.getpid():  # a fork: the thread and what it renews stayed with the parent
            self._begin()
        with self._lock:
            self._trials.update(trials)
            if self._trials and self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tune-leases", daemon=True)
                self._thread.start()

    def _work(self):
        pause_s = self.lease_s / 3
        while True:
            time.sleep(pause_s)
            begin = time.monotonic()
            with self._lock:
                held = [weakref.ref(trial) for trial in self._trials if trial._is_held()]
                if not held:
                    self._thread = None
                    return
            all_heard = True
            for reference in held:
                trial = reference()
                all_heard = (trial is None or trial._renew(self.lease_s / 3)) and all_heard
                del trial  # or the last one would never be let go
            interval_s = self.lease_s / (3 if all_heard else 10)
            pause_s = max(interval_s - (time.monotonic() - begin), 0.001)


def create_study(name, *, space, metric, goal="min", trials=None, server=None, lease_s=_LEASE_S, **more):
    """Creates the study, or goes on with the one of this name: with its space and metric; what is left out stays as it is.

    `space`: as in study.yaml, e.g. {"x": {"float": [0, 1]}, "opt": {"choice": ["sgd", "adam"]}}. `metric`: its name (then
    `goal` counts), or as in study.yaml, a list of them for several objectives. `more`: further fields of study.yaml, such
    as sampler="qmc", pruner={"type": "asha"}, budget={"trials": 50, "time": "2h"}, constraints=[{"name": "ms", "max": 20}].
    `lease_s`: how long after this process has died its trials go to others; 0: never (end them by hand).
    """
    keeper = _keeper(lease_s)
    if isinstance(metric, str):
        metric = {"name": metric, "goal": goal}
    if trials is not None:
        more["budget"] = {**(more.get("budget") or {}), "trials": trials}
    connection = _Server(server)
    connection.call("/studies", {"name": name, "space": space, "metric": metric, "request_id": uuid.uuid4().hex, **more})
    return Study(connection, name, keeper)


def load_study(name, server=None, lease_s=_LEASE_S):
    """The study of this name; TuneError with status 404 if there is none. `lease_s`: as in create_study."""
    study = Study(_Server(server), name, _keeper(lease_s))
    study.info()
    return study


def _keeper(lease_s):
    lease_s = float(lease_s)
    if not 0 <= lease_s <= 30 * 86400 or 0 < lease_s < 0.001:
        raise ValueError(f"lease_s must be 0 (no lease) or 0.001..{30 * 86400} seconds, found {lease_s}")
    return _Keeper(lease_s)


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
        self.ended = self._lost = self._told_to_stop = False
        self._reported = self._has_no_value = False

    def __repr__(self):
        return f"Trial({self.number}, {self.params})"

    @property
    def stopping(self):
        """True once a report or a renewal of the lease was told that the trial should stop, or is somebody else's."""
        return not self.ended and (self._lost or self._told_to_stop)

    def should_stop(self, value, step, metric=None):
        """Reports a metric at `step`; True when the trial should stop. `metric`: which, where the study has several.

        Raises Lost.
        """
        self._reported = True
        body = {**self._name(), "step": step, "value": _number(value)}
        if metric is not None:
            body["metric"] = metric
        stops = self._call("/report", body)["action"] != "continue"
        self._told_to_stop |= stops
        return stops

    def report(self, value, step, metric=None):
        """As should_stop, but raises Pruned."""
        if self.should_stop(value, step, metric):
            raise Pruned(f"trial {self.number} was stopped at step {step}")

    def tell(self, value=None, state=None, reason="", constraints=None, cost=None):
        """Ends the trial: with its value (else the reported one), or as "pruned", "failed" or "cancelled". Raises Lost.

        `value`: a list of one value an objective where there are several. `constraints`: values of the metrics with
        bounds, by name; of those left out what was reported counts. `cost`: the value of the budget's cost metric.
        """
        body = {**self._name(), "request_id": uuid.uuid4().hex, "reason": reason}
        if isinstance(value, (list, tuple)):
            body["values"] = [_number(one) for one in value]
        elif value is not None:
            body["value"] = _number(value)
        if constraints:
            body["constraints"] = {name: _number(bounded) for name, bounded in constraints.items()}
        if cost is not None:
            body["cost"] = _number(cost)
        if state is not None:
            body["state"] = state
        answer = self._call("/tell", body)
        self.ended = True
        return answer

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        """Ends a trial that was not told: as pruned, failed, or with what was reported (the study's `take` says which of it).

        A trial that was lost meanwhile is left to whoever has it; stderr says so.
        """
        try:
            if isinstance(error, Lost) and self._lost:
                raise error
            if not self.ended:
                self._end(kind, error)
        except Lost as lost:
            _say(f"trial {self.number} is no longer this client's, which goes on without it: {lost}")
            return kind is None or issubclass(kind, (Pruned, Lost))
        return kind is not None and issubclass(kind, Pruned)

    def _end(self, kind, error):
        if kind is None:
            self._end_without_value()
        elif issubclass(kind, Pruned):
            self.tell(state="pruned")
        elif issubclass(kind, Exception):
            self.tell(state="failed", reason=f"{kind.__name__}: {error}"[:1000])
        else:  # KeyboardInterrupt, SystemExit
            self.tell(state="cancelled", reason=kind.__name__)

    def _end_without_value(self):
        """Complete with what was reported; failed if that is not all that the study measures."""
        reason = "no value was told, and none was reported"
        if self._reported:
            try:
                self.tell(state="complete")
                return
            except TuneError as fault:
                if fault.status != 400:
                    raise
                reason = str(fault)
        self.tell(state="failed", reason=reason[:1000])
        self._has_no_value = True

    def _abandon(self, reason):
        """Cancels a trial whose thread goes on; whatever that says of it afterwards raises Lost."""
        if self._is_held():
            with contextlib.suppress(TuneError):  # its lease will end
                self._study._call("/tell", {**self._name(), "state": "cancelled", "reason": reason}, retry_for_s=2.0)
            self._lost = True

    def _is_held(self):
        return not self.ended and not self._lost

    def _renew(self, timeout_s):
        """False when the server did not answer."""
        try:
            answer = self._study._call("/renew", self._name(), retry_for_s=0, timeout_s=max(timeout_s, 1.0))
            self._told_to_stop |= answer["action"] != "continue"
        except TuneError as fault:
            if fault.status not in (404, 409):
                return False
            self._lost = True
        return True

    def _call(self, path, body):
        try:
            return self._study._call(path, body)
        except TuneError as fault:
            if fault.status != 409 or self.ended:
                raise
            self._lost = True
            raise Lost(str(fault), fault.status, fault.code) from None

    def _name(self):
        return {"number": self.number, "attempt": self.attempt}


class Study:
    """A study on the server. Safe to use from several threads."""

    def __init__(self, connection, name, keeper):
        self._connection = connection
        self._keeper = keeper
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
            answer = self._call("/ask", {"count": count, "request_id": uuid.uuid4().hex, "worker": _worker(),
                                         "lease_ttl_ms": round(self._keeper.lease_s * 1000)})
            if answer["trials"] or not wait or answer.get("state") in ("completed", "stopped"):
                trials = [Trial(self, asked) for asked in answer["trials"]]
                self._keeper.keep(trials)
                return trials
            query = urllib.parse.urlencode({"version": version, "wait_ms": _WAIT_MS})
            if self._connection.call(f"{self._path}?{query}")["state"] in ("completed", "stopped"):
                return []

    def optimize(self, objective, trials=None, jobs=1, catch=()):
        """Calls `objective(trial)` for trial after trial until the study has ended, or `trials` more were run here.

        The objective returns the value, or the list of values, or None after trial.tell or reports. A trial without any value
        fails; three of them in a row raise TuneError. Exceptions of `catch` (a class or several) end their trial as failed
        and the loop goes on; others end the trial and are raised. `jobs`: threads of this process. Ctrl-C cancels the
        trials that run here; their threads go on until the objective returns, which may look at trial.stopping.
        """
        catch = _classes(catch)
        if jobs < 1 or (trials or 0) < 0:
            raise ValueError(f"jobs must be at least 1 and trials at least 0, found {jobs} and {trials}")
        left = _Counter(trials)
        valueless = _Valueless()
        faults = []
        running = {}  # by thread, the last one

        def work():
            try:
                while not faults and left.take():
                    trial = self.ask()
                    if trial is None:
                        return
                    running[threading.get_ident()] = trial
                    if faults:
                        return trial._abandon("interrupted")
                    self._run(objective, trial, catch)
                    valueless.note(trial)
            except BaseException as error:
                faults.append(error)

        if jobs == 1:
            work()
        else:
            threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            except BaseException as error:  # Ctrl-C
                faults.append(error)
                for trial in list(running.values()):
                    trial._abandon(type(error).__name__)
                raise
        if faults:
            raise faults[0]
        return self

    def enqueue(self, params):
        """Adds a trial with these values; the sampler fills in what they leave open."""
        return self._call("/enqueue", {"params": params, "request_id": uuid.uuid4().hex})

    def trials(self, state=None, with_intermediate=False):
        """All trials, as the server lists them, one by one."""
        query = {"max_results": 1000, **({"state": state} if state else {})}
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
        except catch:
            pass

    def _call(self, path, body, **more):
        return self._connection.call(self._path + path, body, **more)


class _Counter:
    def __init__(self, count):
        self._left = count
        self._lock = threading.Lock()

    def take(self):
        with self._lock:
            if self._left is not None:
                self._left -= 1
            return self._left is None or self._left >= 0


class _Valueless:
    """Counts trials in a row whose objective gave no value: a slip that would use up the budget without a word."""

    def __init__(self):
        self._count = 0
        self._lock = threading.Lock()

    def note(self, trial):
        with self._lock:
            self._count = self._count + 1 if trial._has_no_value else 0
            count = self._count
        if count == 1:
            _say(f"the objective gave no value for trial {trial.number}, which failed; does it lack a `return`?")
        if count >= _VALUELESS_MAX:
            raise TuneError(f"the objective gave no value for {count} trials in a row, the last being {trial.number}; "
                            "does it lack a `return`?")


def _classes(catch):
    """A class of exceptions or several, as the tuple that `except` takes."""
    classes = (catch,) if isinstance(catch, type) else tuple(catch)
    for one in classes:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise TypeError(f"catch must be a class of exceptions, or several, found {one!r}")
    return classes


def _say(text):
    print(f"tune_client: {text}", file=sys.stderr, flush=True)


def _plain(value):
    """numpy's numbers and the like as Python's."""
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON has no form for")


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

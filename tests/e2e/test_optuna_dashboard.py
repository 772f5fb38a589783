"""Exported studies in the real optuna-dashboard, asked over its own REST API."""

import contextlib
import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

import optuna
import optuna_dashboard
import pytest

from study_support import OK, call, server, study_of, tune

optuna.logging.set_verbosity(optuna.logging.ERROR)

SPACE = {"lr": {"float": [1e-5, 0.1], "log": True}, "opt": {"choice": ["sgd", "adam", None]},
         "momentum": {"float": [0, 0.99], "when": {"opt": "sgd"}}, "depth": {"int": [1, 5]}}


class Silent(WSGIRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def dashboard(path):
    app = optuna_dashboard.wsgi(f"sqlite:///{path}")
    with make_server("127.0.0.1", 0, app, handler_class=Silent) as listener:
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.server_port}"
        finally:
            listener.shutdown()
            thread.join()


def fill(url, name, metric, told, **more):
    """A study of 12 trials: the third pruned, the fourth failed, the last one running."""
    call(url, "/api/2.0/tune/studies", {"name": name, "metric": metric, "space": SPACE,
                                            "sampler": {"type": "random", "seed": 7}, **more})
    path = f"/api/2.0/tune/studies/{name}"
    for number in range(12):
        trial = call(url, f"{path}/ask", {})[1]["trials"][0]
        if number == 11:
            return
        result = {2: {"state": "pruned"}, 3: {"state": "failed", "reason": "no luck"}}.get(number) or told(trial)
        if number == 2 and isinstance(metric, str):
            call(url, f"{path}/report", {"number": number, "step": 1, "value": 0.5})
        status, answer = call(url, f"{path}/tell", {"number": number, **result})
        assert status == 200, answer


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Two studies of a server in one file of Optuna's, and what the server reports of them."""
    folder = tmp_path_factory.mktemp("dashboard")
    with server(folder) as (_, url):
        fill(url, "one", "loss:min", lambda trial: {"value": trial["params"]["lr"] * trial["params"]["depth"]})
        fill(url, "two", ["loss:min", "size:max"],
             lambda trial: {"values": [0, 9] if trial["number"] == 10 else [trial["params"]["lr"], trial["params"]["depth"]],
                            "constraints": {"ms": trial["number"]}}, constraints=[{"name": "ms", "max": 8}])
        ours = {}
        for name in ("one", "two"):
            done = tune("export", f"{name}.db", "--optuna", name, "--server", url, cwd=folder)
            assert done.returncode == OK, done.stderr
            trials = call(url, f"/api/2.0/tune/studies/{name}/trials")[1]["trials"]
            ours[name] = {"study": study_of(url, name), "trials": trials}
    return folder, ours


@pytest.mark.parametrize("name", ["one", "two"])
def test_the_dashboard_shows_the_study(exported, name):
    folder, ours = exported
    study, trials = ours[name]["study"], ours[name]["trials"]
    with dashboard(folder / f"{name}.db") as url:
        page = call(url, "/api/studies")[1]["study_summaries"]
        assert [one["study_name"] for one in page] == [name]
        metrics = study.get("metrics") or [study["metric"]]
        assert page[0]["directions"] == [{"min": "minimize", "max": "maximize"}[one["goal"]] for one in metrics]
        shown = call(url, f"/api/studies/{page[0]['study_id']}")[1]
        assert shown["objective_names"] == [one["name"] for one in metrics]
        states = {"complete": "Complete", "pruned": "Pruned", "failed": "Fail", "running": "Running"}
        assert [one["state"] for one in shown["trials"]] == [states[one["state"]] for one in trials]
        for mine, theirs in zip(trials, shown["trials"]):
            assert {one["name"] for one in theirs["params"]} == set(mine["params"])
            if mine["state"] == "complete":
                assert theirs["values"] == mine.get("values", [mine["value"]])
        best = {one["number"] for one in study.get("best_trials") or [study["best"]]}
        known = optuna.load_study(study_name=name, storage=f"sqlite:///{folder / name}.db")
        assert {one.number for one in (known.best_trials if len(metrics) > 1 else [known.best_trial])} == best
        # The dashboard's own front leaves constraints out: there a trial that breaks one is better than all others.
        assert {one["number"] for one in shown["best_trials"]} == ({10} if len(metrics) > 1 else best)
        assert {one["name"] for one in shown["union_search_space"]} == set(SPACE)
        important = call(url, f"/api/studies/{page[0]['study_id']}/param_importances")
        assert important[0] == 200 and len(important[1]["param_importances"]) == len(metrics), important

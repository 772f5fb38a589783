"""Rules of a space from the command line to the trial: derived values, forbidden points, first points."""

import json

import pytest

from study_support import OK, USAGE, call, server, trials_of, tune

SCRIPT = """
import json, os, sys
params = json.loads(os.environ["TUNE_PARAMS"])
assert float(sys.argv[1]) == params["scaled"] == params["lr"] * params["n"], (sys.argv, params)
assert params["lr"] <= 0.5 or params["n"] <= 4
print("tune: " + json.dumps({"loss": params["scaled"]}))
"""


def test_derived_values_reach_the_trial_and_its_run(tmp_path):
    (tmp_path / "trial.py").write_text(SCRIPT)
    done = tune("run", "-n", 12, "-m", "loss:max", "--port", 0, "--study", "s", "--seed", 3, "lr=0..1@0.25", "n=1..8:int",
                "scaled:=lr*n", "--forbid", "lr > 0.5 and n > 4", "--", "python3", "trial.py", "{scaled}", cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    trials = trials_of(tmp_path)
    assert {trial["state"] for trial in trials} == {"complete"}
    assert trials[0]["params"]["lr"] == 0.25
    for trial in trials:
        params = trial["params"]
        assert trial["value"] == pytest.approx(params["scaled"]) == pytest.approx(params["lr"] * params["n"])
        assert params["lr"] <= 0.5 or params["n"] <= 4
    with server(tmp_path) as (_, url):
        _, run = call(url, "/api/2.0/mlflow/runs/get?run_id=" + trials[0]["run_id"])
        logged = {param["key"]: param["value"] for param in run["run"]["data"]["params"]}
        assert float(logged["scaled"]) == pytest.approx(trials[0]["params"]["scaled"])
        _, study = call(url, "/api/2.0/tune/studies/s")
        assert study["derive"] == {"scaled": "lr*n"} and study["forbid"] == ["lr > 0.5 and n > 4"]
        # A forbidden point, or a derived value that the others do not make, is refused.
        body = {key: study[key] for key in ("metric", "space", "forbid", "derive")}
        assert call(url, "/api/2.0/tune/studies", dict(body, name="t"))[0] == 200
        for params, expected in (({"lr": 0.9, "n": 8}, 400), ({"lr": 0.1, "n": 2, "scaled": 7}, 400),
                                 ({"lr": 0.5, "n": 2, "scaled": 1.0}, 200)):
            status, answer = call(url, "/api/2.0/tune/studies/t/enqueue", {"params": params})
            assert status == expected, answer
    changed = tune("run", "-n", 14, "-m", "loss:max", "--port", 0, "--study", "s", "lr=0..1@0.25", "n=1..8:int",
                   "scaled:=lr+n", "--", "true", cwd=tmp_path)
    assert "derive has other values" in changed.stderr and changed.returncode != OK


def test_first_points_run_first_also_after_an_enqueued_trial(tmp_path):
    with server(tmp_path) as (_, url):
        body = {"name": "t", "metric": {"name": "loss"}, "space": {"x": {"float": [0, 1]}, "o": {"choice": ["a", "b"]}},
                "initial": [{"x": 0.125}, {"x": 0.5, "o": "b"}]}
        assert call(url, "/api/2.0/tune/studies", body)[0] == 200
        assert call(url, "/api/2.0/tune/studies/t/enqueue", {"params": {"x": 0.9}})[0] == 200
        _, asked = call(url, "/api/2.0/tune/studies/t/ask", {"count": 4})
        assert [trial["params"]["x"] for trial in asked["trials"]][:3] == [0.9, 0.125, 0.5]
        assert asked["trials"][2]["params"]["o"] == "b"
        status, refused = call(url, "/api/2.0/tune/studies", dict(body, name="u", forbid=["x >= 0"]))
        assert status == 400 and "forbid: every point of the space" in refused["message"]


def test_the_schema_is_served_and_printed_alike(tmp_path):
    printed = tune("schema", cwd=tmp_path)
    with server(tmp_path) as (_, url):
        status, served = call(url, "/api/2.0/tune/schema")
    assert status == 200 and served == json.loads(printed.stdout)


def test_wrong_rules_name_their_column(tmp_path):
    done = tune("plan", "-m", "loss", "x=0..1", "--forbid", "x >> 1", cwd=tmp_path)
    assert done.returncode == USAGE
    assert "forbid[0]: in 'x >> 1', column 4: expected a value or a name" in done.stderr

"""tune plan: what it foretells is what a study then does."""

import json

import pytest

from study_support import OK, USAGE, call, server, tune, tune_json


def test_plan_knows_populations(tmp_path):
    sampler = {"type": "pbt", "population": 8, "interval": 5, "max": 32}
    study = {"version": 1, "study": "s", "metric": "loss", "space": {"x": "0..1"}, "sampler": sampler,
             "budget": {"parallel": 3}}

    def plan(**more):
        (tmp_path / "s.json").write_text(json.dumps({**study, **more}))
        said = tune("plan", "s.json", "--trial-time", "10m", cwd=tmp_path).stdout
        return tune_json("plan", "s.json", "--trial-time", "10m", cwd=tmp_path), said

    whole, said = plan()
    assert whole["population"] == {"members": 8, "interval": 5, "first_interval": 5, "steps": 32, "generations": 7,
                                   "trials_max": 56, "steps_max": 8 * 32}
    # 56 trials, 3 at a time: 19 rounds, whose last ones are 2 steps of 5.
    assert whole["expected_time_ms"] == pytest.approx(19 * 600_000 * (8 * 32) / (56 * 5), abs=1)
    assert "8, each 5 steps at a time, 7 generations to step 32" in said and "at most 56 trials" in said
    del sampler["max"]
    warm, said = plan(sampler={**sampler, "warmup": 20}, budget={"trials": 20, "parallel": 99})
    assert warm["population"]["generations"] == 3 and warm["population"]["steps_max"] == 8 * 20 + 12 * 5
    assert warm["expected_time_ms"] == pytest.approx(3 * 600_000 * (8 * 20 + 12 * 5) / (20 * 5), abs=1)
    assert "20 the first time" in said
    endless, said = plan(sampler=sampler)
    assert endless["population"]["trials_max"] is None and "expected_time_ms" not in endless
    assert "without an end" in said
    far, said = plan(sampler={**sampler, "interval": 1, "max": 2**50})
    assert far["population"]["steps_max"] >= 1e12


@pytest.mark.parametrize("words, points, said", [
    (["a=1,2", "b=x,y,z,w"], 8, "trials:   until every point has been tried, which are 8\n"),
    (["-n", 100, "a=1,2", "b=x,y,z,w"], 8, "trials:   100, or until every point has been tried, which are 8\n"),
    (["-n", 5, "a=1,2", "b=x,y,z,w"], 8, "trials:   5\n"),
    (["a=1,2", "b=x,y?a=1", "--forbid", "a == 2"], 2, "which are 2\n"),
    (["a=1,2", "b=x,y?a=1"], 3, "which are 3\n"),
    (["a=1,2", "x=0..1"], None, "trials:   until stopped\n"),
    (["a=0..999999:int"], None, "trials:   until stopped\n"),
])
def test_plan_knows_when_every_point_was_tried(tmp_path, words, points, said):
    words = ["plan", "-m", "loss", *words, "--trial-time", "10m", "-j", 3]
    plan = tune_json(*words, cwd=tmp_path)
    assert plan["points_until_end"] == points
    text = tune(*words, cwd=tmp_path).stdout
    assert said.replace("\n", ", 3 at a time\n") in text and "tried twice" not in text
    trials = min(points or 100, 5 if 5 in words else 100)
    assert plan.get("expected_time_ms") == (-(-trials // 3) * 600_000 if points else None)


def test_plan_s_end_is_the_study_s(tmp_path):
    """What the plan shows of a space with a condition and a rule is what a study then does."""
    words = ["-m", "loss", "a=1,2,3", "b=x,y?a=1", "--forbid", "a == 3"]
    run = tune("run", "--port", 0, "--study", "s", *words, "--", "echo", 'tune: {"loss": 1}', cwd=tmp_path)
    assert run.returncode == OK and "every point of the space has been tried" in run.stdout
    count = tune_json("best", "s", "--data", "tune-data", cwd=tmp_path) and len(
        tune_json("show", "s", "--data", "tune-data", cwd=tmp_path)["trials"])
    assert tune_json("plan", *words, cwd=tmp_path)["points_until_end"] == count == 3


@pytest.mark.parametrize("words, size, is_exact, said", [
    (["o=a,b", "x=1..10:int?o=a"], 11, True, "the space has 11 points"),
    (["x=1..10:int", "--forbid", "x > 1"], 1, True, "the space has 1 point\n"),
    (["o=a,b", "x=1..1000000:int?o=a"], 2e6, False, "the space has at most 2e+06 points"),
    (["o=a,b", "x=0..1?o=a"], None, None, "sampler:"),
])
def test_plan_counts_the_points_that_there_are(tmp_path, words, size, is_exact, said):
    plan = tune_json("plan", "-m", "loss", *words, cwd=tmp_path)
    assert (plan["space_size"], plan["space_size_is_exact"]) == (size, is_exact)
    assert said in tune("plan", "-m", "loss", *words, cwd=tmp_path).stdout


def test_plan_reports_that_the_time_ends_first(tmp_path):
    words = ["plan", "-m", "loss", "-n", 10, "x=0..1", "--trial-time", "10m", "--time"]
    assert "; the budget of 1h ends before that" in tune(*words, "1h", cwd=tmp_path).stdout
    assert "ends before" not in tune(*words, "100m", cwd=tmp_path).stdout


def test_plan_shows_brackets_and_time_before_running(tmp_path):
    words = ["plan", "-n", 100, "-j", 4, "-m", "loss", "x=0..1", "--trial-time", "10m"]
    assert tune_json(*words, cwd=tmp_path)["expected_time_ms"] == 25 * 600_000
    plan = tune_json(*words, "--pruner", "hyperband,min=1,max=9,eta=3", cwd=tmp_path)
    steps = [(rung["bracket"], rung["step"]) for rung in plan["rungs"]]
    assert steps == [(0, 1), (0, 3), (0, 9), (1, 3), (1, 9), (2, 9)]
    # Brackets of 9, 5 and 3 shares; each rung keeps a third.
    expected = [100 * 9 / 17, 100 * 3 / 17, 100 / 17, 100 * 5 / 17, 100 * 5 / 51, 100 * 3 / 17]
    assert [rung["expected_trials"] for rung in plan["rungs"]] == pytest.approx(expected)
    share = plan["expected_steps"] / plan["steps_without_pruning"]
    assert share < 1 and plan["expected_time_ms"] == pytest.approx(share * 25 * 600_000, abs=1)
    text = tune(*words, "--pruner", "hyperband,min=1,max=9,eta=3", cwd=tmp_path).stdout
    assert "bracket" in text and "time:     about" in text and "4 at a time" in text
    assert tune(*words[:-1], "soon", cwd=tmp_path).returncode == USAGE


def test_plan_says_whether_a_servers_agents_can_run_it(tmp_path):
    words = ["plan", "-m", "loss", "x=0..1", "--gpus", 4]
    alone = tune_json(*words, cwd=tmp_path)
    assert "agents" not in alone and not any("agent" in warning for warning in alone["warnings"])
    with server(tmp_path, "--data", "d") as (_, url):
        none = tune_json(*words, "--server", url, cwd=tmp_path)
        assert none["agents"] == 0
        assert any("no agent is registered" in warning for warning in none["warnings"])
        agent = {"agent_id": "a", "host": "h", "slots": 4, "cpus": 8, "gpus": ["g0", "g1"]}
        assert call(url, "/api/2.0/tune/agents/register", agent)[0] == 200
        small = tune("plan", "-m", "loss", "x=0..1", "--gpus", 4, "--data", "d", cwd=tmp_path).stdout
        assert "warning:  no registered agent has the 4 GPUs that a trial needs; the largest has 2 GPUs and 8 cores" in small
        assert "agents:   1 agent registered" in small
        fits = tune_json("plan", "-m", "loss", "x=0..1", "--gpus", 2, "--server", url, cwd=tmp_path)
        assert fits["agents"] == 1 and not any("agent" in warning for warning in fits["warnings"])
    assert tune(*words, "--server", "http://127.0.0.1:1", cwd=tmp_path, check=False).returncode != OK

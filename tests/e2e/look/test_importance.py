"""tune importance and tune pruners: what they compute, and that it is what the study did."""

import statistics

import pytest

from study_support import ask, call, create_study, report, tell, tune, tune_json


def test_importance_finds_the_parameter_that_decides(studies, tmp_path):
    url, _ = studies
    for method in ("ped-anova", "fanova"):
        found = tune_json("importance", "full", "--method", method, "--server", url, cwd=tmp_path)
        assert found["trials"] == 24 and found["importances"][0]["name"] == "n"
        assert sum(one["share"] for one in found["importances"]) == pytest.approx(1)
    status, live = call(url, "/api/2.0/tune/studies/full/importance")
    local = tune_json("importance", "full", "--server", url, cwd=tmp_path)
    assert status == 200 and live["importances"] == pytest.approx(local["importances"])
    assert call(url, "/api/2.0/tune/studies/nobody/importance")[0] == 404
    assert call(url, "/api/2.0/tune/studies/empty/importance")[1]["trials"] == 0
    assert "n " in tune("importance", "full", "--server", url, cwd=tmp_path).stdout


def test_importance_follows_the_study_while_it_runs(studies, tmp_path):
    url, _ = studies
    create_study(url, "growing")
    for count in range(1, 4):
        for trial in ask(url, "growing", 2):
            tell(url, "growing", trial, trial["params"]["n"])
        live = call(url, "/api/2.0/tune/studies/growing/importance")[1]
        assert live["trials"] == 2 * count
        shares = {one["name"]: one["share"] for one in live["importances"]}
        fresh = tune_json("importance", "growing", "--server", url, cwd=tmp_path)
        assert shares == pytest.approx({one["name"]: one["share"] for one in fresh["importances"]})


def test_pruners_are_weighed_on_the_recorded_study(studies, tmp_path):
    url, _ = studies
    found = tune_json("pruners", "full", "--pruner", "median,startup=1", "--pruner", "none", "--server", url,
                      cwd=tmp_path)
    assert found["trials"] == 24 and found["reports"] == 96
    median, none = found["pruners"]
    assert none["pruned"] == 0 and none["reports_saved"] == 0 and none["best_rank"] == 1
    # Each reports n + 4 and then one less a step: who is worse than the median of those that were kept is it at once.
    kept = []
    for trial in tune_json("show", "full", "--server", url, cwd=tmp_path)["trials"]:
        if not kept or trial["value"] <= statistics.median(kept):
            kept.append(trial["value"])
    assert 0 < len(kept) < 24 and median["pruned"] == 24 - len(kept)
    assert median["reports_saved"] == 3 * median["pruned"]
    assert median["best_rank"] == 1 and median["best_value"] == min(kept)
    table = tune("pruners", "full", "--server", url, cwd=tmp_path).stdout
    assert "hyperband" in table and "steps saved" in table and "of 24 trials, 96 steps" in table


def test_pruners_read_histories_that_fill_more_than_an_answer(studies, tmp_path):
    url, _ = studies
    create_study(url, "long")
    # An answer about several runs ends at 25,000 points: within a run, at its end, and one fills it alone.
    counts = [26_000, 12_500, 12_500, 12_600, 3]
    for trial, count in zip(ask(url, "long", len(counts)), counts):
        for begin in range(0, count, 1000):
            metrics = [{"key": "loss", "value": 1 / (step + 1), "timestamp": step, "step": step}
                       for step in range(begin, min(begin + 1000, count))]
            assert call(url, "/api/2.0/mlflow/runs/log-batch", {"run_id": trial["run_id"], "metrics": metrics})[0] == 200
        tell(url, "long", trial, 0.5)
    found = tune_json("pruners", "long", "--pruner", "threshold,lower=0.001", "--server", url, cwd=tmp_path)
    assert found["trials"] == len(counts) and found["reports"] == sum(counts)
    assert found["pruners"][0]["pruned"] == 4, "each of the long ones falls below the bound"


def test_the_study_s_own_pruner_replayed_decides_as_it_did_live(studies, tmp_path):
    url, _ = studies
    create_study(url, "pruned", pruner={"type": "median", "startup": 3}, budget={"trials": 20})
    stopped = 0
    for _ in range(20):
        trial = ask(url, "pruned", 1)[0]
        for step in range(5):
            if report(url, "pruned", trial, step, trial["params"]["n"] / (step + 1))[1]["action"] == "stop":
                stopped += 1
                call(url, "/api/2.0/tune/studies/pruned/tell",
                     {"number": trial["number"], "attempt": trial["attempt"], "state": "pruned"})
                break
        else:
            tell(url, "pruned", trial, trial["params"]["n"])
    assert stopped > 2
    replayed = tune_json("pruners", "pruned", "--pruner", "median,startup=3", "--server", url, cwd=tmp_path)
    assert replayed["pruners"][0]["pruned"] == stopped == replayed["pruned_before"]
    assert replayed["pruners"][0]["reports_saved"] == 0 and replayed["pruners"][0]["best_rank"] == 1

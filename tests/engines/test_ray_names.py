"""Each name that ray.tune's Tuner takes is meant as there, or refused by its name."""

import dataclasses
import datetime
import json
import os
import pathlib
import time

import pytest
from conftest import is_alive
from ray_support import fit, no_cluster  # noqa: F401 (a fixture)

import tune_client as client
from tune_ray import tune
from tune_ray.tune import _schedule
from tune_ray.tune.schedulers import ASHAScheduler, HyperBandScheduler, MedianStoppingRule
from tune_ray.tune.stopper import CombinedStopper, FunctionStopper, MaximumIterationStopper, TimeoutStopper

pytestmark = pytest.mark.usefixtures("no_cluster")
SPACE = {"x": tune.uniform(0, 1)}


def checkpoints(result):
    return [int(path.name[11:]) for path in sorted(pathlib.Path(result.path).glob("checkpoint_*"))]


def test_fail_fast_ends_all_with_the_first_failure(url, tmp_path):
    def trainable(config):
        if config["fails"]:
            while not list(tmp_path.glob("pid-*")):
                time.sleep(0.02)
            raise ValueError("of all things")
        (tmp_path / f"pid-{os.getpid()}").touch()
        time.sleep(1000)

    space = {"fails": tune.grid_search([True, False])}
    for fail_fast in (True, "raise"):
        [each.unlink() for each in tmp_path.glob("pid-*")]
        run = {"failure_config": tune.FailureConfig(fail_fast=fail_fast)}
        if fail_fast is True:
            grid = fit(url, tmp_path, space, trainable, run=run, name="fast", max_concurrent_trials=2, num_samples=3)
            assert grid.num_errors == 1 and "of all things" in str(grid.errors[0])
            counts = client.load_study("fast", url).info()["counts"]
            assert counts["failed"] == 1 and counts["running"] == counts["queued"] == counts["complete"] == 0
        else:
            with pytest.raises(client.TuneError, match="ValueError: of all things"):
                fit(url, tmp_path, space, trainable, run=run, max_concurrent_trials=2)
        assert not any(is_alive(int(path.name[4:])) for path in tmp_path.glob("pid-*")), "the other trial has ended"


def test_a_time_budget_ends_what_runs(url, tmp_path):
    def trainable(config):
        (tmp_path / f"pid-{os.getpid()}").touch()
        tune.report({"loss": 1.0})
        time.sleep(1000)

    grid = fit(url, tmp_path, SPACE, trainable, num_samples=-1, max_concurrent_trials=1, time_budget_s=datetime.timedelta(seconds=4),
               name="timed")
    [result] = grid
    assert result.error is None and len(result.history) == 1 and result.metrics["loss"] == 1.0
    pids = [int(path.name[4:]) for path in tmp_path.glob("pid-*")]
    assert len(pids) == 1 and not is_alive(pids[0])
    info = client.load_study("timed", url).info()
    assert info["state"] in ("completed", "stopped") and info["counts"]["running"] == info["counts"]["queued"] == 0
    with pytest.raises(client.TuneError, match="num_samples=-1 has no end"):
        fit(url, tmp_path, SPACE, trainable, num_samples=-1)


def test_the_best_checkpoints_are_kept_by_their_score(url, tmp_path):
    def trainable(config):
        for step, score in enumerate([0.2, 0.9, 0.5, 0.8, 0.1], start=1):
            (tmp_path / "state").mkdir(exist_ok=True)
            tune.report({"loss": step, "score": score}, checkpoint=tune.Checkpoint(tmp_path / "state"))

    kept = {"max": [2, 4, 5], "min": [1, 5]}  # two by their score, and the latest
    for order, numbers in kept.items():
        saved = tune.CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="score", checkpoint_score_order=order)
        [result] = fit(url, tmp_path, {}, trainable, run={"checkpoint_config": saved})
        assert checkpoints(result) == numbers and result.checkpoint.path.endswith("checkpoint_000005")
        assert [metrics["score"] for _, metrics in result.best_checkpoints] == [[0.2, 0.9, 0.5, 0.8, 0.1][i - 1] for i in numbers]
        assert result.get_best_checkpoint("score", "max").path.endswith("02" if order == "max" else "01")
    saved = tune.CheckpointConfig(num_to_keep=1, checkpoint_score_attribute="absent")
    grid = fit(url, tmp_path, {}, trainable, run={"checkpoint_config": saved})
    assert "no number 'absent', which CheckpointConfig.checkpoint_score_attribute names" in str(grid.errors[0])


class Counted(tune.Trainable):
    def setup(self, config, start=0):
        self.total = start

    def step(self):
        self.total += 1
        return {"loss": -self.total, "should_checkpoint": self.config["saves"] and self.total == 2}

    def save_checkpoint(self, checkpoint_dir):
        return {"total": self.total}

    def load_checkpoint(self, checkpoint):
        self.total = checkpoint["total"]


@pytest.mark.parametrize("saved, saves, numbers", [({}, False, []), ({}, True, [2]), ({"checkpoint_frequency": 2}, False, [2, 4]),
                                                   ({"checkpoint_at_end": True}, False, [5]),
                                                   ({"checkpoint_frequency": 5, "checkpoint_at_end": True}, False, [5])])
def test_a_class_is_saved_as_often_as_said(url, tmp_path, saved, saves, numbers):
    run = {"stop": {"training_iteration": 5}, "checkpoint_config": tune.CheckpointConfig(**saved)}
    [result] = fit(url, tmp_path, {"saves": saves}, tune.with_parameters(Counted, start=0), run=run)
    assert result.error is None and result.metrics["loss"] == -5 and checkpoints(result) == numbers


def climbing(config):
    for value in range(1, 200):
        tune.report({"loss": -value, "accuracy": value / 10})


class AnyGood(tune.Stopper):
    """Of ray.tune's guide to stopping: once a trial is good, all end."""

    def __init__(self):
        self.has_good = False

    def __call__(self, trial_id, result):
        self.has_good = self.has_good or result["accuracy"] >= 0.8
        return self.has_good

    def stop_all(self):
        return self.has_good


def test_trainings_end_by_bounds_functions_and_stoppers(url, tmp_path):
    def reports(stop, **more):
        return [len(result.history) for result in fit(url, tmp_path, SPACE, climbing, run={"stop": stop}, **more)]

    assert reports({"training_iteration": 10, "accuracy": 0.8}) == [8]
    assert reports(lambda trial_id, result: result["accuracy"] >= 0.5 or len(trial_id) != 32) == [5]
    assert reports(CombinedStopper(MaximumIterationStopper(7), FunctionStopper(lambda trial_id, result: result["loss"] <= -9)),
                   num_samples=3, max_concurrent_trials=1) == [7, 7, 7]
    assert sum(reports(AnyGood(), num_samples=20, max_concurrent_trials=1)) == 8, "none begins after that"
    assert reports(TimeoutStopper(datetime.timedelta(hours=1)), num_samples=1) == [199]

    grid = fit(url, tmp_path, SPACE, climbing, run={"stop": {"absent": 3}})
    assert "no 'absent', at which RunConfig.stop looks" in str(grid.errors[0])

    class Faulty(AnyGood):
        def __call__(self, trial_id, result):
            raise ZeroDivisionError("in the stopper")

    with pytest.raises(ZeroDivisionError, match="in the stopper"):
        fit(url, tmp_path, SPACE, climbing, run={"stop": Faulty()})

    def slow(config):
        while True:
            time.sleep(0.1)
            tune.report({"loss": 1})

    [result] = fit(url, tmp_path, {}, slow, run={"stop": {"time_total_s": 0.5}})
    assert 0.5 <= result.metrics["time_total_s"] < 30 and result.history[-2]["time_total_s"] < 0.5


def test_a_trial_has_a_name_a_log_and_a_folder(url, tmp_path):
    def trainable(config):
        print("on stdout", flush=True)
        os.system("echo from a program >&2")
        pathlib.Path("relative").write_text("here")
        return {"loss": 1, "name": tune.get_context().get_trial_name()}

    before = os.getcwd()
    [result] = fit(url, tmp_path, {"x": 3}, trainable, run={"log_to_file": True},
                   trial_name_creator=lambda trial: f"{trial.trainable_name}-x{trial.config['x']}")
    folder = pathlib.Path(result.path)
    assert result.metrics["name"] == "trainable-x3" and os.getcwd() == before
    assert (folder / "stdout").read_text() == "on stdout\n" and (folder / "stderr").read_text() == "from a program\n"
    assert (folder / "relative").read_text() == "here"


def flaky(config):
    checkpoint = tune.get_checkpoint()
    start = json.loads(pathlib.Path(checkpoint.path, "state").read_text()) if checkpoint else 0
    for step in range(start + 1, 5):
        folder = pathlib.Path(config["folder"], f"state-{config['n']}")
        folder.mkdir(exist_ok=True)
        (folder / "state").write_text(str(step))
        tune.report({"loss": config["n"], "start": start}, checkpoint=tune.Checkpoint(folder))
        if step == 2 and config["n"] == 1 and not pathlib.Path(config["folder"], "mended").exists():
            raise RuntimeError("not mended")


@pytest.mark.parametrize("how, start", [("resume_errored", 2), ("restart_errored", 0)])
def test_trials_that_failed_are_run_again(url, tmp_path, how, start):
    space = {"n": tune.grid_search([0, 1, 2]), "folder": str(tmp_path)}
    grid = fit(url, tmp_path, space, flaky, name=how)
    assert [result.error is not None for result in grid] == [False, True, False]
    (tmp_path / "mended").touch()
    assert len(tune.Tuner.restore(tmp_path / how, flaky).get_results()) == 3
    restored = tune.Tuner.restore(str(tmp_path / how), trainable=flaky, **{how: True})
    again = restored.fit()
    assert [result.config["n"] for result in again] == [0, 1, 2] and not again.errors, "each once, in its place"
    assert again[1].metrics["start"] == start and again[1].metrics["training_iteration"] == 4
    assert client.load_study(how, url).info()["counts"] | {"complete": 3, "failed": 1} == client.load_study(how, url).info()["counts"]
    assert len(tune.Tuner.restore(tmp_path / how, flaky, **{how: True}).fit()) == 3, "and not a third time"
    with pytest.raises(client.TuneError, match="another search space"):
        tune.Tuner.restore(tmp_path / how, flaky, param_space=SPACE)
    with pytest.raises(client.TuneError, match="resume_unfinished=False"):
        tune.Tuner.restore(tmp_path / how, flaky, resume_unfinished=False)


@pytest.mark.parametrize("run, config, what", [
    ({"storage_filesystem": object()}, {}, "RunConfig.storage_filesystem"), ({"storage_path": "s3://bucket/x"}, {}, "RunConfig.storage_path"),
    ({"local_dir": "/x"}, {}, "RunConfig.local_dir"), ({}, {"trial_dirname_creator": str}, "TuneConfig.trial_dirname_creator"),
    ({}, {"chdir_to_trial_dir": False}, "RAY_CHDIR_TO_TRIAL_DIR=0"), ({}, {"max_concurrent_trials": -1}, "TuneConfig.max_concurrent_trials"),
    ({"checkpoint_config": tune.CheckpointConfig(checkpoint_frequency=1)}, {}, "CheckpointConfig.checkpoint_frequency"),
    ({"checkpoint_config": tune.CheckpointConfig(checkpoint_at_end=True)}, {}, "CheckpointConfig.checkpoint_at_end"),
    ({}, {"scheduler": ASHAScheduler(brackets=2)}, "brackets=2"), ({}, {"scheduler": ASHAScheduler(reduction_factor=2.5)}, "found 2.5"),
    ({}, {"scheduler": MedianStoppingRule(time_attr="time_total_s")}, "MedianStoppingRule counts training_iteration"),
    ({}, {"scheduler": MedianStoppingRule(hard_stop=False)}, "hard_stop=False")])
def test_what_cannot_be_honoured_is_refused_by_its_name(url, tmp_path, run, config, what):
    with pytest.raises(client.TuneError, match=what):
        fit(url, tmp_path, SPACE, climbing, run=run, **config)


def test_values_that_are_none_are_refused():
    for make in (lambda: tune.CheckpointConfig(num_to_keep=0), lambda: tune.CheckpointConfig(checkpoint_score_order="up"),
                 lambda: tune.CheckpointConfig(checkpoint_frequency=-1), lambda: tune.FailureConfig(fail_fast="soon"),
                 lambda: tune.FailureConfig(fail_fast=True, max_failures=1), lambda: tune.Tuner(climbing, tune_config=tune.TuneConfig(time_budget_s=0))):
        with pytest.raises(ValueError, match=r"found|must be"):
            make()
    with pytest.raises(client.TuneError, match="found node"):
        tune.with_resources(climbing, {"CPU": 1, "node": 1})
    with pytest.raises(client.TuneError, match="takes {'cpu'"):
        tune.with_resources(climbing, lambda config: {"cpu": 1})


def test_what_is_only_shown_is_said(url, tmp_path, capsys):
    fit(url, tmp_path, SPACE, climbing, run={"callbacks": [object()], "progress_reporter": object(), "stop": {"training_iteration": 1}})
    said = capsys.readouterr().err
    assert "RunConfig.callbacks is ignored: they are not called" in said and "RunConfig.progress_reporter is ignored" in said


def test_schedulers_have_their_counterparts():
    assert _schedule.pruner_of(HyperBandScheduler(max_t=27)) == ({"type": "hyperband", "min": 1, "max": 27, "eta": 3}, 27)
    assert _schedule.pruner_of(ASHAScheduler(max_t=27, stop_last_trials=False)) == ({"type": "asha", "min": 1, "max": 27, "eta": 4}, None)


def test_no_field_of_rays_is_unknown():
    theirs = pytest.importorskip("ray.tune")
    for name in ("TuneConfig", "RunConfig", "FailureConfig", "CheckpointConfig"):
        fields = {field.name for field in dataclasses.fields(getattr(theirs, name)) if not field.name.startswith("_")}
        assert fields <= {field.name for field in dataclasses.fields(getattr(tune, name))}, name
    for name in theirs.__all__:
        if name not in tune.__all__:
            with pytest.raises(AttributeError, match=f"tune.{name} is not supported here: "):
                getattr(tune, name)


def test_points_and_limits_of_rays_searchers_are_taken(url, tmp_path):
    theirs = pytest.importorskip("ray.tune")
    from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter
    from ray.tune.search.hyperopt import HyperOptSearch
    from ray.tune.stopper import MaximumIterationStopper as TheirStopper

    space = {"net": {"x": theirs.uniform(0, 1), "kind": theirs.choice(["a", "b"])}}
    first = {"net": {"x": 0.25, "kind": "b"}}
    searchers = [BasicVariantGenerator(points_to_evaluate=[first], max_concurrent=1),
                 ConcurrencyLimiter(HyperOptSearch(metric="loss", mode="max", points_to_evaluate=[first]), max_concurrent=1)]
    for searcher in searchers:
        saved = theirs.CheckpointConfig(num_to_keep=1)
        run = theirs.RunConfig(storage_path=str(tmp_path), checkpoint_config=saved, stop=TheirStopper(3), failure_config=theirs.FailureConfig())
        run.server = url
        tuner = tune.Tuner(lambda config: [tune.report({"loss": config["net"]["x"], "kind": config["net"]["kind"]}) for _ in range(5)],
                           param_space=space, tune_config=theirs.TuneConfig(search_alg=searcher, num_samples=2), run_config=run)
        grid = tuner.fit()
        assert not grid.errors and grid[0].config == first and len(grid[0].history) == 3 and tuner._concurrency() == 1
    assert grid.get_best_result().metrics["loss"] == max(result.metrics["loss"] for result in grid), "the searcher's metric and mode"
    frame = grid.get_dataframe(filter_metric="loss", filter_mode="max")
    assert list(frame["training_iteration"]) == [1, 1]
    with pytest.raises(client.TuneError, match="constant_grid_search"):
        _schedule.search_of(BasicVariantGenerator(constant_grid_search=True))

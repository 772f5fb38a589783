"""tune-trainer as the ranks of a trial: `tune run --nproc 2`, pruned at one step, and gone on with by another number of ranks."""

import re

import pytest

from agent_support import Farm, wait_for
from study_support import OK, tune, tune_json
from trainer_support import TRAINER, train, write_digits

PARAMETERS = dict(model="mlp", width=16, dropout=0.2, epochs=6, batch_size=60, log_every=5, seed=3, threads=1)


def flags(data, **more):
    return [f"--{name.replace('_', '-')}={value}" for name, value in {"data": data, **PARAMETERS, **more}.items()]


@pytest.fixture
def data(tmp_path):
    return write_digits(tmp_path / "digits")


def assert_close(curve, expected):
    assert [step for step, _ in curve] == [step for step, _ in expected]
    for (step, value), (_, other) in zip(curve, expected):
        assert value == pytest.approx(other, rel=2e-4, abs=2e-5), step


def test_tune_run_nproc(tmp_path, data):
    done = tune("run", "-n", 2, "-m", "val_loss:min", "--seed", 1, "--port", 0, "--study", "s", "--nproc", 2, "-j", 1,
                "lr=1e-3..1e-2", "--", TRAINER, "train", *flags(data), "{args}", cwd=tmp_path, timeout=280)
    assert done.returncode == OK, done.stdout + done.stderr
    trials = tune_json("show", "s", cwd=tmp_path)["trials"]
    assert [trial["state"] for trial in trials] == ["complete"] * 2
    for trial in trials:
        alone = train(data=data, lr=trial["params"]["lr"], **PARAMETERS)
        assert trial["value"] == pytest.approx(min(line["val_loss"] for line in alone.lines if "val_loss" in line), rel=2e-4)


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path / "farm") as made:
        made.start_agent(slots=3)
        yield made


def last_steps(farm, trial):
    """After which step each rank ended."""
    found = []
    for name in ("logs/stderr.log", "logs/rank-1.log"):
        text = wait_for(lambda name=name: farm.artifact(trial, name), name)
        found.append(re.findall(r"stopped by request.*", text))
    return found


def test_a_pruned_trial_ends_all_ranks_after_the_same_step(farm, data):
    """The first trial is good and short; the second one has no chance from its first epoch on, and would train for hours."""
    command = [str(TRAINER), "train", *flags(data, epochs=3), "{args}"]
    study = dict(space={"lr": {"choice": [0.01, 1e-7]}, "epochs": {"choice": [3, 100000]}},
                 metric={"name": "val_loss", "goal": "minimize"}, resources={"nproc": 2},
                 budget={"trials": 2, "parallel": 1}, initial=[{"lr": 0.01, "epochs": 3}, {"lr": 1e-7, "epochs": 100000}],
                 pruner={"type": "median", "startup": 1, "warmup": 0, "min_trials": 1}, grace="60s")
    command.remove("--epochs=3")
    farm.create("s", command, trials=2, **study)
    good, bad = farm.wait_for_end("s")
    assert (good["state"], bad["state"]) == ("complete", "pruned"), bad
    first, other = last_steps(farm, bad)
    assert len(first) == 1 and first == other, "both say after which step"


def test_another_number_of_ranks_goes_on(farm, data, tmp_path):
    whole = train(data=data, **{**PARAMETERS, "epochs": 40})
    checkpoints = tmp_path / "checkpoints"
    curves = {}
    for nproc, enough in ((2, 5), (3, 12), (1, None)):
        name = f"with-{nproc}"
        farm.create(name, [str(TRAINER), "train", *flags(data, epochs=40, checkpoint_dir=checkpoints)], trials=1,
                    metric={"name": "val_loss", "goal": "minimize"}, resources={"nproc": nproc}, grace="60s")
        run = wait_for(lambda name=name: [trial["run_id"] for trial in farm.trials(name)], "the trial")[0]
        if enough is None:
            trial, = farm.wait_for_end(name)
            assert trial["state"] == "complete"
        else:
            wait_for(lambda run=run, enough=enough: max((step for step, _ in farm.history(run, "val_loss")), default=0) >= enough,
                     f"epoch {enough}")
            farm.post(f"tune/studies/{name}/stop", {})
            wait_for(lambda name=name: farm.trials(name)[0]["state"] == "cancelled", "the end of its ranks")
        curves[nproc] = {key: farm.history(run, key) for key in ("val_loss", "train_loss_step")}
    assert all(curve["train_loss_step"] for curve in curves.values()), "each number of ranks did some of it"
    for key in ("val_loss", "train_loss_step"):
        together = sorted({point for curve in curves.values() for point in curve[key]})
        assert_close(together, [(line["step"], line[key]) for line in whole.lines if key in line])

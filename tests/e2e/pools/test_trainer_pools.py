"""`tune-trainer pool` as the pool of a study: what it trains is what `tune-trainer train` trains in processes."""

import pytest

from agent_support import outcome, wait_for
from trainer_support import TRAINER, write_digits

FIXED = ["--epochs=2", "--width=8", "--batch-size=64", "--device=cpu"]


@pytest.fixture
def data(tmp_path):
    write_digits(tmp_path / "digits")
    return tmp_path / "digits"


def test_training_in_a_pool_is_training_in_processes(farm, data):
    farm.start_agent(slots=1)
    study = {"metric": {"name": "val_loss", "goal": "minimize"}, "space": {"lr": "1e-4..1e-1:log", "dropout": "0..0.3"}}
    farm.create("pooled", [str(TRAINER), "pool", f"--data={data}", *FIXED], trials=6, resources={"pool": 3}, **study)
    pooled = farm.wait_for_end("pooled")
    farm.create("single", [str(TRAINER), "train", f"--data={data}", *FIXED, "{args}"], trials=6, **study)
    single = farm.wait_for_end("single")
    assert [trial["state"] for trial in single] == ["complete"] * 6
    assert outcome(farm, pooled) == outcome(farm, single)
    keys = [{metric["key"] for metric in farm.run(trials[0]["run_id"])["data"]["metrics"]} for trials in (pooled, single)]
    assert {key for key in keys[1] if not key.startswith("system/")} == keys[0]
    assert "samples_per_second" in keys[0]
    for trial_a, trial_b in zip(sorted(pooled, key=lambda t: t["number"]), sorted(single, key=lambda t: t["number"])):
        assert farm.history(trial_a["run_id"], "val_loss") == farm.history(trial_b["run_id"], "val_loss") != []


def test_a_parameter_that_the_trainer_does_not_know(farm, data):
    farm.start_agent(slots=1)
    farm.create("s", [str(TRAINER), "pool", f"--data={data}", *FIXED], trials=3, resources={"pool": 3})
    wait_for(lambda: farm.study("s")["state"] in ("stopped", "completed"), "the study's end")
    trials = farm.trials("s")
    assert {trial["state"] for trial in trials} <= {"failed", "cancelled"}
    assert any("'x'" in trial["reason"] for trial in trials)

"""The trainer goes on at the exact sample on another machine, and a population continues members of other machines."""

import signal
import sys

from agent_support import Farm, wait_for
from test_checkpoints_travel import kill_machine, manifests, only_trial
from test_population import MEMBER, check_lineages, check_sums
from trainer_support import TRAINER, train, write_digits

PARAMETERS = dict(model="mlp", dropout=0.3, epochs=120, batch_size=32, checkpoint_every=7, log_every=5, seed=4, threads=1)


def curve_of(farm, trial, key):
    """Without what a later attempt repeats: the server keeps one of equal values."""
    return sorted(set(farm.history(trial["run_id"], key)))


def test_the_trainer_goes_on_at_the_exact_sample(tmp_path):
    data = write_digits(tmp_path / "digits")
    whole = train(data=data, checkpoint_dir=tmp_path / "whole", lr=0.01, **PARAMETERS)
    assert whole.code == 0, whole.stderr
    expected = {key: sorted({(line["step"], line[key]) for line in whole.lines if key in line})
                for key in ("val_loss", "train_loss", "train_loss_step")}
    command = [str(TRAINER), "train", f"--data={data}", "--lr=0.01"] + [
        f"--{name.replace('_', '-')}={value}" for name, value in PARAMETERS.items()]
    with Farm(tmp_path, lease_ttl="2s") as farm:
        farm.start_agent("m0", slots=1)
        farm.create("s", command, trials=1, metric={"name": "val_loss", "goal": "minimize"},
                    checkpoints={"every": "100ms", "after": "keep"})
        trial = only_trial(farm)
        moves = 0
        for reached in (3, 12):  # one machine is lost, the next one's trial is preempted
            wait_for(lambda reached=reached: len(farm.history(trial["run_id"], "val_loss")) >= reached,
                     f"{reached} epochs")
            wait_for(lambda attempt=moves + 1: any(name.startswith(f"manifest-{attempt:06d}")
                                                   for name in manifests(farm, trial)), "a stored checkpoint")
            assert farm.trials("s")[0]["state"] == "running", "it must be interrupted"
            if moves == 0:
                kill_machine(farm, "m0")
            else:
                farm.agents[f"m{moves}"].process.send_signal(signal.SIGTERM)
                assert farm.agents[f"m{moves}"].process.wait(60) == 0
            moves += 1
            farm.start_agent(f"m{moves}", slots=1)
        (trial,) = farm.wait_for_end("s")
        assert trial["state"] == "complete" and trial["attempt"] == 3
        for key, values in expected.items():
            assert curve_of(farm, trial, key) == values, key
        (folder,) = farm.state_dir("m2").glob("checkpoints/*/*")
        for name in ("last.safetensors", "best.safetensors"):
            assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_a_population_continues_members_of_another_machine(tmp_path):
    """Without the store each trial whose parent ran elsewhere would fail: nothing but the server is shared."""
    with Farm(tmp_path) as farm:
        farm.start_agent("one", slots=2)
        farm.start_agent("two", slots=2)
        farm.create("s", [sys.executable, "-c", MEMBER], space={"x": {"float": [0.1, 1]}},
                    metric={"name": "loss", "take": "last", "goal": "minimize"}, env={"GATE": "gate"},
                    budget={"parallel": 4},
                    sampler={"type": "pbt", "seed": 1, "population": 4, "interval": 2, "max": 12})
        trials = farm.wait_for_end("s")
        assert {trial["state"] for trial in trials} == {"complete"}
        check_lineages(trials)
        check_sums(trials)
        wait_for(lambda: any("resumes from the stored checkpoint" in (farm.artifact(trial, "logs/agent.log") or "")
                             for trial in trials), "a log that says that a trial went on elsewhere")
        # What nobody continues any more is not stored either.
        last = {trial["member"]: trial["number"] for trial in trials}
        best = min(trials, key=lambda trial: (trial["value"], trial["number"]))
        needed = {*last.values(), best["number"]}
        by_run = {trial["run_id"]: trial["number"] for trial in trials}
        stored = lambda: {by_run[path.parts[-4]] for path in
                          (farm.folder / "data").glob("**/artifacts/checkpoints/manifest-*")}
        wait_for(lambda: stored() <= needed and stored(), "the last removals")

"""`tune-trainer selfcheck --device cpu`: the list that the first GPU of a user runs, here on the CPU."""

import json
import subprocess

from trainer_support import BAD_CONFIG, DONE, TRAINER, clean_environment

STEPS = ["device", "copies", "models", "precision", "graph", "resume", "memory", "reducer", "ranks", "packed", "data"]
# What a CPU has nothing of.
SKIPPED = {"graph"}

MODELS = len("mlp cnn resnet18 resnet34 resnet50 transformer gpt torchscript".split())


def selfcheck(*arguments):
    return subprocess.run([str(TRAINER), "selfcheck", *arguments], capture_output=True, text=True, timeout=600,
                          env=clean_environment())


def test_every_step_is_ok_on_a_cpu():
    process = selfcheck("--device=cpu", "--json")
    report = json.loads(process.stdout)
    steps = {step["name"]: step for step in report["steps"]}
    assert list(steps) == STEPS
    assert [step["number"] for step in report["steps"]] == list(range(1, len(STEPS) + 1))
    wrong = {name: step for name, step in steps.items()
             if step["status"] != ("skipped" if name in SKIPPED else "ok")}
    assert not wrong
    assert process.returncode == DONE
    assert report["failed"] == 0 and report["ok"] == len(STEPS) - len(SKIPPED)
    assert steps["copies"]["unit"] == "GB/s" and steps["copies"]["value"] > 0.01
    assert steps["models"]["value"] == 2 * MODELS, "every model with every optimizer"
    assert steps["memory"]["value"] >= 2, "parts into which a batch was cut"
    assert 0 <= steps["data"]["value"] < 100


def test_a_step_that_crashes_is_a_failure_and_not_the_end(tmp_path):
    """Without a folder for temporary files no step can begin."""
    process = subprocess.run([str(TRAINER), "selfcheck", "--device=cpu"], capture_output=True, text=True, timeout=600,
                             env=clean_environment(TMPDIR=str(tmp_path / "nothing")))
    assert process.returncode == 1, process.stdout
    lines = process.stdout.splitlines()
    assert len(lines) == len(STEPS) + 2
    assert all(" failed " in line and "signal 6" in line for line in lines[1:-1])
    assert lines[-1] == f"0 ok, {len(STEPS)} failed, 0 skipped"


def test_one_step():
    process = selfcheck("--device=cpu", "--step=copies")
    assert process.returncode == DONE
    assert json.loads(process.stdout)["status"] == "ok"
    assert selfcheck("--step=nothing").returncode == BAD_CONFIG
    assert "there is no 'nothing'" in selfcheck("--step=nothing").stderr
    assert selfcheck("--device=tpu").returncode == BAD_CONFIG

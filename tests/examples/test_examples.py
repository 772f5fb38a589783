"""The examples, run the way their READMEs say."""

import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))


def run(command, timeout_s, **environment):
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def trials_of(data, study):
    shown = subprocess.run([BIN / "tune", "show", study, "--data", data, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(shown.stdout)["trials"]


@pytest.mark.skipif(not (BIN / "tune-trainer").exists(), reason="built without LibTorch")
@pytest.mark.timeout(900)
def test_quickstart_tunes_a_network_on_real_data(tmp_path):
    output = run(
        ["./examples/quickstart.sh", "--once"], timeout_s=880, TUNE_PORT="0", TUNE_DATA=str(tmp_path / "data")
    )
    assert re.search(r"^Open the page now and watch: http://127\.0\.0\.1:\d+/\?code=[0-9a-f]+$", output, re.MULTILINE)
    trials = trials_of(tmp_path / "data", "digits")
    assert len(trials) == 30
    states = [trial["state"] for trial in trials]
    assert states.count("complete") + states.count("pruned") == 30, states
    assert states.count("pruned") > 0, "ASHA stopped nothing"
    best = max(trial["value"] for trial in trials if trial["state"] == "complete")
    assert best > 0.95, "a network on these digits reaches 97 % with ease"


@pytest.mark.skipif(not (BIN / "tune-trainer").exists(), reason="built without LibTorch")
@pytest.mark.timeout(300)
def test_transfer_beats_training_from_nothing(tmp_path):
    output = run(["./examples/transfer/run.sh", str(tmp_path / "out")], timeout_s=280, TUNE_BIN_DIR=str(BIN))
    nothing, moved = [json.loads(line.removeprefix("tune: ")) for line in output.splitlines() if line.startswith("tune: ")]
    assert moved["val_accuracy"] > nothing["val_accuracy"] + 0.02, output


def command_of_readme(folder):
    """The first code block of an example's README, as an argument list."""
    text = (ROOT / "examples" / folder / "README.md").read_text()
    block = re.search(r"```\w*\n(.*?)```", text, re.S).group(1)
    return shlex.split(block.replace("\\\n", " "))


@pytest.mark.timeout(600)
def test_mlflow_script_is_tuned_and_pruned_without_a_change(tmp_path):
    command = command_of_readme("sklearn")
    assert command[:2] == ["build/release/bin/tune", "run"]
    command = [str(BIN / "tune"), "run", "--data", str(tmp_path / "data"), "--port", "0", "--seed", "1", "--study", "sk"]
    command += command_of_readme("sklearn")[2:]
    run(command, timeout_s=580)

    trials = trials_of(tmp_path / "data", "sk")
    assert len(trials) == 12
    states = [trial["state"] for trial in trials]
    assert set(states) <= {"complete", "pruned"}, states
    assert states.count("complete") >= 1
    assert "tune" not in (ROOT / "examples" / "sklearn" / "train.py").read_text().split('"""', 2)[2]


def test_an_engine_of_ones_own_runs_the_study(tmp_path):
    """What examples/own_engine/README.md says, with a home of the test."""
    words = f"{BIN / 'tune'} run examples/own_engine/study.yaml --engines examples/own_engine/engines.yaml --port 0"
    output = run([*words.split(), "--data", str(tmp_path / "data")], timeout_s=120, HOME=str(tmp_path),
                 TUNE_RUNTIME_DIR=str(tmp_path / "run"))
    assert "own_engine: 12/12 trials" in output
    assert len(trials_of(tmp_path / "data", "own_engine")) == 12
    listed = run([BIN / "tune", "agents", "ls", "--engines", "examples/own_engine/engines.yaml", "--json"],
                 timeout_s=60, HOME=str(tmp_path))
    assert {agent["state"] for agent in json.loads(listed)["agents"]} <= {"ended"}

"""`tune profile`: a trace of a trial that runs, made when somebody asks for it."""

import json

import pytest

from agent_support import PYTHON, Farm, wait_for
from study_support import FAILED, OK, USAGE, tune
from trainer_support import TRAINER, write_digits

# A script of one's own that can be asked: it looks at the file between two steps.
ASKED = """
import os, pathlib, time
request, folder = pathlib.Path(os.environ["TUNE_PROFILE_REQUEST"]), pathlib.Path(os.environ["TUNE_ARTIFACT_DIR"])
done = 0
while done < 2:
    turn, steps = map(int, request.read_text().split()) if request.exists() else (0, 0)
    if turn > done:
        (folder / ("trace-%d.txt" % turn)).write_text(str(steps))
        print("tune: {\\"artifact\\": \\"trace-%d.txt\\"}" % turn, flush=True)
        print("tune: {\\"loss\\": %d}" % turn, flush=True)
        done = turn
    time.sleep(0.01)
"""


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path) as made:
        made.start_agent(slots=2)
        yield made


def profile(farm, trial, *more):
    return tune("profile", "s", trial, "--server", farm.url, *more, cwd=farm.folder)


def test_a_script_is_asked_twice(farm):
    farm.create("s", [PYTHON, "-c", ASKED], trials=1)
    wait_for(lambda: [trial["state"] for trial in farm.trials("s")] == ["running"], "the trial")
    assert json.loads(profile(farm, 0, "--steps", 7, "--json").stdout) == {"steps": 7}
    trial, = farm.trials("s")
    assert wait_for(lambda: farm.artifact(trial, "trace-1.txt"), "the first trace") == "7"
    assert farm.trials("s")[0]["state"] == "running", "it is there before the end"
    assert "5 steps" in profile(farm, 0).stdout
    trial, = farm.wait_for_end("s")
    assert (trial["state"], trial["attempt"]) == ("complete", 1)
    assert farm.history(trial["run_id"]) == [(0, 1), (1, 2)]
    assert wait_for(lambda: farm.artifact(trial, "trace-2.txt"), "the second trace") == "5"


@pytest.mark.parametrize("nproc", [1, 2])
def test_the_trainer_leaves_a_trace(farm, nproc):
    data = write_digits(farm.folder / "digits")
    farm.create("s", [str(TRAINER), "train", f"--data={data}", "--epochs=100000", "--log-every=0", "--batch-size=64"], trials=1,
                metric={"name": "val_loss", "goal": "minimize"}, resources={"nproc": nproc} if nproc > 1 else {})
    wait_for(lambda: farm.trials("s") and farm.history(farm.trials("s")[0]["run_id"], "val_loss"), "an epoch")
    assert profile(farm, 0, "--steps", 3).returncode == OK
    folder, = (farm.state_dir() / "attempts").iterdir()
    trace, = wait_for(lambda: list((folder / "artifacts" / "profile").glob("trace_*.json")), "the trace")
    first, last = map(int, trace.stem.split("_")[1:])
    assert last - first == 2, "three steps"
    text = wait_for(lambda: farm.artifact(farm.trials("s")[0], "profile/" + trace.name), "the artifact")
    assert farm.trials("s")[0]["state"] == "running", "it is there before the end"
    farm.post("tune/studies/s/stop", {})
    wait_for(lambda: farm.trials("s")[0]["state"] == "cancelled", "the end")
    names = [event.get("name") for event in json.loads(text)["traceEvents"]]
    assert names.count("step") == 3, names[:50]


def test_who_cannot_be_asked(farm):
    farm.create("s", [PYTHON, "-c", "pass"], trials=1)
    farm.wait_for_end("s")
    for trial, code, words in ((0, USAGE, "not running"), (1, FAILED, "no trial 1")):
        done = profile(farm, trial)
        assert done.returncode == code and words in done.stderr, done.stderr
    done = profile(farm, 0, "--steps", 0)
    assert done.returncode == USAGE and "steps" in done.stderr

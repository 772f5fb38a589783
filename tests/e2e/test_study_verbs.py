"""The verbs that a person or a shell script drives a study with: enqueue, rerun, ask, tell; and bench."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from study_support import (FAILED, INTERRUPTED, NO_TRIAL, OK, REPORT, TUNE, USAGE, call, create_study, run_arguments, server,
                           start, study_of, terminal, trials_of, tune, tune_json, wait_until)

SPACE = {"lr": {"float": [1e-5, 0.1], "log": True}, "n": {"int": [1, 8]}, "opt": {"choice": ["sgd", "adam", "a b"]}}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with server(tmp_path_factory.mktemp("verbs")) as (_, url):
        yield url


def test_a_point_that_is_enqueued_is_the_next_one(url, tmp_path):
    create_study(url, "next", SPACE)
    done = tune("enqueue", "next", "lr=0.0123456789", "opt=a b", "--server", url, cwd=tmp_path)
    assert done.returncode == OK and done.stdout.startswith("trial 0 of next waits: lr=0.0123456789 n=")
    assert "'opt=a b'" in done.stdout
    second = tune_json("enqueue", "next", "n=3", "--server", url, cwd=tmp_path)
    assert second["number"] == 1 and second["params"]["n"] == 3 and set(second["params"]) == set(SPACE)
    asked = tune_json("ask", "next", "--count", 2, "--server", url, cwd=tmp_path)["trials"]
    assert [trial["number"] for trial in asked] == [0, 1]
    assert asked[0]["params"]["lr"] == 0.0123456789 and asked[0]["params"]["opt"] == "a b"
    assert asked[1]["params"] == second["params"]


@pytest.mark.parametrize("words, code, said", [
    (["enqueue", "wrong"], USAGE, "values"),
    (["enqueue", "wrong", "lr"], USAGE, "NAME=VALUE, found 'lr'"),
    (["enqueue", "wrong", "=1"], USAGE, "NAME=VALUE"),
    (["enqueue", "wrong", "n=1", "n=2"], USAGE, "'n' is given twice"),
    (["enqueue", "wrong", "depth=1"], USAGE, "depth"),
    (["enqueue", "wrong", "lr=7"], USAGE, "lr"),
    (["enqueue", "wrong", "n=many"], USAGE, "n"),
    (["enqueue", "nobody", "n=1"], FAILED, "nobody"),
    (["rerun", "wrong"], USAGE, "trial"),
    (["rerun", "wrong", "best"], USAGE, "best"),
    (["rerun", "wrong", "99"], FAILED, "no trial 99"),
    (["rerun", "nobody", "0"], FAILED, "nobody"),
    (["ask", "wrong", "--count", "0"], USAGE, "--count"),
    (["ask", "wrong", "--count", "1001"], USAGE, "--count"),
    (["ask", "wrong", "--lease", "soon"], USAGE, "soon"),
    (["ask", "nobody"], FAILED, "nobody"),
    (["tell", "wrong"], USAGE, "trial"),
    (["tell", "wrong", "-1"], USAGE, "Value -1 not in range 0 to 10000000 (tune tell --help)"),
    (["tell", "wrong", "0", "good"], USAGE, "value 'good' is not a number"),
    (["tell", "wrong", "0", "1", "2"], USAGE, "1 objective"),
    (["tell", "wrong", "0"], USAGE, "no value"),
    (["tell", "wrong", "0", "1", "--constraint", "mb=3"], USAGE, "no constraint on 'mb'"),
    (["tell", "wrong", "0", "1", "--constraint", "mb"], USAGE, "NAME=VALUE"),
    (["tell", "wrong", "0", "1", "--state", "good"], USAGE, "good"),
    (["tell", "wrong", "0", "1", "--attempt", "2"], USAGE, "attempt 2"),
    (["tell", "wrong", "99", "1"], FAILED, "no trial 99"),
    (["bench", "--seconds", "0"], USAGE, "--seconds"),
    (["bench", "--clients", "0"], USAGE, "--clients"),
    (["bench", "--dir", "no/such/folder"], FAILED, "no/such/folder"),
])
def test_bad_words_are_one_clear_sentence(url, tmp_path, words, code, said):
    if call(url, "/api/2.0/tune/studies/wrong")[0] == 404:
        create_study(url, "wrong", SPACE)
        tune_json("ask", "wrong", "--server", url, cwd=tmp_path)
    done = tune(*words, *([] if words[0] == "bench" else ["--server", url]), cwd=tmp_path)
    assert done.returncode == code and said in done.stderr, done.stderr
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert study_of(url, "wrong")["counts"]["running"] == 1 and study_of(url, "wrong")["trials"] == 1


def test_rerun_is_a_new_trial_of_the_same_point(url, tmp_path):
    create_study(url, "again", SPACE, command=["echo", "{args}"], budget={"trials": 3})
    first = tune_json("ask", "again", "--server", url, cwd=tmp_path)["trials"][0]
    tune("tell", "again", 0, 0.5, "--server", url, cwd=tmp_path)
    assert "Run it as a new trial: tune rerun again 0\n" in tune("best", "again", "--server", url, cwd=tmp_path).stdout
    said = tune("rerun", "again", 0, "--server", url, cwd=tmp_path)
    assert said.returncode == OK and said.stdout.startswith("trial 1 of again waits, with the parameters of trial 0: lr=")
    assert f"Outside of the study:\n  echo --lr={first['params']['lr']}" in said.stdout
    again = tune_json("rerun", "again", 1, "--server", url, cwd=tmp_path)
    assert again["number"] == 2 and again["rerun_of"] == 1 and again["command"][0] == "echo"
    asked = tune_json("ask", "again", "--count", 9, "--server", url, cwd=tmp_path)["trials"]
    assert [trial["number"] for trial in asked] == [1, 2]
    assert asked[0]["params"] == asked[1]["params"] == first["params"]
    over = tune("rerun", "again", 0, "--server", url, cwd=tmp_path)
    assert over.returncode == FAILED and "has used its budget of 3 trials" in over.stderr and "larger -n" in over.stderr
    assert "tune rerun" not in tune("best", "again", "--server", url, cwd=tmp_path).stdout


def test_running_a_finished_study_again_shows_its_command_and_resumes_with_a_larger_budget(tmp_path):
    assert tune(*run_arguments(REPORT, trials=3), cwd=tmp_path).returncode == OK
    refused = tune("rerun", "s", 1, "--data", "tune-data", cwd=tmp_path)
    assert refused.returncode == FAILED
    command = refused.stderr.split("Outside of the study:\n")[1].strip()
    x = trials_of(tmp_path)[1]["params"]["x"]
    assert json.loads(subprocess.run(command, shell=True, capture_output=True, text=True,
                                     check=True).stdout.removeprefix("tune: ")) == {"loss": x}


def test_rerun_and_enqueue_of_a_study_that_rests_say_what_goes_on(tmp_path):
    data = ["--data", "tune-data"]
    words = run_arguments(REPORT, trials=500, parameters=("x=0..1", "--target", "1"), jobs=1)
    run = tune(*words, cwd=tmp_path)
    assert run.returncode == OK and "Run it as a new trial: tune rerun s " in run.stdout
    for verb in (["enqueue", "s", "x=0.25"], ["rerun", "s", 0]):
        said = tune(*verb, *data, cwd=tmp_path)
        assert said.returncode == OK and "The study is completed. The trial runs when a `tune run`" in said.stdout
    points = [trial["params"]["x"] for trial in trials_of(tmp_path)]
    assert points[-2:] == [0.25, points[0]]
    words[words.index("1")] = "0"
    words[words.index(500)] = len(points)
    assert tune(*words, cwd=tmp_path).returncode == OK
    ended = trials_of(tmp_path)
    assert [trial["value"] for trial in ended] == points, "both ran, and nothing else"


def test_a_member_of_a_population_is_not_run_again(url, tmp_path):
    create_study(url, "members", SPACE, sampler={"type": "pbt", "population": 2, "interval": 1, "seed": 1}, budget={"trials": 9})
    tune_json("ask", "members", "--server", url, cwd=tmp_path)
    done = tune("rerun", "members", 0, "--server", url, cwd=tmp_path)
    assert done.returncode == USAGE and "continued a checkpoint" in done.stderr


LOOP = """
while out=$(tune ask loop $WHERE 2>why); do
    set -- $out
    [ "$1 $3 $5" = "trial attempt run" ] || exit 9
    eval "$7"
    tune tell loop $2 --attempt $4 $x $WHERE || exit 8
done
cat why >&2
"""


@pytest.mark.parametrize("is_local", [False, True])
def test_a_shell_script_is_a_worker(url, tmp_path, is_local):
    """With a server, and with a folder that each call opens and closes: a trial is kept between them."""
    body = {"name": "loop", "metric": {"name": "loss", "goal": "min"}, "space": {"x": {"float": [-1, 0]}},
            "budget": {"trials": 4}}
    where = ["--server", url]
    if is_local:
        with server(tmp_path) as (_, own):
            assert call(own, "/api/2.0/tune/studies", body)[0] == 200
        where = ["--data", "tune-data"]
    else:
        assert call(url, "/api/2.0/tune/studies", body)[0] == 200
    path = f"{TUNE.parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", LOOP], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": path, "WHERE": " ".join(where)})
    assert done.returncode == 0 and done.stderr == "tune: study 'loop' is completed\n", done.stderr
    trials = tune_json("show", "loop", *where, cwd=tmp_path)["trials"]
    assert [(trial["state"], trial["value"]) for trial in trials] == [
        ("complete", trial["params"]["x"]) for trial in trials]
    assert len(trials) == 4 and all(trial["value"] < 0 for trial in trials)
    assert all(f"#{trial['number']}" in done.stdout for trial in trials)


def test_tell_ends_a_trial_in_every_way(url, tmp_path):
    create_study(url, "ways", SPACE, metric=[{"name": "loss", "goal": "min"}, {"name": "ms", "goal": "min"}],
           constraints=[{"name": "mb", "max": 40}])
    asked = tune_json("ask", "ways", "--count", 4, "--lease", "10m", "--server", url, cwd=tmp_path)
    assert len(asked["trials"]) == 4 and asked["state"] == "running"

    def tell(*words, code=OK):
        done = tune("tell", "ways", *words, "--attempt", 1, "--server", url, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    assert "loss -0.5, ms 12" in tell(0, -0.5, 12, "--constraint", "mb=39.5")
    assert "failed" in tell(1, "--state", "failed", "--reason", "no memory")
    assert "pruned" in tell(2, 3, 4, "--state", "pruned")
    assert "metric 'ms' is NaN" in tell(3, "1e3", "nan", "--constraint", "mb=41")
    trials = tune_json("show", "ways", "--server", url, cwd=tmp_path)["trials"]
    assert trials[0]["values"] == [-0.5, 12] and trials[0]["constraints"] == {"mb": 39.5}
    assert trials[1]["state"] == "failed" and "no memory" in trials[1]["reason"]
    assert trials[2]["state"] == "pruned"
    assert "loss -0.5" in tell(0, -0.5, 12, "--constraint", "mb=39.5"), "a repeat changes nothing"
    assert "is not running: it is complete" in tell(0, 7, 12, code=USAGE)
    assert tune_json("show", "ways", "--server", url, cwd=tmp_path)["trials"][0]["values"] == [-0.5, 12]


def test_a_server_that_is_busy_for_a_while_is_waited_for(tmp_path):
    with server(tmp_path) as (process, url):
        process.send_signal(signal.SIGSTOP)
        asks = start("ls", "--server", url, cwd=tmp_path)
        time.sleep(2.5)  # longer than a server that is only guessed is given
        process.send_signal(signal.SIGCONT)
        assert asks.communicate(timeout=60)[1] == "" and asks.returncode == OK


def test_ask_explains_why_there_is_nothing(url, tmp_path):
    create_study(url, "none", SPACE, budget={"trials": 1})
    assert tune("pause", "none", "--server", url, cwd=tmp_path).returncode == OK
    paused = tune("ask", "none", "--server", url, cwd=tmp_path)
    assert paused.returncode == FAILED and "is paused; `tune resume` continues it" in paused.stderr
    waits = tune("enqueue", "none", "n=2", "--server", url, cwd=tmp_path)
    assert waits.returncode == OK and "The study is paused: `tune resume none` resumes it.\n" in waits.stdout
    assert tune("resume", "none", "--server", url, cwd=tmp_path).returncode == OK
    assert tune_json("ask", "none", "--server", url, cwd=tmp_path)["trials"][0]["params"]["n"] == 2
    empty = tune("ask", "none", "--json", "--server", url, cwd=tmp_path)
    assert empty.returncode == FAILED and json.loads(empty.stdout) == {"trials": [], "state": "running"}
    assert "has no trial available now: 1 is running" in empty.stderr
    assert tune("best", "none", "--server", url, cwd=tmp_path).returncode == NO_TRIAL


def test_completion_knows_them(url, tmp_path):
    def candidates(*words):
        done = tune("__complete", *words, cwd=tmp_path)
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    create_study(url, "complete-me", SPACE)
    assert {"enqueue", "rerun", "ask", "tell", "bench"} <= set(candidates(""))
    for verb in ("enqueue", "rerun", "ask", "tell"):
        assert candidates(verb, "--server", url, "complete") == ["complete-me"]
    assert candidates("tell", "s", "3", "--state", "") == ["complete", "pruned", "failed", "cancelled"]


def servers_in(folder):
    """Processes whose command line names the folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if str(folder).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def test_bench_measures_a_server_and_leaves_nothing(tmp_path):
    words = ["bench", "--seconds", 0.2, "--clients", 4]
    inside = tmp_path / "inside"
    inside.mkdir()
    found = tune_json(*words, "--dir", inside, cwd=tmp_path)
    assert found["start_ms"] > 0 and found["memory_start_bytes"] > 1e6 and found["memory_bytes"] > 1e6
    assert found["log_metric"]["clients"] == 4 and found["log_metric"]["per_s"] > 0
    assert 0 < found["log_metric"]["p50_ms"] <= found["log_metric"]["p99_ms"]
    assert found["log_batch"]["rows_per_s"] > 0 and found["ask_tell"]["trials"] > 0
    assert list(inside.iterdir()) == []
    table = tune(*words, cwd=tmp_path, env={**os.environ, "TMPDIR": str(inside)})
    assert table.returncode == OK and table.stderr == ""
    for row in ("time to the first response", "log-metric, 4 clients", "log-batch of 1000", "ask + tell", "memory"):
        assert row in table.stdout
    assert str(inside) in table.stdout and list(inside.iterdir()) == [] and list(tmp_path.iterdir()) == [inside]


def test_bench_shows_what_it_does_and_ends_with_its_server(tmp_path):
    words = ["bench", "--seconds", 60, "--dir", tmp_path]
    with terminal(*words, cwd=tmp_path) as screen:
        screen.read_until(b"log-metric, 16 clients")
        assert servers_in(tmp_path / "tune-bench")
        screen.process.send_signal(signal.SIGINT)
        assert screen.process.wait(timeout=60) == INTERRUPTED
    assert list(tmp_path.iterdir()) == [] and servers_in(tmp_path / "tune-bench") == []
    process = start(*words, cwd=tmp_path)
    wait_until(lambda: list(tmp_path.glob("tune-bench*/data/*.db*")), "a server")
    process.kill()
    process.communicate(timeout=60)
    wait_until(lambda: not servers_in(tmp_path / "tune-bench"), "the server's end with a bench that was killed")


def test_verbs_that_look_take_the_only_study_there_is(tmp_path):
    """Without a name. With several studies none is guessed."""
    with server(tmp_path) as (_, url):
        for verb in ("best", "show", "plot", "importance", "pruners"):
            done = tune(verb, "--server", url, cwd=tmp_path)
            assert done.returncode == USAGE and "there are no studies in " in done.stderr, (verb, done.stderr)
        create_study(url, "lone", SPACE)
        for value in (0.5, 0.25):
            asked = tune_json("ask", "lone", "--server", url, cwd=tmp_path)["trials"][0]
            assert tune("tell", "lone", asked["number"], value, "--server", url, cwd=tmp_path).returncode == OK
        assert tune_json("best", "--server", url, cwd=tmp_path)["value"] == 0.25
        for verb in ("show", "importance"):
            assert "lone" in json.dumps(tune_json(verb, "--server", url, cwd=tmp_path))
        for verb in ("plot", "pruners"):
            assert tune(verb, "--server", url, cwd=tmp_path).returncode == OK, verb
        create_study(url, "other", SPACE)
        for verb in ("best", "show", "plot", "importance", "pruners"):
            done = tune(verb, "--server", url, cwd=tmp_path)
            assert done.returncode == USAGE, verb
            assert "there are 2 studies; name one of them: lone, other" in done.stderr, (verb, done.stderr)
        assert tune("stop", "--server", url, cwd=tmp_path).returncode == USAGE, "what changes is named"

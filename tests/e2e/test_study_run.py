"""`tune run` from its first trial to its last, and the verbs that look at studies."""

import json
import os
import pty
import socket
import subprocess
import sys

import pytest

from study_support import (NO_TRIAL, OK, REPORT, TIME, TUNE, USAGE, call, read_lines_until, run_arguments, server, start,
                           study_of, trials_of, tune, tune_json, wait_until)

# A script that logs through MLflow's REST API, as any client does, and knows nothing of tuning.
# A bad one begins when both good ones are over, which the pruner needs, and ends by being pruned only.
MLFLOW_SCRIPT = """
import itertools, json, os, sys, time, urllib.request
loss = float(sys.argv[1])
is_bad = loss > 0.5
while is_bad and not (os.path.exists("over-0.1") and os.path.exists("over-0.2")):
    time.sleep(0.01)
for step in itertools.count() if is_bad else range(200):
    body = {"run_id": os.environ["MLFLOW_RUN_ID"], "key": "loss", "value": loss, "step": step,
            "timestamp": int(time.time() * 1000)}
    urllib.request.urlopen(urllib.request.Request(
        os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric", data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"}))
    time.sleep(0.01 if is_bad else 0)
open("over-%g" % loss, "w")
"""


def test_twenty_trials_end_with_the_best_and_how_to_run_it_again(tmp_path):
    done = tune(*run_arguments(REPORT), cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    assert "20/20 trials" in done.stdout
    assert "Best trial: #" in done.stdout
    rerun = done.stdout.split("Run it again:\n")[1].splitlines()[0]
    again = subprocess.run(rerun, shell=True, capture_output=True, text=True, check=True).stdout
    best = tune_json("best", "s", "--data", "tune-data", cwd=tmp_path)
    assert json.loads(again.removeprefix("tune: ")) == {"loss": pytest.approx(best["value"])}
    assert "http://127.0.0.1:" in done.stderr
    assert done.stderr.count("complete") == 20
    trials = trials_of(tmp_path)
    assert [t["number"] for t in trials] == list(range(20))
    assert {t["state"] for t in trials} == {"complete"}
    assert min(t["value"] for t in trials) == best["value"]
    assert all(t["value"] == pytest.approx(t["params"]["x"], rel=1e-9) for t in trials)


def test_a_command_that_reads_its_environment_is_shown_with_it(tmp_path):
    command = ["python3", "-c", "import json, os; p = json.loads(os.environ['TUNE_PARAMS']); "
               "print('tune: ' + json.dumps({'loss': p['x'], 'text': len(p['o'])}))"]
    done = tune(*run_arguments(command, trials=3, parameters=("x=0..1", "o=a b,c'd")), cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    again = done.stdout.split("Run it again:\n")[1].splitlines()[0]
    best = tune_json("best", "s", "--data", "tune-data", cwd=tmp_path)
    shown = subprocess.run(["sh", "-c", again], capture_output=True, text=True, check=True).stdout
    assert json.loads(shown.removeprefix("tune: ")) == {"loss": best["params"]["x"], "text": 3}


@pytest.mark.parametrize("line, said", [
    ('tune: {"loss": nan}', "metric 'loss' is NaN"),
    ("tune: {'loss': 0.5}", "'tune: {'loss': 0.5}': names must be in double quotes (in Python: json.dumps); "
                            "metric 'loss' never arrived"),
    ("tune: loss=0.5", "expected a JSON object after 'tune:'")])
def test_a_line_that_is_no_report_is_logged(tmp_path, line, said):
    done = tune(*run_arguments(["echo", line], trials=1), cwd=tmp_path)
    assert done.returncode == NO_TRIAL and said in done.stdout, done.stdout


def test_every_verb_speaks_json(tmp_path):
    done = tune("run", "--json", "-n", 3, "-m", "loss", "--port", 0, "--study", "s", "x=0..1", "--", *REPORT,
                cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    run = json.loads(done.stdout)
    assert run["study"]["counts"]["complete"] == 3
    assert run["best"]["command"][0] == "echo"
    assert run["interrupted"] is False
    assert [s["name"] for s in tune_json("ls", "--data", "tune-data", cwd=tmp_path)["studies"]] == ["s"]
    shown = tune_json("show", "s", "--data", "tune-data", cwd=tmp_path)
    assert len(shown["trials"]) == 3 and shown["study"]["state"] == "completed"
    assert tune_json("best", "s", "--data", "tune-data", cwd=tmp_path)["number"] == run["best"]["number"]
    assert tune_json("resume", "s", "--data", "tune-data", cwd=tmp_path)["state"] == "completed"
    done = tune("plan", "--json", "-n", 9, "-m", "loss", "--pruner", "asha,min=1,max=9,eta=3", "x=0..1", cwd=tmp_path)
    plan = json.loads(done.stdout)
    assert [rung["step"] for rung in plan["rungs"]] == [1, 3, 9]
    assert plan["expected_steps"] < plan["steps_without_pruning"] == 81
    with server(tmp_path) as (_, url):
        call(url, "/api/2.0/tune/studies", {"name": "t", "metric": {"name": "loss"}, "space": {"x": {"float": [0, 1]}}})
        for verb, state in (("pause", "paused"), ("resume", "running"), ("stop", "stopped")):
            assert tune_json(verb, "t", "--server", url, cwd=tmp_path)["state"] == state
        assert len(tune_json("ls", "--server", url, cwd=tmp_path)["studies"]) == 2
    missing = tune("show", "none", "--data", "tune-data", "--json", cwd=tmp_path)
    assert json.loads(missing.stdout)["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    assert "there is no study 'none'" in missing.stderr and "(looked in the folder tune-data)" in missing.stderr
    with server(tmp_path) as (_, url):
        for verb in ("show", "pruners"):
            missing = tune(verb, "none", "--server", url, cwd=tmp_path)
            assert f"there is no study 'none'; `tune ls` lists them (looked in the server at {url})" in missing.stderr


def test_the_people_s_output_of_the_verbs(tmp_path):
    tune(*run_arguments(REPORT, trials=3), cwd=tmp_path)
    listed = tune("ls", "--data", "tune-data", cwd=tmp_path).stdout
    assert "s " in listed and "completed" in listed and "3/3" in listed
    shown = tune("show", "s", "--data", "tune-data", cwd=tmp_path).stdout
    assert "s is completed" in shown and "Best trial: #" in shown
    plan = tune("plan", "-n", 5, "-m", "loss", "a=1,2", "b=1..3:int", "--", "echo", "{a}", cwd=tmp_path).stdout
    assert "the space has 6 points" in plan


def test_a_study_file_and_flags(tmp_path):
    (tmp_path / "study.yaml").write_text("""
study: from-file
metric: {name: loss, goal: max}
space:
  opt: {choice: [sgd, adamw]}
  momentum: {float: [0, 0.99], when: {opt: sgd}}
budget: {trials: 50}
command: ["sh", "-c", "echo 'tune: {\\"loss\\": 1}'", "{args}"]
""")
    done = tune("run", "study.yaml", "-n", 6, "--port", 0, cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    trials = trials_of(tmp_path, "from-file")
    assert len(trials) == 6
    assert all(("momentum" in t["params"]) == (t["params"]["opt"] == "sgd") for t in trials)


def test_an_mlflow_script_is_pruned_without_a_change(tmp_path):
    (tmp_path / "train.py").write_text(MLFLOW_SCRIPT)
    done = tune("run", "-n", 8, "-m", "loss", "-j", 2, "--port", 0, "--pruner", "median,startup=2", "--sampler", "random",
                "--seed", 3, "loss=0.1,0.2,0.9", "--", sys.executable, "train.py", "{loss}", cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    trials = trials_of(tmp_path, "train")
    states = {t["params"]["loss"]: set() for t in trials}
    for trial in trials:
        states[trial["params"]["loss"]].add(trial["state"])
    assert "pruned" in states[0.9], trials
    assert "pruned" not in states[0.1], trials
    pruned = next(t for t in trials if t["state"] == "pruned")
    assert pruned["reason"].startswith("pruned at step")


def test_trials_are_nested_mlflow_runs(tmp_path):
    tune(*run_arguments(REPORT, trials=3), cwd=tmp_path)
    with server(tmp_path) as (_, url):
        study = study_of(url)
        status, found = call(url, "/api/2.0/mlflow/runs/search", {
            "experiment_ids": [study["experiment_id"]], "filter": f"tags.mlflow.parentRunId = '{study['run_id']}'"})
        assert status == 200
        runs = found["runs"]
        assert len(runs) == 3
        for run in runs:
            tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
            assert run["info"]["status"] == "FINISHED"
            assert tags["tune.state"] == "complete" and tags["tune.attempt"] == "1"
            assert [p["key"] for p in run["data"]["params"]] == ["x"]
        parent = call(url, f"/api/2.0/mlflow/runs/get?run_id={study['run_id']}")[1]["run"]
        assert parent["info"]["status"] == "FINISHED"
        best = {tag["key"]: tag["value"] for tag in parent["data"]["tags"]}["tune.best_run_id"]
        assert best == study["best"]["run_id"]


def test_a_metric_that_never_arrives_explains_how_to_report_it(tmp_path):
    done = tune("run", "-n", 2, "-m", "loss", "--port", 0, "x=0..1", "--", "echo", "loss is {x}", cwd=tmp_path)
    assert done.returncode == NO_TRIAL
    assert "metric 'loss' never arrived" in done.stdout
    assert "--scrape" in done.stdout
    scraped = tune("run", "-n", 2, "-m", "loss", "--port", 0, "--study", "t", "--scrape", "loss is ([0-9.e-]+)", "x=0..1",
                   "--", "echo", "loss is {x}", cwd=tmp_path)
    assert scraped.returncode == OK, scraped.stderr + scraped.stdout


def test_a_script_that_always_fails_is_reported_early_with_its_output(tmp_path):
    # The fourth trial waits until three were reported.
    os.mkfifo(tmp_path / "gate")
    (tmp_path / "broken.py").write_text(
        "import os\nif os.environ['TUNE_TRIAL'] == '3':\n    open('gate').read()\nimport no_module_of_this_name\n")
    arguments = run_arguments(["python3", "broken.py"], trials=6, jobs=1)
    arguments[1:1] = ["--stop-after-failures", 0]
    process = start(*arguments, cwd=tmp_path)
    lines = read_lines_until(process, "all 3 trials so far failed")
    (tmp_path / "gate").write_text("go")
    out, err = process.communicate(timeout=60)
    assert process.returncode == NO_TRIAL
    assert ("".join(lines) + err).count("trials so far failed") == 1
    last = trials_of(tmp_path)[-1]
    assert "No module named 'no_module_of_this_name'" in out
    assert f"All that it printed: start `tune server --data ./tune-data` and open /r/{last['run_id']}?tab=logs\n" in out
    with server(tmp_path) as (_, url):
        words = run_arguments(["python3", "broken.py"], trials=1, study="t", jobs=1)
        out = tune(
            *words[:words.index("--")], "--server", url, *words[words.index("--"):], cwd=tmp_path).stdout
        last = call(url, "/api/2.0/tune/studies/t/trials")[1]["trials"][-1]
        assert f"All that it printed: {url}/r/{last['run_id']}?tab=logs\n" in out and "tune server" not in out


@pytest.mark.parametrize("words, said", [
    (["--bogus"], "unknown option '--bogus'; options of a command follow it: tune COMMAND --bogus (tune --help)"),
    (["--versoin"], "unknown option '--versoin'; did you mean '--version'? (tune --help)"),
    (["--data", "d", "ls"], "unknown option '--data'"),
    (["-x"], "unknown option '-x'"),
    (["runn"], "unknown command 'runn'"),
    (["ls", "--bogus"], "--bogus"),
    ([], "no command given"),
])
def test_words_that_nothing_knows_are_named(tmp_path, words, said):
    done = tune(*words, cwd=tmp_path)
    assert done.returncode == USAGE and done.stderr.startswith("tune: ") and said in done.stderr
    assert "subcommand" not in done.stderr and done.stdout == ""


def test_the_time_budget_ends_running_trials(tmp_path):
    done = tune("run", "-n", 9, "-m", "loss", "-j", 2, "--time", "1s", "--port", 0, "--study", "s", "x=0..1", "--", "sh",
                "-c", "echo 'tune: {\"loss\": 1}'; exec sleep 100", cwd=tmp_path)
    assert done.returncode in (TIME, NO_TRIAL), done.stderr
    assert "time budget of 1s is over" in done.stdout
    states = [t["state"] for t in trials_of(tmp_path)]
    assert "cancelled" in states and "running" not in states and "queued" not in states


@pytest.mark.parametrize(("arguments", "words"), [
    (["run", "-m", "loss", "x=0..1", "--", "echo", "{y}"], "unknown placeholder {y}"),
    (["run", "-m", "loss", "x=0..1", "--", "no-such-program-here"], "command not found"),
    (["run", "-m", "loss", "x=0..1", "--", "./nowhere/prog"], "command not found"),
    (["run", "-m", "loss", "x=9..1", "--", "true"], "x"),
    (["run", "-m", "loss", "x=0..1"], "command"),
    (["run", "-m", "loss", "--", "true"], "space"),
    (["run", "x=0..1", "--", "true"], "no metric is named"),
    (["run", "missing.yaml"], "missing.yaml"),
    (["run", "bad.yaml"], "bad.yaml: line 4, column"),
    (["run", "typo.yaml"], "typo.yaml: line 2"),
    (["run", "--nonsense"], "--nonsense"),
    (["run", "-n", "0", "x=0..1", "--", "true"], "--trials"),
    (["server", "--lease-ttl", "1s", "--heartbeat", "2s"], "--lease-ttl"),
    (["frobnicate"], "frobnicate"),
    (["runn"], "did you mean 'run'?"),
    (["run", "--trails", "3"], "did you mean '--trials'? (tune run --help)"),
    (["run"], "nothing to tune. Give a study file"),
    (["run", "-m", "loss", "lr", "--", "true"], "'lr' is neither a parameter (lr=0..1) nor a study file"),
    (["run", "-m", "loss", "x=0..1", "--", "python3", "no_such.py", "{args}"], "no file 'no_such.py' in "),
    ([], "no command given"),
])
def test_bad_input_is_one_clear_sentence_and_exit_code_2(tmp_path, arguments, words):
    (tmp_path / "bad.yaml").write_text("metric: {name: loss}\nspace:\n  x: {float: [0, 1\n")
    (tmp_path / "typo.yaml").write_text("metric: {name: loss}\nspase: {x: {float: [0, 1]}}\n")
    done = tune(*arguments, cwd=tmp_path)
    assert done.returncode in ((USAGE, 1) if "missing.yaml" in arguments else (USAGE,)), done.stderr
    assert words in done.stderr + done.stdout
    assert not (tmp_path / "tune-data").exists(), "nothing was begun"


def test_another_space_under_the_same_name_reports_what_differs(tmp_path):
    tune(*run_arguments(REPORT, trials=2), cwd=tmp_path)
    done = tune(*run_arguments(REPORT, trials=2, parameters=("x=0..2",)), cwd=tmp_path)
    assert done.returncode == USAGE
    assert "space.x is" in done.stderr and "Undo the change to continue it, extend it (--extend" in done.stderr
    assert "/api/" not in done.stderr, "routes are nothing to a user"
    other = tune("run", "-m", "loss:max", "--port", 0, "--study", "s", "x=0..1", "--", *REPORT, cwd=tmp_path)
    assert other.returncode == USAGE
    assert "Undo the change to continue it, give the new study a name of its own" in other.stderr
    assert len(trials_of(tmp_path)) == 2


def test_more_trials_resume_the_same_study(tmp_path):
    first = tune(*run_arguments(REPORT, trials=3), cwd=tmp_path)
    assert first.returncode == OK
    again = tune(*run_arguments(REPORT, trials=3), cwd=tmp_path)
    assert again.returncode == OK and "has ended after 3 trials" in again.stderr
    assert len(trials_of(tmp_path)) == 3, "the budget is that of the study"
    more = tune(*run_arguments(REPORT, trials=5), cwd=tmp_path)
    assert more.returncode == OK
    assert len(trials_of(tmp_path)) == 5


@pytest.mark.parametrize("sampler", ["grid", "tpe", "qmc"])
def test_a_finite_space_is_tried_once_and_then_the_study_ends(tmp_path, sampler):
    script = ("sh", "-c", "echo 'tune: {\"loss\": {a}}'")
    arguments = ("run", "--study", "s", "-m", "loss:min", "-j", "2", "--sampler", sampler, "a=1..3:int", "b=u,v")
    done = tune(*arguments, "-n", "50", "--", *script, cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    assert "6/50 trials (every point of the space has been tried)" in done.stdout
    points = [(t["params"]["a"], t["params"]["b"]) for t in trials_of(tmp_path)]
    assert sorted(points) == [(a, b) for a in (1, 2, 3) for b in "uv"]
    again = tune(*arguments, "-n", "60", "--", *script, cwd=tmp_path)
    assert again.returncode == OK and len(trials_of(tmp_path)) == 6, "after a restart too"


def test_run_uses_the_server_that_has_the_folder_open(tmp_path):
    with server(tmp_path) as (_, url):
        done = tune(*run_arguments(REPORT, trials=3), cwd=tmp_path)
        assert done.returncode == OK, done.stderr
        assert f"is open in the server at {url}; using that" in done.stderr
        assert study_of(url)["counts"]["complete"] == 3


def test_two_runs_of_two_studies_in_one_folder(tmp_path):
    os.mkfifo(tmp_path / "go")
    wait = ["sh", "-c", "cat go; echo 'tune: {\"loss\": {x}}'"]
    first = start(*run_arguments(wait, trials=1, study="a", jobs=1), cwd=tmp_path)
    try:
        wait_until((tmp_path / "tune-data" / "server.json").exists, "the first run's address")
        second = tune(*run_arguments(REPORT, trials=1, study="b"), cwd=tmp_path)
        assert second.returncode == USAGE, second.stderr
        assert "is open in the `tune run` of study 'a'" in second.stderr
        assert "start `tune server --data ./tune-data` and pass --server URL to each `tune run`" in second.stderr
        (tmp_path / "go").write_text("\n")
        first.communicate(timeout=60)
        assert first.returncode == OK
    finally:
        if first.poll() is None:
            first.kill()
    assert tune(*run_arguments(REPORT, trials=1, study="b"), cwd=tmp_path).returncode == OK


def test_a_second_run_of_a_study_changes_nothing(tmp_path):
    wait = ["sh", "-c", "touch begun; until [ -e go ]; do sleep 0.01; done; echo 'tune: {\"loss\": {x}}'"]
    first = start(*run_arguments(wait, trials=2, study="a", jobs=1), cwd=tmp_path)
    try:
        wait_until((tmp_path / "begun").exists, "the first run's first trial")
        second = tune(*run_arguments(wait, trials=1, study="a", jobs=1), cwd=tmp_path)
        assert second.returncode == USAGE, second.stderr
        assert "another `tune run` of study 'a' is at work in ./tune-data" in second.stderr
        (tmp_path / "go").touch()
        assert "2/2 trials" in first.communicate(timeout=60)[0]
    finally:
        if first.poll() is None:
            first.kill()


def test_run_takes_another_port_when_the_usual_one_is_in_use(tmp_path):
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: ended connections do not count
    try:
        taken.bind(("127.0.0.1", 5000))
        taken.listen()
    except OSError:
        pass  # somebody else has it: just as well
    try:
        done = tune("run", "-n", 2, "-m", "loss", "--study", "s", "x=0..1", "--", *REPORT, cwd=tmp_path)
        assert done.returncode == OK, done.stderr
        assert "port 5000 is in use; the page is at http://127.0.0.1:" in done.stderr
    finally:
        taken.close()


def test_agents_elsewhere_do_the_work_with_no_agent(tmp_path):
    with server(tmp_path) as (_, url):
        agent = start("agent", "--server", url, "--slots", 2, "--state", "agent", cwd=tmp_path)
        read_lines_until(agent, "takes trials", "stdout")
        done = tune("run", "-n", 4, "-m", "loss", "--server", url, "--no-agent", "--study", "s", "x=0..1", "--", *REPORT,
                    cwd=tmp_path)
        assert done.returncode == OK, done.stderr
        assert study_of(url)["counts"]["complete"] == 4
        agent.terminate()
        assert agent.wait(30) == OK


def test_a_client_asks_trains_and_tells_with_nothing_but_http(tmp_path):
    with server(tmp_path) as (_, url):
        studies = "/api/2.0/tune/studies"
        call(url, studies, {"name": "s", "metric": {"name": "loss"}, "space": {"x": {"float": [-1, 1]}},
                            "budget": {"trials": 6}})
        while trials := call(url, f"{studies}/s/ask", {"count": 1})[1]["trials"]:
            trial = trials[0]
            name = {"number": trial["number"], "attempt": trial["attempt"]}
            loss = trial["params"]["x"] ** 2
            assert call(url, f"{studies}/s/report", {**name, "step": 1, "value": loss})[1]["action"] == "continue"
            assert call(url, f"{studies}/s/tell", {**name, "value": loss})[0] == 200
        assert study_of(url)["state"] == "completed"


def test_a_terminal_sees_the_status_live(tmp_path):
    master, slave = pty.openpty()
    script = "until [ -e go ]; do sleep 0.05; done; echo 'tune: {\"loss\": 1}'"
    process = subprocess.Popen([TUNE, *map(str, run_arguments(["sh", "-c", script], trials=6))],
                               cwd=tmp_path, stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
        if b"2 running" in seen:  # until then they wait
            (tmp_path / "go").touch()
    assert process.wait(60) == OK
    text = seen.decode()
    assert "\x1b[" in text and "6/6 trials" in text and "/s/s" in text


def test_several_objectives_end_with_a_front(tmp_path):
    (tmp_path / "study.yaml").write_text(
        "study: s\nmetric: [low:min, high:max]\nconstraints: [{name: ms, max: 0.75}]\nsampler: nsga2\n"
        "space: {x: {float: [0, 1]}}\nbudget: {trials: 8}\n"
        'command: [echo, \'tune: {"low": {x}, "high": {x}, "ms": {x}}\']\n')
    done = tune("run", "study.yaml", "--port", 0, cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    assert "Best trials (none is better in every objective)" in done.stdout
    trials = trials_of(tmp_path)
    front = tune_json("best", "s", "--data", "tune-data", cwd=tmp_path)
    assert [t["number"] for t in front] == [t["number"] for t in trials if t["params"]["x"] <= 0.75]
    assert front[0]["values"] == [front[0]["params"]["x"]] * 2 and front[0]["command"][0] == "echo"
    shown = tune("show", "s", "--data", "tune-data", cwd=tmp_path).stdout
    assert all(word in shown.splitlines()[1] for word in ("low", "high", "ms"))
    listed = tune("ls", "--data", "tune-data", cwd=tmp_path).stdout
    assert "low, high" in listed and f"{len(front)} trial" in listed
    refused = tune("plan", "study.yaml", "--pruner", "median", cwd=tmp_path)
    assert refused.returncode == USAGE and "2 objectives" in refused.stderr

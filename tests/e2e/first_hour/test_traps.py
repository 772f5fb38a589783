"""What a new user of `tune run` gets wrong without noticing, and what the verbs say about it."""

import json

import pytest

from study_support import NO_TRIAL, OK, USAGE, server, tune, tune_json

READS_NOTHING = ["echo", 'tune: {"loss": 0.5}']
FAILS = ["sh", "-c", "exit 1"]


def run(cwd, *words, metric="loss", command=("echo", 'tune: {"loss": {x}}'), trials=3):
    return tune("run", "-n", trials, "-m", metric, "-j", 1, "--port", 0, "--study", "s", "--seed", 7, "x=0..1", *words, "--",
                *command, cwd=cwd)


def test_the_goal_is_said_at_the_start_and_at_the_end(tmp_path):
    done = run(tmp_path)
    assert done.returncode == OK, done.stderr
    goal = "minimize loss; a trial counts with its best value (take: best)"
    assert f"goal: {goal}\n" in done.stderr and f"Goal: {goal}\n" in done.stdout
    assert "warning" not in done.stderr


@pytest.mark.parametrize("metric, other", [("val_acc", "max"), ("ROC_AUC:min", "max"), ("valF1", "max"), ("eval/loss:max", "min")])
def test_a_goal_that_its_name_contradicts_is_warned_of(tmp_path, metric, other):
    name = metric.split(":")[0]
    done = run(tmp_path, metric=metric, command=["echo", 'tune: {"%s": {x}}' % name])
    assert done.returncode == OK, done.stderr
    assert f"warning: '{name}' is " in done.stderr and f"give -m {name}:{other}\n" in done.stderr
    plan = tune_json("plan", "-m", metric, "x=0..1", cwd=tmp_path)
    assert len(plan["warnings"]) == 1 and f"-m {name}:{other}" in plan["warnings"][0]


@pytest.mark.parametrize("metric", ["glossary", "accuracy:max", "loss", "brier_score_loss", "neg_mean_squared_error:max", "access:min"])
def test_no_warning_where_the_name_agrees_or_says_nothing(tmp_path, metric):
    assert tune_json("plan", "-m", metric, "x=0..1", cwd=tmp_path)["warnings"] == []


def test_a_program_that_ignores_its_parameters_is_noticed_once(tmp_path):
    done = run(tmp_path, command=READS_NOTHING, trials=6)
    assert done.returncode == OK
    assert done.stderr.count("had exactly the same value of the objective") == 1
    for way in ("{args}", "--x=VALUE", "{x}", "TUNE_PARAMS"):
        assert way in done.stderr
    quiet = run(tmp_path, "--quiet", "--data", "quiet", command=READS_NOTHING, trials=4)
    assert quiet.stderr.count("had exactly the same value") == 1


@pytest.mark.parametrize("command", [
    ["sh", "-c", 'echo "tune: {\\"loss\\": ${TUNE_PARAMS#*:}"'],  # {"x":0.5} and its brace: the program reads TUNE_PARAMS
    ["sh", "-c", "echo 'tune: {\"loss\": 0.5}'", "{args}"],
], ids=["reads TUNE_PARAMS", "is passed them"])
def test_a_program_that_has_its_parameters_is_left_in_peace(tmp_path, command):
    done = run(tmp_path, command=command, trials=5)
    assert done.returncode == OK, done.stderr
    assert "exactly the same" not in done.stderr


def test_what_is_over_does_not_go_on(tmp_path):
    assert run(tmp_path).returncode == OK
    again = run(tmp_path)
    assert again.returncode == OK and "study s has ended after 3 trials: " in again.stderr
    assert "resumes after 3 trials: " in run(tmp_path, trials=4).stderr


def test_one_is_no_plural(tmp_path):
    first = run(tmp_path, trials=1)
    assert "1/1 trial\n" in first.stdout
    assert "1/1 trial has ended, 0 are running" in tune("show", "s", cwd=tmp_path).stdout
    assert "s: 1 suggestion repeated, 0 differ\n" in tune("replay", "s", cwd=tmp_path).stdout
    assert "resumes after 1 trial: " in run(tmp_path, trials=2).stderr


# --- help and errors -----------------------------------------------------------------------------


def help_of(*verb):
    return " ".join(tune(*verb, "--help", cwd=None).stdout.split())


def test_the_help_says_what_counts_when_nothing_is_given():
    for verb in ("run", "plan"):
        said = help_of(verb)
        for words in ("until stopped, or until every point has been tried)", "(default: min)", "take: best", "(default: one per GPU, else one per core)",
                      "(default: tpe)", "(default: none)"):
            assert words in said, words
    for words in ("{args} all others as --name=value", "the environment variable TUNE_PARAMS"):
        assert words in help_of("run"), words


def test_defaults_of_the_help_are_those_of_a_study(tmp_path):
    plan = tune_json("plan", "-m", "loss", "x=0..1", cwd=tmp_path)
    assert plan["sampler"]["type"] == "tpe" and plan["pruner"]["type"] == "none" and plan["trials"] is None


def test_exit_codes_stand_with_the_verb_that_has_them():
    assert "3 no trial has completed 4 the time or cost budget ran out" in help_of("run") and "130 interrupted" in help_of("run")
    assert "3 no trial has completed" in help_of("best") and "130" not in help_of("best")
    assert "130 interrupted" in help_of("import") and "3 no trial" not in help_of("import")
    assert "Exit codes: 0 ok, 1 failed (stderr has the reason), 2 usage" in help_of("ls")
    assert "Exit codes: 0 ok, 1 failed (stderr has the reason), 2 usage" in help_of("alert", "add")


@pytest.mark.parametrize("words, said", [
    (["show", "s", "first", "second", "-z"], "unexpected arguments: first second -z"),
    (["stop", "--sever", "x", "y"], "unexpected arguments: --sever y; did you mean '--server'?"),
    (["show", "s", "more"], "unexpected argument: more (tune show --help)"),
])
def test_unexpected_arguments_stand_in_the_order_in_which_they_were_typed(tmp_path, words, said):
    done = tune(*words, cwd=tmp_path)
    assert done.returncode == USAGE and said in done.stderr


def test_a_mistyped_choice_is_answered_with_the_one_that_may_be_meant(tmp_path):
    done = tune("plot", "s", "histroy", cwd=tmp_path)
    assert done.returncode == USAGE and "'histroy' is unknown; did you mean 'history'? Known: history, curves, " in done.stderr
    assert "'zzz' is unknown; known: history, " in tune("plot", "s", "zzz", cwd=tmp_path).stderr


def test_plan_checks_the_program(tmp_path):
    missing = tune("plan", "-m", "loss", "x=0..1", "--", "python3", "train.py", "{args}", cwd=tmp_path)
    assert missing.returncode == OK
    assert f"warning:  script not found: there is no file 'train.py' in {tmp_path}; `tune run` would not start here\n" in missing.stdout
    (tmp_path / "train.py").write_text("")
    assert "warning" not in tune("plan", "-m", "loss", "x=0..1", "--", "python3", "train.py", "{args}", cwd=tmp_path).stdout
    assert "there is no program 'pythno'" in tune("plan", "-m", "loss", "x=0..1", "--", "pythno", "train.py", cwd=tmp_path).stdout
    (tmp_path / "go.sh").write_text("")
    plan = json.loads(tune("plan", "--json", "-m", "loss", "x=0..1", "--", "./go.sh", cwd=tmp_path).stdout)
    assert "'./go.sh' is not an executable file" in plan["warnings"][0]


def test_a_mistyped_study_is_answered_with_the_one_that_may_be_meant(tmp_path):
    assert tune("run", "-n", 1, "-m", "loss", "--port", 0, "--study", "digits", "x=0..1", "--", *READS_NOTHING,
                cwd=tmp_path).returncode == OK
    for place in (["--data", "tune-data"], None):
        with server(tmp_path) if place is None else pytest.MonkeyPatch.context() as made:
            where = place or ["--server", made[1]]
            for verb in ("show", "best", "stop", "resume", "replay"):
                said = tune(verb, "digts", *where, cwd=tmp_path).stderr
                assert "there is no study 'digts'; did you mean 'digits'? `tune ls` lists them (looked in" in said, said
            assert "did you mean" not in tune("show", "something", *where, cwd=tmp_path).stderr


def test_stop_of_a_study_that_is_over_is_no_error(tmp_path):
    assert run(tmp_path, trials=1).returncode == OK
    done = tune("stop", "s", cwd=tmp_path)
    assert done.returncode == OK and done.stdout.startswith("s is completed") and done.stderr == ""
    assert tune_json("stop", "s", cwd=tmp_path)["state"] == "completed"
    assert run(tmp_path, "--data", "failed", command=FAILS, trials=1).returncode == NO_TRIAL

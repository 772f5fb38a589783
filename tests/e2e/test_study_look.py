"""The verbs that look into studies: plot, importance, pruners, top; completion and the man page."""

import http.server
import json
import os
import re
import statistics
import shutil
import signal
import subprocess
import threading
import urllib.request
import xml.etree.ElementTree

import pytest

from study_support import (credentials, INTERRUPTED, NO_TRIAL, OK, TUNE, USAGE, call, run_arguments, server, study_of, terminal,
                           tune, tune_json)

SPACE = {"lr": {"float": [1e-5, 0.1], "log": True}, "n": {"int": [1, 8]}, "opt": {"choice": ["sgd", "adam", "<&>"]}}
KINDS = ["history", "curves", "intermediate", "parallel", "slice", "contour", "rank", "importance", "edf", "timeline",
         "pareto"]


def create(url, name, **more):
    body = {"name": name, "metric": {"name": "loss", "goal": "min"}, "space": SPACE,
            "sampler": {"type": "random", "seed": 1}, **more}
    status, answer = call(url, "/api/2.0/tune/studies", body)
    assert status == 200, answer


def ask(url, name, count):
    return call(url, f"/api/2.0/tune/studies/{name}/ask", {"count": count})[1]["trials"]


def report(url, name, trial, step, value):
    return call(url, f"/api/2.0/tune/studies/{name}/report",
                {"number": trial["number"], "attempt": trial["attempt"], "step": step, "value": value})


def tell(url, name, trial, value):
    return call(url, f"/api/2.0/tune/studies/{name}/tell",
                {"number": trial["number"], "attempt": trial["attempt"], "value": value})


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """A server with a study of 24 trials that decide by n alone, an empty one and one of a single trial."""
    folder = tmp_path_factory.mktemp("look")
    with server(folder) as (_, url):
        create(url, "full", budget={"trials": 24})
        for trial in ask(url, "full", 24):
            value = trial["params"]["n"]
            for step in range(4):
                report(url, "full", trial, step, value + 4 - step)
            tell(url, "full", trial, value)
        create(url, "empty")
        create(url, "one")
        tell(url, "one", ask(url, "one", 1)[0], 0.5)
        yield url, folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_plot_in_every_form(studies, tmp_path, kind):
    url, _ = studies
    for study in ("full", "one"):
        svg = tmp_path / f"{study}.svg"
        done = tune("plot", study, kind, "--server", url, "-o", svg, cwd=tmp_path)
        assert done.returncode == OK, done.stderr
        root = xml.etree.ElementTree.parse(svg).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.find("{http://www.w3.org/2000/svg}title").text.startswith(study + ":")
        for theme in ("light", "dark"):
            png = tmp_path / f"{study}-{theme}.png"
            assert tune("plot", study, kind, "--server", url, "-o", png, "--theme", theme,
                        cwd=tmp_path).returncode == OK
            assert png.read_bytes().startswith(b"\x89PNG")
        text = tune("plot", study, kind, "--server", url, "--terminal", cwd=tmp_path)
        assert text.returncode == OK and text.stdout.startswith(study + ":") and "\x1b" not in text.stdout
        assert max(map(len, text.stdout.splitlines())) <= 100
        data = tune_json("plot", study, kind, "--server", url, cwd=tmp_path)
        assert data["panels"][0]["layers"] or study == "one"


def test_the_plotted_data_are_the_study_s(studies, tmp_path):
    url, _ = studies
    trials = tune_json("show", "full", "--server", url, cwd=tmp_path)["trials"]
    history = tune_json("plot", "full", "history", "--server", url, cwd=tmp_path)["panels"][0]
    assert history["layers"][0]["y"] == [trial["value"] for trial in trials]
    best, so_far = history["layers"][1], []
    for trial in trials:
        if not so_far or trial["value"] < so_far[-1]:
            so_far.append(trial["value"])
    assert best["y"][:-1] == so_far
    piece = tune_json("plot", "full", "slice", "--params", "lr", "--server", url, cwd=tmp_path)["panels"]
    assert len(piece) == 1 and piece[0]["x"]["scale"] == "log"
    assert piece[0]["layers"][0]["x"] == [trial["params"]["lr"] for trial in trials]


def test_a_plot_without_complete_trials_is_empty_and_says_so(studies, tmp_path):
    url, _ = studies
    done = tune("plot", "empty", "history", "--server", url, "--terminal", cwd=tmp_path)
    assert done.returncode == NO_TRIAL and "no trial has completed (" in done.stdout
    done = tune("plot", "empty", "history", "--server", url, "-o", tmp_path / "h.png", cwd=tmp_path)
    assert done.returncode == NO_TRIAL and "the plot is empty" in done.stderr and (tmp_path / "h.png").exists()
    assert tune("plot", "empty", "timeline", "--server", url, "-o", tmp_path / "t.svg", cwd=tmp_path).returncode == OK
    assert tune("importance", "empty", "--server", url, cwd=tmp_path).returncode == NO_TRIAL
    assert tune("pruners", "empty", "--server", url, cwd=tmp_path).returncode == NO_TRIAL


@pytest.mark.parametrize("arguments, words", [
    (["plot", "full", "pie"], "pie"),
    (["plot", "full", "history", "-o", "x.jpg"], "neither FILE.svg nor FILE.png"),
    (["plot", "full", "slice", "--params", "x"], "lr, n, opt"),
    (["plot", "full", "contour", "--params", "lr"], "two parameters"),
    (["plot", "full", "history", "--metric", "acc"], "acc"),
    (["importance", "full", "--method", "guess"], "guess"),
    (["pruners", "full", "--pruner", "medan"], "medan"),
    (["completion", "tcsh"], "tcsh"),
])
def test_bad_words_are_one_clear_sentence(studies, tmp_path, arguments, words):
    url, _ = studies
    server_words = [] if arguments[0] == "completion" else ["--server", url]
    done = tune(*arguments, *server_words, cwd=tmp_path)
    assert done.returncode == USAGE and words in done.stderr + done.stdout


def test_a_file_that_cannot_be_written_is_named(studies, tmp_path):
    url, _ = studies
    done = tune("plot", "full", "-o", "no/such/folder.svg", "--server", url, cwd=tmp_path)
    assert done.returncode == 1 and "no/such/folder.svg" in done.stderr


@pytest.mark.parametrize("words", [["show", "full", "--json"], ["ls"], ["plot", "full"], ["schema"]])
def test_output_that_is_lost_is_a_failure(studies, tmp_path, words):
    url, _ = studies
    words = words if words == ["schema"] else [*words, "--server", url]
    with open("/dev/full", "w") as full:
        done = subprocess.run([TUNE, *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "the output could not be written whole" in done.stderr


def test_a_terminal_gets_the_plot_in_colour_and_in_its_width(studies, tmp_path):
    url, _ = studies
    with terminal("plot", "full", "--server", url, cwd=tmp_path) as screen:
        text = screen.read_all()
        assert screen.process.wait(timeout=30) == OK
    assert b"\x1b[38;5;" in text and "full: history".encode() in text


def test_what_takes_long_says_so_on_a_terminal_and_leaves_nothing(studies, tmp_path):
    """The real server, with an answer that is held back until the line was seen."""
    url, _ = studies
    was_seen = threading.Event()

    class Slow(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.endswith("/replay"):
                assert was_seen.wait(60)
            wanted = urllib.request.Request(url + self.path, headers=credentials(url))
            with urllib.request.urlopen(wanted) as answer:
                body = answer.read()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow) as proxy:
        threading.Thread(target=proxy.serve_forever).start()
        words = ["replay", "full", "--server", f"http://127.0.0.1:{proxy.server_port}"]
        try:
            with terminal(*words, cwd=tmp_path, stdout=subprocess.PIPE) as screen:
                screen.read_until(b"repeating every suggestion")
                was_seen.set()
                out = screen.process.communicate(timeout=60)[0]
                assert screen.process.returncode == OK
                assert b"24 suggestions repeated, 0 differ" in out
                assert screen.read_all().endswith(b"\r\x1b[K"), "the line is gone"
        finally:
            was_seen.set()
            proxy.shutdown()
    quick = tune("replay", "full", "--server", url, cwd=tmp_path)
    assert quick.returncode == OK and quick.stderr == ""


@pytest.mark.parametrize("count", [2, 3])
def test_several_objectives_have_a_front(studies, tmp_path, count):
    url, _ = studies
    metrics = [{"name": f"m{i}", "goal": "max" if i == 2 else "min"} for i in range(count)]
    create(url, f"front{count}", metric=metrics)
    points = [[1, 5, 0], [2, 3, 0], [3, 4, 0], [2, 6, 9]]
    for trial, values in zip(ask(url, f"front{count}", 4), points):
        status, _ = call(url, f"/api/2.0/tune/studies/front{count}/tell",
                         {"number": trial["number"], "attempt": trial["attempt"], "values": values[:count]})
        assert status == 200
    plot = tune_json("plot", f"front{count}", "pareto", "--server", url, cwd=tmp_path)
    assert len(plot["panels"]) == (1 if count == 2 else 3)
    front = next(layer for layer in plot["panels"][0]["layers"] if layer.get("name") == "front")
    best = {trial["number"] for trial in study_of(url, f"front{count}")["best_trials"]}
    assert sorted(zip(front["x"], front["y"])) == sorted(tuple(points[number][:2]) for number in best)
    for run_id in [trial["run_id"] for trial in tune_json("show", f"front{count}", "--server", url, cwd=tmp_path)["trials"]]:
        for step in range(2):
            call(url, "/api/2.0/mlflow/runs/log-metric", {"run_id": run_id, "key": "m0", "value": 1, "timestamp": 1, "step": step})
    weighed = tune_json("pruners", f"front{count}", "--server", url, cwd=tmp_path)
    assert (weighed["metric"], weighed["objectives"]) == ("m0", count)
    said = tune("pruners", f"front{count}", "--server", url, cwd=tmp_path).stdout
    assert f"by m0, the first of {count} objectives; of 4 trials" in said
    found = tune_json("importance", f"front{count}", "--metric", "m1", "--server", url, cwd=tmp_path)
    assert found["metric"] == "m1" and found["trials"] == 4


def test_importance_finds_the_parameter_that_decides(studies, tmp_path):
    url, _ = studies
    for method in ("ped-anova", "fanova"):
        found = tune_json("importance", "full", "--method", method, "--server", url, cwd=tmp_path)
        assert found["trials"] == 24 and found["importances"][0]["name"] == "n"
        assert sum(one["share"] for one in found["importances"]) == pytest.approx(1)
    status, live = call(url, "/api/2.0/tune/studies/full/importance")
    local = tune_json("importance", "full", "--server", url, cwd=tmp_path)
    assert status == 200 and live["importances"] == pytest.approx(local["importances"])
    assert call(url, "/api/2.0/tune/studies/nobody/importance")[0] == 404
    assert call(url, "/api/2.0/tune/studies/empty/importance")[1]["trials"] == 0
    assert "n " in tune("importance", "full", "--server", url, cwd=tmp_path).stdout


def test_importance_follows_the_study_while_it_runs(studies, tmp_path):
    url, _ = studies
    create(url, "growing")
    for count in range(1, 4):
        for trial in ask(url, "growing", 2):
            tell(url, "growing", trial, trial["params"]["n"])
        live = call(url, "/api/2.0/tune/studies/growing/importance")[1]
        assert live["trials"] == 2 * count
        shares = {one["name"]: one["share"] for one in live["importances"]}
        fresh = tune_json("importance", "growing", "--server", url, cwd=tmp_path)
        assert shares == pytest.approx({one["name"]: one["share"] for one in fresh["importances"]})


def test_pruners_are_weighed_on_the_recorded_study(studies, tmp_path):
    url, _ = studies
    found = tune_json("pruners", "full", "--pruner", "median,startup=1", "--pruner", "none", "--server", url,
                      cwd=tmp_path)
    assert found["trials"] == 24 and found["reports"] == 96
    median, none = found["pruners"]
    assert none["pruned"] == 0 and none["reports_saved"] == 0 and none["best_rank"] == 1
    # Each reports n + 4 and then one less a step: who is worse than the median of those that were kept is it at once.
    kept = []
    for trial in tune_json("show", "full", "--server", url, cwd=tmp_path)["trials"]:
        if not kept or trial["value"] <= statistics.median(kept):
            kept.append(trial["value"])
    assert 0 < len(kept) < 24 and median["pruned"] == 24 - len(kept)
    assert median["reports_saved"] == 3 * median["pruned"]
    assert median["best_rank"] == 1 and median["best_value"] == min(kept)
    table = tune("pruners", "full", "--server", url, cwd=tmp_path).stdout
    assert "hyperband" in table and "steps saved" in table and "of 24 trials, 96 steps" in table


def test_pruners_read_histories_that_fill_more_than_an_answer(studies, tmp_path):
    url, _ = studies
    create(url, "long")
    # An answer about several runs ends at 25,000 points: within a run, at its end, and one fills it alone.
    counts = [26_000, 12_500, 12_500, 12_600, 3]
    for trial, count in zip(ask(url, "long", len(counts)), counts):
        for begin in range(0, count, 1000):
            metrics = [{"key": "loss", "value": 1 / (step + 1), "timestamp": step, "step": step}
                       for step in range(begin, min(begin + 1000, count))]
            assert call(url, "/api/2.0/mlflow/runs/log-batch", {"run_id": trial["run_id"], "metrics": metrics})[0] == 200
        tell(url, "long", trial, 0.5)
    found = tune_json("pruners", "long", "--pruner", "threshold,lower=0.001", "--server", url, cwd=tmp_path)
    assert found["trials"] == len(counts) and found["reports"] == sum(counts)
    assert found["pruners"][0]["pruned"] == 4, "each of the long ones falls below the bound"


def test_the_study_s_own_pruner_replayed_decides_as_it_did_live(studies, tmp_path):
    url, _ = studies
    create(url, "pruned", pruner={"type": "median", "startup": 3}, budget={"trials": 20})
    stopped = 0
    for _ in range(20):
        trial = ask(url, "pruned", 1)[0]
        for step in range(5):
            if report(url, "pruned", trial, step, trial["params"]["n"] / (step + 1))[1]["action"] == "stop":
                stopped += 1
                call(url, "/api/2.0/tune/studies/pruned/tell",
                     {"number": trial["number"], "attempt": trial["attempt"], "state": "pruned"})
                break
        else:
            tell(url, "pruned", trial, trial["params"]["n"])
    assert stopped > 2
    replayed = tune_json("pruners", "pruned", "--pruner", "median,startup=3", "--server", url, cwd=tmp_path)
    assert replayed["pruners"][0]["pruned"] == stopped == replayed["pruned_before"]
    assert replayed["pruners"][0]["reports_saved"] == 0 and replayed["pruners"][0]["best_rank"] == 1


def test_top_shows_running_trials_and_their_curves(studies, tmp_path):
    url, _ = studies
    create(url, "busy")
    trials = ask(url, "busy", 2)
    for step, value in enumerate([3.0, 2.0, 1.5]):
        report(url, "busy", trials[0], step, value)
    once = tune("top", "--once", "--server", url, cwd=tmp_path)
    assert once.returncode == OK
    row = next(line for line in once.stdout.splitlines() if "busy" in line and "#0" in line)
    assert "1.5" in row and "█" in row and "lr=" in row
    studies_now = {study["name"]: study for study in tune_json("top", "--server", url, cwd=tmp_path)["studies"]}
    assert [trial["number"] for trial in studies_now["busy"]["running"]] == [0, 1]
    assert "full" not in studies_now
    for trial in trials:
        tell(url, "busy", trial, 1)


def test_top_is_notified_by_the_server_and_ends_on_ctrl_c(studies, tmp_path):
    url, _ = studies
    create(url, "live")
    trial = ask(url, "live", 1)[0]
    with terminal("top", "--server", url, cwd=tmp_path) as screen:
        screen.read_until(b"live")
        report(url, "live", trial, 7, 0.123)
        screen.read_until(b"0.123")
        screen.process.send_signal(signal.SIGINT)
        assert screen.process.wait(timeout=30) == OK
    tell(url, "live", trial, 1)


class Screen:
    """What a terminal of this size shows: as much of one as `tune top` uses."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines, self.row, self.column, self.gone = [""], 0, 0, []

    def write(self, text):
        for count, code, letter in re.findall(r"\x1b\[([0-9;]*)([A-Za-z])|([^\x1b])", text):
            if letter:
                self.put(letter)
            elif code == "A":
                self.row = max(self.row - int(count or 1), 0)
            elif code == "J":
                self.lines[self.row:] = [self.lines[self.row][:self.column]]
            else:
                assert code == "m", code

    def put(self, letter):
        if letter == "\r":
            self.column = 0
        elif letter == "\n" or self.column == self.columns:
            self.row += 1
            if self.row == len(self.lines):
                self.lines.append("")
            if len(self.lines) > self.rows:
                self.gone.append(self.lines.pop(0))
                self.row -= 1
            if letter != "\n":
                self.column = 0
        if letter not in "\r\n":
            self.lines[self.row] = self.lines[self.row][:self.column].ljust(self.column) + letter
            self.column += 1


@pytest.mark.parametrize("rows, columns", [(10, 60), (5, 30), (3, 200)])
def test_top_stays_within_a_small_terminal(tmp_path, rows, columns):
    with server(tmp_path) as (_, url):
        for name in ("a", "b", "c", "d"):
            create(url, name)
        trials = ask(url, "a", 30)
        with terminal("top", "--server", url, cwd=tmp_path, rows=rows, columns=columns) as shown:
            for step in range(4):
                report(url, "a", trials[0], step, 0.5)
                shown.read_until(b"30 trials are running")
            shown.process.send_signal(signal.SIGINT)
            text = shown.read_all().decode()
        screen = Screen(rows, columns)
        screen.write(text)
    assert text.count("30 trials are running") >= 4 and screen.gone == []
    assert [line for line in screen.lines if "30 trials are running" in line] == [screen.lines[0]]
    if rows == 10:
        assert screen.lines[1:3] == ["  a running 0", "  and 3 more studies"]
        assert screen.lines[3].startswith("study ") and screen.lines[8:] == ["and 26 more trials", ""]


def test_the_table_of_run_stays_within_a_small_terminal(tmp_path):
    os.mkfifo(tmp_path / "gate")
    words = run_arguments(["sh", "-c", "read line < gate"], trials=8, jobs=8)
    with terminal(*words, cwd=tmp_path, rows=6, columns=60) as shown:
        text = b""
        for _ in range(3):
            text += shown.read_until(b"8 running")
        text += shown.read_until(b"/s/s")
        screen = Screen(6, 60)
        screen.write(text[: text.rindex(b"/s/s")].decode())
        shown.process.send_signal(signal.SIGINT)
        assert b"stopping" in shown.read_all() and shown.process.wait(timeout=60) == INTERRUPTED
    assert sum("8 running" in line for line in screen.gone + screen.lines) == 1
    assert sum(line.startswith("  #") for line in screen.lines) == 3


def candidates(*words, cwd):
    done = tune("__complete", *words, cwd=cwd)
    assert done.returncode == OK, done.stderr
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_completion_knows_verbs_options_values_and_studies(studies, tmp_path):
    url, _ = studies
    assert {"run", "plot", "top"} <= set(candidates("", cwd=tmp_path))
    assert candidates("pl", cwd=tmp_path) == ["plan", "plot"]
    assert candidates("plot", "--th", cwd=tmp_path) == ["--theme"]
    assert candidates("plot", "--theme", "", cwd=tmp_path) == ["light", "dark"]
    assert {"full", "empty", "one"} <= set(candidates("plot", "--server", url, "", cwd=tmp_path))
    assert candidates("show", "--server", url, "fu", cwd=tmp_path) == ["full"]
    assert candidates("plot", "--server", url, "full", "pa", cwd=tmp_path) == ["parallel", "pareto"]
    samplers = ["random", "grid", "qmc", "tpe", "gp", "cmaes", "auto", "nsga2", "nsga3", "pbt"]
    # In the order of errors and help; shells sort them.
    assert sorted(candidates("run", "--sampler", "", cwd=tmp_path)) == sorted(samplers)
    assert candidates("run", "--sampler", "ns", cwd=tmp_path) == ["nsga2", "nsga3"]
    for words in (["plan"], ["run", "study.yaml"], ["pruners", "full"]):
        assert {"none", "asha", "hyperband", "any"} <= set(candidates(*words, "--pruner", "", cwd=tmp_path))
    keys = candidates("run", "--pruner", "asha,min=1,", cwd=tmp_path)
    assert keys == [f"asha,min=1,{key}=" for key in ("max", "eta", "rate", "bootstrap")]
    assert candidates("run", "--pruner", "patience,w", cwd=tmp_path) == ["patience,wait="]
    assert candidates("space", "--from", "k", cwd=tmp_path) == ["katib"]
    assert candidates("plot", "--theme=d", cwd=tmp_path) == ["--theme=dark"]
    assert candidates("plot", "--theme", "=", cwd=tmp_path) == ["light", "dark"]  # as bash splits words
    assert candidates("plot", "--theme", "=", "d", cwd=tmp_path) == ["dark"]
    assert candidates("plot", f"--server={url}", "fu", cwd=tmp_path) == ["full"]
    assert candidates("export", "x.db", "--server", url, "--optuna", "fu", cwd=tmp_path) == ["full"]
    assert candidates("run", "--server", url, "--warm-start", "fu", cwd=tmp_path) == ["full"]
    assert candidates("alert", "", cwd=tmp_path) == ["add", "ls", "rm"]
    assert candidates("run", "--", "py", cwd=tmp_path) == []
    assert candidates("no-such-verb", "x", cwd=tmp_path) == []
    assert candidates(cwd=tmp_path) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid(tmp_path, shell):
    script = tune("completion", shell, cwd=tmp_path)
    assert script.returncode == OK and "__complete" in script.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=script.stdout, text=True, check=True)


def test_bash_completes_a_study(studies, tmp_path):
    url, _ = studies
    script = tune("completion", "bash", cwd=tmp_path).stdout
    asked = f'{script}\nCOMP_WORDS=(tune best --server {url} fu)\nCOMP_CWORD=4\n_tune\necho "${{COMPREPLY[@]}}"'
    path = f"{TUNE.parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", asked], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.stdout.strip() == "full", done.stderr


def help_entries(text, title):
    """[(names and type, summary)] of a section of --help."""
    lines = text.split(f"\n{title}:\n")[1].split("\n\n")[0].splitlines() if f"\n{title}:\n" in text else []
    entries = []
    for line in lines:
        if line.startswith(" " * 30):  # the summary of names that fill the line
            entries[-1] = (entries[-1][0], line.strip())
        else:
            entries.append((line[2:30].strip(), line[30:].strip()) if line[29:30] == " " else (line.strip(), ""))
    return entries


def man_entries(part):
    """The same of the man page, whose summaries are followed by choices and the default."""
    return [tuple(entry.splitlines()[:2]) for entry in part.split("\n.PP\n.nf\n")[0].split("\n.TP\n")[1:]]


def assert_page_says(part, text):
    """`part` of the man page has the options and positional words of the help `text`, and no others."""
    helped = help_entries(text, "Positionals") + [
        entry for entry in help_entries(text, "Options") if not entry[0].startswith("-h,--help")]
    shown = man_entries(part)
    assert [re.split(r"[ :=]", names)[0].split(",") for names, _ in helped] == [
        re.sub(r" [A-Z]+$", "", names).split(", ") for names, _ in shown if names != "-h, --help"]
    shown = [entry for entry in shown if entry[0] != "-h, --help"]
    for (names, summary), (_, said) in zip(helped, shown):
        assert summary and said.startswith(summary), names
        for choice in re.findall(r"[{,]([a-z0-9-]+)(?=[,}])", names):
            assert choice in said
        if fallback := re.search(r"=(\S+)$", names):
            assert f"[{fallback[1]}]" in said


def test_the_man_page_says_what_help_says(tmp_path):
    page = tune("man", cwd=tmp_path).stdout
    plain = page
    for troff, text in (("\\-", "-"), ("\\fB", ""), ("\\fR", ""), ("\\fI", ""), ("\\&", ""), ("\\e", "\\")):
        plain = plain.replace(troff, text)
    usage = tune("--help", cwd=tmp_path).stdout
    for code in ("0    ok", "2    usage", "3    no trial has completed", "4    the time or cost budget"):
        assert code in usage and code in plain
    assert_page_says(plain.split("\n.SH OPTIONS\n")[1].split("\n.SH")[0], usage)
    parts = {part.split("\n")[0]: part for part in re.split(r"\n\.S[SH] ", plain)}
    seen = []

    def compare(path):
        text = tune(*path, "--help", cwd=tmp_path).stdout
        for verb, summary in help_entries(text, "Subcommands"):
            assert f"\n.TP\n{verb}\n{summary}\n" in plain or path
            compare([*path, verb])
        if path:
            seen.append(path)
            part = parts[" ".join(["tune", *path])]
            assert part.splitlines()[1] == text.splitlines()[0]
            assert help_entries(text, "Options"), text
            assert_page_says(part, text)

    compare([])
    assert len(seen) > 25 and ["run"] in seen and ["alert", "add"] in seen
    if shutil.which("groff"):
        checked = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8"], input=page, text=True, capture_output=True)
        assert checked.stderr == ""


def test_plan_knows_populations(tmp_path):
    sampler = {"type": "pbt", "population": 8, "interval": 5, "max": 32}
    study = {"version": 1, "study": "s", "metric": "loss", "space": {"x": "0..1"}, "sampler": sampler,
             "budget": {"parallel": 3}}

    def plan(**more):
        (tmp_path / "s.json").write_text(json.dumps({**study, **more}))
        said = tune("plan", "s.json", "--trial-time", "10m", cwd=tmp_path).stdout
        return tune_json("plan", "s.json", "--trial-time", "10m", cwd=tmp_path), said

    whole, said = plan()
    assert whole["population"] == {"members": 8, "interval": 5, "first_interval": 5, "steps": 32, "generations": 7,
                                   "trials_max": 56, "steps_max": 8 * 32}
    # 56 trials, 3 at a time: 19 rounds, whose last ones are 2 steps of 5.
    assert whole["expected_time_ms"] == pytest.approx(19 * 600_000 * (8 * 32) / (56 * 5), abs=1)
    assert "8, each 5 steps at a time, 7 generations to step 32" in said and "at most 56 trials" in said
    del sampler["max"]
    warm, said = plan(sampler={**sampler, "warmup": 20}, budget={"trials": 20, "parallel": 99})
    assert warm["population"]["generations"] == 3 and warm["population"]["steps_max"] == 8 * 20 + 12 * 5
    assert warm["expected_time_ms"] == pytest.approx(3 * 600_000 * (8 * 20 + 12 * 5) / (20 * 5), abs=1)
    assert "20 the first time" in said
    endless, said = plan(sampler=sampler)
    assert endless["population"]["trials_max"] is None and "expected_time_ms" not in endless
    assert "without an end" in said
    far, said = plan(sampler={**sampler, "interval": 1, "max": 2**50})
    assert far["population"]["steps_max"] >= 1e12


@pytest.mark.parametrize("words, points, said", [
    (["a=1,2", "b=x,y,z,w"], 8, "trials:   until every point has been tried, which are 8\n"),
    (["-n", 100, "a=1,2", "b=x,y,z,w"], 8, "trials:   100, or until every point has been tried, which are 8\n"),
    (["-n", 5, "a=1,2", "b=x,y,z,w"], 8, "trials:   5\n"),
    (["a=1,2", "b=x,y?a=1", "--forbid", "a == 2"], 2, "which are 2\n"),
    (["a=1,2", "b=x,y?a=1"], 3, "which are 3\n"),
    (["a=1,2", "x=0..1"], None, "trials:   until stopped\n"),
    (["a=0..999999:int"], None, "trials:   until stopped\n"),
])
def test_plan_knows_when_every_point_was_tried(tmp_path, words, points, said):
    words = ["plan", "-m", "loss", *words, "--trial-time", "10m", "-j", 3]
    plan = tune_json(*words, cwd=tmp_path)
    assert plan["points_until_end"] == points
    text = tune(*words, cwd=tmp_path).stdout
    assert said.replace("\n", ", 3 at a time\n") in text and "tried twice" not in text
    trials = min(points or 100, 5 if 5 in words else 100)
    assert plan.get("expected_time_ms") == (-(-trials // 3) * 600_000 if points else None)


def test_plan_s_end_is_the_study_s(tmp_path):
    """What the plan shows of a space with a condition and a rule is what a study then does."""
    words = ["-m", "loss", "a=1,2,3", "b=x,y?a=1", "--forbid", "a == 3"]
    run = tune("run", "--port", 0, "--study", "s", *words, "--", "echo", 'tune: {"loss": 1}', cwd=tmp_path)
    assert run.returncode == OK and "every point of the space has been tried" in run.stdout
    count = tune_json("best", "s", "--data", "tune-data", cwd=tmp_path) and len(
        tune_json("show", "s", "--data", "tune-data", cwd=tmp_path)["trials"])
    assert tune_json("plan", *words, cwd=tmp_path)["points_until_end"] == count == 3


@pytest.mark.parametrize("words, size, is_exact, said", [
    (["o=a,b", "x=1..10:int?o=a"], 11, True, "the space has 11 points"),
    (["x=1..10:int", "--forbid", "x > 1"], 1, True, "the space has 1 point\n"),
    (["o=a,b", "x=1..1000000:int?o=a"], 2e6, False, "the space has at most 2e+06 points"),
    (["o=a,b", "x=0..1?o=a"], None, None, "sampler:"),
])
def test_plan_counts_the_points_that_there_are(tmp_path, words, size, is_exact, said):
    plan = tune_json("plan", "-m", "loss", *words, cwd=tmp_path)
    assert (plan["space_size"], plan["space_size_is_exact"]) == (size, is_exact)
    assert said in tune("plan", "-m", "loss", *words, cwd=tmp_path).stdout


def test_plan_reports_that_the_time_ends_first(tmp_path):
    words = ["plan", "-m", "loss", "-n", 10, "x=0..1", "--trial-time", "10m", "--time"]
    assert "; the budget of 1h ends before that" in tune(*words, "1h", cwd=tmp_path).stdout
    assert "ends before" not in tune(*words, "100m", cwd=tmp_path).stdout


def test_plan_shows_brackets_and_time_before_running(tmp_path):
    words = ["plan", "-n", 100, "-j", 4, "-m", "loss", "x=0..1", "--trial-time", "10m"]
    assert tune_json(*words, cwd=tmp_path)["expected_time_ms"] == 25 * 600_000
    plan = tune_json(*words, "--pruner", "hyperband,min=1,max=9,eta=3", cwd=tmp_path)
    steps = [(rung["bracket"], rung["step"]) for rung in plan["rungs"]]
    assert steps == [(0, 1), (0, 3), (0, 9), (1, 3), (1, 9), (2, 9)]
    # Brackets of 9, 5 and 3 shares; each rung keeps a third.
    expected = [100 * 9 / 17, 100 * 3 / 17, 100 / 17, 100 * 5 / 17, 100 * 5 / 51, 100 * 3 / 17]
    assert [rung["expected_trials"] for rung in plan["rungs"]] == pytest.approx(expected)
    share = plan["expected_steps"] / plan["steps_without_pruning"]
    assert share < 1 and plan["expected_time_ms"] == pytest.approx(share * 25 * 600_000, abs=1)
    text = tune(*words, "--pruner", "hyperband,min=1,max=9,eta=3", cwd=tmp_path).stdout
    assert "bracket" in text and "time:     about" in text and "4 at a time" in text
    assert tune(*words[:-1], "soon", cwd=tmp_path).returncode == USAGE

"""tune plot: every kind in every form, and what it says when it cannot."""

import http.server
import subprocess
import threading
import urllib.request
import xml.etree.ElementTree

import pytest

from study_support import (credentials, NO_TRIAL, OK, TUNE, USAGE, ask, call, create_study, study_of, terminal, tune,
                           tune_json)

KINDS = ["history", "curves", "intermediate", "parallel", "slice", "contour", "rank", "importance", "edf", "timeline",
         "pareto"]


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


def test_the_kind_alone_is_the_plot_of_the_only_study(tmp_path):
    data = tmp_path / "data"
    done = tune("run", "--study", "only", "-n", "3", "-m", "y:min", "--data", data, "--quiet", "x=0..1", "--",
                "sh", "-c", 'echo "tune: {\\"y\\": {x}}"', cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    by_name = tune_json("plot", "only", "slice", "--data", data, cwd=tmp_path)
    assert tune_json("plot", "slice", "--data", data, cwd=tmp_path) == by_name
    done = tune("plot", "slices", "--data", data, cwd=tmp_path)
    assert done.returncode != OK and "slices" in done.stderr  # neither a kind nor a study


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
    create_study(url, f"front{count}", metric=metrics)
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
    route = f"/api/2.0/tune/studies/front{count}/importance?metric="
    live = call(url, route + "m1")[1]
    assert live["metric"] == "m1" and live["trials"] == 4
    assert live["importances"] == pytest.approx(found["importances"])
    assert call(url, route)[1]["metric"] == "m0"
    status, refused = call(url, route + "nothing")
    assert status == 400 and "'nothing' is no objective of the study; its objectives: m0, m1" in refused["message"]

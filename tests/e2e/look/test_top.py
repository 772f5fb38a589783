"""What moves on a terminal: tune top, and the table of tune run."""

import os
import re
import signal

import pytest

from study_support import (INTERRUPTED, OK, ask, create_study, report, run_arguments, server, tell, terminal, tune,
                           tune_json)


def test_top_shows_running_trials_and_their_curves(studies, tmp_path):
    url, _ = studies
    create_study(url, "busy")
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
    create_study(url, "live")
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
            create_study(url, name)
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

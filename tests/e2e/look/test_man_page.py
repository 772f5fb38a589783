"""The man page says what --help says."""

import re
import shutil
import subprocess

from study_support import tune


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

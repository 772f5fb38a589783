"""docs/ as a site: it builds without a warning, can be searched, and is refused with a dead link."""

import json
import pathlib
import shutil
import subprocess
import sys

from documents import ROOT


def build(root, out):
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", out],
                          cwd=root, capture_output=True, text=True, timeout=250)


def test_the_site_builds_and_is_searched(tmp_path):
    done = build(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    index = json.loads((tmp_path / "site/search/search_index.json").read_text())
    pages = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"index.html", "study_file.html", "decisions/one_writer.html"} <= pages
    assert any("py1e" in entry["text"] for entry in index["docs"])
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text()
        for words in ('src="http', 'href="http://fonts', 'href="https://fonts', "cdnjs"):
            assert words not in text, f"{page.name} asks another host for something: {words}"


def test_a_dead_link_is_refused(tmp_path):
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    assert build(tmp_path, tmp_path / "site").returncode == 0
    for words in ("[a](no_such_page.md)", "[a](study_file.md#no-such-heading)"):
        page = pathlib.Path(tmp_path / "docs/index.md")
        text = page.read_text()
        page.write_text(f"{text}\n{words}\n")
        assert build(tmp_path, tmp_path / "site").returncode != 0, words
        page.write_text(text)

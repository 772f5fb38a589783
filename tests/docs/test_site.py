"""docs/ as a site: it builds without a warning, can be searched, and is refused with a dead link."""

import json
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


def test_dead_links_are_refused(tmp_path):
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    page = tmp_path / "docs/index.md"
    page.write_text(page.read_text() + "\n[a](no_such_page.md) [b](study_file.md#no-such-heading)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "no_such_page.md" in done.stderr and "#no-such-heading" in done.stderr
    assert done.stderr.count("WARNING") == 2, done.stderr

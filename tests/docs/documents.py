"""The Markdown files of the repository as values: fences, inline code, links, headings, tables."""

import dataclasses
import functools
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN_DIR = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))

FENCE = re.compile(r"^(\s*)(```+|~~~+)\s*(\S*)")
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")


@dataclasses.dataclass(frozen=True)
class Fence:
    language: str
    line: int
    text: str


@dataclasses.dataclass(frozen=True)
class Table:
    line: int
    head: tuple
    rows: tuple


@dataclasses.dataclass(frozen=True)
class Document:
    """`path` is relative to the root, with '/'."""

    path: str
    text: str

    @functools.cached_property
    def lines(self):
        return self.text.splitlines()

    @functools.cached_property
    def _parts(self):
        """The lines outside of fences, as (number, line), and the fences."""
        prose, fences = [], []
        opened = None
        for number, line in enumerate(self.lines, 1):
            found = FENCE.match(line)
            if opened is None and found:
                opened = (found, number, [])
            elif opened is not None and line.strip() == opened[0][2]:
                indent = len(opened[0][1])
                fences.append(Fence(opened[0][3], opened[1], "\n".join(one[indent:] for one in opened[2]) + "\n"))
                opened = None
            elif opened is not None:
                opened[2].append(line)
            else:
                prose.append((number, line))
        assert opened is None, f"{self.path}:{opened[1]}: the fence is not closed"
        return prose, fences

    @property
    def prose(self):
        return self._parts[0]

    @property
    def fences(self):
        return self._parts[1]

    def inline_code(self):
        """(line, text) of each `...` outside of fences."""
        for number, line in self.prose:
            for found in re.finditer(r"(?<!`)`([^`]+)`(?!`)", line):
                yield number, found[1]

    def links(self):
        """(line, target) of each link and picture. A link's words may be broken over lines."""
        text = "\n".join(re.sub(r"`[^`]*`", lambda code: "x" * len(code[0]), line) for _, line in self.prose)
        numbers = [number for number, _ in self.prose]
        for found in LINK.finditer(text):
            yield numbers[text.count("\n", 0, found.start(1))], found[1]

    @functools.cached_property
    def anchors(self):
        """What may stand after '#', as GitHub and our site make it."""
        found = set()
        for _, line in self.prose:
            heading = re.match(r"#+\s+(.*?)\s*#*$", line)
            if not heading:
                continue
            slug = slug_of(heading[1])
            number = 1
            while slug in found:
                slug = f"{slug_of(heading[1])}-{number}"
                number += 1
            found.add(slug)
        return found

    def tables(self):
        block = []
        for number, line in [*self.prose, (0, "")]:
            if line.startswith("|"):
                block.append((number, line))
                continue
            if len(block) > 1:
                rows = [tuple(cells_of(row)) for _, row in block]
                yield Table(block[0][0], rows[0], tuple(rows[2:]))
            block = []


def cells_of(row):
    cells = re.split(r"(?<!\\)\|", row.strip())
    return [cell.strip() for cell in cells[1:-1]]


def slug_of(heading):
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def read(path):
    return Document(path, (ROOT / path).read_text())


@functools.cache
def all_documents():
    """Every Markdown file that is ours, sorted by path."""
    found = []
    for folder, names, files in os.walk(ROOT):
        here = pathlib.Path(folder).relative_to(ROOT)
        names[:] = [name for name in names if not name.startswith(".") and name not in ("node_modules", "dist", "out")]
        if here == pathlib.Path("."):
            names[:] = [name for name in names if name not in ("build", "tune-data")]
        found += [(here / name).as_posix() for name in files if name.endswith(".md")]
    return tuple(read(path) for path in sorted(found))


def readmes():
    """Those of libraries, examples and tests; not the root's."""
    return [document for document in all_documents() if document.path.endswith("/README.md")]

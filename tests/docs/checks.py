"""What must hold of documents. Each check takes documents and returns what is wrong, one text each, so that
test_checks.py can show that it finds something in a broken one."""

import itertools
import posixpath
import re
import shlex

import documents
from documents import ROOT

README_LINES_MAX = 120
README_COLUMNS_MAX = 120

# --- links ---------------------------------------------------------------------------------------


def broken_links(pages, exists=None):
    """Relative links to files that are not there, and anchors that no heading has."""
    exists = exists or (lambda path: (ROOT / path).exists())
    by_path = {page.path: page for page in documents.all_documents()} | {page.path: page for page in pages}
    wrong = []
    for page in pages:
        for line, target in page.links():
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), path)) if path else page.path
            if path not in by_path and not exists(path):
                wrong.append(f"{page.path}:{line}: the link leads to {path}, which is not there")
            elif anchor and (path not in by_path or anchor not in by_path[path].anchors):
                wrong.append(f"{page.path}:{line}: {path} has no heading #{anchor}")
    return wrong


# --- paths ---------------------------------------------------------------------------------------

PARTS = ("base", "loader", "tracker", "tuner", "worker", "web", "clients", "tests", "docs", "examples", "cmake")
# What a run makes: it is not in the repository.
MADE = ("examples/digits/out", "web/node_modules")
# What a reader of a guide makes by following it.
MADE_BY_GUIDES = ("tuner/pruner/plateau_pruner.cc",)


def expand_braces(word):
    found = re.search(r"\{([^{}]+)\}", word)
    if not found:
        return [word]
    return list(itertools.chain.from_iterable(
        expand_braces(word[:found.start()] + choice + word[found.end():]) for choice in found[1].split(",")))


def is_there(path):
    """Whether a file or folder has this path, or this path and an extension."""
    path = path.rstrip("/")
    return bool((ROOT / path).exists() or list(ROOT.glob(path + ".*")))


def paths_in(words):
    for word in words.split():
        word = word.strip(",;:()'\"").removeprefix("./")
        word = re.sub(r"[:=].*", "", word).removesuffix(".").removesuffix("...")
        if word.split("/")[0] not in PARTS or "/" not in word:
            continue
        if re.search(r"[<>*$]|[A-Z]{3,}_|/[A-Z]+$|\.\.\.", word) or word.startswith(MADE) or word in MADE_BY_GUIDES:
            continue
        yield from expand_braces(word)


def missing_paths(pages):
    """Paths of the repository in inline code and shell blocks that are not there."""
    wrong = []
    for page in pages:
        texts = list(page.inline_code())
        texts += [(fence.line, fence.text) for fence in page.fences if fence.language == "sh"]
        for line, text in texts:
            wrong += [f"{page.path}:{line}: there is no {path}" for path in paths_in(text) if not is_there(path)]
    return wrong


def missing_table_paths(pages):
    """First cells of the tables of files in READMEs, which are relative to the README's folder."""
    wrong = []
    for page in pages:
        folder = posixpath.dirname(page.path)
        for table in page.tables():
            if table.head[0] not in ("file", "files", "folder"):
                continue
            for row in table.rows:
                for word in re.findall(r"`([^`]+)`", row[0]):
                    if not is_there(posixpath.normpath(posixpath.join(folder, word))):
                        wrong.append(f"{page.path}:{table.line}: {folder} holds no {word}")
    return wrong


# --- length --------------------------------------------------------------------------------------


def too_long(pages):
    wrong = []
    for page in pages:
        if len(page.lines) > README_LINES_MAX:
            wrong.append(f"{page.path} has {len(page.lines)} lines; {README_LINES_MAX} are the most, the rest goes to docs/")
        wrong += [f"{page.path}:{number}: {len(line)} columns; {README_COLUMNS_MAX} are the most"
                  for number, line in enumerate(page.lines, 1) if len(line) > README_COLUMNS_MAX]
    return wrong


def untagged_commands(pages):
    """Shell commands in fences that are not marked as sh, which no test would see."""
    wrong = []
    for page in pages:
        for fence in page.fences:
            if not fence.language and re.search(r"^(tune|tune-\w+|curl|cmake|pip|npm|\./|build/\S*/)\S* ", fence.text, re.M):
                wrong.append(f"{page.path}:{fence.line}: commands stand in a fence without 'sh'")
    return wrong


def broken_code(pages):
    """Inline code that goes over the end of a line, which the checks of inline code would not see whole."""
    return [f"{page.path}:{number}: inline code is not closed on its line" for page in pages
            for number, line in page.prose if line.count("`") % 2]


def foreign_code(page, sources):
    """C++ and OpenAPI blocks that none of `sources` (texts) holds, white space aside."""
    held = [re.sub(r"\s+", "", text) for text in sources]
    return [f"{page.path}:{fence.line}: the code is not that of the source" for fence in page.fences
            if fence.language in ("cpp", "yaml") and not any(re.sub(r"\s+", "", fence.text) in text for text in held)]


# --- the command line ----------------------------------------------------------------------------


def shell_commands(text):
    """The simple commands of a shell block as word lists; what cannot be read is left out."""
    text = re.sub(r"\\\n", " ", text)
    for line in text.splitlines():
        line = re.sub(r"(?:^|\s)#.*", "", line)
        line = re.sub(r"[<>|]\(|\$\(|\)", " ; ", line)
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&")
        lexer.whitespace_split = True
        lexer.commenters = ""
        try:
            words = list(lexer)
        except ValueError:
            continue
        for is_break, group in itertools.groupby(words, key=lambda word: set(word) <= set(";|&")):
            group = [word for word in group if word not in ("do", "while", "then", "if")]
            if not is_break and group:
                yield group


def verb_of(words, help_of):
    """Splits the words after the program into the verb's path and the rest."""
    path = ()
    for word in words:
        if word.startswith("-") or help_of((*path, word)) is None:
            break
        path = (*path, word)
    return path, words[len(path):]


def unknown_words(pages, programs):
    """Verbs and options in documents that --help of the program does not have. `programs`: name -> function
    from a verb's path to the text of its help, None where there is no such verb."""
    wrong = []
    for page in pages:
        texts = [(fence.line, fence.text) for fence in page.fences if fence.language == "sh"]
        texts += [(line, code) for line, code in page.inline_code() if code.split()[0].split("/")[-1] in programs]
        for line, text in texts:
            for command in shell_commands(text):
                program = command[0].split("/")[-1]
                if program not in programs:
                    continue
                wrong += [f"{page.path}:{line}: '{' '.join(command)}': {problem}"
                          for problem in problems_of(command, programs[program])]
    return wrong


def options_in(words):
    """Options among `words`, up to the command of a trial."""
    for word in words:
        if word == "--":
            return
        for option in re.findall(r"(?:^|[\[|])(--?[a-zA-Z][\w-]*)", word):
            yield option


def problems_of(command, help_of):
    verb, rest = verb_of(command[1:], help_of)
    has_verbs = "SUBCOMMAND" in help_of(()) or "Subcommands" in help_of(())
    if not verb and rest and has_verbs and not rest[0].startswith("-") and re.fullmatch(r"[a-z][\w-]*", rest[0]):
        return [f"there is no verb {rest[0]}"]
    known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", help_of(verb)))
    return [f"{' '.join((command[0], *verb))} has no option {option}" for option in options_in(rest) if option not in known]


# --- numbers -------------------------------------------------------------------------------------


def rows_with_aims(page):
    """job -> (measured, aim) of the page's tables that state aims, and jobs that stand twice."""
    found, twice = {}, []
    for table in page.tables():
        if "aim" not in table.head or table.head[0] != "job":
            continue
        measured, aim = table.head.index("measured"), table.head.index("aim")
        for row in table.rows:
            if row[0] in found:
                twice.append(row[0])
            found[row[0]] = (row[measured], row[aim])
    return found, twice


def other_numbers(pages, source):
    """Rows of benchmarks that differ from those of `source`, which states all of them."""
    stated, twice = rows_with_aims(source)
    wrong = [f"{source.path}: '{job}' stands twice" for job in twice]
    for page in pages:
        if page.path == source.path:
            continue
        for job, numbers in rows_with_aims(page)[0].items():
            if job not in stated:
                wrong.append(f"{page.path}: '{job}' is not in {source.path}")
            elif numbers != stated[job]:
                wrong.append(f"{page.path}: '{job}' is {numbers}, in {source.path} {stated[job]}")
    return wrong


def other_facts(pages, facts):
    """`facts`: name -> pattern with one group. What each matches must be the same wherever it stands, and stand
    more than once: a pattern that matches nothing checks nothing."""
    wrong = []
    for name, pattern in facts.items():
        stated = {}
        for page in pages:
            for found in re.finditer(pattern, re.sub(r"\s+", " ", page.text)):
                stated.setdefault(found[1], []).append(page.path)
        if len(stated) > 1:
            wrong.append(f"{name}: {stated}")
        elif sum(map(len, stated.values())) < 2:
            wrong.append(f"{name}: stands {sum(map(len, stated.values()))} times; the pattern checks nothing")
    return wrong


def number_of(text):
    """The first number of a text, in the unit that it has."""
    return float(re.search(r"\d[\d,]*(?:\.\d+)?", text)[0].replace(",", ""))


# English that is none: what resumes, continues or keeps working "goes on"; what returns or responds is not "answered".
ODD_WORDS = re.compile(r"\b(?:go|goes|going|gone|went)\s+on\b|\ball\s+told\b|\banswered\b", re.IGNORECASE)


def odd_words(where, text):
    """"WHERE:LINE: words" of each."""
    return [f"{where}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]!r}" for found in ODD_WORDS.finditer(text)]

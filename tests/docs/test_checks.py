"""Each check finds what it is for: a broken document is given to it, and a sound one."""

import checks
from documents import Document

HELP = {
    (): "Usage: tune [OPTIONS] SUBCOMMAND\n  -h,--help\nSubcommands:\n  run\n  ls\n  alert\n",
    ("run",): "Usage\n  -n,--trials INT\n  -m,--metric TEXT\n  -j,--parallel INT\n",
    ("ls",): "Usage\n  --json\n",
    ("alert",): "Usage SUBCOMMAND\n",
    ("alert", "rm"): "Usage\n  --server TEXT\n",
}


def page(text, path="docs/made_up.md"):
    return Document(path, text)


def found(check, text, *more, path="docs/made_up.md"):
    return check([page(text, path)], *more)


def test_links():
    for text in ("[a](no_such.md)", "[a](../base/no_such.h)", "![p](no.png)", "[a](operating.md#no-such-heading)",
                 "# One\n[a](#two)", "[two\nlines](no_such.md)", "[a](../base/error.h#anchor)"):
        assert found(checks.broken_links, text), text
    for text in ("[a](operating.md)", "[a](operating.md#backup)", "[a](../base/error.h)", "# One\n[a](#one)",
                 "[a](https://example.org/x)", "`[a](no_such.md)`", "```\n[a](no_such.md)\n```", "![p](page-light.png)",
                 "# A & b\n[a](#a--b)", "# A\n# A\n[a](#a-1)"):
        assert not found(checks.broken_links, text), text


def test_paths():
    for text in ("`base/no_such.h`", "```sh\n./tests/no_such.sh\n```", "`pytest tests/e2e/test_no_such.py`",
                 "`tracker/{store,no_such}`", "`tuner/space/no_such/`"):
        assert found(checks.missing_paths, text), text
    for text in ("`base/error.h`", "`tracker/{store,api}`", "`tracker/store/`", "`tests/run.sh --no-setup`", "`a/b`",
                 "`docs/<page>.md`", "`tuner/sampler/simple/NAME_sampler.cc`", "`base/error`"):
        assert not found(checks.missing_paths, text), text


def test_paths_of_tables():
    head = "| file | holds |\n|---|---|\n"
    assert found(checks.missing_table_paths, head + "| `no_such.h` | x |\n", path="base/README.md")
    assert not found(checks.missing_table_paths, head + "| `error.h`, `json` | `no_such.h` |\n", path="base/README.md")


def test_lengths():
    assert found(checks.too_long, "a\n" * (checks.README_LINES_MAX + 1))
    assert found(checks.too_long, "a" * (checks.README_COLUMNS_MAX + 1))
    assert not found(checks.too_long, "a\n" * checks.README_LINES_MAX)


def test_commands_without_a_mark():
    assert found(checks.untagged_commands, "```\ntune ls --json\n```")
    assert found(checks.untagged_commands, "```\nbuild/release/bin/tune ls\n```")
    assert not found(checks.untagged_commands, "```sh\ntune ls --json\n```")


def test_code_over_lines():
    assert found(checks.broken_code, "a `b\nc` d")
    assert not found(checks.broken_code, "a `b c` d\n```\n`\n```")


def test_code_of_the_source():
    assert checks.foreign_code(page("```cpp\nint x = 1;\n```"), ["int y = 1;"])
    assert not checks.foreign_code(page("```cpp\nint x =\n  1;\n```"), ["a; int x = 1; b;"])


def test_words_of_the_command_line():
    programs = {"tune": HELP.get}
    for text in ("`tune no_such`", "`tune ls --no-such`", "```sh\ntune nosuch\n```", "```sh\ntune run -x 3\n```",
                 "```sh\ntune run \\\n  --no-such\n```", "```sh\na | build/release/bin/tune ls --nosuch\n```",
                 "```sh\ntune alert rm --nosuch ID\n```", "```sh\nx=$(tune ls --nosuch)\n```",
                 "```sh\ntune ls [--nosuch]\n```", "```sh\ntune nosuch; tune ls\n```"):
        assert found(checks.unknown_words, text, programs), text
    for text in ("`tune`", "`tune ls --json`", "```sh\ntune run -n 3 a=1..2 -- python x.py --lr {lr}\n```",
                 "```sh\ntune alert rm ID --server S  # --nosuch\n```", "`tune ls`, `tune run -m loss:min`",
                 "```yaml\ntune nosuch\n```", "```sh\ntune ls [--json]\n```"):
        assert not found(checks.unknown_words, text, programs), text


HEAD = "| job | measured | aim |\n|---|---|---|\n"


def test_numbers():
    source = page(HEAD + "| a | 1 ms | 2 ms |\n| b | 3 | |\n", "docs/benchmarks.md")
    for row in ("| a | 1 ms | 3 ms |", "| a | 2 ms | 2 ms |", "| c | 1 | |"):
        assert found(checks.other_numbers, HEAD + row + "\n", source), row
    assert not found(checks.other_numbers, HEAD + "| a | 1 ms | 2 ms |\n", source)
    twice = page(HEAD + "| a | 1 | |\n| a | 2 | |\n", "docs/benchmarks.md")
    assert checks.other_numbers([], twice)


def test_facts():
    facts = {"size": r"(\d+) kB of JavaScript"}
    one, two = page("80 kB of JavaScript", "a.md"), page("81 kB\nof JavaScript", "b.md")
    assert checks.other_facts([one, two], facts)
    assert checks.other_facts([one], facts), "a fact that stands once checks nothing"
    assert not checks.other_facts([one, page("80 kB of JavaScript", "b.md")], facts)


def test_odd_words_are_found_over_the_end_of_a_line():
    assert checks.odd_words("page", "It goes\non. All told, who answered?") == ["page:1: 'goes\\non'", "page:2: 'All told'",
                                                                               "page:2: 'answered'"]
    assert checks.odd_words("page", "the going rate on Monday; an answer; we told all") == []

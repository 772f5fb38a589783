"""Links, paths, lengths and numbers of the documents. What each check finds is shown by test_checks.py."""

import re

import pytest

import checks
import documents

BENCHMARKS = "docs/benchmarks.md"

# The aims that benchmarks print: the job in docs/benchmarks.md, which number of the aim, the benchmark, and where the
# aim stands in it.
AIMS = [
    ("log-metric, 16 clients, each on disk before its response", 0, "run.py", r'durable": \("fasttrackml", (\d+)\)'),
    ("log-batch of 1,000 metrics, one client", 0, "tracker/http_bench.cc", r'"log-batch.*?"higher", ([\d\']+)\)'),
    ("create, log and finish a run (3 requests), one client", 0, "tracker/http_bench.cc",
     r'"create, log and finish.*?"higher", ([\d\']+)\)'),
    ("runs/search, filter and order, 50 of 1,000 runs, p50", 0, "tracker/http_bench.cc",
     r'"runs/search, filter.*?"lower", ([\d.]+)\)'),
    ("runs/search, page of 1,000 full runs, p50", 0, "tracker/http_bench.cc", r'"runs/search, page.*?"lower", ([\d.]+)\)'),
    ("server start to first response", 0, "tracker/http_bench.cc", r'"server start to.*?"lower", (\d+)\)'),
    ("server memory, idle", 0, "tracker/http_bench.cc", r'"server memory, idle.*?"lower", (\d+)\)'),
    ("server memory after the load above", 0, "tracker/http_bench.cc", r'"server memory after.*?"lower", (\d+)\)'),
    ("removing a run of 6,500,000 points for good", 0, "tracker/gc_bench.cc", r'points", seconds.*?"lower", (\d+)\)'),
    ("growth of memory meanwhile", 0, "tracker/gc_bench.cc", r'growth of memory.*?"lower", (\d+)\)'),
    ("log-metric p99 meanwhile, 8 clients", 0, "tracker/gc_bench.cc", r'p99 during gc.*?"lower", (\d+)\)'),
    ("log-metric with the owner's token, share of the rate without", 0, "tracker/auth_bench.cc",
     r'share of the rate without.*?"higher", ([\d.]+)\)'),
    ("log-metric with an agent's token, share of the rate without", 0, "tracker/auth_bench.cc",
     r'share of the rate without.*?"higher", ([\d.]+)\)'),
    ("log-metric through TLS, share of the rate without", 0, "tracker/tls_bench.cc",
     r'through TLS.*?"higher", ([\d.]+)\)'),
    ("an artifact of 10 GB up in one stream, of the disk's speed", 0, "tracker/artifacts_bench.py",
     r'of disk speed".*?"higher", (\d+)\)'),
    ("server memory meanwhile", 0, "tracker/artifacts_bench.py", r'memory, peak".*?"lower", (\d+)\)'),
    ("1,000,000 points: all of them (70 MB)", 0, "tracker/read_bench.cc", r'points: all of them.*?, (\d+), 5\)'),
    ("a study of 100,000 trials and 10 parameters loads", 0, "tuner/studies_bench.cc", r'trials", seconds.*?"s", (\d+)\)'),
    ("from a logged value to the pruner, p50", 0, "tuner/studies_bench.cc", r'to pruner, p50.*?"ms", (\d+)\)'),
    ("ask + tell over REST, both on disk, at 1,000 trials, p50", 0, "tuner/ask_tell_bench.cc",
     r'tell, p50.*?"lower", (\d+)\)'),
    ("ask + tell over REST, both on disk, at 1,000 trials, p99", 0, "tuner/ask_tell_bench.cc",
     r'tell, p99.*?"lower", (\d+)\)'),
    ("no-op trials as processes through `tune run`", 0, "worker/trials_bench.py", r'"target": (\d+)'),
    ("no-op trials as processes through `tune run`", 0, "tuner/trials_bench.py", r'"target": (\d+)'),
    ("data set iteration, 28x28 bytes, shuffled, batch 256", 0, "loader/loader_bench.cc",
     r'"iterate 28x28.*?"higher", (\d+e\d+)\)'),
    ("trainer step, mlp 64-128-128-10, batch 32, AdamW, one thread", 0, "worker/train_bench.cc",
     r'"AdamW", step_us\(\{\}\), "us", (\d+)\)'),
    ("TPE ask + tell, 10 parameters, at 100 / 1,000 / 10,000 trials", 0, "tuner/tpe_bench.cc", r'floats\(\), \{\{100, (\d+)\}'),
    ("TPE ask + tell, 10 parameters, at 100 / 1,000 / 10,000 trials", 1, "tuner/tpe_bench.cc",
     r"floats\(\).*?\{1'000, (\d+)\}"),
    ("TPE ask + tell, 10 parameters, at 100 / 1,000 / 10,000 trials", 2, "tuner/tpe_bench.cc",
     r"floats\(\).*?\{10'000, (\d+)\}"),
    ("TPE ask + tell, 10 parameters, 100,000 trials, window", 0, "tuner/tpe_bench.cc", r'window".*?"lower",\s*(\d+)\)'),
    ("`gp` ask + tell, mean of the first 100 / 200 / 300 trials", 0, "tuner/gp_bench.cc", r"kTargetMs = (\d+);"),
]

# What stands in several documents. One group each, whose text is the same everywhere.
FACTS = {
    "the images of the example": r"(\d,\d+) (?:real )?images",
    "what mosaicml-streaming is followed": r"mosaicml-streaming (\d\.\d+\.\d)",
    "the points of the removed run": r"run of (6[\d.,]* ?\w*) points",
    "the page's size limit": r"(?:the limit is|takes? at most) (80 kB)",
    "parameters that GP and CMA-ES take": r"[Aa]t most (\d+) (?:numbers|parameters)",
    "problems that settings were chosen on": r"on the (\d+) (?:other )?problems",
}


@pytest.fixture(scope="module")
def pages():
    found = documents.all_documents()
    assert len(found) > 60, "the tests do not see the documents"
    return found


def test_links_lead_somewhere(pages):
    assert checks.broken_links(pages) == []


def test_paths_exist(pages):
    assert checks.missing_paths([page for page in pages if page.path != "CHANGELOG.md"]) == []


def test_files_named_in_readmes_exist():
    assert checks.missing_table_paths(documents.readmes()) == []


def test_readmes_are_short():
    assert checks.too_long(documents.readmes()) == []


def test_commands_are_marked_as_such(pages):
    assert checks.untagged_commands(pages) == []


def test_inline_code_stands_on_one_line(pages):
    assert checks.broken_code(pages) == []


def test_the_route_of_the_guide_is_that_of_the_source():
    sources = ("tracker/api/mlflow/experiment_routes.cc", "tracker/api/openapi/experiments.yaml")
    page = documents.read("docs/adding_a_route.md")
    assert [fence.language for fence in page.fences] == ["cpp", "cpp", "cpp", "yaml"]
    assert checks.foreign_code(page, [(documents.ROOT / path).read_text() for path in sources]) == []


def test_the_same_job_has_the_same_numbers_everywhere(pages):
    source = documents.read(BENCHMARKS)
    assert len(checks.rows_with_aims(source)[0]) > 50
    assert len(checks.rows_with_aims(documents.read("README.md"))[0]) >= 10
    assert checks.other_numbers(pages, source) == []


@pytest.mark.parametrize(("job", "place", "bench", "pattern"), AIMS)
def test_benchmarks_print_the_aim_that_stands_here(job, place, bench, pattern):
    rows = checks.rows_with_aims(documents.read(BENCHMARKS))[0]
    stated = checks.number_of(rows[job][1].split("/")[place] if " / " in rows[job][1] else rows[job][1])
    found = re.search(pattern, (documents.ROOT / "tests/bench" / bench).read_text(), re.S)
    assert found, f"{bench}: {pattern} is not there"
    assert float(found[1].replace("'", "")) == stated


def test_the_same_fact_has_the_same_number_everywhere(pages):
    assert checks.other_facts(pages, FACTS) == []


def test_one_release_of_mlflow_is_followed(pages):
    followed = re.search(r'kMlflowVersion[^"]*"([\d.]+)"', (documents.ROOT / "base/version.h").read_text())[1]
    named = {(page.path, found) for page in pages for found in re.findall(r"MLflow (3\.\d+\.\d+)(?! to)", page.text)}
    assert len(named) > 5
    assert {found for _, found in named} == {followed}


def test_every_decision_is_listed():
    index = documents.read("docs/decisions/index.md")
    rows = {row[0] for table in index.tables() for row in table.rows}
    for path in sorted((documents.ROOT / "docs/decisions").glob("*.md")):
        if path.name == "index.md":
            continue
        page = documents.read(path.relative_to(documents.ROOT).as_posix())
        assert f"[{page.lines[0].removeprefix('# ')}]({path.name})" in rows, f"{path.name} is not in the index"
        assert re.match(r"\d{4}-\d\d-\d\d · \S", page.lines[2]), f"{page.path}: the third line has no date and place"
        alternatives = page.text.partition("**Alternatives.**")[2].partition("\n\n")[0]
        assert len(alternatives.split()) >= 12, f"{page.path}: it does not say what else was possible, and why not"


# Pages whose words are not looked at yet.
def test_pages_and_descriptions_of_the_api_are_plain_english(pages):
    texts = [(page.path, page.text) for page in pages if not page.path.startswith("tests/")]
    descriptions = [path for part in ("tracker", "tuner") for path in (documents.ROOT / part / "api/openapi").glob("*.yaml")]
    assert len(descriptions) > 10
    texts += [(path.name, path.read_text()) for path in descriptions]
    assert [found for where, text in texts for found in checks.odd_words(where, text)] == []


def test_every_library_in_a_program_has_its_copyright_and_the_text_of_its_licence():
    notices = documents.read("THIRD_PARTY.md")
    tables = list(notices.tables())
    shipped = {re.match(r"\[([^\]]+)\]", row[0])[1] for table in tables[:3] for row in table.rows}
    owners = {row[0]: row for row in next(table.rows for table in tables if table.head[1] == "copyright")}
    assert len(shipped) > 20 and shipped <= set(owners), shipped - set(owners)
    folder = documents.ROOT / "cmake/package/licences"
    texts = {line.removeprefix("### ") for line in notices.lines if line.startswith("### ")}
    texts |= {file.stem.replace("-with-GCC-exception", " with the GCC runtime library exception") for file in folder.iterdir()}
    texts |= {"IJG"}  # its one condition for programs is the sentence in its row
    for name, owner, licence in owners.values():
        assert re.search(r"\d{4}|public domain", owner), name
        for one in re.split(r", | and ", licence):
            assert one in texts or name == "SQLite", f"{name}: the text of {one} is missing"


# Questions of a newcomer, as docs/architecture.md has them, and what must stand in one of the files named for each.
ANSWERS = {
    "limit of a request's body": "kJsonBodyBytesMax",
    "ties of `order_by`": "tie-breakers",
    "grace time": "grace_ms",
    "pruner is added": "TUNE_PRUNERS",
    "learns of a commit": "on_commit",
    "py1e": "shuffle_py1e(",
    "pruned trial counts for TPE": "State::kPruned",
    "sqrt(n)": "sqrt:",
}


def test_a_newcomer_s_questions_are_answered_by_the_files_named():
    page = documents.read("docs/architecture.md")
    rows = next(table.rows for table in page.tables() if table.head == ("question", "open"))
    for about, answer in ANSWERS.items():
        (opened,) = [cell for question, cell in rows if about in question]
        files = re.findall(r"[a-z_]+/[\w/]+\.(?:h|cc|ts)", opened)
        assert 1 <= len(files) <= 2, opened
        assert any(answer in (documents.ROOT / file).read_text() for file in files), f"{about}: {files}"


def test_there_is_one_table_of_a_newcomer_s_questions(pages):
    heads = [(page.path, table.head) for page in pages for table in page.tables() if table.head[0] == "question"]
    assert [path for path, head in heads if head[1] in ("open", "opened")] == ["docs/architecture.md"]

"""What the documents say of commands: verbs and options exist, study files are accepted, and the shell and Python
blocks of the READMEs run as they stand, against a real server."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import checks
import documents
from documents import BIN_DIR, ROOT

PROGRAMS = ("tune", "tune-data", "tune-trainer")

# What stands in the documents and is another thing in a test. The wrapper `tune` (below) adds `--server` where the
# documents rely on the server of port 5000.
SUBSTITUTIONS = {
    "http://127.0.0.1:5000": "{server}",
    "build/release/bin/": "",
}

# Blocks of READMEs that do not run here, by a line of theirs, and why.
NOT_RUN = {
    "README.md": {
        "./examples/quickstart.sh": "tests/examples runs it; tests/run.sh is what runs this",
        "podman build": "tests/package builds and installs the packages",
        "tune agents ls --on slurm": "tests/engines/slurm and tests/e2e/gangs run such agents and scripts",
    },
    "examples/digits/README.md": {
        "tune run examples/digits/study.yaml": "tests/examples runs the same as the quickstart",
        "tune-trainer train": "tests/e2e/test_trainer_training.py trains",
    },
    "examples/sklearn/README.md": {"examples/sklearn/train.py": "tests/examples runs it, minutes long"},
    "examples/pbt/README.md": {"tune run examples/pbt/study.yaml": "runs below, with fewer trials"},
    "loader/python/README.md": {"pip install ./loader/python": "installs into the environment of the tests"},
    "tests/fuzz/README.md": {"fuzz_replay_tests": "tests/run.sh runs it with the unit tests", "-merge=1": "keeps what a long run found"},
}

# Options in inline code may belong to scripts and benchmarks, whose texts are searched for them.
SCRIPTS = ["tests/run.sh", "setup.sh", "examples/quickstart.sh", "tests/bench", "web/measure.mjs", "web/package.json",
           "web/build.mjs", "examples"]
FOREIGN_OPTIONS = {"--args", "--artifacts-only", "--batch", "--default-signal", "--opt"}  # of gdb, MLflow, env, tuned scripts


# --- verbs and options ---------------------------------------------------------------------------


@functools.cache
def help_of(program, verb):
    """The text of --help, None where there is no such verb."""
    if not all(re.fullmatch(r"[a-z][\w-]*", word) for word in verb):
        return None
    done = subprocess.run([BIN_DIR / program, *verb, "--help"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return None
    inner = verb and help_of(program, verb[:-1])
    # A word that is no verb is a positional one, and the help is that of the verb before.
    return None if inner and inner == done.stdout else done.stdout


@pytest.fixture(scope="module")
def programs():
    there = {name: functools.partial(help_of, name) for name in PROGRAMS if (BIN_DIR / name).exists()}
    assert "tune" in there, f"{BIN_DIR} has no tune; build it first"
    return there


def test_help_of_a_word_that_is_no_verb(programs):
    assert help_of("tune", ("ls",)) and help_of("tune", ("alert", "add"))
    assert help_of("tune", ("nosuch",)) is None and help_of("tune", ("alert", "nosuch")) is None


def test_commands_have_the_verbs_and_options_of_help(programs):
    pages = documents.all_documents()
    assert checks.unknown_words(pages, programs) == []


def every_help(programs):
    """(command, text) of all verbs of all programs."""
    for name, ask in programs.items():
        verbs = [()]
        for verb in verbs:  # those of `tune alert` and the like come after it
            text = ask(verb) or ""
            yield " ".join((name, *verb)), text
            if text and len(verb) < 2:
                verbs += [(*verb, word) for word in re.findall(r"^  ([a-z][\w-]+)\s", text, re.M)]


def every_option(programs):
    """Options of all verbs of all programs."""
    return {option for _, text in every_help(programs) for option in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text)}


def test_help_is_plain_english(programs):
    helps = list(every_help(programs))
    assert len(helps) > 50
    assert [found for command, text in helps for found in checks.odd_words(command, text)] == []


def options_of_scripts():
    files = []
    for name in SCRIPTS:
        path = ROOT / name
        files += [path] if path.is_file() else [one for one in sorted(path.rglob("*")) if one.suffix in (".py", ".cc", ".h")]
    return {option for path in files for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", path.read_text())}


OTHER_PROGRAMS = ("hdfs", "mlflow", "sbatch", "systemd-run", "tensorboard")


def unknown_options(pages, known):
    wrong = []
    for page in pages:
        for line, code in page.inline_code():
            if code.split()[:1] and code.split()[0] in OTHER_PROGRAMS:
                continue
            for option in re.findall(r"(?:^|\s)(--[a-z][\w-]*)", code):
                if option not in known:
                    wrong.append(f"{page.path}:{line}: {option} is an option of no program")
    return wrong


def test_options_in_the_text_exist(programs):
    known = every_option(programs)
    assert len(known) > 60
    known |= options_of_scripts() | FOREIGN_OPTIONS
    assert unknown_options([documents.Document("x.md", "`--no-such-option`")], known)
    assert unknown_options(documents.all_documents(), known) == []


def test_every_verb_is_documented(programs):
    verbs = set(re.findall(r"^  ([a-z]+)\s", help_of("tune", ()), re.M))
    assert len(verbs) > 20
    named = set(re.findall(r"`(?:tune )?([a-z]+)", documents.read("docs/command_line.md").text))
    assert verbs - named == set()


def study_files():
    for page in documents.all_documents():
        for fence in page.fences:
            if fence.language == "yaml" and re.search(r"^(space|study|command):", fence.text, re.M):
                yield pytest.param(fence.text, id=f"{page.path}:{fence.line}")


@pytest.mark.parametrize("text", study_files())
def test_study_files_are_accepted(programs, text, tmp_path):
    (tmp_path / "study.yaml").write_text(text)
    done = subprocess.run([BIN_DIR / "tune", "plan", "study.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (tmp_path / "study.yaml").write_text(text.replace("space:", "spaec:", 1))
    assert subprocess.run([BIN_DIR / "tune", "plan", "study.yaml"], cwd=tmp_path, capture_output=True).returncode != 0


# --- blocks that run -----------------------------------------------------------------------------


class Place:
    """A folder with a copy of the examples, a server on ./tune-data, and `tune` on the path."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copy(pathlib.Path(__file__).parent / "train.py", folder)
        (folder / ".venv").symlink_to(sys.prefix)
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("out"))
        self.server = subprocess.Popen([BIN_DIR / "tune", "server", "--port", "0", "--data", folder / "tune-data"],
                                       stdout=subprocess.PIPE, text=True)
        line = self.server.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, f"the server does not say where it listens: {line!r}"
        self.url = found[0].rstrip("/")
        self._make_tune()

    def _make_tune(self):
        """`tune` as a script that gives --server to verbs that take it and got neither it nor a folder."""
        verbs = [verb for verb in re.findall(r"^  ([a-z]+)\s", help_of("tune", ()), re.M)
                 if re.search(r"(?<!\w)--server\b", help_of("tune", (verb,)) or "")]
        assert "best" in verbs and "run" in verbs
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        script = bin_folder / "tune"
        script.write_text(f"""#!/usr/bin/env bash
case " {' '.join(sorted(verbs))} " in *" $1 "*) ;; *) exec {BIN_DIR}/tune "$@" ;; esac
for word in "$@"; do
    [ "$word" = -- ] && break
    case "$word" in --server* | --data*) exec {BIN_DIR}/tune "$@" ;; esac
done
verb=$1
shift
exec {BIN_DIR}/tune "$verb" --server {self.url} "$@"
""")
        script.chmod(0o755)

    def environment(self):
        return {**os.environ, "PATH": f"{self.folder / 'bin'}:{BIN_DIR}:{os.environ['PATH']}", "TUNE_SERVER": self.url,
                "MLFLOW_TRACKING_URI": self.url, "S": self.url, "PYTHONPATH": f"{ROOT / 'clients' / 'python'}:{BIN_DIR.parent / 'python'}",
                "MLFLOW_DISABLE_TELEMETRY": "true", "GIT_PYTHON_REFRESH": "quiet"}

    def run(self, fence, timeout_s=280):
        text = fence.text
        for there, here in SUBSTITUTIONS.items():
            text = text.replace(there, here.format(server=self.url))
        command = [sys.executable, "-c", text] if fence.language == "python" else ["bash", "-euo", "pipefail", "-c", text]
        return subprocess.run(command, cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s)

    def stop(self):
        self.server.terminate()
        assert self.server.wait(60) == 0


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.stop()


def runnable(page):
    """Fences of the page that run here."""
    skipped = NOT_RUN.get(page.path, {})
    for fence in page.fences:
        if fence.language in ("sh", "python") and not any(line in fence.text for line in skipped):
            yield fence


def test_what_does_not_run_is_there():
    for path, lines in NOT_RUN.items():
        texts = [fence.text for fence in documents.read(path).fences]
        for line in lines:
            assert any(line in text for text in texts), f"{path} has no block with '{line}' any more"


def test_the_readme_runs_as_it_stands(place):
    fences = list(runnable(documents.read("README.md")))
    assert [fence.language for fence in fences].count("sh") >= 3
    assert [fence.language for fence in fences].count("python") == 3
    outputs = {}
    for fence in fences:
        done = place.run(fence)
        assert done.returncode == 0, f"README.md:{fence.line}:\n{done.stdout}"
        outputs[fence.text.split()[0] + str(fence.line)] = done.stdout
    said = "\n".join(outputs.values())
    assert "Best trial" in said or "best" in said.lower(), said
    assert (place.folder / "parallel.svg").read_text().startswith("<svg")
    for made in ("out/mlflow.db", "copy/tune.db", "demo.db", "everything.tar", "again/tune.db"):
        assert (place.folder / made).stat().st_size > 0, made


EXAMPLE_PAGES = [page.path for page in documents.readmes() if list(runnable(page))]


def test_some_other_readmes_run():
    assert "examples/data/README.md" in EXAMPLE_PAGES and "examples/pbt/README.md" in EXAMPLE_PAGES


@pytest.mark.parametrize("path", EXAMPLE_PAGES)
def test_the_blocks_of_a_readme_run(place, path):
    for fence in runnable(documents.read(path)):
        if fence.language == "python" and "safetensors" in fence.text:
            compile(fence.text, path, "exec")  # the file that it loads is what a training run left
            continue
        done = place.run(fence)
        assert done.returncode == 0, f"{path}:{fence.line}:\n{done.stdout}"


def test_the_population_of_the_example_runs(place):
    """The command of examples/pbt/README.md, ended after some trials."""
    fence = next(one for one in documents.read("examples/pbt/README.md").fences if "examples/pbt/study.yaml" in one.text)
    shorter = documents.Fence("sh", fence.line, fence.text.replace("tune run", "tune run -n 10"))
    assert shorter.text != fence.text
    done = place.run(shorter)
    assert done.returncode == 0, done.stdout
    assert "Training history" in done.stdout


def test_a_broken_block_fails(place):
    for text in ("tune ls --no-such-option\n", "tune best nosuchstudy\necho done\n", "false | true\n"):
        assert place.run(documents.Fence("sh", 1, text)).returncode != 0, text
    assert place.run(documents.Fence("python", 1, "import tune_client\ntune_client.load_study('nosuch')\n")).returncode != 0


def test_the_shell_worker_of_the_documents_runs(place):
    """The loop in docs/command_line.md, with a `measure` that prints its argument."""
    fence = next(one for one in documents.read("docs/command_line.md").fences if "tune ask" in one.text)
    (place.folder / "measure").write_text("#!/bin/sh\necho $1\n")
    (place.folder / "measure").chmod(0o755)
    make = documents.Fence("sh", 1, """curl -sS --fail-with-body $S/api/2.0/tune/studies -H 'Content-Type: application/json' \\
        -H "Authorization: Bearer $(cat tune-data/token)" -d '{"name": "s", "metric": {"name": "y", "goal": "min"}, "space": {"x": {"float": [0, 1]}}, "budget": {"trials": 4}}'
""")
    done = place.run(make)
    assert done.returncode == 0, done.stdout
    place.run(fence)
    shown = place.run(documents.Fence("sh", 1, "tune show s --json\n"))
    assert shown.stdout.count('"complete"') >= 4, shown.stdout


def test_the_program_that_leaves_a_model_runs(place):
    """The block of docs/logged_models.md as a trial: its model is logged, and loads."""
    fence = next(one for one in documents.read("docs/logged_models.md").fences if one.language == "python")
    (place.folder / "leaves.py").write_text(fence.text)
    load = ('import mlflow, numpy\nmodel, = mlflow.search_logged_models(experiment_ids=["1"], output_format="list")\n'
            'assert model.status.value == "READY"\n'
            'print("predicts", mlflow.pyfunc.load_model("models:/" + model.model_id).predict(numpy.array([[0.0]])))\n')
    done = place.run(documents.Fence("sh", 1, "tune run -n 1 -m loss:min --study leaves x=0..1 -- .venv/bin/python leaves.py\n"))
    assert done.returncode == 0, done.stdout
    loaded = place.run(documents.Fence("python", 1, load))
    assert loaded.returncode == 0 and "predicts" in loaded.stdout, loaded.stdout


def test_the_rest_calls_of_the_documents_work(place):
    """The block of docs/rest_api.md, each call with the headers that the page names."""
    fence = next(one for one in documents.read("docs/rest_api.md").fences if "/ask" in one.text)
    headers = "-H 'Content-Type: application/json' -H \"Authorization: Bearer $(cat tune-data/token)\""
    text = fence.text.replace("curl -s ", f"curl -sS --fail-with-body {headers} ")
    assert text.count("--fail-with-body") == 5
    done = place.run(documents.Fence("sh", fence.line, text))
    assert done.returncode == 0, done.stdout
    assert place.run(documents.Fence("sh", 1, text.replace('"value": 0.25', '"valeu": 0.25'))).returncode != 0


def test_backup_and_collection_run_as_the_documents_say(place):
    page = documents.read("docs/operating.md")
    for words in ("tune backup", "tune gc"):
        fence = next(one for one in page.fences if words in one.text)
        text = fence.text.replace("/backups/", "./").replace("/srv/tune", "tune-data").replace("/srv/other", "other")
        done = place.run(documents.Fence("sh", fence.line, text))
        assert done.returncode == 0, f"{page.path}:{fence.line}:\n{done.stdout}"

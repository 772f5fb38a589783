"""Files of others that a new user hands to `tune import`, and a server that stands in the way."""

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from study_support import OK, USAGE, tune, tune_json

optuna.logging.set_verbosity(optuna.logging.ERROR)


def fill(storage, trials=1):
    study = optuna.create_study(study_name="theirs", storage=storage)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=trials)
    return study


def test_a_file_of_optuna_is_recognised(tmp_path):
    fill(f"sqlite:///{tmp_path}/study.db")
    done = tune("import", "study.db", cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    assert done.stdout.startswith("Imported 1 trial as the study theirs\n")
    tune_json("import", "study.db", "--as", "again", cwd=tmp_path)
    assert tune_json("show", "again", cwd=tmp_path)["study"]["counts"]["complete"] == 1
    assert tune("export", "out.db", "--optuna", "theirs", cwd=tmp_path).stdout.startswith("Exported 1 trial of theirs to out.db\n")


def test_a_journal_of_optuna_is_recognised_and_the_way_in_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(JournalStorage(JournalFileBackend("journal.log")), trials=2)
    for words in ([], ["--optuna"]):
        refused = tune("import", "journal.log", *words, cwd=tmp_path)
        assert refused.returncode == USAGE and "'journal.log' is a journal file of Optuna" in refused.stderr
    script = refused.stderr.partition("with Python:\n")[2].partition("and import that: ")
    code = "\n".join(line.strip() for line in script[0].splitlines()).replace("NAME", "theirs")
    exec(code, {})
    imported = tune(*script[2].split()[1:], cwd=tmp_path)
    assert imported.returncode == OK and "Imported 2 trials as the study theirs\n" in imported.stdout


@pytest.mark.parametrize("text", [b"", b"{", b'{"op_code"', b"SQLite format 3\0 and no more", b'{"a": 1}\n{"op_code": 0}\n'])
def test_other_files_are_not_taken_for_optunas(tmp_path, text):
    (tmp_path / "file").write_bytes(text)
    done = tune("import", "file", cwd=tmp_path)
    assert done.returncode != OK
    assert ("journal" in done.stderr) == (b'{"op_code"' == text)

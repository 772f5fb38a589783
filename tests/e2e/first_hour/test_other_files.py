"""Files of others that a new user hands to `tune import`, and a server that stands in the way."""

import json

import mlflow
import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from study_support import OK, USAGE, call, server, tune, tune_json, wait_until

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


# --- a server that holds the folder --------------------------------------------------------------


def mlflow_file(folder, monkeypatch):
    """An mlflow.db with one run, its point and its artifact, as a script without a server leaves them."""
    monkeypatch.chdir(folder)
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    run = client.create_run(client.create_experiment("came along")).info.run_id
    client.log_metric(run, "loss", 0.25, step=3)
    client.log_text(run, "kept", "note.txt")
    client.set_terminated(run)
    return run


def test_an_import_goes_through_the_server_that_holds_the_folder(tmp_path, monkeypatch):
    (tmp_path / "theirs").mkdir()
    run = mlflow_file(tmp_path / "theirs", monkeypatch)
    with server(tmp_path) as (_, url):
        client = mlflow.MlflowClient(tracking_uri=url)
        before = client.create_run("0").info.run_id
        done = tune("import", "theirs/mlflow.db", cwd=tmp_path)
        assert done.returncode == OK, done.stderr
        assert "-> " in done.stdout and done.stdout.endswith("Verified: everything reads back as in the source.\n")
        assert client.get_run(run).data.metrics == {"loss": 0.25}
        path = client.download_artifacts(run, "note.txt", str(tmp_path))
        assert open(path).read() == "kept" and client.get_run(before).info.status == "RUNNING"
        again = tune_json("import", "sqlite:///theirs/mlflow.db", cwd=tmp_path)
        assert again["runs_unchanged"] == 1 and again["verified"] is True
        refused = tune("import", "nowhere.db", cwd=tmp_path)
        assert refused.returncode == USAGE and "there is no '" in refused.stderr
        assert not any((tmp_path / "tune-data" / "imports").iterdir())
        assert tune("import", "theirs/mlflow.db", "--artifacts", "move", cwd=tmp_path).returncode == USAGE
        named = tune("import", "mlflow.db", "--server", url, "--json", cwd=tmp_path / "theirs")
        assert named.returncode == OK and json.loads(named.stdout)["runs_unchanged"] == 1, named.stderr
        both = tune("import", "theirs/mlflow.db", "--server", url, "--data", "tune-data", cwd=tmp_path)
        assert both.returncode == USAGE
        monkeypatch.setenv("TUNE_RUNTIME_DIR", str(tmp_path / "nobody"))
        elsewhere = tune("import", "theirs/mlflow.db", "--server", url, cwd=tmp_path)
        assert elsewhere.returncode == USAGE and "run `tune import` where that folder is, with --data" in elsewhere.stderr


def test_runs_without_artifacts_leave_nothing_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    run = client.create_run(client.create_experiment("plain")).info.run_id
    client.log_metric(run, "loss", 0.25)
    assert not (tmp_path / "mlruns").exists(), "MLflow makes it with the first artifact"
    done = tune("import", "mlflow.db", cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    assert "left out" not in done.stdout and done.stdout.endswith("Verified: everything reads back as in the source.\n")


def test_the_server_imports_only_what_lies_in_its_folder(tmp_path):
    with server(tmp_path) as (_, url):
        for name in ("../../theirs/mlflow", "x", "", None, "A" * 32, ["0" * 32]):
            status, answer = call(url, "/api/2.0/tune/imports", {"request": name})
            assert status == 400 and "'request' must be" in answer["message"], name
        call(url, "/api/2.0/tune/imports", {"request": "0" * 32})
        job = wait_until(lambda: (lambda job: None if job["is_running"] else job)(call(url, "/api/2.0/tune/job")[1]["job"]), "the job ends")
        assert job["kind"] == "import" and "error" in job


def test_a_study_of_optuna_goes_through_the_server_that_holds_the_folder(tmp_path):
    fill(f"sqlite:///{tmp_path}/study.db", trials=2)
    with server(tmp_path) as (_, url):
        done = tune("import", "study.db", cwd=tmp_path)
        assert done.returncode == OK and "Imported 2 trials as the study theirs\n" in done.stdout, done.stderr
        twice = tune("import", "study.db", cwd=tmp_path)
        assert twice.returncode != OK and "there is a study 'theirs' already" in twice.stderr and "--as" in twice.stderr
        again = tune_json("import", "study.db", "--as", "again", cwd=tmp_path)
        assert again["study"] == "again" and again["trials"] == 2
        for name in ("theirs", "again"):
            shown = tune_json("show", name, "--server", url, cwd=tmp_path)
            assert [trial["state"] for trial in shown["trials"]] == ["complete"] * 2
            assert call(url, f"/api/2.0/tune/studies/{name}")[1]["state"] == "paused"
        # It is one of the server's: it can be asked for its next trial.
        assert call(url, "/api/2.0/tune/studies/again/resume", {})[0] == 200
        status, answer = call(url, "/api/2.0/tune/studies/again/ask", {})
        assert status == 200 and answer["trials"][0]["number"] == 2
        runs = mlflow.MlflowClient(tracking_uri=url).search_runs(
            [mlflow.MlflowClient(tracking_uri=url).get_experiment_by_name("again").experiment_id])
        assert len(runs) == 4, "the study, two trials of Optuna and one of ours"
        assert not any((tmp_path / "tune-data" / "imports").iterdir())
    with server(tmp_path) as (_, url):  # and after a restart
        assert {study["name"] for study in call(url, "/api/2.0/tune/studies")[1]["studies"]} == {"theirs", "again"}


def test_a_source_that_is_none_makes_no_folder(tmp_path):
    assert tune("import", "nowhere.db", cwd=tmp_path).returncode == USAGE
    assert not any(tmp_path.iterdir())


def test_a_backup_of_a_server(tmp_path):
    with server(tmp_path) as (_, url):
        client = mlflow.MlflowClient(tracking_uri=url)
        run = client.create_run("0").info.run_id
        client.log_text(run, "kept", "note.txt")
        made = json.loads(tune("backup", "all.backup", "--server", url, "--with-artifacts", "--json", cwd=tmp_path).stdout)
        assert made["file"] == "all.backup" and made["size_bytes"] == (tmp_path / "all.backup").stat().st_size
        assert made["artifacts"] == 1
        assert call(url, "/api/2.0/tune/backups")[1] == {"backups": []}, "the server's copy is gone"
        again = tune("backup", "all.backup", "--server", url, cwd=tmp_path)
        assert again.returncode != OK and "'all.backup' is there already" in again.stderr
        said = tune("backup", "one.backup", "--server", url, cwd=tmp_path)
        assert said.returncode == OK and ", 0 artifacts, SHA-256 " in said.stdout
        both = tune("backup", "two.backup", "--server", url, "--data", "tune-data", cwd=tmp_path)
        assert both.returncode == USAGE
    assert sorted(path.name for path in tmp_path.glob("*.backup*")) == ["all.backup", "one.backup"]
    restored = tune("restore", "all.backup", "--data", "again", cwd=tmp_path)
    assert restored.returncode == OK and restored.stdout.endswith(" with 1 artifact\n")
    assert (tmp_path / "again" / "artifacts" / "0" / run / "artifacts" / "note.txt").read_text() == "kept"
    assert tune("backup", "x", "--server", "http://127.0.0.1:9", cwd=tmp_path).returncode != OK

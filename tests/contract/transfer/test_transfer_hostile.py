"""tune import of what is no store, of damaged files, and of files made to do harm: a clear sentence each."""

import os
import sqlite3

import pytest
from transfer_support import tune, tune_json

RUN = "0123456789abcdef0123456789abcdef"


def make_db(path, artifact_uri="", run_id=RUN, script=""):
    """The least that MLflow's oldest schemas have: no lifecycle, no step, no NaN flag."""
    connection = sqlite3.connect(path)
    connection.executescript("""
        CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name TEXT, artifact_location TEXT);
        CREATE TABLE runs (run_uuid TEXT PRIMARY KEY, name TEXT, status TEXT, start_time BIGINT, artifact_uri TEXT,
                           experiment_id INTEGER);
        CREATE TABLE metrics (key TEXT, value FLOAT, timestamp BIGINT, run_uuid TEXT);
        CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
        CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
    """)
    connection.execute("INSERT INTO experiments VALUES (1, 'old', '')")
    connection.execute("INSERT INTO runs VALUES (?, 'r', 'FINISHED', 5, ?, 1)", (run_id, artifact_uri))
    connection.execute("INSERT INTO metrics VALUES ('m', 1.5, 7, ?)", (run_id,))
    connection.executescript(script)
    connection.commit()
    connection.close()
    return path


def make_mlruns(folder, run_id=RUN, meta=None, metric="1 0.5 0\n"):
    run = folder / "0" / run_id
    (run / "metrics").mkdir(parents=True)
    (run / "params").mkdir()
    (folder / "0" / "meta.yaml").write_text("experiment_id: '0'\nname: Default\nlifecycle_stage: active\n"
                                            "artifact_location: file:///x/mlruns/0\n")
    (run / "meta.yaml").write_text(meta or f"run_id: {run_id}\nrun_name: r\nstatus: 3\nexperiment_id: '0'\n"
                                   "start_time: 1\nend_time: null\nlifecycle_stage: active\n"
                                   f"artifact_uri: file:///x/mlruns/0/{run_id}/artifacts\n")
    (run / "metrics" / "m").write_text(metric)
    return run


def refused(tmp_path, source, *words, code=2):
    done = tune("import", source, "--data", tmp_path / "data", code=code)
    for word in words:
        assert word in done.stderr, done.stderr
    return done


def runs_of(data):
    connection = sqlite3.connect(f"file:{data}/tune.db?mode=ro", uri=True)
    try:
        return connection.execute("SELECT run_id, life FROM runs").fetchall()
    finally:
        connection.close()


def test_the_oldest_schema_is_read(tmp_path):
    report = tune_json("import", make_db(tmp_path / "old.db"), "--data", tmp_path / "data")
    assert report["verified"] and report["read_back"]["metric_points"] == 1


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0", os.urandom(5000)])
def test_what_is_no_database(tmp_path, content):
    (tmp_path / "x.db").write_bytes(content)
    refused(tmp_path, tmp_path / "x.db", "is not an SQLite database", "name an mlflow.db")


def test_what_is_not_there_and_what_is_not_mlflows(tmp_path):
    refused(tmp_path, tmp_path / "nothing", "there is no")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (a)").connection.close()
    refused(tmp_path, tmp_path / "other.db", "not a database of MLflow")
    (tmp_path / "empty").mkdir()
    refused(tmp_path, tmp_path / "empty", "holds no experiments")
    refused(tmp_path, "https://127.0.0.1:1", "cannot be reached", code=1)
    refused(tmp_path, "http://127.0.0.1:1", "cannot be reached", code=1)


def test_a_truncated_or_damaged_file(tmp_path):
    whole = make_db(tmp_path / "whole.db", script="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                    f"WHERE i < 20000) INSERT INTO metrics SELECT 'k' || i, i, i, '{RUN}' FROM n;").read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[:len(whole) // 2])
    refused(tmp_path, tmp_path / "cut.db", "damaged", code=1)
    damaged = bytearray(whole)
    for at in range(9 * 4096, 12 * 4096):
        damaged[at] = 0xA5
    (tmp_path / "bad.db").write_bytes(damaged)
    refused(tmp_path, tmp_path / "bad.db", "damaged", code=1)
    assert not (tmp_path / "data" / "tune.db").exists() or runs_of(tmp_path / "data") == []


def test_views_and_virtual_tables_are_not_asked(tmp_path):
    connection = sqlite3.connect(tmp_path / "view.db")
    connection.executescript("CREATE TABLE experiments (experiment_id INTEGER, name TEXT);"
                             "CREATE VIEW runs AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                             "SELECT i AS run_uuid, 1 AS experiment_id FROM n;")
    connection.close()
    refused(tmp_path, tmp_path / "view.db", "it has no runs.run_uuid")


def test_a_journal_that_was_left_behind(tmp_path):
    make_db(tmp_path / "x.db")
    (tmp_path / "x.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\0" * 600)
    refused(tmp_path, tmp_path / "x.db", "-journal", "was interrupted")


def test_artifacts_elsewhere_on_the_machine_are_not_read(tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("secret")
    for i, uri in enumerate([str(secret), secret.as_uri(), f"{tmp_path}/mlruns/../secret", "mlflow-artifacts:/../secret",
                             "file:" + str(secret), "../secret", "mlflow-artifacts:/x/%2e%2e/%2e%2e/secret"]):
        (tmp_path / "mlruns").mkdir(exist_ok=True)
        (tmp_path / "mlartifacts").mkdir(exist_ok=True)
        data = tmp_path / f"data{i}"
        report = tune_json("import", make_db(tmp_path / f"x{i}.db", artifact_uri=uri), "--data", data)
        assert report["artifacts"] == 0, uri
        assert not list((data / "artifacts").rglob("key.txt")), uri
    report = tune_json("import", make_db(tmp_path / "y.db", artifact_uri=str(secret)), "--data", tmp_path / "allowed",
                       "--artifact-root", secret)
    assert report["artifacts"] == 1


def test_links_are_not_followed(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    run = make_mlruns(tmp_path / "mlruns")
    (run / "artifacts").mkdir()
    (run / "artifacts" / "good.txt").write_text("good")
    (run / "artifacts" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (run / "artifacts" / "folder").symlink_to(tmp_path)
    (run / "params" / "stolen").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "mlruns" / "7").symlink_to(tmp_path)
    os.mkfifo(run / "artifacts" / "pipe")
    report = tune_json("import", tmp_path / "mlruns", "--data", tmp_path / "data")
    assert report["verified"] and report["artifacts"] == 1 and report["artifacts_left_out"]["count"] == 3
    assert report["read_back"]["params"] == 0
    kept = [path.read_text() for path in (tmp_path / "data" / "artifacts").rglob("*") if path.is_file()]
    assert kept == ["good"]


@pytest.mark.parametrize("run_id", ["..", "a/../../b", "x\ny", "", "r" * 300, "%2e%2e", ".hidden"])
def test_ids_that_could_be_paths(tmp_path, run_id):
    report = tune_json("import", make_db(tmp_path / "x.db", run_id=run_id), "--data", tmp_path / "data", code=1)
    assert report["failed"]["count"] == 1 and report["read_back"]["runs"] == 0
    assert runs_of(tmp_path / "data") == []


BOMB = "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c]\n"


@pytest.mark.parametrize("meta, word", [
    (BOMB, "anchors"), ("[" * 100_000, ""), ("{" * 100_000, ""), ("status: 99\n", "status"), ("\0\0\0", ""), ("", ""),
    ("just text", ""), ("- 1\n- 2\n", "map"), ("status: [1, 2\n", "")])
def test_yaml_that_is_none(tmp_path, meta, word):
    make_mlruns(tmp_path / "mlruns", meta=meta or "\n")
    make_mlruns(tmp_path / "mlruns2", run_id="f" * 32)
    os.rename(tmp_path / "mlruns2" / "0" / ("f" * 32), tmp_path / "mlruns" / "0" / ("f" * 32))
    report = tune_json("import", tmp_path / "mlruns", "--data", tmp_path / "data", code=1)
    assert report["failed"]["count"] == 1 and word in report["failed"]["first"][0]
    assert runs_of(tmp_path / "data") == [("f" * 32, 0)]


@pytest.mark.parametrize("metric", ["1 0.5\n2 x 3\n", "1\n", "1 2 3 4\n", "99999999999999999999 1 1\n", "1 0x10 1\n"])
def test_metric_lines_that_are_none(tmp_path, metric):
    make_mlruns(tmp_path / "mlruns", metric=metric)
    report = tune_json("import", tmp_path / "mlruns", "--data", tmp_path / "data", code=1)
    assert report["failed"]["count"] == 1 and "line" in report["failed"]["first"][0]
    assert [life for _, life in runs_of(tmp_path / "data")] in ([], [1])


def test_lines_and_values_without_an_end(tmp_path):
    """1 GB each, as holes: read piece by piece and refused at the limit, in little memory."""
    run = make_mlruns(tmp_path / "mlruns")
    for path in (run / "metrics" / "endless", run / "params" / "endless"):
        with open(path, "wb") as file:
            file.truncate(1 << 30)
        done = tune("import", tmp_path / "mlruns", "--data", tmp_path / path.parent.name, "--json", code=1,
                    preexec_fn=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_AS,
                                                                        (900 << 20, 900 << 20)))
        assert "longer than" in done.stdout or "larger than" in done.stdout
        path.unlink()


def test_points_that_are_there_twice_or_out_of_order_or_infinite(tmp_path):
    lines = "5 1.0 2\n5 1.0 2\n1 nan 0\n3 inf 1\n2 -inf 1\n1 nan 0\n\n9 -0.0 7\r\n"
    make_mlruns(tmp_path / "mlruns", metric=lines)
    report = tune_json("import", tmp_path / "mlruns", "--data", tmp_path / "data")
    assert report["verified"] and report["read_back"]["metric_points"] == 5


def test_text_that_is_not_utf8(tmp_path):
    run = make_mlruns(tmp_path / "mlruns")
    (run / "params" / "p").write_bytes(b"good \xff\xfe\0 bad")
    (run / "tags").mkdir(exist_ok=True)
    (run / "tags" / "t").write_bytes(b"\xc3")
    said = tune("import", tmp_path / "mlruns", "--data", tmp_path / "text").stdout
    assert "\n2 texts were not UTF-8 and were changed: " in said
    assert said.endswith("Verified except for the changed texts: everything else reads back as in the source.\n")
    for _ in range(2):  # the second finds it unchanged, and is no more equal
        report = tune_json("import", tmp_path / "mlruns", "--data", tmp_path / "data")
        assert not report["verified"] and report["texts_changed"] == 2
        assert report["read_back"] == report["source"] and report["mismatches"]["count"] == 0
    connection = sqlite3.connect(tmp_path / "data" / "tune.db")
    assert connection.execute("SELECT value FROM params").fetchall() == [("good ��\0 bad",)]

"""tune import: what real MLflow stored reads the same through MLflow's client after the move."""

import contextlib
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess

import pytest
from tls_front import Authority, TlsFront
from transfer_support import (TUNE, assert_same, client_of, fill, mlflow_server, read_all, tree_state, tune,
                              tune_json)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A stopped MLflow server's folder with everything in it, and what its client read; also moved while it ran."""
    import mlflow

    folder = tmp_path_factory.mktemp("mlflow")
    with mlflow_server(folder) as url:
        client = mlflow.MlflowClient(url, registry_uri=url)
        experiments = fill(client, mlflow)
        record = read_all(client, mlflow, tmp_path_factory.mktemp("scratch"))
        remote = tmp_path_factory.mktemp("remote") / "data"
        report = tune_json("import", url, "--data", remote)
        authority = Authority(tmp_path_factory.mktemp("authority"))
        with TlsFront(url, authority.issue("front")) as front:
            secured = tmp_path_factory.mktemp("secured") / "data"
            trusting = {**os.environ, "MLFLOW_TRACKING_SERVER_CERT_PATH": str(authority.file)}
            assert tune_json("import", front.url, "--data", secured, env=trusting)["verified"]
    yield {"folder": folder, "db": folder / "mlflow.db", "record": record, "experiments": experiments,
           "remote": remote, "remote_report": report, "secured": secured}
    mlflow.set_tracking_uri(None)


def read_ours(data, tmp_path):
    import mlflow

    with client_of(data) as client:
        return read_all(client, mlflow, tmp_path / "ours")


def test_sqlite_reads_the_same_and_is_left_as_it_was(source, tmp_path):
    before = tree_state(source["folder"])
    report = tune_json("import", source["db"], "--data", tmp_path / "data")
    assert report["verified"] and report["source"] == report["read_back"]
    assert report["failed"]["count"] == 0 and report["artifacts_left_out"]["count"] == 0
    assert report["mapped_experiments"] == []
    assert tree_state(source["folder"]) == before
    assert_same(source["record"], read_ours(tmp_path / "data", tmp_path))


# The heads of mlflow 3.11.1's schema and of each migration since then.
SCHEMAS = ["c3d6457b6d8a", "a5b4c3d2e1f0", "ae8bbe7743c9", "7d34483879f0", "da6fb0208061", "89d3d66ed43f",
           "b7e4c1a90f23", "a8b9c0d1e2f3", "c1d2e3f4a5b6", "c3d9e7f1a2b4", "6f8d9c3b2a1e", "1971f2d9a75b",
           "17e22815139b", "b7e2c1a4d9f3", "75868b020152", "dc11669786a5"]


def bring_to(revision, path):
    """As `mlflow db upgrade` does, up to this revision; a new database begins as MLflow's do."""
    import alembic.command
    import sqlalchemy
    from mlflow.store.db.utils import _get_alembic_config
    from mlflow.store.tracking.dbmodels.initial_models import Base

    if not path.exists():
        engine = sqlalchemy.create_engine(f"sqlite:///{path}")
        Base.metadata.create_all(engine)
        engine.dispose()
    alembic.command.upgrade(_get_alembic_config(f"sqlite:///{path}"), revision)


def copy_rows(source, path):
    """The rows of a database into one with an older schema, as far as that has columns for them."""
    db = sqlite3.connect(f"file:{path}", uri=True)
    db.execute("ATTACH ? AS source", (f"file:{source}?mode=ro",))
    columns = lambda schema, table: [row[1] for row in db.execute(f"PRAGMA {schema}.table_info('{table}')")]
    tables = db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'alembic%'")
    for (table,) in tables.fetchall():
        shared = ", ".join(f'"{name}"' for name in columns("main", table) if name in columns("source", table))
        if shared:
            db.execute(f"DELETE FROM main.'{table}'")
            db.execute(f"INSERT INTO main.'{table}' ({shared}) SELECT {shared} FROM source.'{table}'")
    db.commit()
    db.close()


def test_schemas_of_3_11_to_3_17_read_the_same(source, tmp_path):
    expected = tune_json("import", source["db"], "--data", tmp_path / "data")["source"]
    shutil.copytree(source["folder"], tmp_path / "old", ignore=shutil.ignore_patterns("mlflow.db*"))
    path = tmp_path / "old" / "mlflow.db"
    for revision in SCHEMAS:
        bring_to(revision, path)
        if revision == SCHEMAS[0]:
            copy_rows(source["db"], path)
        with sqlite3.connect(path) as db:
            assert db.execute("SELECT version_num FROM alembic_version").fetchall() == [(revision,)]
        data = tmp_path / revision
        report = tune_json("import", path, "--data", data, "--artifact-root", source["folder"])
        assert report["verified"] and report["source"] == report["read_back"] == expected, revision
        assert report["failed"]["count"] == 0 and report["artifacts_left_out"]["count"] == 0, revision
    for revision in (SCHEMAS[0], SCHEMAS[-1]):
        assert_same(source["record"], read_ours(tmp_path / revision, tmp_path / f"read {revision}"))


def test_remote_reads_the_same(source, tmp_path):
    assert source["remote_report"]["verified"]
    assert_same(source["record"], read_ours(source["remote"], tmp_path))


def test_remote_behind_tls_reads_the_same(source, tmp_path):
    assert_same(source["record"], read_ours(source["secured"], tmp_path))


def test_a_second_import_moves_nothing_twice(source, tmp_path):
    first = tune_json("import", source["db"], "--data", tmp_path / "data")
    second = tune_json("import", source["db"], "--data", tmp_path / "data")
    assert second["verified"] and second["read_back"] == first["read_back"]
    assert second["runs_unchanged"] == first["source"]["runs"] and second["artifacts_new"] == 0


@pytest.mark.parametrize("more, is_shown", [((), True), (("--quiet",), False)])
def test_a_terminal_sees_how_far_the_import_is(source, tmp_path, more, is_shown):
    ours, terminal = pty.openpty()
    process = subprocess.Popen([TUNE, "import", source["db"], "--data", tmp_path / "data", *more], stdin=terminal,
                               stdout=subprocess.DEVNULL, stderr=terminal, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    seen = b""
    with contextlib.suppress(OSError):  # what reading gives once nobody holds the other side
        while piece := os.read(ours, 65536):
            seen += piece
    os.close(ours)
    assert process.wait(60) == 0
    bars = re.findall(r"\r\x1b\[K\w+ ([━─]+) (\d+)/(\d+) runs  \d+ points", seen.decode())
    assert bool(bars) == is_shown, seen
    for bar, done, total in bars:
        assert len(bar) == 24 and int(done) <= int(total), bars
    assert not is_shown or seen.endswith(b"\r\x1b[K"), "the bar goes when the import has ended"

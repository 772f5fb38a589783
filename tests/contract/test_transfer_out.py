"""tune export: what a tune server holds reads the same from the mlflow.db through real MLflow, and back again."""

import json
import os
import re
import shutil
import sqlite3
import subprocess

import pytest
from conftest import Server
from transfer_support import (TUNE, assert_same, client_of, fill, mlflow_server, read_all, tree_state, tune, tune_json)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """A tune server that runs, filled by the real client; and what that client reads of it."""
    import mlflow

    data = tmp_path_factory.mktemp("ours") / "data"
    server = Server(data)
    client = mlflow.MlflowClient(server.url, registry_uri=server.url)
    fill(client, mlflow)
    record = read_all(client, mlflow, tmp_path_factory.mktemp("scratch"))
    yield {"data": data, "record": record, "server": server, "client": client}
    server.stop()
    mlflow.set_tracking_uri(None)


def without_artifacts(record):
    for kind in ("runs", "models"):
        for one in record[kind].values():
            one.pop("artifacts", None)
    return record


def test_the_file_opens_in_mlflow_and_reads_the_same(ours, tmp_path):
    """Exported while the server runs; opened by MLflow's own store, which checks the schema's head."""
    import mlflow

    report = tune_json("export", tmp_path / "out.db", "--data", ours["data"], "--local-uris")
    assert report["verified"] and report["source"] == report["read_back"]
    uri = f"sqlite:///{tmp_path}/out.db"
    client = mlflow.MlflowClient(uri, registry_uri=uri)
    assert_same(ours["record"], read_all(client, mlflow, tmp_path / "scratch"))
    assert sqlite3.connect(tmp_path / "out.db").execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert sqlite3.connect(tmp_path / "out.db").execute("PRAGMA foreign_key_check").fetchall() == []
    run = client.create_run("0")  # it can be written too
    client.log_metric(run.info.run_id, "m", 1.0)
    assert client.get_run(run.info.run_id).data.metrics == {"m": 1.0}


def test_a_real_server_serves_the_folder_with_its_artifacts(ours, tmp_path):
    import mlflow

    tune("export", tmp_path / "out", "--data", ours["data"])
    with mlflow_server(tmp_path / "out") as url:
        client = mlflow.MlflowClient(url, registry_uri=url)
        assert_same(ours["record"], read_all(client, mlflow, tmp_path / "scratch"))


def test_out_and_in_again_is_the_same(ours, tmp_path):
    import mlflow

    tune("export", tmp_path / "out", "--data", ours["data"])
    before = tree_state(tmp_path / "out")
    report = tune_json("import", tmp_path / "out" / "mlflow.db", "--data", tmp_path / "again")
    assert report["verified"] and report["mapped_experiments"] == []
    assert tree_state(tmp_path / "out") == before
    with client_of(tmp_path / "again") as client:
        assert_same(ours["record"], read_all(client, mlflow, tmp_path / "scratch"))


def clauses(sql):
    """A statement without spaces: its start, its columns in order, and the constraints sorted.

    Alembic copies a table's constraints out of a set, so real MLflow writes them in an order that differs
    from process to process.
    """
    start, _, body = sql.partition("(")
    if not start.startswith("CREATETABLE"):
        return sql
    parts, depth = [""], 0
    for letter in body.removesuffix(")"):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    is_constraint = re.compile(r"CONSTRAINT|CHECK\(|FOREIGNKEY\(|PRIMARYKEY\(|UNIQUE\(").match
    return (start, [part for part in parts if not is_constraint(part)],
            sorted(part for part in parts if is_constraint(part)))


def test_the_schema_is_the_one_that_mlflow_makes(tmp_path):
    """All 65 tables with their indexes and triggers, not just the ones that are filled."""
    import mlflow

    (tmp_path / "data").mkdir()
    with client_of(tmp_path / "data"):
        pass
    tune("export", tmp_path / "out.db", "--data", tmp_path / "data")
    uri = f"sqlite:///{tmp_path}/real.db"
    mlflow.MlflowClient(uri, registry_uri=uri).search_experiments()

    def schema(path):
        rows = sqlite3.connect(path).execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {(kind, name): clauses("".join(sql.split())) for kind, name, sql in rows}

    assert schema(tmp_path / "out.db") == schema(tmp_path / "real.db")
    heads = [sqlite3.connect(tmp_path / name).execute("SELECT * FROM alembic_version").fetchall()
             for name in ("out.db", "real.db")]
    assert heads[0] == heads[1]


def test_nothing_is_overwritten_or_left_half(ours, tmp_path):
    (tmp_path / "there.db").write_text("mine")
    done = tune("export", tmp_path / "there.db", "--data", ours["data"], code=1)
    assert "is there already" in done.stderr and (tmp_path / "there.db").read_text() == "mine"
    done = tune("export", tmp_path / "x.db", "--data", tmp_path / "nothing", code=1)
    assert "no tune.db" in done.stderr and not (tmp_path / "x.db").exists()
    assert list(tmp_path.glob(".*exporting*")) == []

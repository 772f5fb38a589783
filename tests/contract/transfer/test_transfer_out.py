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
    assert (tmp_path / "out/mlartifacts").is_dir()
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".artifact.uploading")]
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


def names_in(client):
    from mlflow.entities import ViewType

    return {one.experiment_id: (one.name, one.lifecycle_stage)
            for one in client.search_experiments(view_type=ViewType.ALL)}


def test_a_name_that_was_given_again_after_a_deletion(tmp_path):
    """MLflow's database has one experiment of a name, deleted ones counted; the store only one that is active."""
    import mlflow

    with client_of(tmp_path / "data") as client:
        first = client.create_experiment("q", tags={"which": "first"})
        run = client.create_run(first, run_name="of the first").info.run_id
        client.log_metric(run, "m", 1.0)
        client.delete_experiment(first)
        second = client.create_experiment("q")
        client.delete_experiment(second)
        third = client.create_experiment("q")
        renamed = client.create_experiment("to be renamed")
        gone = client.create_experiment("z")
        client.delete_experiment(gone)
        client.rename_experiment(renamed, "z")
        taken = client.create_experiment(f"z (deleted {gone})")
        only = client.create_experiment("deleted alone")
        client.delete_experiment(only)
        for name in ("reg", "other"):
            client.create_registered_model(name, description="old")
            client.create_model_version(name, "s3://b/old")
            client.delete_registered_model(name)
        client.create_registered_model("reg", description="new")
        client.create_model_version("reg", "s3://b/new")
        client.rename_registered_model("reg", "other")
        client.create_registered_model("reg", description="third")
        remote = tune_json("import", client.tracking_uri, "--data", tmp_path / "rest")
        assert remote["verified"] and {one["to_name"] for one in remote["mapped_experiments"]} == {
            "q (imported)", "q (imported 2)", "z (imported)"}
    uri = f"sqlite:///{tmp_path}/out.db"
    report = tune_json("export", tmp_path / "out.db", "--data", tmp_path / "data")
    assert report["verified"] and report["source"] == report["read_back"]
    assert {(one["from"], one["from_name"], one["to"], one["to_name"]) for one in report["mapped_experiments"]} == {
        (first, "q", first, f"q (deleted {first})"), (second, "q", second, f"q (deleted {second})"),
        (gone, "z", gone, f"z (deleted {gone}, 2)")}
    client = mlflow.MlflowClient(uri, registry_uri=uri)
    expected = {"0": ("Default", "active"), first: (f"q (deleted {first})", "deleted"),
                second: (f"q (deleted {second})", "deleted"), third: ("q", "active"), renamed: ("z", "active"),
                gone: (f"z (deleted {gone}, 2)", "deleted"), taken: (f"z (deleted {gone})", "active"),
                only: ("deleted alone", "deleted")}
    assert names_in(client) == expected
    assert {one.name: one.description for one in client.search_registered_models()} == {"other": "new", "reg": "third"}
    assert client.get_model_version("other", "1").source == "s3://b/new"
    client.restore_experiment(first)
    assert client.get_experiment(first).tags["which"] == "first"
    assert client.get_run(run).data.metrics == {"m": 1.0}
    said = tune("export", tmp_path / "text.db", "--data", tmp_path / "data").stdout
    assert f"experiment {first} 'q' became {first} 'q (deleted {first})': the id or name was taken" in said
    report = tune_json("import", tmp_path / "text.db", "--data", tmp_path / "again")
    assert report["verified"] and report["mapped_experiments"] == []
    with client_of(tmp_path / "again") as client:
        assert names_in(client) == expected
    with client_of(tmp_path / "rest") as client:
        found = names_in(client)
        assert found[third] == ("q", "active") and found[renamed] == ("z", "active")
        assert found[gone] == ("z (imported)", "deleted")


def fill_with_nul(client):
    """A NUL in each text where MLflow takes one. Gives the run's id."""
    from mlflow.entities import RunTag

    experiment = client.create_experiment("e", tags={"t": "a\0b"})
    run = client.create_run(experiment, run_name="name\0", tags={"tag": "\0"}).info.run_id
    client.log_batch(run, tags=[RunTag("more", "x\0\0y")])
    client.log_param(run, "p", "a\0b")
    client.create_registered_model("reg", tags={"rk": "a\0b"}, description="a\0b")
    return run


def nul_texts(client, run):
    run = client.get_run(run)
    model = client.get_registered_model("reg")
    return (run.info.run_name, run.data.params, run.data.tags["tag"], run.data.tags["more"],
            client.get_experiment(run.info.experiment_id).tags["t"], model.description, model.tags["rk"])


def test_a_nul_in_a_text_goes_out_and_in(tmp_path):
    import mlflow

    with client_of(tmp_path / "data") as client:
        run = fill_with_nul(client)
        expected = nul_texts(client, run)
        assert expected == ("name\0", {"p": "a\0b"}, "\0", "x\0\0y", "a\0b", "a\0b", "a\0b")
        assert tune_json("import", client.tracking_uri, "--data", tmp_path / "rest")["verified"]
    assert tune_json("export", tmp_path / "out.db", "--data", tmp_path / "data")["verified"]
    uri = f"sqlite:///{tmp_path}/out.db"
    client = mlflow.MlflowClient(uri, registry_uri=uri)
    assert nul_texts(client, run) == expected
    client.create_registered_model("by MLflow", description="c\0d")
    report = tune_json("import", tmp_path / "out.db", "--data", tmp_path / "again")
    assert report["verified"] and report["texts_changed"] == 0
    for folder in ("rest", "again"):
        with client_of(tmp_path / folder) as client:
            assert nul_texts(client, run) == expected, folder
            if folder == "again":
                assert client.get_registered_model("by MLflow").description == "c\0d"


def test_what_reads_back_differently_is_named(tmp_path):
    """A text that is not UTF-8 cannot come in by the server: put there by hand, it stands for a damaged file."""
    with client_of(tmp_path / "data") as client:
        run = client.create_run("0").info.run_id
        client.log_param(run, "fine", "1")
        client.log_param(run, "bad one", "damaged")
    with sqlite3.connect(tmp_path / "data" / "tune.db") as store:
        changed = store.execute("UPDATE params SET value = CAST(x'61ff62' AS TEXT) WHERE value = 'damaged'")
        assert changed.rowcount == 1
    done = tune("export", tmp_path / "out.db", "--data", tmp_path / "data", code=1)
    assert f"run {run} reads back differently: param 'bad one'" in done.stderr
    assert not (tmp_path / "out.db").exists()

"""tune import: what real MLflow stored reads the same through MLflow's client after the move."""

import os
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

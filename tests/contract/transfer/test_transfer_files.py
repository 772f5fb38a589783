"""tune import of mlruns folders, of old and damaged and hostile sources, and of sources that end midway."""

import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest
from transfer_support import (TUNE, assert_same, client_of, fill, read_all, tree_state, tune, tune_json)

# Runs of the test that kills an import; the long form is run by hand.
KILLS = int(os.environ.get("TUNE_IMPORT_KILLS", "3"))


@pytest.fixture(scope="module")
def mlruns(tmp_path_factory):
    """A file store of real MLflow with everything in it, and what its client read."""
    import mlflow

    folder = tmp_path_factory.mktemp("files") / "mlruns"
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    try:
        client = mlflow.MlflowClient(folder.as_uri(), registry_uri=folder.as_uri())
        mlflow.set_tracking_uri(folder.as_uri())  # the file store looks models up there
        fill(client, mlflow, with_model=False)
        record = read_all(client, mlflow, tmp_path_factory.mktemp("scratch"))
    finally:
        mlflow.set_tracking_uri(None)
        del os.environ["MLFLOW_ALLOW_FILE_STORE"]
    return {"folder": folder, "record": record}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """An mlflow.db of 60 runs with 10 metrics of 400 points, written by MLflow's own store."""
    import mlflow
    from mlflow.entities import Metric

    folder = tmp_path_factory.mktemp("database")
    uri = f"sqlite:///{folder}/mlflow.db"
    client = mlflow.MlflowClient(uri, registry_uri=uri)
    experiment = client.create_experiment("many", artifact_location=(folder / "mlartifacts" / "1").as_uri())
    for i in range(3):
        run = client.create_run(experiment).info.run_id
        for key in range(10):
            client.log_batch(run, [Metric(f"m{key}", float(step * i), step, step) for step in range(400)])
        client.log_text(run, "text of " + run, "a/b.txt")
    connection = sqlite3.connect(folder / "mlflow.db")
    connection.execute("CREATE TEMP TABLE originals AS SELECT run_uuid FROM runs")
    for copy in range(19):
        for table in ("runs", "metrics", "latest_metrics", "tags"):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            picked = ", ".join(f"'{copy:08d}' || substr(run_uuid, 9)" if c == "run_uuid" else f'"{c}"' for c in columns)
            connection.execute(f"INSERT INTO {table} SELECT {picked} FROM {table} "
                               "WHERE run_uuid IN (SELECT run_uuid FROM originals)")
    connection.commit()
    connection.close()
    return folder / "mlflow.db"


def read_ours(data, tmp_path, artifacts=True):
    import mlflow

    with client_of(data) as client:
        return read_all(client, mlflow, tmp_path / "ours" if artifacts else None)


def test_mlruns_reads_the_same_and_is_left_as_it_was(mlruns, tmp_path):
    before = tree_state(mlruns["folder"])
    report = tune_json("import", mlruns["folder"], "--data", tmp_path / "data")
    assert report["verified"], report
    assert tree_state(mlruns["folder"]) == before
    ours = read_ours(tmp_path / "data", tmp_path)
    assert_same(expected_of_files(mlruns["record"]), ours)


def expected_of_files(record):
    """Where the file store itself differs from MLflow's databases, whose behaviour is ours."""
    for run in record["runs"].values():
        for key, points in run["histories"].items():
            if key == "acc":  # its lines end in a data set; the file store then reads no step
                points = [(ts, 3, value) for ts, _, value in points]
            big = "1.7976931348623157e+308"
            run["histories"][key] = sorted(
                (ts, step, value.replace("-inf", "-" + big).replace("inf", big)) for ts, step, value in points)
        run["latest"] = {k: v.replace("-inf", "-1.7976931348623157e+308").replace("inf", "1.7976931348623157e+308")
                         for k, v in run["latest"].items()}
    return record


def test_mlruns_that_was_moved_finds_its_artifacts(mlruns, tmp_path):
    shutil.copytree(mlruns["folder"], tmp_path / "elsewhere" / "mlruns")
    report = tune_json("import", tmp_path / "elsewhere", "--data", tmp_path / "data")
    assert report["verified"] and report["artifacts"] >= 2 and report["artifacts_left_out"]["count"] == 0


def test_a_killed_import_goes_on_without_doubles(database, tmp_path):
    whole = tune_json("import", database, "--data", tmp_path / "whole")
    assert whole["verified"] and whole["read_back"]["metric_points"] == 60 * 10 * 400
    took = tune_json("import", database, "--data", tmp_path / "timed", "--artifacts", "none")
    assert took["verified"]
    cut = tmp_path / "cut"
    for attempt in range(KILLS):
        process = subprocess.Popen([TUNE, "import", database, "--data", cut], stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        wait_for_bytes(cut / "tune.db-wal", 200_000 * (attempt + 1), process)
        process.kill()
        process.wait()
        seen = visible_runs(cut)
        assert all(points == 4000 for points in seen.values()), "a run is visible before it is whole"
    report = tune_json("import", database, "--data", cut)
    assert report["verified"] and report["read_back"] == whole["read_back"]
    assert_same(read_ours(tmp_path / "whole", tmp_path), read_ours(cut, tmp_path))


def wait_for_bytes(path, size, process):
    """Until the import has written that much; an event of the file system would need a library."""
    while process.poll() is None and not (path.exists() and path.stat().st_size >= size):
        time.sleep(0.002)


def visible_runs(data):
    """Points of each run that a search by default would list."""
    if not (data / "tune.db").exists():
        return {}
    connection = sqlite3.connect(f"file:{data}/tune.db?mode=ro", uri=True)
    try:
        return dict(connection.execute("SELECT run_id, (SELECT sum(row_count) FROM latest_metrics m WHERE m.run_row = "
                                       "r.run_row) FROM runs r WHERE life = 0").fetchall())
    except sqlite3.OperationalError:  # not even the tables
        return {}
    finally:
        connection.close()


def test_ctrl_c_ends_cleanly_and_the_same_command_goes_on(database, tmp_path):
    process = subprocess.Popen([TUNE, "import", database, "--data", tmp_path / "data"], stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    wait_for_bytes(tmp_path / "data" / "tune.db-wal", 100_000, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (130, 0), errors  # 0: it was done before the signal came
    if process.returncode == 130:
        assert "to resume" in errors
    assert tune_json("import", database, "--data", tmp_path / "data")["verified"]


def test_ids_that_are_taken_are_mapped_and_reported(database, mlruns, tmp_path):
    data = tmp_path / "data"
    tune("import", mlruns["folder"], "--data", data)
    with client_of(data) as client:
        client.create_experiment("many")
    report = tune_json("import", database, "--data", data)
    assert report["verified"]
    (mapped,) = report["mapped_experiments"]
    assert mapped["from_name"] == "many" and mapped["to_name"] == "many (imported)"


def test_a_run_that_is_there_and_different_is_left_alone(database, tmp_path):
    data = tmp_path / "data"
    tune("import", database, "--data", data)
    other = tmp_path / "other.db"
    shutil.copy(database, other)
    assert tune_json("import", other, "--data", data, "--artifacts", "none")["runs_unchanged"] == 60
    third = tmp_path / "third.db"
    shutil.copy(database, third)
    connection = sqlite3.connect(third)
    connection.execute("UPDATE runs SET name = 'changed' WHERE rowid = 1")
    connection.commit()
    connection.close()
    report = tune_json("import", third, "--data", data, "--artifacts", "none", code=1)
    assert report["failed"]["count"] == 1 and "different run" in report["failed"]["first"][0]


def test_a_source_that_grew_is_brought_up_to_date(database, tmp_path):
    source = tmp_path / "mlflow.db"
    shutil.copy(database, source)
    data = tmp_path / "data"
    tune("import", source, "--data", data, "--artifacts", "none")
    connection = sqlite3.connect(source)
    run = connection.execute("SELECT run_uuid FROM runs WHERE rowid = 1").fetchone()[0]
    connection.execute("INSERT INTO metrics (key, value, timestamp, step, is_nan, run_uuid) VALUES "
                       "('m0', 7.0, 999999, 999999, 0, ?)", (run,))
    connection.execute("UPDATE latest_metrics SET value = 7.0, timestamp = 999999, step = 999999 WHERE key = 'm0' "
                       "AND run_uuid = ?", (run,))
    connection.execute("UPDATE runs SET status = 'FAILED' WHERE run_uuid = ?", (run,))
    connection.commit()
    connection.close()
    report = tune_json("import", source, "--data", data, "--artifacts", "none")
    assert report["verified"] and report["runs_unchanged"] == 59
    with client_of(data) as client:
        found = client.get_run(run)
        assert found.info.status == "FAILED" and found.data.metrics["m0"] == 7.0


def test_links_need_no_space_and_none_leaves_the_addresses(database, tmp_path):
    report = tune_json("import", database, "--data", tmp_path / "linked", "--artifacts", "link")
    assert report["verified"] and report["artifacts"] == 60
    one = next((tmp_path / "linked" / "artifacts").rglob("b.txt"))
    assert one.stat().st_nlink >= 2
    tune("import", database, "--data", tmp_path / "none", "--artifacts", "none")
    assert not list((tmp_path / "none" / "artifacts").rglob("b.txt"))
    done = tune("import", database, "--data", tmp_path / "bad", "--artifacts", "maybe", code=2)
    assert "copy, link or none" in done.stderr


def test_a_server_that_holds_the_folder_does_the_import(database, tmp_path):
    from conftest import Server

    server = Server(tmp_path / "data")
    try:
        done = tune("import", database, "--data", tmp_path / "data")
        assert done.stdout.endswith("Verified: everything reads back as in the source.\n")
        assert "metric points 240000 240000 " in " ".join(done.stdout.split())
    finally:
        server.stop()

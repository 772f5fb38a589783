"""Delta tables that real Spark wrote (delta_spark_golden.py), at each version, row for row what Spark reads. With pyspark 4 and
the jars of Delta in $TUNE_DELTA_JARS they are written anew."""

import datetime
import decimal
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pytest.importorskip("pyarrow")

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = json.loads((HERE / "delta_spark" / "golden.json").read_text())


def rows_of(folder, version):
    """Rows by id as delta_spark_golden.py tells them."""
    rows = []
    with tuneloader.Dataset(folder, format="delta", version=version, nulls="mask", batch_size=16) as dataset:
        stored = {column.name: column.stored for column in dataset.columns}
        for batch in dataset:
            for i in range(len(batch["id"])):
                rows.append({name: value_of(batch, name, i, stored[name]) for name in stored})
    return sorted(rows, key=lambda row: row["id"])


def value_of(batch, name, i, stored):
    valid = batch.get(f"{name}__valid")
    value = batch[name][i]
    if value is None or (valid is not None and not valid[i]):
        return None
    if stored.startswith("date"):
        return str(datetime.date(1970, 1, 1) + datetime.timedelta(int(value)))
    if stored.startswith("decimal"):
        return str(decimal.Decimal(value))
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def check(folder, golden):
    for name, versions in golden.items():
        assert len(versions) > 1
        for version, rows in versions.items():
            if rows:
                assert rows_of(folder / name, int(version)) == rows, f"{name}, version {version}"


def test_every_version_is_what_spark_reads():
    assert set(GOLDEN) == {"vectors", "partitions", "mapped", "checkpoints", "v2_checkpoint", "merged"}
    check(HERE / "delta_spark", GOLDEN)


def test_the_tables_hold_what_the_test_is_about():
    names = {str(path.relative_to(HERE / "delta_spark")) for path in (HERE / "delta_spark").rglob("*")}
    for part in ("deletion_vector_", "_last_checkpoint", "checkpoint.parquet", "v2_checkpoint/_delta_log/_sidecars", "part="):
        assert any(part in name for name in names), part


def test_tables_written_now(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is in an environment of its own")
    jars = os.environ.get("TUNE_DELTA_JARS")
    if not jars:
        pytest.skip("TUNE_DELTA_JARS does not say where Delta's jars are")
    script = HERE / "delta_spark_golden.py"
    subprocess.run([sys.executable, script, jars, tmp_path / "tables"], check=True, timeout=900)
    check(tmp_path / "tables", json.loads((tmp_path / "tables" / "golden.json").read_text()))

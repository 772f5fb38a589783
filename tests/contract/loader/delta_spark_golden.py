"""Writes the Delta tables of delta_spark/ with real Spark, and the rows that Spark reads from them:

    python3.11 -m venv /tmp/spark && /tmp/spark/bin/pip install pyspark==4.0.5
    for a in io.delta:delta-spark_2.13:4.0.0 io.delta:delta-storage:4.0.0 org.antlr:antlr4-runtime:4.13.1; do
        mvn dependency:copy -Dartifact=$a -DoutputDirectory=/tmp/jars
    done
    /tmp/spark/bin/python tests/contract/loader/delta_spark_golden.py /tmp/jars [FOLDER]
"""

import json
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = "id BIGINT, part STRING, x DOUBLE, n INT, text STRING, list ARRAY<INT>, day DATE, amount DECIMAL(9,2)"
ROW = (
    "SELECT id, concat('p', id % 3) AS part, id / 4 AS x, IF(id % 5 = 0, NULL, CAST(id AS INT)) AS n, "
    "IF(id % 7 = 0, NULL, concat('t', id)) AS text, sequence(1, CAST(id % 4 + 1 AS INT)) AS list, "
    "date_add(DATE'2026-01-01', CAST(id AS INT)) AS day, CAST(id / 8 AS DECIMAL(9,2)) AS amount FROM range({}, {}, 1, 2)"
)


def statements(name, folder):
    """The SQL that makes each table; the shapes of a table's life that readers stumble over."""
    table = f"delta.`{folder}/{name}`"
    vectors = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    create = f"CREATE TABLE {table} ({COLUMNS}) USING delta"
    insert = f"INSERT INTO {table} "
    if name == "vectors":
        return [f"{create} {vectors}", insert + ROW.format(0, 60), f"DELETE FROM {table} WHERE id % 10 = 3",
                f"UPDATE {table} SET x = -1 WHERE id BETWEEN 20 AND 22", f"DELETE FROM {table} WHERE id = 59"]  # fmt: skip
    if name == "partitions":
        return [f"{create} PARTITIONED BY (part, day) {vectors}", insert + ROW.format(0, 9),
                f"INSERT INTO {table} VALUES (90, NULL, 1, 1, 'a b/c=%', array(1), NULL, 0.5)", f"DELETE FROM {table} WHERE id = 4"]  # fmt: skip
    if name == "mapped":
        return [f"{create} TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
                "'delta.minWriterVersion' = '5')", insert + ROW.format(0, 20), f"ALTER TABLE {table} RENAME COLUMN x TO y",
                f"ALTER TABLE {table} DROP COLUMN n", f"ALTER TABLE {table} ADD COLUMN more INT",
                f"INSERT INTO {table} SELECT id, part, x, text, list, day, amount, 7 FROM ({ROW.format(20, 30)})"]  # fmt: skip
    if name == "checkpoints":
        made = [f"{create} TBLPROPERTIES ('delta.checkpointInterval' = '3', 'delta.enableDeletionVectors' = 'true')"]
        for i in range(5):
            made += [insert + ROW.format(10 * i, 10 * i + 10), f"DELETE FROM {table} WHERE id = {10 * i + 1}"]
        return made
    if name == "v2_checkpoint":
        made = [f"{create} TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2')"]
        return made + [insert + ROW.format(10 * i, 10 * i + 10) for i in range(5)]
    assert name == "merged"
    source = f"(SELECT id, part, 100.0D AS x, 5 AS n, 'merged' AS text, array(9) AS list, day, amount FROM ({ROW.format(15, 25)}))"
    return [f"{create} {vectors}", insert + ROW.format(0, 20),
            f"MERGE INTO {table} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            f"OPTIMIZE {table}"]  # fmt: skip


TABLES = ("vectors", "partitions", "mapped", "checkpoints", "v2_checkpoint", "merged")


def rows_of(frame):
    rows = [{name: _plain(value) for name, value in row.asDict().items()} for row in frame.collect()]
    return sorted(rows, key=lambda row: row["id"])


def _plain(value):
    return value if value is None or isinstance(value, (int, float, str, list)) else str(value)


def main(jars, folder):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(map(str, sorted(jars.glob("*.jar")))))
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    shutil.rmtree(folder, ignore_errors=True)
    golden = {}
    for name in TABLES:
        for statement in statements(name, folder):
            spark.sql(statement)
        history = spark.sql(f"DESCRIBE HISTORY delta.`{folder}/{name}`").count()
        read = spark.read.format("delta")
        golden[name] = {
            str(version): rows_of(read.option("versionAsOf", version).load(f"{folder}/{name}")) for version in range(1, history)
        }
    spark.stop()
    for checksum in [*folder.rglob(".*.crc"), *folder.rglob("*.crc")]:
        checksum.unlink(missing_ok=True)
    (folder / "golden.json").write_text(json.dumps(golden, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else HERE / "delta_spark").resolve())

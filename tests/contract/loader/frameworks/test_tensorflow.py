"""tf.data over readers, with a real TensorFlow. frameworks/test_notebooks.py runs it in that of the engines; by hand:

    python3.11 -m venv /tmp/tf && /tmp/tf/bin/pip install tensorflow-cpu pyarrow==26.0.1 pandas pytest
    PYTHONPATH=build/release/python /tmp/tf/bin/python -m pytest --noconftest tests/contract/loader/frameworks/test_tensorflow.py
"""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pytest.importorskip("pyarrow")
from tuneloader import make_batch_reader, make_reader  # noqa: E402
from tuneloader.ngram import NGram  # noqa: E402
from tuneloader.spark import SparkDatasetConverter  # noqa: E402
from tuneloader.tf_utils import make_petastorm_dataset, tf_tensors  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parents[1] / "petastorm"
ROWS = f"file://{HERE}/rows"
PLAIN = f"file://{HERE}/plain"
FIXED = {"shuffle_row_groups": False}


def test_nothing_of_it_is_imported_until_it_is_asked_for():
    code = "import sys, tuneloader.tf_utils, tuneloader.spark; assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={"PYTHONPATH": ":".join(sys.path)})


def test_without_it_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with make_batch_reader(PLAIN) as reader, pytest.raises(ImportError, match="pip install tensorflow"):
        make_petastorm_dataset(reader)


class TestTensorFlow:
    @pytest.fixture(autouse=True)
    def tf(self):
        return pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

    def test_rows_are_named_tuples_of_tensors(self, tf):
        fields = ["id", "image", "matrix", "small", "flag", "amount", "when", "plain"]
        with make_reader(ROWS, fields, **FIXED) as reader:
            rows = list(make_petastorm_dataset(reader))
        assert [int(row.id) for row in rows] == list(range(40))
        assert rows[1].matrix.shape == (3, 2) and rows[0].image.shape == (8, 6, 3) and rows[0].small.dtype == tf.int32
        assert rows[5].amount.numpy() == b"0.05" and bool(rows[1].flag)
        assert int(rows[1].when) == int(np.datetime64("2026-01-01T01:00:00", "ns").astype(np.int64))
        with make_reader(ROWS, ["id", "packed"], **FIXED) as reader, pytest.raises(Exception, match="None, which the field 'packed'"):
            list(make_petastorm_dataset(reader))

    def test_batches_are_unbatched_and_repeated(self, tf):
        with make_batch_reader(PLAIN, ["id", "y", "vector", "text"], **FIXED) as reader:
            dataset = make_petastorm_dataset(reader).unbatch().batch(16)
            batches = list(dataset)
            again = list(dataset)
        assert np.concatenate([batch.id for batch in batches]).tolist() == list(range(60)) and len(again) == len(batches)
        assert batches[0].vector.shape == (16, 3) and batches[0].text[1].numpy() == b"t1"

    def test_windows_are_dicts_of_named_tuples(self, tf):
        with make_reader(ROWS, NGram({0: ["id", "time"], 1: ["id"]}, 2, "time"), **FIXED) as reader:
            windows = list(make_petastorm_dataset(reader))
        assert len(windows) == 34 and all(int(window[1].id) == int(window[0].id) + 1 for window in windows)

    def test_tensors_of_a_graph(self, tf):
        v1 = tf.compat.v1
        with make_reader(ROWS, ["id", "grey"], **FIXED) as reader, tf.Graph().as_default():
            row = tf_tensors(reader)
            with v1.Session() as session:
                assert [int(session.run(row).id) for _ in range(3)] == [0, 1, 2] and row.grey.shape == (5, 4)

    def test_a_converter_gives_batches(self, tf):
        files = sorted(str(path) for path in (HERE / "plain").rglob("*.parquet"))
        converter = SparkDatasetConverter(PLAIN, [f"file://{path}" for path in files], 60)
        with converter.make_tf_dataset(batch_size=20, num_epochs=1, schema_fields=["id", "y"]) as dataset:
            batches = list(dataset)
        assert sorted(np.concatenate([batch.id for batch in batches])) == list(range(60)) and batches[0].y.dtype == tf.float32

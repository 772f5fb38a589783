"""Notebooks of Petastorm's users, from Spark to PyTorch and to TensorFlow, with one import changed: one node, distributed tuning, distributed
training. By the environments of the engines (tests/engines/setup.sh), as ../test_spark.py:

    build/engines-venv/bin/python -m pytest tests/contract/loader/frameworks/test_notebooks.py
"""

import json
import os
import pathlib
import re
import site
import subprocess
import sys

import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pyspark = pytest.importorskip("pyspark", reason="pyspark is in an environment of its own")
pytest.importorskip("hyperopt")

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
MODULE = pathlib.Path(tuneloader.__file__).parents[1]
TENSORFLOW = ROOT / "build" / "tensorflow-venv" / "bin" / "python"
JAVA = pathlib.Path("/usr/lib/jvm/java-17-openjdk-amd64")


def run(python, words, folder, **more):
    environment = {
        **os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1",
        **({"JAVA_HOME": str(JAVA)} if JAVA.exists() else {}), **more,
    }  # fmt: skip
    done = subprocess.run([python, *words], env=environment, cwd=folder, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def changed(name, folder):
    """The notebook with another name in its imports."""
    code = (HERE.parent / "petastorm" / "notebooks" / name).read_text()
    after, count = re.subn(r"^from petastorm", "from tuneloader", code, flags=re.M)
    assert count >= 2
    (folder / name).write_text(after)
    return folder / name


@pytest.fixture(scope="module")
def beside_tensorflow(tmp_path_factory):
    """Variables for TensorFlow's own environment, which then finds pyspark and all else behind its own packages."""
    if not TENSORFLOW.exists():
        pytest.skip("no TensorFlow: tests/engines/setup.sh makes its environment")
    folder = tmp_path_factory.mktemp("site")
    paths = [path for path in sys.path if pathlib.Path(path).name == "site-packages"] + site.getsitepackages()
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.path += {list(dict.fromkeys(paths))!r}\n")
    path = os.pathsep.join(map(str, [folder, MODULE, ROOT / "clients" / "python"]))
    return {"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2", "TF_USE_LEGACY_KERAS": "1"}


def check(told):
    train, val = told["rows"]
    assert train + val == 240 and val > 20
    assert told["one node"] > 0.9, "the quarters are told apart"
    assert len(told["losses"]) == 2 and -1 <= min(told["losses"]) < -0.5 and set(told["best"]) == {"lr"}
    (first, weights), (second, others) = told["ranks"]
    assert len(first) + len(second) == train == len(set(first) | set(second)), "each row is of one rank"
    assert weights == others, "both end with the same weights"


def test_pytorch(tmp_path):
    import absent_cuda

    absent_cuda.prepare(tmp_path)
    path = os.pathsep.join(map(str, [MODULE, pathlib.Path(pyspark.__file__).parents[1]]))
    said = run(sys.executable, [changed("pytorch_notebook.py", tmp_path), tmp_path], tmp_path, PYTHONPATH=path, LD_LIBRARY_PATH=str(tmp_path))
    check(json.loads(said.splitlines()[-1]))
    assert not list((tmp_path / "cache").iterdir())


def test_tensorflow(tmp_path, beside_tensorflow):
    check(json.loads(run(TENSORFLOW, [changed("tensorflow_notebook.py", tmp_path), tmp_path], tmp_path, **beside_tensorflow).splitlines()[-1]))
    assert not list((tmp_path / "cache").iterdir())


def test_readers_with_a_real_tensorflow(tmp_path, beside_tensorflow):
    """test_tensorflow.py, which the tests' own environment runs without its TensorFlow."""
    words = ["-m", "pytest", "--noconftest", "-q", "-p", "no:cacheprovider", str(HERE / "test_tensorflow.py")]
    said = run(TENSORFLOW, words, tmp_path, **beside_tensorflow)
    assert re.search(r"^[0-9]+ passed in", said, re.M) and "skipped" not in said

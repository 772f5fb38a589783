"""The Python blocks of docs/loader_python.md and docs/loader_petastorm.md, in their order, as they stand."""

import pathlib
import re

import pytest

pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pytest.importorskip("torch", reason="setup.sh ran with --no-torch")

PAGES = pathlib.Path(__file__).resolve().parents[3] / "docs"


def run_blocks(page, count):
    blocks = re.findall(r"^```python\n(.*?)^```", (PAGES / page).read_text(), re.M | re.S)
    assert len(blocks) == count
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
        yield names


def test_the_blocks_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    blocks = run_blocks("loader_python.md", 6)
    names = next(blocks)
    assert names["batch"]["image"].shape == (1000 % 256, 28, 28) and len(names["batch"]["name"]) == 1000 % 256
    assert names["resumed"].epoch == 2
    next(blocks)
    photos = names["batch"]
    assert photos["photo"].shape == (25, 3, 48, 48) and photos["photo"].dtype == "float32"
    assert photos["tokens"].shape == photos["tokens_mask"].shape == (25, 8)
    mlflow = next(blocks)["mlflow"]
    run = mlflow.active_run().info.run_id
    mlflow.end_run()
    assert mlflow.get_run(run).data.metrics["loader/samples"] == 100
    next(blocks)
    assert names["batch"]["tokens"].shape == names["batch"]["positions"].shape == (4, 16)
    assert names["batch"]["segment_ids"].min() >= 0 and names["resumed"].state_dict() == names["state"]
    next(blocks)
    people = names["batch"]
    assert people["age"].tolist() == [31, 45] and people["age__valid"].all() and people["name"] == ["a", None]
    assert [visits.tolist() for visits in people["visits"]] == [[1, 2], [4]]
    assert sorted(names["rows"]["x"]) == [0.5, 1.5, 2.5]
    next(blocks)
    assert names["state"]["sample_in_epoch"] == 100 and tuple(names["images"].shape) == (100, 28, 28)


def test_the_block_of_petastorms_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (names,) = run_blocks("loader_petastorm.md", 1)
    assert names["batch"]["x"].dtype.is_floating_point and len(names["batch"]["id"]) <= 64

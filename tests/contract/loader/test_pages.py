"""The Python blocks of docs/loader_python.md, in their order, as they stand."""

import pathlib
import re

import pytest

pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pytest.importorskip("torch", reason="setup.sh ran with --no-torch")

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "loader_python.md"


def test_the_blocks_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert len(blocks) == 2
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["batch"]["image"].shape == (1000 % 256, 28, 28) and len(names["batch"]["name"]) == 1000 % 256
    assert names["resumed"].epoch == 2
    assert names["state"]["sample_in_epoch"] == 100 and tuple(names["images"].shape) == (100, 28, 28)

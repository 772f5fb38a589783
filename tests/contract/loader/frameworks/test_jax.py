"""Batches as jax arrays, with the real jax. It is in no environment of the tests:

    python3.11 -m venv /tmp/jax && /tmp/jax/bin/pip install jax pytest
    PYTHONPATH=build/release/python /tmp/jax/bin/python -m pytest --noconftest tests/contract/loader/frameworks/test_jax.py
"""

import gc

import numpy as np
import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
jax = pytest.importorskip("jax")

COLUMNS = {"x": "ndarray:float32:3", "half": "ndarray:float16:2", "image": "ndarray:uint8:2,2", "label": "int", "tokens": "ndarray:uint16", "name": "str"}
COUNT = 20


@pytest.fixture
def folder(tmp_path):
    with tuneloader.MDSWriter(out=str(tmp_path / "data"), columns=COLUMNS) as out:
        for i in range(COUNT):
            out.write({"x": np.full(3, i, np.float32), "half": np.full(2, i, np.float16), "image": np.full((2, 2), i, np.uint8), "label": i,
                       "tokens": np.arange(i + 1, dtype=np.uint16), "name": str(i)})
    return str(tmp_path / "data")


def batches(folder, **options):
    return list(tuneloader.Dataset(folder, batch_size=8, arrays="jax", **options))


def test_each_type_is_jaxs_own_array(folder):
    first, *_, last = batches(folder)
    for name, dtype, shape in (("x", "float32", (8, 3)), ("half", "float16", (8, 2)), ("image", "uint8", (8, 2, 2)), ("label", "int32", (8,))):
        assert isinstance(first[name], jax.Array) and first[name].dtype == dtype and first[name].shape == shape
    assert first["name"] == [str(i) for i in range(8)] and last["label"].tolist() == [16, 17, 18, 19]
    assert [tokens.tolist() for tokens in first["tokens"]][:2] == [[0], [0, 1]]


def test_padded_rows_and_their_mask(folder):
    batch = batches(folder, columns=["tokens"], transforms={"tokens": tuneloader.Pad(4)})[0]
    assert batch["tokens"].dtype == "uint16" and batch["tokens"].tolist()[1] == [0, 1, 0, 0]
    assert isinstance(batch["tokens_mask"], jax.Array) and batch["tokens_mask"].tolist()[1] == [1, 1, 0, 0]


def test_they_go_through_jit_and_grad_and_outlive_the_data_set(folder):
    with tuneloader.Dataset(folder, batch_size=8, arrays="jax", columns=["x", "label"], shuffle=True) as dataset:
        held = [batch for _ in range(3) for batch in dataset]
    del dataset
    gc.collect()
    step = jax.jit(jax.value_and_grad(lambda weight, batch: ((batch["x"] @ weight - batch["label"]) ** 2).mean()))
    weight = jax.numpy.zeros(3)
    losses = []
    for batch in held * 10:
        loss, slope = step(weight, batch)
        weight -= 1e-3 * slope
        losses.append(float(loss))
    assert sorted(label for batch in held[:3] for label in batch["label"].tolist()) == list(range(COUNT))
    assert losses[-1] < 1e-2 * losses[0]
    np.testing.assert_allclose(weight.sum(), 1, atol=0.05)


def test_no_number_becomes_another_one(tmp_path):
    with tuneloader.MDSWriter(out=str(tmp_path / "wide"), columns={"y": "int", "z": "uint64"}) as out:
        for i in range(4):
            out.write({"y": -(2**40) - i, "z": np.uint64(2**63 + i)})
    for column in ("y", "z"):
        with pytest.raises(OverflowError, match="jax_enable_x64"):
            batches(str(tmp_path / "wide"), columns=[column])
    jax.config.update("jax_enable_x64", True)
    try:
        batch = batches(str(tmp_path / "wide"))[0]
        assert batch["y"].tolist() == [-(2**40) - i for i in range(4)] and batch["z"].tolist() == [2**63 + i for i in range(4)]
    finally:
        jax.config.update("jax_enable_x64", False)


def test_a_state_resumes_it(folder):
    dataset = tuneloader.Dataset(folder, batch_size=4, arrays="jax", shuffle=True, columns=["label"])
    begun = iter(dataset)
    next(begun)
    state = dataset.state_dict()
    rest = [batch["label"].tolist() for batch in begun]
    resumed = tuneloader.Dataset(folder, batch_size=4, arrays="jax", shuffle=True, columns=["label"])
    resumed.load_state_dict(state)
    assert [batch["label"].tolist() for batch in resumed] == rest

"""Every kind of model trains on several ranks as on one: BatchNorm, attention, tokens, batches in parts."""

import signal

import numpy as np
import pytest
from safetensors.numpy import load_file

from ranks_support import finish, start_ranks, train_ranks
from test_trainer_ranks import assert_close, assert_same_weights
from trainer_support import DONE, train, write_digits, write_mds

PLACES = 9
COMMON = dict(epochs=2, batch_size=48, seed=3, log_every=2, optimizer="sgd", lr=0.02, momentum=0.5)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The last batch has 22 samples, which 3 and 4 ranks share unevenly."""
    return write_digits(tmp_path_factory.mktemp("ranks") / "digits", train_count=118, val_count=40)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    directory = tmp_path_factory.mktemp("ranks") / "tokens"
    numbers = np.random.default_rng(1).integers(0, 20, (300, PLACES)).astype(np.uint16)
    numbers[:, 1::2] = numbers[:, :-1:2]
    columns = {"tokens": (f"ndarray:uint16:{PLACES}", 2 * PLACES)}
    rows = [{"tokens": row.tobytes()} for row in numbers]
    write_mds(directory / "train", columns, rows[:118])
    write_mds(directory / "val", columns, rows[250:])
    return directory


MODELS = {
    "resnet18": dict(model="resnet18", stem="small", epochs=1),
    "transformer": dict(model="transformer", width=16, depth=1, dropout=0.2),
    "gpt": dict(model="gpt", width=16, depth=1, dropout=0.2),
    "mlp": dict(model="mlp", width=16, dropout=0.2),
}
# What is left of rounding after a few steps of a resnet in double precision; a fault is larger by far.
EXACT = 1e-9


def parameters_of(model, data, tokens, **others):
    return {**COMMON, **MODELS[model], "data": tokens if model == "gpt" else data, **others}


def train_both(tmp_path, size, **parameters):
    """On one rank and on `size`; the folders hold what each left."""
    alone = train(checkpoint_dir=tmp_path / "alone", **parameters)
    assert alone.code == DONE, alone.stderr
    ranks = train_ranks(size, checkpoint_dir=tmp_path / "ranks", **parameters)
    assert [rank.code for rank in ranks] == [DONE] * size, ranks[0].stderr
    return alone, ranks


@pytest.mark.parametrize("size, parts", [(2, 1), (3, 1), (4, 1), (2, 3), (4, 2)])
@pytest.mark.parametrize("model", MODELS)
def test_a_model_on_ranks_is_the_one_of_one_rank(data, tokens, tmp_path, model, size, parts):
    """Losses, weights, moments and running statistics, where the last batch is shared unevenly."""
    parameters = parameters_of(model, data, tokens, accumulate=parts, precision="float64")
    alone, ranks = train_both(tmp_path, size, **parameters)
    assert_close(ranks[0].lines, alone.lines, EXACT)
    assert_same_weights(tmp_path / "ranks", tmp_path / "alone", EXACT)


@pytest.mark.parametrize("options", [dict(clip_norm=0.3), dict(clip_value=0.01), dict(optimizer="adamw", lr=0.002),
                                     dict(optimizer="adamw", lr=0.002, accumulate=2, clip_norm=0.3)],
                         ids=["clipped by norm", "clipped by value", "adamw", "adamw clipped in parts"])
def test_clipping_and_moments_over_uneven_shares(data, tokens, tmp_path, options):
    parameters = parameters_of("transformer", data, tokens, precision="float64", log_every=1, **options)
    alone, ranks = train_both(tmp_path, 3, **parameters)
    assert_close(ranks[0].lines, alone.lines, EXACT)
    assert_same_weights(tmp_path / "ranks", tmp_path / "alone", EXACT)
    if "clip_norm" in options or "clip_value" in options:
        free = train(checkpoint_dir=tmp_path / "free", **{**parameters, "clip_norm": 0, "clip_value": 0})
        assert distance(tmp_path / "free", tmp_path / "alone") > 1e-5, "nothing was clipped"


def distance(directory, expected):
    """Of all weights and running statistics together, relative."""
    tensors, others = (load_file(d / "last.safetensors") for d in (directory, expected))
    names = [name for name in tensors if name.startswith("model.")]
    differences, wholes = ([np.linalg.norm(each) for each in of] for of in
                           ((tensors[name].astype(float) - others[name] for name in names),
                            (others[name].astype(float) for name in names)))
    return np.linalg.norm(differences) / np.linalg.norm(wholes)


@pytest.mark.parametrize("model", MODELS)
def test_float32_on_ranks_is_as_near_to_the_truth_as_on_one(data, tokens, tmp_path, model):
    """In a resnet rounding grows from layer to layer and from step to step, on one rank just as on three: how much a
    model forgives is measured, not guessed."""
    parameters = parameters_of(model, data, tokens)
    train_both(tmp_path, 3, **parameters)
    truth = train(checkpoint_dir=tmp_path / "truth", precision="float64", **parameters)
    assert truth.code == DONE, truth.stderr
    of_one = distance(tmp_path / "alone", tmp_path / "truth")
    assert 0 < of_one < 1e-2
    assert distance(tmp_path / "ranks", tmp_path / "truth") < 10 * of_one


def test_a_rank_without_rows_counts_for_nothing(tmp_path):
    """The last batch has two samples for three ranks."""
    data = write_digits(tmp_path / "digits", train_count=98)
    parameters = {**COMMON, **MODELS["mlp"], "data": data}
    alone = train(checkpoint_dir=tmp_path / "alone", **parameters)
    ranks = train_ranks(3, checkpoint_dir=tmp_path / "ranks", **parameters)
    assert [rank.code for rank in ranks] == [DONE] * 3, ranks[0].stderr
    assert_close(ranks[0].lines, alone.lines)
    assert_same_weights(tmp_path / "ranks", tmp_path / "alone")


def test_a_dead_rank_ends_one_that_waits_in_a_layer(data):
    """A normalisation over all ranks is a place to wait for them, too."""
    processes = start_ranks(2, data=data, **{**COMMON, **MODELS["resnet18"], "epochs": 100_000, "log_every": 1})
    assert processes[0].stdout.readline()
    processes[1].send_signal(signal.SIGKILL)
    ends = finish(processes)
    assert ends[0].code == 1 and "rank 0 of 2: another rank is gone or stuck" in ends[0].stderr


def test_frozen_normalisation_is_no_collective(data, tmp_path):
    parameters = {**COMMON, **MODELS["resnet18"], "data": data, "freeze": "bn|conv1|layer", "epochs": 1}
    alone = train(checkpoint_dir=tmp_path / "alone", **parameters)
    ranks = train_ranks(2, checkpoint_dir=tmp_path / "ranks", **parameters)
    assert [rank.code for rank in ranks] == [DONE] * 2, ranks[0].stderr
    assert_close(ranks[0].lines, alone.lines)

"""A network with one hidden layer on handwritten digits, in numpy: plain steepest descent with momentum and weight decay."""

import pathlib

import numpy

DIGITS = pathlib.Path(__file__).resolve().parent.parent / "data" / "digits.csv"
HIDDEN = 32


def load_digits():
    """(x_train, y_train, x_val, y_val): every fourth image is for validation."""
    table = numpy.loadtxt(DIGITS, delimiter=",", skiprows=1, dtype=numpy.float32)
    x, y = table[:, :-1] / 16, table[:, -1].astype(int)
    held_back = numpy.arange(len(y)) % 4 == 0
    return x[~held_back], y[~held_back], x[held_back], y[held_back]


def new_network(seed):
    """What a checkpoint holds: the weights, their velocities, and the epochs so far."""
    random = numpy.random.default_rng(seed)
    weights = [random.normal(0, 0.1, (65, HIDDEN)), random.normal(0, 0.1, (HIDDEN + 1, 10))]
    return {"weights": weights, "velocities": [numpy.zeros_like(w) for w in weights], "epoch": 0}


def with_ones(x):
    return numpy.hstack([x, numpy.ones((len(x), 1))])


def outputs(weights, x):
    hidden = numpy.tanh(with_ones(x) @ weights[0])
    scores = with_ones(hidden) @ weights[1]
    scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def train_epoch(network, x, y, lr, momentum, decay, batch):
    """Goes on with `network`: one pass over the data, in an order that depends on the epoch alone."""
    order = numpy.random.default_rng(network["epoch"]).permutation(len(y))
    for first in range(0, len(y), batch):
        rows = order[first:first + batch]
        hidden, share = outputs(network["weights"], x[rows])
        share[numpy.arange(len(rows)), y[rows]] -= 1
        share /= len(rows)
        back = (share @ network["weights"][1][:-1].T) * (1 - hidden**2)
        for i, gradient in enumerate([with_ones(x[rows]).T @ back, with_ones(hidden).T @ share]):
            gradient += decay * network["weights"][i]
            network["velocities"][i] = momentum * network["velocities"][i] - lr * gradient
            network["weights"][i] = network["weights"][i] + network["velocities"][i]
    network["epoch"] += 1


def loss_of(network, x, y):
    """The mean cross entropy."""
    share = outputs(network["weights"], x)[1][numpy.arange(len(y)), y]
    return float(-numpy.log(numpy.maximum(share, 1e-12)).mean())

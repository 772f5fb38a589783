#!/usr/bin/env python3
"""Writes gp.json: evidence, its gradient and posteriors of Gaussian processes by scikit-learn 1.9.1.

    python tests/tuner/golden/make_gp_golden.py        in an environment with scikit-learn

Three numbers in [0, 1] and a category of three. A category enters scikit-learn's kernel as a one-hot vector divided by
sqrt(2), so that two that differ are at distance 1. Warped cases give scikit-learn the values of numpy's formula of
Kumaraswamy's distribution function, drawn in by 1e-6 as ours are.
"""

import json
import math
import pathlib

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

MARGIN = 1e-6


def prepared(rows, a, b):
    inner = MARGIN + (1 - 2 * MARGIN) * rows[:, :3]
    numbers = 1 - (1 - inner**a) ** b if a is not None else rows[:, :3]
    one_hot = (rows[:, 3:4] == np.arange(3)) / math.sqrt(2)
    return np.hstack([numbers, one_hot])


def case(rng, count, theta, a=None, b=None):
    rows = np.column_stack([rng.uniform(size=(count + 5, 3)), rng.integers(0, 3, count + 5)])
    values = np.sin(4 * rows[:, 0]) + rows[:, 1] ** 2 * (rows[:, 3] == 1) + 0.1 * rng.normal(size=count + 5)
    weights, scale, noise = np.exp(theta[:4]), math.exp(theta[4]), math.exp(theta[5]) + MARGIN
    lengths = np.append(weights[:3], [weights[3]] * 3) ** -0.5
    kernel = ConstantKernel(scale) * Matern(lengths, nu=2.5) + WhiteKernel(noise)
    model = GaussianProcessRegressor(kernel, alpha=0, optimizer=None)
    model.fit(prepared(rows[:count], a, b), values[:count])
    evidence, slopes = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    mean, covariance = model.predict(prepared(rows[count:], a, b), return_cov=True)
    by_length = slopes[1:7]
    return {
        "theta": list(theta),
        "warp": None if a is None else {"log_a": np.log(a).tolist(), "log_b": np.log(b).tolist()},
        "rows": rows.tolist(),
        "values": values[:count].tolist(),
        "log_evidence": evidence,
        # log w = -2 log length; the category's three lengths are one parameter of ours; of the noise that is learnt,
        # without what is always added.
        "gradient": [*(-0.5 * by_length[:3]), -0.5 * by_length[3:].sum(), slopes[0], slopes[7] * (1 - MARGIN / noise)],
        "mean": mean.tolist(),
        "variance": (np.diag(covariance) - noise).tolist(),
    }


def main():
    rng = np.random.default_rng(5)
    cases = [
        case(rng, 6, [0.0, 0.0, 0.0, 0.0, 0.0, -3.0]),
        case(rng, 40, [2.0, 0.5, -1.5, 0.7, 0.8, -4.5]),
        case(rng, 40, [2.0, 0.5, -1.5, 0.7, -0.4, -1.0]),
        case(rng, 70, [3.0, 2.0, 1.0, 0.0, 0.3, -7.0], np.array([0.5, 2.0, 1.0]), np.array([1.5, 0.4, 3.0])),
    ]
    path = pathlib.Path(__file__).with_name("gp.json")
    path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

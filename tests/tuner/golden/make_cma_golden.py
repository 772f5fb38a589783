"""Writes cmaes.json: generations of the package cmaes 0.13.1, plain and with margin, to be learnt from again.

    python tests/tuner/golden/make_cma_golden.py tests/tuner/golden/cmaes.json

Coordinates are those of tuner/sampler/cma/state.h: [0, 1] an axis; a grid of c values owns c cells of 1/c.
"""

import json
import sys

import cmaes
import numpy as np


def numbers(values):
    return [float(value) for value in np.ravel(values)]


def loss(point):
    return float(sum((i + 1) * (v - 0.2 - 0.1 * i) ** 2 for i, v in enumerate(point)))


def record(kind, cells, population, generations, seed):
    bounds = np.array([[0.5 / c, 1 - 0.5 / c] if c and kind == "margin" else [0, 1] for c in cells], float)
    settings = {"sigma": 1 / 6, "bounds": bounds, "seed": seed, "population_size": population}
    if kind == "margin":
        steps = np.array([1 / c if c else 0 for c in cells], float)
        optimizer = cmaes.CMAwM(mean=np.full(len(cells), 0.47), steps=steps, **settings)
        inner = optimizer._cma
    else:
        optimizer = inner = cmaes.CMA(mean=np.full(len(cells), 0.5), **settings)
    made = []
    for _ in range(generations):
        solutions, points = [], []
        for _ in range(population):
            asked = optimizer.ask()
            encoded, latent = asked if kind == "margin" else (asked, asked)
            solutions.append((latent, loss(encoded)))
            points.append([numbers(latent), loss(encoded), numbers(encoded)])
        optimizer.tell(solutions)
        scales = numbers(optimizer._A) if kind == "margin" else [1.0] * len(cells)
        state = {"mean": numbers(inner._mean), "sigma": float(inner._sigma), "covariance": numbers(inner._C)}
        made.append({"points": points, **state, "scales": scales})
    return {"kind": kind, "cells": cells, "population": population, "generations": made}


def main():
    runs = [record("plain", [0] * d, p, g, s) for s, (d, p, g) in enumerate([(2, 6, 10), (5, 8, 10), (3, 14, 6)])]
    margins = [([0, 0, 11, 2], 8, 12), ([3, 5, 0], 7, 12), ([2, 2, 2, 2, 2], 8, 12), ([101, 0, 4], 7, 12)]
    runs += [record("margin", c, p, g, s + 10) for s, (c, p, g) in enumerate(margins)]
    with open(sys.argv[1], "w") as file:
        json.dump(
            {"made_by": "make_cma_golden.py, cmaes " + cmaes.__version__, "runs": runs}, file, separators=(",", ":")
        )
        file.write("\n")


if __name__ == "__main__":
    main()

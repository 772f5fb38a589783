"""Writes contour.json: grids that Optuna 5.0.0 interpolates over scattered trials for its contour plot.

    python tests/tuner/golden/make_contour_golden.py tests/tuner/golden/contour.json
"""

import json
import sys

import numpy as np
from optuna.visualization.matplotlib import _contour

SIDE = _contour.CONTOUR_POINT_NUM


def record(seed, trials):
    rng = np.random.default_rng(seed)
    nodes = rng.choice(SIDE * SIDE, size=trials, replace=False)
    known = {(int(n) % SIDE, int(n) // SIDE): float(v) for n, v in zip(nodes, rng.normal(3, 2, trials))}
    z = _contour._interpolate_zmap(known, SIDE)
    shown = rng.choice(SIDE * SIDE, size=200, replace=False)
    return {
        "known": [[x, y, value] for (x, y), value in known.items()],
        "shown": [[int(n) % SIDE, int(n) // SIDE, float(z[int(n) // SIDE, int(n) % SIDE])] for n in shown],
    }


with open(sys.argv[1], "w") as file:
    grids = [record(seed, trials) for seed, trials in ((1, 2), (2, 30), (3, 300))]
    json.dump({"side": SIDE, "grids": grids}, file, separators=(",", ":"))
    file.write("\n")

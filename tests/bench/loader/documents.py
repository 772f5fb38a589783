"""Documents of tokens as corpora have them: most are short, a few fill several sequences. The same ones for us and our peers."""

import numpy as np

COUNT = 20_000
LENGTH = 2048


def documents():
    """Arrays of uint16."""
    draw = np.random.default_rng(0)
    lengths = np.minimum(draw.lognormal(6, 1, COUNT).astype(int) + 1, 8192)
    for length in lengths:
        yield draw.integers(0, 50_000, length, np.uint16)

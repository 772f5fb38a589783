"""The training script of the README's examples, as short as one can be."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--batch", type=int)
options = parser.parse_args()
print(f'tune: {{"loss": {abs(options.lr - 0.01) + options.batch / 1e4}}}')

"""What the tests of tune_ray.tune share."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import CLIENTS

from tune_ray import tune


@pytest.fixture
def no_cluster(monkeypatch):
    """Trials run in processes of this machine."""
    monkeypatch.setattr("tune_ray.tune._tuner._has_ray", lambda: False)


def fit(url, tmp_path, space, trainable, name=None, **more):
    """The grid of a Tuner that minimizes "loss". `run`: fields of RunConfig; others are TuneConfig's."""
    run = {"storage_path": str(tmp_path), "server": url, "name": name, **more.pop("run", {})}
    config = {"metric": "loss", "mode": "min", **more}
    return tune.Tuner(trainable, param_space=space, tune_config=tune.TuneConfig(**config), run_config=tune.RunConfig(**run)).fit()


# For examples that train on MNIST, which is downloaded: as many random digits of its shapes, made here.
TORCHVISION = '''
import torch

class MNIST(torch.utils.data.Dataset):
    def __init__(self, root, train=True, download=False, transform=None):
        generator = torch.Generator().manual_seed(int(train))
        self.targets = torch.randint(0, 10, (640,), generator=generator)
        self.images = torch.rand((640, 1, 28, 28), generator=generator) / 10
        for image, digit in zip(self.images, self.targets):
            image[0, 2 * digit:2 * digit + 4] += 1
        self.transform = transform

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return self.transform(self.images[index]), int(self.targets[index])

class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, value):
        for step in self.steps:
            value = step(value)
        return value

class Normalize:
    def __init__(self, mean, deviation):
        self.mean, self.deviation = mean[0], deviation[0]

    def __call__(self, value):
        return (value - self.mean) / self.deviation

def ToTensor():
    return lambda value: value
'''


def ours(text):
    """A script of ray.tune's with its import changed."""
    for theirs in ("from ray import tune", "from ray.tune "):
        text = text.replace(theirs, theirs.replace("from ray", "from tune_ray"))
    return re.sub(r"from ray\.tune\.(schedulers|stopper)", r"from tune_ray.tune.\1", text)


def run_example(name, url, tmp_path, **more):
    """What ray/tune/examples/NAME.py of the installed Ray prints as ours, with the flag for a short run."""
    import ray

    folder = pathlib.Path(ray.__file__).parent / "tune" / "examples"
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("from torchvision import stand_in as datasets, stand_in as transforms\n")
    (tmp_path / "torchvision" / "stand_in.py").write_text(TORCHVISION)
    (tmp_path / "example.py").write_text(ours((folder / f"{name}.py").read_text()))
    environment = {**os.environ, "TUNE_SERVER": url, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join([str(CLIENTS), str(tmp_path)]),
                   "RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_MEMORY_MONITOR": "1", **more}
    done = subprocess.run([sys.executable, "example.py", "--smoke-test"], cwd=tmp_path, env=environment, capture_output=True, text=True,
                          timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

"""Composer trains on our StreamingDataset and resumes in the middle of an epoch. It is in no environment of the tests, since its own list
asks for an older torch:

    python3.11 -m venv /tmp/composer && /tmp/composer/bin/pip install composer pytest
    PYTHONPATH=build/release/python /tmp/composer/bin/python -m pytest --noconftest tests/contract/loader/frameworks/test_composer.py
"""

import numpy as np
import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
torch = pytest.importorskip("torch")
composer = pytest.importorskip("composer")
from composer.core import Callback  # noqa: E402
from composer.models import ComposerModel  # noqa: E402
from tuneloader import MDSWriter, StreamingDataLoader, StreamingDataset  # noqa: E402

COUNT, BATCH = 64, 8


class Line(ComposerModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, batch):
        return self.layer(batch["x"])[:, 0]

    def loss(self, outputs, batch):
        return ((outputs - batch["y"].float() / COUNT) ** 2).mean()


class Seen(Callback):
    """The numbers of each batch's samples."""

    def __init__(self):
        self.batches = []

    def batch_start(self, state, logger):
        self.batches.append(state.batch["y"].tolist())


@pytest.fixture
def folder(tmp_path):
    with MDSWriter(out=str(tmp_path / "data"), columns={"x": "ndarray:float32:3", "y": "int"}, size_limit=2000) as out:
        for i in range(COUNT):
            out.write({"x": np.full(3, i / COUNT, np.float32), "y": i})
    return tmp_path


def train(folder, name, duration, **more):
    torch.manual_seed(0)
    dataset = StreamingDataset(local=str(folder / "data"), shuffle=True, shuffle_seed=3, batch_size=BATCH)
    model, seen = Line(), Seen()
    trainer = composer.Trainer(
        model=model, train_dataloader=StreamingDataLoader(dataset, batch_size=BATCH), max_duration=duration, callbacks=[seen], device="cpu",
        optimizers=torch.optim.SGD(model.parameters(), lr=0.1), progress_bar=False, save_folder=str(folder / name), save_interval="1ba", **more)
    trainer.fit()
    trainer.close()
    return seen.batches, model.layer.weight.detach().clone()


@pytest.mark.parametrize("stop", ["5ba", "8ba", "11ba"])
def test_a_stopped_training_goes_on_with_the_next_batch(folder, stop):
    whole, weight = train(folder, "whole", "2ep")
    assert len(whole) == 16 and all(sorted(sum(whole[at:at + 8], [])) == list(range(COUNT)) for at in (0, 8))
    begun, _ = train(folder, "begun", stop)
    rest, resumed = train(folder, "rest", "2ep", load_path=str(folder / "begun" / "latest-rank0.pt"))
    assert begun + rest == whole
    assert torch.equal(resumed, weight)

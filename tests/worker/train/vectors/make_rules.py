"""Writes rules.json: what torch's schedules, Lightning's BaseFinetuning and Lightning's batch-size finder do.

    pip install torch lightning && python make_rules.py > rules.json

Real trainers of Lightning train a tiny network; memory runs out where a step says so, in CUDA's words.
"""
import contextlib
import json
import logging
import re
import sys
import warnings

import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import BaseFinetuning
from pytorch_lightning.tuner import Tuner
from torch import nn
from torch.optim import lr_scheduler

STEPS = 40


def rates(make, lr):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1, dtype=torch.float64))], lr=lr)
    scheduler = make(optimizer)
    found = []
    for _ in range(STEPS):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def warmed_up(warmup, after):
    """torch's way to begin with a linear warm-up."""
    def make(optimizer):
        if warmup == 0:
            return after(optimizer)
        first = lr_scheduler.LinearLR(optimizer, start_factor=1 / warmup, total_iters=warmup - 1)
        return lr_scheduler.SequentialLR(optimizer, [first, after(optimizer)], milestones=[warmup])
    return make


def schedules():
    for warmup in (0, 2, 5):
        for floor in (0.0, 0.1):
            lr, left = 0.3, STEPS - warmup
            cosine = lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=left, eta_min=floor * lr)  # noqa: E731
            linear = lambda o: lr_scheduler.LinearLR(o, 1.0, floor, total_iters=left)  # noqa: E731
            for name, after in (("cosine", cosine), ("linear", linear)):
                yield {"schedule": name, "lr": lr, "warmup": warmup, "floor": floor,
                       "rates": rates(warmed_up(warmup, after), lr)}
    for size, factor in ((7, 0.1), (10, 0.5)):
        yield {"schedule": "step", "lr": 0.2, "warmup": 0, "steps": size, "factor": factor,
               "rates": rates(lambda o: lr_scheduler.StepLR(o, size, factor), 0.2)}
    yield {"schedule": "one-cycle", "lr": 0.5, "warmup": 0,
           "rates": rates(lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.5, total_steps=STEPS), 0.5)}
    yield {"schedule": "constant", "lr": 0.5, "warmup": 4,
           "rates": rates(warmed_up(4, lambda o: lr_scheduler.ConstantLR(o, 1.0)), 0.5)}


class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Linear(4, 4)
        self.bn1 = nn.BatchNorm1d(4)
        self.layer1 = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.layer2 = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.fc = nn.Linear(4, 1)
        self.batch_size = 2
        self.room = None
        self.tried = []

    def training_step(self, batch, _):
        x, = batch
        if self.room is not None:
            if not self.tried or self.tried[-1] != len(x):
                self.tried.append(len(x))
            if len(x) > self.room:
                raise RuntimeError("CUDA out of memory.")
        return self.fc(self.layer2(self.layer1(self.bn1(self.conv1(x))))).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD([p for p in self.parameters() if p.requires_grad], lr=0.01)

    def train_dataloader(self):
        data = torch.utils.data.TensorDataset(torch.randn(100_000 if self.room else 8, 4))
        return torch.utils.data.DataLoader(data, batch_size=self.batch_size)


def trainer(**options):
    return lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                             enable_model_summary=False, **options)


class Finetuning(BaseFinetuning):
    def __init__(self, freeze, unfreeze):
        super().__init__()
        self.frozen, self.unfrozen, self.epochs = freeze, unfreeze, []

    def matching(self, model, pattern):
        """The modules that hold parameters themselves, by the parameters' names as our patterns see them."""
        for name, module in model.named_modules():
            own = [f"{name}.{each}" for each, _ in module.named_parameters(recurse=False)]
            if own and re.search(pattern, own[0]):
                yield module

    def freeze_before_training(self, model):
        for module in self.matching(model, self.frozen):
            self.freeze(module, train_bn=False)

    def finetune_function(self, model, epoch, optimizer):
        for at, pattern in self.unfrozen:
            if at == epoch:
                frozen = [m for m in self.matching(model, pattern)
                          if not any(p.requires_grad for p in m.parameters(recurse=False))]
                if frozen:
                    self.unfreeze_and_add_param_group(frozen, optimizer)

    def on_train_epoch_end(self, trainer, model):
        self.epochs.append([name for name, parameter in model.named_parameters() if parameter.requires_grad])


def freezing():
    for freeze, unfreeze in (("^(conv1|bn1|layer)", [(2, "^layer2"), (4, "layer1"), (5, ".")]),
                             ("layer1", []), (".", [(1, "^fc"), (3, "bn1|layer2")])):
        callback = Finetuning(freeze, unfreeze)
        network = Network()
        if freeze == ".":  # Lightning's optimizer needs a parameter to begin with
            network.head = nn.Parameter(torch.zeros(1))
            network.training_step = lambda batch, _, n=network: (
                n.fc(n.layer2(n.layer1(n.bn1(n.conv1(batch[0]))))).square().mean() + n.head.square().sum())
            callback.frozen = "^(conv1|bn1|layer|fc)"
        trainer(max_epochs=6, callbacks=[callback]).fit(network)
        names = [name for name, _ in network.named_parameters() if name != "head"]
        yield {"freeze": callback.frozen, "unfreeze": ",".join(f"{at}:{pattern}" for at, pattern in unfreeze),
               "names": names, "epochs": [[name for name in epoch if name != "head"] for epoch in callback.epochs]}


def batch_sizes():
    for room in (2, 3, 8, 100, 777, 1500, 5000):
        case = {"room": room, "first": 2}
        for mode in ("power", "binsearch"):
            network = Network()
            network.room = room
            found = Tuner(trainer(max_epochs=1)).scale_batch_size(network, mode=mode, init_val=2, max_trials=12)
            case[mode] = {"found": found, "tried": network.tried}
        yield case


def main():
    warnings.simplefilter("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.manual_seed(0)
    with contextlib.redirect_stdout(sys.stderr):
        vectors = {"schedules": list(schedules()), "freezing": list(freezing()), "batch_sizes": list(batch_sizes())}
    json.dump(vectors, sys.stdout, indent=None)
    print()


if __name__ == "__main__":
    main()

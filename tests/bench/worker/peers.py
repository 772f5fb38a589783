"""The work of train_bench.cc in PyTorch eager mode, as its users write it: zero_grad, forward, backward, step."""

import json
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

ROUNDS = 21
STEPS_OF_ROUND = 100
WARM_UP_STEPS = 300
PEER = f"PyTorch {torch.__version__.split('+')[0]}"


def say(name, value, unit, peer=PEER):
    print(json.dumps({"name": name, "value": value, "unit": unit, "better": "lower", "peer": peer}), flush=True)


def step_us(model, make_optimizer, shape):
    x = torch.randn(32, *shape)
    y = torch.randint(0, 10, (32,))
    loss_of = nn.CrossEntropyLoss()
    optimizer = make_optimizer(model.parameters())

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()

    steps(WARM_UP_STEPS)
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        steps(STEPS_OF_ROUND)
        times.append((time.perf_counter() - began) / STEPS_OF_ROUND * 1e6)
    return statistics.median(times)


def mlp(dropout=None):
    def hidden(inputs):
        return [nn.Linear(inputs, 128), nn.ReLU()] + ([nn.Dropout(dropout)] if dropout else [])
    return nn.Sequential(*hidden(64), *hidden(128), nn.Linear(128, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(128, 10))


def start_ms():
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def main():
    torch.set_num_threads(1)
    name = "trainer step, mlp 64-128-128-10, batch 32, one thread, "
    adamw = lambda p: torch.optim.AdamW(p, lr=1e-3)  # noqa: E731
    fused = lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True)  # noqa: E731
    sgd = lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9)  # noqa: E731
    say(name + "AdamW", step_us(mlp(), adamw, [64]), "us")
    say(name + "AdamW", step_us(mlp(), fused, [64]), "us", PEER + " fused")
    say(name + "AdamW, dropout", step_us(mlp(0.2), adamw, [64]), "us")
    say(name + "SGD momentum", step_us(mlp(), sgd, [64]), "us")
    say("trainer step, cnn 8x8 16-32 channels, batch 32, one thread, AdamW", step_us(cnn(), adamw, [1, 8, 8]), "us")
    say("trainer start-up", start_ms(), "ms", f"import torch, {PEER}")


if __name__ == "__main__":
    main()

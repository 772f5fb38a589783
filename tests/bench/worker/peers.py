"""The work of train_bench.cc and ddp_bench.py in PyTorch, as its users write it: zero_grad, forward, backward, step;
eager and by torch.compile, and two ranks under torchrun. `--short`: whether it runs, not how fast."""

import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

ROUNDS = 21
STEPS_OF_ROUND = 100
WARM_UP_STEPS = 300
DDP_NAME = "two ranks, a step of mlp 64-512-512-512-10, batch 128, AdamW"
DDP_STEPS = 1000
SHORT = "--short" in sys.argv
PEER = f"PyTorch {torch.__version__.split('+')[0]}"


def say(name, value, unit, peer=PEER):
    print(json.dumps({"name": name, "value": value, "unit": unit, "better": "lower", "peer": peer}), flush=True)


def step_us(model, make_optimizer, shape, batch=32, tokens=0, classes=10, rounds=ROUNDS, steps_of_round=STEPS_OF_ROUND,
            warm_up=WARM_UP_STEPS):
    if tokens:
        x = torch.randint(0, tokens, (batch, *shape))
        x, y = x[:, :-1], x[:, 1:]
    else:
        x = torch.randn(batch, *shape)
        y = torch.randint(0, classes, (batch,))
    if SHORT:
        rounds = steps_of_round = warm_up = 1
    optimizer = make_optimizer(model.parameters())

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            scores = model(x)
            F.cross_entropy(scores.flatten(0, -2), y.flatten()).backward()
            optimizer.step()

    steps(warm_up)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        steps(steps_of_round)
        times.append((time.perf_counter() - began) / steps_of_round * 1e6)
    return statistics.median(times)


def mlp(dropout=None):
    def hidden(inputs):
        return [nn.Linear(inputs, 128), nn.ReLU()] + ([nn.Dropout(dropout)] if dropout else [])
    return nn.Sequential(*hidden(64), *hidden(128), nn.Linear(128, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(128, 10))


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        h = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(h + (x if self.shortcut is None else self.shortcut(x)))


def resnet18():
    """As in torchvision, with the first layer for images of 32 pixels."""
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    inputs = 64
    for stage in range(4):
        for block in range(2):
            layers.append(ResidualBlock(inputs, 64 << stage, 2 if stage and not block else 1))
            inputs = 64 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_out = nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for p in self.c_attn(self.ln_1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.c_proj(y)
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, places, vocabulary, width, heads, depth):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(places, width)
        self.h = nn.ModuleList(GptBlock(width, heads) for _ in range(depth))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def ddp_rank():
    """One of the ranks that torchrun starts; rank 0 prints."""
    from torch.nn.parallel import DistributedDataParallel
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    wide = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, 10))
    model = DistributedDataParallel(wide)
    us = step_us(model, lambda p: torch.optim.AdamW(p, lr=1e-3), [64], batch=64, rounds=7,
                 steps_of_round=DDP_STEPS // 7, warm_up=100)
    if torch.distributed.get_rank() == 0:
        say(DDP_NAME, us, "us", "torchrun, DistributedDataParallel of " + PEER)
    torch.distributed.destroy_process_group()


def measure_ddp():
    launcher = pathlib.Path(__file__).resolve().parents[2] / "e2e" / "trainer" / "torchrun.py"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    subprocess.run([sys.executable, str(launcher), "--nproc-per-node=2", "--nnodes=1", "--master-addr=127.0.0.1",
                    f"--master-port={port}", __file__, "ddp", *sys.argv[1:]], check=True, env=environment)


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
    cnn_name = "trainer step, cnn 8x8 16-32 channels, batch 32, one thread, AdamW"
    say(cnn_name, step_us(cnn(), adamw, [1, 8, 8]), "us")
    few = {"batch": 8, "rounds": 7, "steps_of_round": 3, "warm_up": 2}
    some = {"batch": 8, "tokens": 256, "rounds": 9, "steps_of_round": 10, "warm_up": 5}
    compiled = PEER + " torch.compile"
    resnet_name = "trainer step, resnet18 3x32x32, batch 8, one thread, AdamW"
    gpt_name = "trainer step, gpt 4 layers of 128, 128 tokens, batch 8, one thread, AdamW"
    say(resnet_name, step_us(resnet18(), adamw, [3, 32, 32], **few), "us")
    say(gpt_name, step_us(Gpt(128, 256, 128, 4, 4), adamw, [129], **some), "us")
    say(name + "AdamW", step_us(torch.compile(mlp()), adamw, [64]), "us", compiled)
    say(cnn_name, step_us(torch.compile(cnn()), adamw, [1, 8, 8]), "us", compiled)
    say(resnet_name, step_us(torch.compile(resnet18()), adamw, [3, 32, 32], **few), "us", compiled)
    say(gpt_name, step_us(torch.compile(Gpt(128, 256, 128, 4, 4)), adamw, [129], **some), "us", compiled)
    say("trainer start-up", start_ms(), "ms", f"import torch, {PEER}")
    measure_ddp()


if __name__ == "__main__":
    ddp_rank() if "ddp" in sys.argv else main()

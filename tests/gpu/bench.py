#!/usr/bin/env python3
"""What the trainer does on a GPU, beside PyTorch in Python on the same one: one JSON object a figure, as tests/bench/run.py
prints them.

    tests/gpu/bench.py --bin build/gpu/bin                      on a GPU; takes about ten minutes
    tests/gpu/bench.py --bin build/release/bin --device cpu --short     that everything runs, in small; figures mean nothing

- a step of resnet50 in bf16 and of a GPT of 124 million parameters: ours, PyTorch eager, torch.compile
- 64 small trials: one process after the other, 8 processes at once on one device, one pool
- the part of the time that steps wait for data

Needs torch and numpy, nothing of this project's environment. No GPU has run this yet.
"""

import argparse
import json
import pathlib
import statistics
import struct
import subprocess
import tempfile
import time

import numpy as np

TRIALS, AT_ONCE = 64, 8


def say(name, value, unit, better="lower", **more):
    print(json.dumps({"name": name, "value": round(value, 4), "unit": unit, "better": better, **more}), flush=True)


def write_images(directory, count):
    """Images of 8x8 bytes with ten classes, in the loader's format."""
    random = np.random.default_rng(0)
    encodings, sizes = ["ndarray:uint8:8,8", "int"], [64, 8]
    for split, rows in (("train", count), ("val", count // 4)):
        folder = directory / split
        folder.mkdir(parents=True)
        config = {"column_encodings": encodings, "column_names": ["image", "label"], "column_sizes": sizes,
                  "compression": None, "format": "mds", "hashes": [], "size_limit": 1 << 30, "version": 2}
        text = json.dumps(config, sort_keys=True).encode()
        images = random.integers(0, 100, (rows, 8, 8), np.uint8)
        for i in range(rows):
            images[i, i % 10 % 8] += 120
        samples = [image.tobytes() + struct.pack("<q", i % 10) for i, image in enumerate(images)]
        begin = 4 + 4 * (rows + 1) + len(text)
        offsets = np.cumsum([begin] + [len(sample) for sample in samples]).astype(np.uint32)
        shard = struct.pack("<I", rows) + offsets.tobytes() + text + b"".join(samples)
        (folder / "shard.00000.mds").write_bytes(shard)
        entry = {**config, "samples": rows, "zip_data": None,
                 "raw_data": {"basename": "shard.00000.mds", "bytes": len(shard), "hashes": {}}}
        (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [entry]}))


def checked(process, what):
    """Waits; nothing that failed gives a figure."""
    output, errors = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"bench.py: {what} ended with {process.returncode}: {errors[-2000:]}")
    return output


def start(command, **more):
    return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **more)


class Trials:
    """64 trainings of one small network, which differ by their rate."""

    def __init__(self, options, folder):
        self.options = options
        self.count = 4 if options.short else TRIALS
        write_images(folder / "data", 200 if options.short else 6000)
        self.common = {"data": str(folder / "data"), "epochs": "1" if options.short else "5", "batch-size": "64"}

    def command(self, trial):
        parameters = {**self.common, "lr": 1e-3 * (1 + trial % 8), "device": self.options.device, "log-every": 0}
        return [self.options.bin / "tune-trainer", "train", *(f"--{name}={value}" for name, value in parameters.items())]

    def processes(self, at_once):
        began = time.perf_counter()
        for first in range(0, self.count, at_once):
            group = [start(self.command(trial)) for trial in range(first, min(first + at_once, self.count))]
            for process in group:
                checked(process, "a trial")
        return time.perf_counter() - began

    def pool(self):
        lines = "".join(json.dumps({"op": "run", "trial": str(trial), "attempt": 1,
                                    "parameters": {**self.common, "lr": 1e-3 * (1 + trial % 8), "log-every": 0}}) + "\n"
                        for trial in range(self.count))
        began = time.perf_counter()
        process = start([self.options.bin / "tune-trainer", "pool", f"--parallel={AT_ONCE}",
                         f"--device={self.options.device}"], stdin=subprocess.PIPE)
        process.stdin.write(lines)
        process.stdin.close()
        process.stdin = None
        ends = [json.loads(line) for line in checked(process, "the pool").splitlines()]
        taken = time.perf_counter() - began
        done = [end for end in ends if end["event"] == "ended" and end["exit_code"] == 0]
        if len(done) != self.count:
            raise SystemExit(f"bench.py: {len(done)} of {self.count} trials of the pool completed")
        return taken


def measure_trials(options, folder):
    trials = Trials(options, folder)
    name = f"{trials.count} small trials on one device, "
    exclusive = trials.processes(1)
    say(name + "one after the other", exclusive, "s")
    say(name + f"{AT_ONCE} processes at once", trials.processes(AT_ONCE), "s")
    pool = trials.pool()
    say(name + "a pool", pool, "s")
    say("a pool against one after the other", exclusive / pool, "times", "higher", target=5)


def measure_data_wait(options):
    output = checked(start([options.bin / "tune-trainer", "selfcheck", f"--device={options.device}", "--step=data"]),
                     "the check of the data")
    result = json.loads(output)
    if result["status"] != "ok":
        raise SystemExit(f"bench.py: {result['detail']}")
    say("part of the time that steps wait for data", result["value"], "%", target=1)


def resnet50(short):
    """As in torchvision, which need not be here."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.convolutions = nn.ModuleList([nn.Conv2d(inputs, width, 1, bias=False),
                                               nn.Conv2d(width, width, 3, stride, 1, bias=False),
                                               nn.Conv2d(width, 4 * width, 1, bias=False)])
            self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width), nn.BatchNorm2d(4 * width)])
            self.shortcut = None
            if stride != 1 or inputs != 4 * width:
                self.shortcut = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False),
                                              nn.BatchNorm2d(4 * width))

        def forward(self, x):
            h = x
            for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
                h = norm(convolution(h))
                h = F.relu(h) if i < 2 else h
            return F.relu(h + (x if self.shortcut is None else self.shortcut(x)))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, blocks in enumerate([3, 4, 6, 3]):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, 64 << stage, 2 if stage and not block else 1))
            inputs = 4 * (64 << stage)
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
    side, batch = (32, 4) if short else (224, 64)
    x = torch.randn(batch, 3, side, side)
    return model, x, torch.randint(0, 1000, (batch,))


def gpt(short):
    import torch
    from torch import nn
    from torch.nn import functional as F
    width, heads, depth, places, vocabulary = (16, 2, 2, 16, 64) if short else (768, 12, 12, 1024, 50304)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.attend, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (part.view(b, t, heads, c // heads).transpose(1, 2)
                       for part in self.attend(self.norms[0](x)).split(c, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
            x = x + self.mix(y)
            return x + self.narrow(F.gelu(self.wide(self.norms[1](x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(places, width)
            self.blocks, self.norm = nn.ModuleList(Block() for _ in range(depth)), nn.LayerNorm(width)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            return F.linear(self.norm(x), self.tokens.weight)

    tokens = torch.randint(0, vocabulary, (8, places + 1))
    return Gpt(), tokens[:, :-1], tokens[:, 1:]


def python_step_us(options, make, optimizer_of, compiled):
    import torch
    from torch.nn import functional as F
    torch.manual_seed(0)
    device = torch.device(options.device)
    model, x, y = make(options.short)
    model, x, y = model.to(device), x.to(device), y.to(device)
    if make is resnet50:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = True
    optimizer = optimizer_of(model.parameters())
    runs = torch.compile(model) if compiled else model

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            with torch.autocast(options.device, torch.bfloat16):
                scores = runs(x)
                loss = F.cross_entropy(scores.flatten(0, -2).float(), y.flatten())
            loss.backward()
            optimizer.step()
        if options.device == "cuda":
            torch.cuda.synchronize()

    rounds, length, warm_up = (1, 1, 1) if options.short else (9, 20, 20)
    steps(warm_up)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        steps(length)
        times.append((time.perf_counter() - began) / length * 1e6)
    return statistics.median(times)


def measure_steps(options):
    import torch
    flags = (["--short"] if options.short else []) + (["--gpu-work"] if options.device == "cpu" else [])
    output = checked(start([options.bin / "train_bench", "--device", options.device, *flags]), "train_bench")
    ours = [json.loads(line) for line in output.splitlines()]
    sgd = lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9)  # noqa: E731
    adamw = lambda p: torch.optim.AdamW(p, lr=1e-3, fused=options.device == "cuda")  # noqa: E731
    for make, optimizer_of in ((resnet50, sgd), (gpt, adamw)):
        mine, = (figure for figure in ours if make.__name__ in figure["name"])
        best = None
        for compiled in (False, True) if not options.short else (False,):
            us = python_step_us(options, make, optimizer_of, compiled)
            peer = f"PyTorch {torch.__version__.split('+')[0]}" + (" torch.compile" if compiled else "")
            say(mine["name"], us, "us", peer=peer)
            best = us
        print(json.dumps({**mine, "target": best}), flush=True)
    for figure in ours:
        if "mlp" in figure["name"]:
            print(json.dumps(figure), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--short", action="store_true", help="whether it runs at all")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    measure_steps(options)
    with tempfile.TemporaryDirectory() as folder:
        measure_trials(options, pathlib.Path(folder))
    measure_data_wait(options)


if __name__ == "__main__":
    main()

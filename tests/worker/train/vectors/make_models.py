"""Writes models.json and module.pt: training steps of the larger models by PyTorch in Python, for the C++ models to repeat.

    pip install torch && python make_models.py

Weights follow from a formula (see `set_weights`), which the C++ test knows, so that no megabytes have to be stored.
"""
import json
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

LR = 0.001
HERE = pathlib.Path(__file__).parent


class BasicBlock(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = shortcut(inside, out, stride)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        out = 4 * width
        self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = shortcut(inside, out, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(F.relu(self.bn2(self.conv2(y)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


def shortcut(inside, out, stride):
    if stride == 1 and inside == out:
        return None
    return nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))


class Resnet(nn.Module):
    """With the names of torchvision's."""

    def __init__(self, block, counts, channels, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inside = 64
        for stage, count in enumerate(counts):
            blocks = []
            for i in range(count):
                width = 64 << stage
                blocks.append(block(inside, width, 2 if stage and not i else 1))
                inside = width * (4 if block is Bottleneck else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inside, outputs)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Transformer(nn.Module):
    def __init__(self, places, numbers, vocabulary, width, heads, depth, outputs):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width) if vocabulary else nn.Linear(numbers, width)
        self.position = nn.Parameter(torch.zeros(places, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, outputs)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x) + self.position).mean(1))


class Attention(nn.Module):
    """Written out, without the fused function."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.c_attn(x).split(c, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, places, vocabulary, width, heads, depth):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(places, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, x):
        h = self.wte(x) + self.wpe.weight[: x.shape[1]]
        for block in self.h:
            h = block(h)
        return self.ln_f(h) @ self.wte.weight.T


class Own(nn.Module):
    """What a user might bring: its own layers, a buffer that learns, dropout."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.0))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x))


def set_weights(model):
    """In the order of the sorted names; element i of tensor k is a sine of both, as good as noise."""
    with torch.no_grad():
        for k, (name, tensor) in enumerate(sorted(model.state_dict().items())):
            if not tensor.dtype.is_floating_point:
                continue
            i = torch.arange(tensor.numel(), dtype=torch.float64) % 7919
            wave = torch.sin(0.37 * i * i + k).view(tensor.shape)
            is_one = tensor.dim() == 1 and (name.endswith("weight") or name.endswith("running_var"))
            fan_in = tensor.numel() // tensor.shape[0] if tensor.dim() > 1 else 100
            tensor.copy_(1 + 0.1 * wave if is_one else wave / math.sqrt(fan_in))


def numbers(*shape):
    count = math.prod(shape)
    return torch.sin(1.3 * torch.arange(count, dtype=torch.float64)).float().view(shape)


def case(name, parameters, shape, model, x, target, vocabulary=0, view=lambda x: x):
    set_weights(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    losses = []
    gradients = {}
    model.train()
    # Residual networks with few samples are chaotic: after one step float32 tells little.
    for _ in range(1 if name.startswith("resnet") else 3):
        output = model(view(x))
        loss = F.cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        gradients = gradients or {k: v.grad.double().norm().item() for k, v in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        output = model(view(x))
        after = F.cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1)).item()
    sums = {k: v.double().abs().sum().item() for k, v in model.state_dict().items()}
    return dict(name=name, parameters=parameters | dict(optimizer="sgd", momentum="0", lr=str(LR)), shape=shape,
                vocabulary=vocabulary, losses=losses, gradients=gradients, after=after, sums=sums)


def main():
    torch.manual_seed(0)
    classes = torch.tensor([0, 1, 2, 2])
    tokens = (torch.arange(4 * 9) * 7 % 11).view(4, 9)
    image = dict(shape=[64, 64, 3], x=numbers(4, 64, 64, 3), target=classes, view=lambda x: x.permute(0, 3, 1, 2))
    cases = [
        case("resnet18", dict(model="resnet18"), model=Resnet(BasicBlock, (2, 2, 2, 2), 3, 3), **image),
        case("resnet34", dict(model="resnet34"), model=Resnet(BasicBlock, (3, 4, 6, 3), 3, 3), **image),
        case("resnet50", dict(model="resnet50"), model=Resnet(Bottleneck, (3, 4, 6, 3), 3, 3), **image),
        case("transformer of numbers", dict(model="transformer", width="8", heads="2", depth="2"), [5, 3],
             Transformer(5, 3, 0, 8, 2, 2, 3), numbers(4, 5, 3), classes),
        case("transformer of tokens", dict(model="transformer", width="8", heads="2", depth="2"), [9],
             Transformer(9, 1, 11, 8, 2, 2, 3), tokens, classes, vocabulary=11),
        case("gpt", dict(model="gpt", width="8", heads="2", depth="2"), [9], Gpt(8, 11, 8, 2, 2), tokens[:, :-1],
             tokens[:, 1:], vocabulary=11),
        case("torchscript", dict(model="torchscript"), [4], Own(), numbers(4, 4), classes),
    ]
    (HERE / "models.json").write_text("[\n" + ",\n".join(json.dumps(each) for each in cases) + "\n]\n")
    torch.jit.script(Own()).save(str(HERE / "module.pt"))


if __name__ == "__main__":
    main()

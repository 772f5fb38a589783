"""Writes learner.json: eight training steps by PyTorch in Python, for the C++ learner to repeat.

    pip install torch && python make_learner.py > learner.json
"""
import json

import torch
from torch import nn

MODELS = {
    "mlp": (dict(model="mlp", width=5, depth=2), [4],
            lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Dropout(), nn.Linear(5, 5), nn.ReLU(),
                                  nn.Dropout(), nn.Linear(5, 3))),
    "cnn": (dict(model="cnn", width=2, depth=2), [4, 4],
            lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(),
                                  nn.Flatten(), nn.Dropout(), nn.Linear(16, 3))),
    "cnn-channels-last": (dict(model="cnn", width=2, depth=1), [4, 4, 3],
            lambda: nn.Sequential(nn.Conv2d(3, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Flatten(), nn.Dropout(), nn.Linear(8, 3))),
}
OPTIMIZERS = [
    (dict(optimizer="adamw", lr=0.01, weight_decay=0.1, beta1=0.8, beta2=0.95, eps=1e-6),
     lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1, betas=(0.8, 0.95), eps=1e-6)),
    (dict(optimizer="sgd", lr=0.1, momentum=0.9, weight_decay=0.01),
     lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)),
    (dict(optimizer="sgd", lr=0.1, momentum=0.9, nesterov="true", weight_decay=0),
     lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
    (dict(optimizer="sgd", lr=0.1, momentum=0, weight_decay=0.01),
     lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01)),
]


def flat(tensor):
    return [round(v, 9) for v in tensor.detach().flatten().tolist()]


def case(name, arguments, shape, make_model, optimizer_arguments, make_optimizer):
    torch.manual_seed(3)
    model = make_model().eval()  # dropout is off on both sides
    optimizer = make_optimizer(model.parameters())
    x = torch.randn(6, *shape)
    y = torch.tensor([0, 1, 2, 2, 1, 0])
    start = {k: flat(v) for k, v in model.state_dict().items()}
    image = x.permute(0, 3, 1, 2) if len(shape) == 3 else x.unsqueeze(1) if len(shape) == 2 else x
    losses = []
    for _ in range(8):
        loss = nn.functional.cross_entropy(model(image), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return dict(name=f"{name} {optimizer_arguments['optimizer']}", shape=shape,
                parameters={k: str(v) for k, v in (arguments | optimizer_arguments).items()},
                x=flat(x), classes=y.tolist(), start=start, losses=losses,
                end={k: flat(v) for k, v in model.state_dict().items()})


print("[")
print(",\n".join(json.dumps(case(name, *model, *optimizer))
                 for name, model in MODELS.items() for optimizer in OPTIMIZERS))
print("]")

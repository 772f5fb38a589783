"""One rank of a training with DistributedDataParallel on our StreamingDataset; what test_streaming_ranks.py starts, by itself and under
TorchDistributor."""

import gc
import json
import os
import pathlib
import sys


def train(*arguments):
    """As `two_epochs`; nothing of torch's process group is left for the end of the interpreter, where torch 2.15 aborts one rank in seven."""
    value = two_epochs(*arguments)
    gc.collect()
    return value


def two_epochs(module, folder, stop_after, state_file):
    """Trains two epochs, or `stop_after` batches, then writes the state. The sample numbers of each batch by epoch, and the weights."""
    sys.path.insert(0, module)
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from tuneloader import StreamingDataLoader, StreamingDataset

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = StreamingDataLoader(StreamingDataset(local=folder, shuffle=True, shuffle_seed=3, batch_size=4), batch_size=4)
    saved = pathlib.Path(f"{state_file}-{dist.get_rank()}")
    epochs = []
    if saved.exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"])
        loader.load_state_dict(state["loader"])
        epochs = state["epochs"]
    given = sum(map(len, epochs))
    while not (len(epochs) == 2 and len(epochs[1]) * 4 * dist.get_world_size() >= 64):
        if not epochs or len(epochs[-1]) * 4 * dist.get_world_size() >= 64:
            epochs.append([])
        for batch in loader:
            epochs[-1].append(batch["y"].tolist())
            optimizer.zero_grad()
            ((model(batch["x"])[:, 0] - batch["y"] / 64) ** 2).mean().backward()
            optimizer.step()
            given += 1
            if given == stop_after:
                torch.save({"model": model.state_dict(), "loader": loader.state_dict(), "epochs": epochs}, saved)
                dist.destroy_process_group()
                return None
    weights = model.module.weight.detach().tolist()
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, {"epochs": epochs, "weights": weights})
    dist.destroy_process_group()
    return ranks


if __name__ == "__main__":
    ranks = train(*sys.argv[1:3], int(sys.argv[3]), sys.argv[4])
    if ranks and os.environ["RANK"] == "0":
        print(json.dumps(ranks))

"""One trial of population based training: continues the network of its parent for the epochs it is asked for.

`tune` names the parent's folder in TUNE_RESUME_FROM (absent in the first generation) and the trial's own in TUNE_CHECKPOINT_DIR.
"""

import json
import os
import pathlib
import pickle

import network as net


def checkpoint_in(folder):
    path = pathlib.Path(folder, "network.pickle") if folder else None
    return pickle.loads(path.read_bytes()) if path and path.exists() else None


def save(network, folder):
    path = pathlib.Path(folder, "network.pickle")
    path.with_suffix(".new").write_bytes(pickle.dumps(network))
    os.replace(path.with_suffix(".new"), path)  # whole or not at all, whenever the process is killed


def main():
    params = json.loads(os.environ["TUNE_PARAMS"])
    own, parent = os.environ["TUNE_CHECKPOINT_DIR"], os.environ.get("TUNE_RESUME_FROM")
    x, y, x_val, y_val = net.load_digits()
    # Its own checkpoint first: the trial may have been interrupted.
    network = checkpoint_in(own) or checkpoint_in(parent) or net.new_network(int(os.environ["TUNE_SEED"]))
    while network["epoch"] < int(os.environ["TUNE_STEP_TO"]):
        net.train_epoch(network, x, y, **params)
        print("tune: " + json.dumps({"val_loss": net.loss_of(network, x_val, y_val), "step": network["epoch"]}))
        save(network, own)


if __name__ == "__main__":
    main()

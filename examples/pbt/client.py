"""The same from Python: this process keeps the networks, the server decides who continues which of them.

Usage: client.py SERVER [MEMBERS_AT_ONCE]
"""

import copy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))
import tune_client as tune  # noqa: E402

import network as net  # noqa: E402

SPACE = {
    "lr": {"float": [1e-3, 3], "log": True},
    "momentum": {"float": [0, 0.99]},
    "decay": {"float": [1e-6, 1e-2], "log": True},
    "batch": {"int": [16, 256], "log": True},
}


def main():
    server, jobs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2
    study = tune.create_study(
        "pbt-client", server=server, space=SPACE, metric={"name": "val_loss", "goal": "min", "take": "last"},
        sampler={"type": "pbt", "seed": 7, "population": 8, "interval": 5, "max": 30},
    )
    x, y, x_val, y_val = net.load_digits()
    networks = {}  # of each trial, by its number

    def train(trial):
        # A copy: the parent may be continued by others too.
        network = net.new_network(trial.seed) if trial.parent is None else copy.deepcopy(networks[trial.parent])
        while network["epoch"] < trial.steps[1]:
            net.train_epoch(network, x, y, **trial.params)
        networks[trial.number] = network
        return net.loss_of(network, x_val, y_val)

    study.optimize(train, jobs=jobs)
    best = study.best_trial
    print(f"trial {best['number']}: val_loss {best['value']:.4f}")
    for trial in best["lineage"]:
        shown = "  ".join(f"{name} {value:.4g}" for name, value in trial["params"].items())
        print(f"  epochs {trial['steps'][0]} to {trial['steps'][1]}: {shown}  ->  {trial['value']:.4f}")


if __name__ == "__main__":
    main()

"""Trains a small neural network on handwritten digits, tracked with MLflow.

Nothing in this file knows of `tune`: it is what a training script that already uses MLflow looks like. Run it alone
against any MLflow server, or let `tune` search its options (README.md in this folder).
"""

import argparse
import csv
import pathlib
import warnings

import mlflow
import numpy
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

DIGITS = pathlib.Path(__file__).resolve().parent.parent / "data" / "digits.csv"


def load_digits():
    with open(DIGITS, newline="") as file:
        rows = list(csv.reader(file))[1:]
    table = numpy.array(rows, dtype=numpy.float32)
    return train_test_split(table[:, :-1] / 16.0, table[:, -1].astype(int), test_size=0.25, random_state=0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--alpha", type=float, default=1e-4)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()

    x_train, x_val, y_train, y_val = load_digits()
    warnings.filterwarnings("ignore", category=ConvergenceWarning)  # one pass a call never converges
    mlflow.sklearn.autolog(log_models=False)
    with mlflow.start_run():
        model = MLPClassifier(
            hidden_layer_sizes=(options.hidden,),
            learning_rate_init=options.lr,
            alpha=options.alpha,
            max_iter=1,
            warm_start=True,
            random_state=0,
        )
        for epoch in range(1, options.epochs + 1):
            model.fit(x_train, y_train)  # warm start: one more pass over the data
            mlflow.log_metric("val_accuracy", model.score(x_val, y_val), step=epoch)
        mlflow.sklearn.log_model(
            model, name="model", input_example=x_val[:2], serialization_format="cloudpickle"
        )


if __name__ == "__main__":
    main()

"""Writes sklearn_tables.json: scores of scikit-learn models on its bundled datasets, for every point of a grid.
What the file has is kept: remove it to start over.

    .venv-peers/bin/python tests/bench/tuner/sklearn_tables.py

After Bayesmark (spaces of bayesmark/sklearn_funcs.py as far as current scikit-learn has them): an 80 % split with
shuffle seed 0, 3-fold cross-validation on it, log loss (SVM: accuracy) for classes and mean squared error for numbers.
Takes minutes.
"""

import itertools
import json
import pathlib
import sys
import warnings


def logs(low, high, count):
    return [low * (high / low) ** (i / (count - 1)) for i in range(count)]


def steps(low, high, count):
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def spaces():
    """model -> (parameters as (name, values, is_category), make(values, is_class))"""
    from sklearn import ensemble, linear_model, neighbors, svm, tree

    def knn(v, is_class):
        kind = neighbors.KNeighborsClassifier if is_class else neighbors.KNeighborsRegressor
        return kind(n_neighbors=v[0], p=v[1], weights=v[2])

    def decision_tree(v, is_class):
        kind = tree.DecisionTreeClassifier if is_class else tree.DecisionTreeRegressor
        return kind(max_depth=v[0], min_samples_split=v[1], min_samples_leaf=v[2], max_features=v[3], random_state=0)

    def forest(v, is_class):
        kind = ensemble.RandomForestClassifier if is_class else ensemble.RandomForestRegressor
        return kind(n_estimators=10, max_depth=v[0], max_features=v[1], min_samples_leaf=v[2], random_state=0)

    def machine(v, is_class):
        kernel = {"kernel": v[2], "C": v[0], "gamma": v[1]}
        return svm.SVC(probability=False, **kernel) if is_class else svm.SVR(**kernel)

    def linear(v, is_class):
        if is_class:
            return linear_model.LogisticRegression(C=v[0], fit_intercept=v[1], tol=v[2], max_iter=200)
        return linear_model.Ridge(alpha=v[0], fit_intercept=v[1], tol=v[2])

    split = [("max_depth", list(range(1, 16)), False), ("min_samples_split", steps(0.01, 0.61, 4), False)]
    leaf = ("min_samples_leaf", steps(0.01, 0.31, 4), False)
    kernels = ("kernel", ["rbf", "sigmoid"], True)
    return {
        "kNN": (
            [
                ("n_neighbors", list(range(1, 26)), False),
                ("p", steps(1, 4, 7), False),
                ("weights", ["uniform", "distance"], True),
            ],
            knn,
        ),
        "linear": (
            [
                ("C", logs(1e-4, 1e4, 33), False),
                ("intercept", [True, False], True),
                ("tol", logs(1e-5, 1e-1, 3), False),
            ],
            linear,
        ),
        "SVM": ([("C", logs(1, 1e3, 10), False), ("gamma", logs(1e-4, 1, 13), False), kernels], machine),
        "DT": ([*split, leaf, ("max_features", steps(0.3, 1, 2), False)], decision_tree),
        "RF": ([("max_depth", list(range(1, 11)), False), ("max_features", steps(0.1, 1, 4), False), leaf], forest),
    }


def main():
    import sklearn
    from sklearn import datasets, model_selection, preprocessing

    warnings.simplefilter("ignore")
    data = {
        "wine": (datasets.load_wine, True),
        "breast": (datasets.load_breast_cancer, True),
        "diabetes": (datasets.load_diabetes, False),
    }
    target = pathlib.Path(__file__).parent / "sklearn_tables.json"
    problems = json.loads(target.read_text())["problems"] if target.exists() else {}
    for (model, (parameters, make)), (name, (load, is_class)) in itertools.product(spaces().items(), data.items()):
        if f"{model} {name}" in problems:
            continue
        x, y = load(return_X_y=True)
        x, _, y, _ = model_selection.train_test_split(x, y, test_size=0.2, shuffle=True, random_state=0)
        x = preprocessing.StandardScaler().fit_transform(x)
        scoring = "neg_mean_squared_error" if not is_class else ("accuracy" if model == "SVM" else "neg_log_loss")
        losses = []
        for values in itertools.product(*(domain for _, domain, _ in parameters)):
            score = model_selection.cross_val_score(make(values, is_class), x, y, cv=3, scoring=scoring).mean()
            losses.append(float(f"{-score:.5g}"))
        described = [{"name": n, "count": len(v), "is_category": c} for n, v, c in parameters]
        problems[f"{model} {name}"] = {"parameters": described, "losses": losses}
        made = {"made_by": "sklearn_tables.py, scikit-learn " + sklearn.__version__, "problems": problems}
        target.write_text(json.dumps(made, separators=(",", ":")) + "\n")
        print(model, name, len(losses), min(losses), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

"""Autologging, log_model and load_model of the frameworks: LightGBM, scikit-learn's searches, custom models.
PyTorch is in test_torch.py."""

import pytest


@pytest.fixture(scope="module")
def iris():
    datasets = pytest.importorskip("sklearn.datasets")
    return datasets.load_iris(return_X_y=True)


def logged_models_of(client, run_id):
    return [client.get_logged_model(each.model_id) for each in client.get_run(run_id).outputs.model_outputs]


def test_a_search_of_scikit_learn_makes_child_runs(mlflow, client, experiment, iris):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    mlflow.sklearn.autolog(silent=True, log_models=False, log_datasets=False)
    try:
        with mlflow.start_run(experiment_id=experiment) as run:
            GridSearchCV(LogisticRegression(max_iter=200), {"C": [0.1, 1.0, 10.0]}, cv=2).fit(*iris)
    finally:
        mlflow.sklearn.autolog(disable=True)
    children = client.search_runs([experiment], f"tags.mlflow.parentRunId = '{run.info.run_id}'")
    assert sorted(child.data.params["C"] for child in children) == ["0.1", "1.0", "10.0"]
    read = client.get_run(run.info.run_id)
    assert read.data.params["best_C"] in ("0.1", "1.0", "10.0") and "best_cv_score" in read.data.metrics
    assert "cv_results.csv" in [each.path for each in client.list_artifacts(run.info.run_id)]


def test_autologging_of_lightgbm(mlflow, client, experiment, iris):
    lightgbm = pytest.importorskip("lightgbm")
    mlflow.lightgbm.autolog(silent=True)
    try:
        with mlflow.start_run(experiment_id=experiment) as run:
            train = lightgbm.Dataset(*iris)
            booster = lightgbm.train({"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1},
                                     train, num_boost_round=4, valid_sets=[train], valid_names=["train"])
    finally:
        mlflow.lightgbm.autolog(disable=True)
    read = client.get_run(run.info.run_id)
    assert read.data.params["num_class"] == "3"
    history = client.get_metric_history(run.info.run_id, "train-multi_logloss")
    assert [point.step for point in history] == [0, 1, 2, 3]
    assert history[3].value < history[0].value
    files = [each.path for each in client.list_artifacts(run.info.run_id)]
    assert "feature_importance_gain.json" in files
    model = logged_models_of(client, run.info.run_id)[0]
    assert model.status == "READY"
    loaded = mlflow.lightgbm.load_model(f"models:/{model.model_id}")
    assert (loaded.predict(iris[0][:5]) == booster.predict(iris[0][:5])).all()


def test_a_custom_model_with_signature_and_files(mlflow, client, experiment, tmp_path):
    import pandas

    (tmp_path / "offset.txt").write_text("3")

    class Offset(mlflow.pyfunc.PythonModel):
        def load_context(self, context):
            with open(context.artifacts["offset"]) as file:
                self.offset = int(file.read())

        def predict(self, context, model_input, params=None):
            return model_input["x"] + self.offset

    frame = pandas.DataFrame({"x": [1, 2]})
    signature = mlflow.models.infer_signature(frame, frame["x"])
    with mlflow.start_run(experiment_id=experiment) as run:
        info = mlflow.pyfunc.log_model(name="offset", python_model=Offset(), signature=signature, input_example=frame,
                                       artifacts={"offset": str(tmp_path / "offset.txt")}, pip_requirements=["pandas"])
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    assert list(loaded.predict(frame)) == [4, 5]
    assert mlflow.models.get_model_info(info.model_uri).signature == signature
    files = [each.path for each in client.list_logged_model_artifacts(info.model_id)]
    assert "input_example.json" in files and "artifacts" in files
    assert client.get_run(run.info.run_id).outputs.model_outputs[0].model_id == info.model_id


def test_a_model_whose_files_fail_is_marked(mlflow, client, experiment):
    class Broken(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return model_input

        def __reduce__(self):
            raise RuntimeError("cannot be stored")

    with mlflow.start_run(experiment_id=experiment):
        with pytest.raises(Exception, match="serialize"):
            mlflow.pyfunc.log_model(name="broken", python_model=Broken(), pip_requirements=[])
    found = mlflow.search_logged_models([experiment], output_format="list")
    assert [model.status for model in found] == ["FAILED"]

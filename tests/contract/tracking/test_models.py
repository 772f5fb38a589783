"""Logged models: scikit-learn autologging, log_model, loading, searching."""

import pytest

sklearn = pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def iris():
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


def test_autologging_of_scikit_learn(mlflow, client, experiment, iris):
    from sklearn.linear_model import LogisticRegression

    mlflow.sklearn.autolog(silent=True)
    try:
        with mlflow.start_run(experiment_id=experiment) as run:
            model = LogisticRegression(max_iter=300).fit(*iris)
            accuracy = model.score(*iris)
    finally:
        mlflow.sklearn.autolog(disable=True)
    read = client.get_run(run.info.run_id)
    assert read.data.params["max_iter"] == "300"
    assert read.data.metrics["training_accuracy_score"] == pytest.approx(accuracy)
    assert read.inputs.dataset_inputs and read.outputs.model_outputs
    logged = client.get_logged_model(read.outputs.model_outputs[0].model_id)
    assert logged.status == "READY" and logged.source_run_id == run.info.run_id
    assert logged.params["max_iter"] == "300"
    assert {metric.key for metric in logged.metrics} >= {"training_accuracy_score"}
    assert "estimator.html" in [each.path for each in client.list_artifacts(run.info.run_id)]
    files = [each.path for each in client.list_logged_model_artifacts(logged.model_id)]
    assert "MLmodel" in files
    loaded = mlflow.sklearn.load_model(f"models:/{logged.model_id}")
    assert list(loaded.predict(iris[0][:5])) == list(model.predict(iris[0][:5]))


def test_a_model_is_logged_found_and_changed(mlflow, client, experiment, iris):
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(max_depth=2).fit(*iris)
    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_params({f"p{i}": i for i in range(3)})
        mlflow.log_metric("acc", 0.5, step=0)
        info = mlflow.sklearn.log_model(model, name="tree", tags={"kind": "small"}, step=0,
                                        params={"depth": 2}, serialization_format="pickle")
        mlflow.log_metric("late", 0.75, model_id=info.model_id)
    found = mlflow.search_logged_models([experiment], "name = 'tree'", output_format="list")
    assert [each.model_id for each in found] == [info.model_id]
    assert found[0].tags["kind"] == "small" and found[0].params["depth"] == "2"
    assert {metric.key: metric.value for metric in found[0].metrics}["late"] == 0.75
    client.set_logged_model_tags(info.model_id, {"a/b": "1", "kind": "tiny"})
    client.delete_logged_model_tag(info.model_id, "a/b")
    assert client.get_logged_model(info.model_id).tags["kind"] == "tiny"
    assert mlflow.sklearn.load_model(f"runs:/{run.info.run_id}/tree").max_depth == 2
    ordered = mlflow.search_logged_models(
        [experiment], order_by=[{"field_name": "metrics.late", "ascending": False}], output_format="list")
    assert ordered[0].model_id == info.model_id
    client.delete_logged_model(info.model_id)
    assert mlflow.search_logged_models([experiment], output_format="list") == []


def test_models_outside_of_a_run(mlflow, client, experiment):
    model = mlflow.initialize_logged_model(name="outside", experiment_id=experiment,
                                           params={f"p{i}": str(i) for i in range(250)})
    assert client.get_logged_model(model.model_id).status == "PENDING"
    mlflow.finalize_logged_model(model.model_id, "FAILED")
    read = client.get_logged_model(model.model_id)
    assert read.status == "FAILED" and len(read.params) == 250
    external = mlflow.create_external_model(name="elsewhere", experiment_id=experiment)
    assert client.get_logged_model(external.model_id).status == "READY"


def test_a_registered_model_that_is_not_there_is_an_error(mlflow, client):
    from mlflow.exceptions import MlflowException

    with pytest.raises(MlflowException):
        client.get_registered_model("none")

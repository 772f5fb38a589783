"""The model registry through the real client: models, versions, stages, aliases, prompts, files."""

import concurrent.futures
import threading
import uuid

import pytest
import requests

sklearn = pytest.importorskip("sklearn")


@pytest.fixture
def name():
    return f"model-{uuid.uuid4().hex}"


@pytest.fixture
def models(client, name):
    """A registered model with three versions."""
    client.create_registered_model(name, tags={"team": "risk"}, description="first")
    for number in range(1, 4):
        client.create_model_version(name, f"s3://bucket/{number}", tags={"n": str(number)})
    return name


@pytest.fixture(scope="module")
def tree():
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=2).fit(*load_iris(return_X_y=True))


# Without it MLflow runs a process to find out what the model imports.
SHORT = {"serialization_format": "pickle", "pip_requirements": ["scikit-learn"]}


@pytest.fixture
def logged(mlflow, experiment, tree):
    """A logged model with its files, and its run."""
    with mlflow.start_run(experiment_id=experiment) as run:
        info = mlflow.sklearn.log_model(tree, name="tree", **SHORT)
    return info, run.info.run_id


def refused(call, *arguments, **named):
    from mlflow.exceptions import MlflowException

    with pytest.raises(MlflowException) as caught:
        call(*arguments, **named)
    return caught.value


def numbers(versions):
    return [int(each.version) for each in versions]


def test_a_model_lives(client, models):
    model = client.get_registered_model(models)
    assert (model.description, model.tags) == ("first", {"team": "risk"})
    assert numbers(model.latest_versions) == [3]
    assert client.update_registered_model(models, "second").description == "second"
    client.set_registered_model_tag(models, "stage", "x")
    client.delete_registered_model_tag(models, "team")
    assert client.get_registered_model(models).tags == {"stage": "x"}
    client.rename_registered_model(models, models + "-b")
    assert numbers(client.get_registered_model(models + "-b").latest_versions) == [3]
    assert client.get_model_version(models + "-b", "1").name == models + "-b"
    assert refused(client.get_registered_model, models).error_code == "RESOURCE_DOES_NOT_EXIST"
    client.delete_registered_model(models + "-b")
    assert refused(client.get_registered_model, models + "-b").get_http_status_code() == 404
    assert client.search_model_versions(f"name = '{models}-b'") == []


def test_names_are_unique(client, models):
    error = refused(client.create_registered_model, models)
    assert error.error_code == "RESOURCE_ALREADY_EXISTS"
    assert f"Registered Model (name={models}) already exists." in error.message
    client.create_registered_model(models + "-b")
    assert (
        "already exists" in refused(client.rename_registered_model, models + "-b", models).message
    )


def test_versions_change(client, models):
    version = client.get_model_version(models, "2")
    assert (version.status, version.current_stage, version.source) == (
        "READY",
        "None",
        "s3://bucket/2",
    )
    assert version.tags == {"n": "2"}
    assert client.update_model_version(models, "2", "text").description == "text"
    client.set_model_version_tag(models, "2", "k", "v")
    client.delete_model_version_tag(models, "2", "n")
    assert client.get_model_version(models, "2").tags == {"k": "v"}
    assert client.get_model_version_download_uri(models, "2") == "s3://bucket/2"
    client.delete_model_version(models, "3")
    assert "not found" in refused(client.get_model_version, models, "3").message
    assert int(client.create_model_version(models, "s3://bucket/4").version) == 4


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_stages(client, models):
    client.transition_model_version_stage(models, "1", "Production")
    client.transition_model_version_stage(models, "2", "production", archive_existing_versions=True)
    assert client.get_model_version(models, "1").current_stage == "Archived"
    assert numbers(client.get_latest_versions(models, ["Production"])) == [2]
    assert sorted(numbers(client.get_latest_versions(models))) == [1, 2, 3]
    assert (
        "Invalid Model Version stage"
        in refused(client.transition_model_version_stage, models, "1", "x").message
    )
    error = refused(client.transition_model_version_stage, models, "1", "None", True)
    assert error.get_http_status_code() == 400


def test_aliases(client, models):
    client.set_registered_model_alias(models, "champion", "1")
    client.set_registered_model_alias(models, "champion", "2")
    assert int(client.get_model_version_by_alias(models, "champion").version) == 2
    assert client.get_model_version(models, "2").aliases == ["champion"]
    assert client.get_registered_model(models).aliases == {"champion": "2"}
    assert int(client.get_model_version_by_alias(models, "latest").version) == 3
    client.delete_model_version(models, "2")
    assert client.get_registered_model(models).aliases == {}
    error = refused(client.get_model_version_by_alias, models, "champion")
    assert error.message.endswith("Registered model alias champion not found.")
    for alias in ["latest", "v1", "a b"]:
        assert refused(client.set_registered_model_alias, models, alias, "1").error_code == (
            "INVALID_PARAMETER_VALUE"
        )
    client.delete_registered_model_alias(models, "champion")


def test_searches_page_and_order(client, name):
    for number in range(7):
        client.create_registered_model(f"{name}-{number}", tags={"odd": str(number % 2)})
        client.create_model_version(f"{name}-{number}", "s3://bucket/x")
    where = f"name LIKE '{name}%'"
    found, token = [], None
    while token != "":
        page = client.search_registered_models(
            where, max_results=3, order_by=["name DESC"], page_token=token
        )
        found += [each.name[-1] for each in page]
        token = page.token or ""
    assert found == list("6543210")
    odd = client.search_registered_models(where + " AND tags.odd = '1'")
    assert [each.name[-1] for each in odd] == list("135")
    either = client.search_registered_models(f"name = '{name}-1' OR name = '{name}-2'")
    assert [each.name[-1] for each in either] == list("12")
    versions = client.search_model_versions(where, max_results=4, order_by=["name ASC"])
    assert [each.name[-1] for each in versions] == list("0123") and versions.token
    more = client.search_model_versions(
        where, max_results=4, order_by=["name ASC"], page_token=versions.token
    )
    assert [each.name[-1] for each in more] == list("456") and not more.token


def test_a_run_is_registered_and_loaded(mlflow, client, name, logged, tree):
    info, run_id = logged
    by_run = mlflow.register_model(f"runs:/{run_id}/tree", name)
    by_id = mlflow.register_model(f"models:/{info.model_id}", name)
    assert [int(by_run.version), int(by_id.version)] == [1, 2]
    assert by_run.run_id == by_id.run_id == run_id
    client.set_registered_model_alias(name, "best", "1")
    for uri in [
        f"models:/{name}/1",
        f"models:/{name}@best",
        f"models:/{name}/latest",
        f"models:/{name}/2",
    ]:
        assert mlflow.sklearn.load_model(uri).max_depth == tree.max_depth
    noted = client.get_logged_model(info.model_id).tags["mlflow.modelVersions"]
    assert f'"name": "{name}", "version": 1' in noted and '"version": 2' in noted
    files = mlflow.artifacts.list_artifacts(f"models:/{name}/1")
    assert "MLmodel" in [each.path.rsplit("/", 1)[-1] for each in files]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_log_model_registers(mlflow, client, experiment, name, tree):
    with mlflow.start_run(experiment_id=experiment) as run:
        info = mlflow.sklearn.log_model(tree, name="tree", registered_model_name=name, **SHORT)
    assert int(info.registered_model_version) == 1
    version = client.get_model_version(name, "1")
    assert version.run_id == run.info.run_id and version.source == f"models:/{info.model_id}"
    client.transition_model_version_stage(name, "1", "Staging")
    assert mlflow.sklearn.load_model(f"models:/{name}/Staging").max_depth == tree.max_depth


def test_versions_are_copied(mlflow, client, name, logged):
    info, run_id = logged
    mlflow.register_model(f"models:/{info.model_id}", name)
    copy = client.copy_model_version(f"models:/{name}/1", name + "-copy")
    assert (int(copy.version), copy.source, copy.run_id) == (1, f"models:/{name}/1", run_id)
    assert mlflow.sklearn.load_model(f"models:/{name}-copy/1").max_depth == 2
    again = client.copy_model_version(f"models:/{name}-copy/1", name + "-copy")
    assert int(again.version) == 2
    uri = client.get_model_version_download_uri(name, "1")
    assert client.get_model_version_download_uri(name + "-copy", "2") == uri


def test_files_of_a_version(mlflow, server, name, logged):
    info, run_id = logged
    mlflow.register_model(f"models:/{info.model_id}", name)
    address = f"{server.url}/model-versions/get-artifact"
    fields = {"name": name, "version": "1", "path": "MLmodel"}
    answer = requests.get(address, params=fields, timeout=30)
    assert answer.status_code == 200 and b"sklearn" in answer.content
    assert "attachment" in answer.headers["Content-Disposition"]
    for path in ["../MLmodel", "%2e%2e/MLmodel", "/etc/passwd", "a/../../MLmodel"]:
        assert requests.get(address, params={**fields, "path": path}, timeout=30).status_code == 400
    for wrong in [{"path": "none"}, {"version": "9"}, {"name": "none"}]:
        assert requests.get(address, params={**fields, **wrong}, timeout=30).status_code == 404


def test_prompts(mlflow, client, name, models):
    prompt = "p-" + name
    first = mlflow.genai.register_prompt(
        prompt, "Hello {{who}}", commit_message="one", tags={"lang": "en"}
    )
    second = mlflow.genai.register_prompt(prompt, "Good day {{who}}")
    assert [first.version, second.version] == [1, 2]
    mlflow.genai.set_prompt_alias(prompt, "live", 1)
    assert mlflow.genai.load_prompt(f"prompts:/{prompt}/2").format(who="x") == "Good day x"
    assert mlflow.genai.load_prompt(f"prompts:/{prompt}@live").template == "Hello {{who}}"
    assert [each.name for each in mlflow.genai.search_prompts(f"name = '{prompt}'")] == [prompt]
    assert client.search_registered_models(f"name = '{prompt}'") == []
    assert client.search_model_versions(f"name = '{prompt}'") == []
    assert [each.name for each in client.search_registered_models(f"name = '{models}'")] == [models]
    mlflow.genai.delete_prompt_alias(prompt, "live")
    client.delete_prompt_version(prompt, "2")
    client.delete_prompt_version(prompt, "1")
    client.delete_prompt(prompt)
    assert mlflow.genai.search_prompts(f"name = '{prompt}'") == []


def test_sixteen_clients_get_sixteen_numbers(client, name):
    client.create_registered_model(name)

    def create(worker):
        return [
            int(client.create_model_version(name, f"s3://b/{worker}").version) for _ in range(4)
        ]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        made = [number for each in pool.map(create, range(16)) for number in each]
    assert sorted(made) == list(range(1, 65))


def test_a_killed_server_keeps_what_it_answered(own_server):
    server = own_server()
    api = f"{server.url}/api/2.0/mlflow/"
    requests.post(api + "registered-models/create", json={"name": "m"}, timeout=30)
    acknowledged = []
    enough = threading.Event()

    def create(worker):
        while True:
            try:
                source = {"name": "m", "source": f"s3://b/{worker}"}
                answer = requests.post(api + "model-versions/create", json=source, timeout=30)
                version = answer.json()["model_version"]["version"]
                alias = {"name": "m", "alias": f"a{version}", "version": version}
                if requests.post(api + "registered-models/alias", json=alias, timeout=30).ok:
                    acknowledged.append((int(version), f"s3://b/{worker}"))
            except requests.exceptions.RequestException:
                return
            if len(acknowledged) >= 60:
                enough.set()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        running = pool.map(create, range(8))
        enough.wait(120)
        server.kill()
        list(running)
    assert len(acknowledged) >= 60
    again = own_server()
    api = f"{again.url}/api/2.0/mlflow/"
    found = requests.get(api + "model-versions/search", timeout=30).json()["model_versions"]
    sources = {int(each["version"]): each["source"] for each in found}
    model = requests.get(api + "registered-models/get", params={"name": "m"}, timeout=30).json()
    aliases = {each["alias"] for each in model["registered_model"]["aliases"]}
    for version, source in acknowledged:
        assert sources[version] == source and f"a{version}" in aliases
    assert sorted(sources) == list(range(1, len(sources) + 1))

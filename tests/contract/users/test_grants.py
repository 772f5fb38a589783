"""What users and roles may do to runs, logged models, versions, prompts and the other kinds of things, by MLflow's own client."""

import os

import mlflow
import pytest
import requests
from mlflow.tracking import MlflowClient

from users_support import ADMIN, PASSWORD, auth, login, refused, url, user  # noqa: F401 (fixtures among them)

BY_ID = ("experiment", "registered_model", "prompt", "scorer", "gateway_secret", "gateway_endpoint", "gateway_model_definition",
         "mcp_server")
BY_TYPE = ("run", "trace", "assessment", "logged_model", "review_queue", "registered_model_version", "prompt_version", "scorer_version",
           "mcp_server_version")


@pytest.mark.parametrize("kind", BY_ID + BY_TYPE)
def test_every_kind_can_be_granted(url, auth, user, kind):
    name = user("kinds")
    with login(*ADMIN):
        role = auth.create_role("default", f"kinds-{name}")
        for permission in ("READ", "USE", "EDIT", "MANAGE", "DENY"):
            granted = auth.add_role_permission(role.id, kind, "*", permission)
            assert (granted.resource_type, granted.resource_pattern, granted.permission) == (kind, "*", permission)
            with refused("RESOURCE_ALREADY_EXISTS"):
                auth.add_role_permission(role.id, kind, "*", permission)
            auth.remove_role_permission(granted.id)
        with refused("INVALID_PARAMETER_VALUE",
                     f"Invalid permission 'NO_PERMISSIONS' for resource_type='{kind}'. Resource-level grants accept only:"):
            auth.add_role_permission(role.id, kind, "*", "NO_PERMISSIONS")
        auth.delete_role(role.id)
        assert auth.get_user_permission(name, kind, "*").permission == "READ", "the default"
        auth.grant_user_permission(name, kind, "*", "EDIT")
        result = auth.get_user_permission(name, kind, "*")
        assert (result.allowed, result.permission) == (True, "EDIT")
        with refused("RESOURCE_ALREADY_EXISTS"):
            auth.grant_user_permission(name, kind, "*", "READ")
        assert [(one["resource_type"], one["resource_pattern"], one["permission"]) for one in permissions_of(url, name)] == [(kind, "*", "EDIT")]
        auth.revoke_user_permission(name, kind, "*")
        auth.grant_user_permission(name, kind, "*", "DENY")
        result = auth.get_user_permission(name, kind, "*")
        assert (result.allowed, result.permission) == (False, "DENY")
        auth.revoke_user_permission(name, kind, "*")
        one = "1/one" if kind == "scorer" else "1"
        if kind in BY_ID:
            auth.grant_user_permission(name, kind, one, "USE")
            auth.revoke_user_permission(name, kind, one)
        else:
            with refused("INVALID_PARAMETER_VALUE", f"Invalid resource_pattern '1' for resource_type='{kind}'. "
                         "This resource type supports only wildcard ('*') grants."):
                auth.grant_user_permission(name, kind, one, "USE")
            with refused("INVALID_PARAMETER_VALUE", f"resource_type '{kind}' is not supported by the per-user permission convenience APIs."):
                auth.get_user_permission(name, kind, one)
    with login(name), refused("PERMISSION_DENIED"):
        auth.grant_user_permission(name, kind, "*", "MANAGE")


def permissions_of(url, name):
    answer = requests.get(f"{url}/api/3.0/mlflow/users/permissions/list", {"username": name},
                          auth=(os.environ["MLFLOW_TRACKING_USERNAME"], os.environ["MLFLOW_TRACKING_PASSWORD"]), timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()["permissions"]


def test_kinds_that_are_none(auth, user):
    name = user("kinds")
    with login(*ADMIN):
        valid = ("Valid resource types are: ('assessment', 'experiment', 'gateway_endpoint', 'gateway_model_definition', 'gateway_secret', "
                 "'logged_model', 'mcp_server', 'mcp_server_version', 'prompt', 'prompt_version', 'registered_model', "
                 "'registered_model_version', 'review_queue', 'run', 'scorer', 'scorer_version', 'trace', 'workspace')")
        with refused("INVALID_PARAMETER_VALUE", f"Invalid resource type 'study'. {valid}"):
            auth.grant_user_permission(name, "study", "*", "READ")
        for call in (auth.grant_user_permission, lambda *words: auth.get_user_permission(*words[:3])):
            with refused("INVALID_PARAMETER_VALUE", "resource_type 'workspace' is not supported by the per-user permission convenience APIs."):
                call(name, "workspace", "*", "USE")


def test_runs_have_grants_of_their_own(url, auth, user):
    """A grant on all runs goes before the one on the experiment, both ways; READ on the experiment is needed anyway."""
    owner, other = user("owner"), user("other")
    client = MlflowClient(url)
    with login(owner):
        experiment = client.create_experiment(f"of {owner}")
        run = client.create_run(experiment).info.run_id
    with login(*ADMIN):
        auth.grant_user_permission(other, "run", "*", "EDIT")
    with login(other):
        client.log_metric(run, "m", 1.0)
        client.set_tag(run, "t", "v")
        for call in (lambda: client.delete_run(run), lambda: client.create_run(experiment), lambda: client.rename_experiment(experiment, "x")):
            with refused("PERMISSION_DENIED"):
                call()
    with login(*ADMIN):
        auth.revoke_user_permission(other, "run", "*")
        auth.grant_user_permission(other, "run", "*", "READ")
        auth.grant_user_permission(other, "experiment", experiment, "MANAGE")
    with login(other):
        with refused("PERMISSION_DENIED"):
            client.log_metric(run, "m", 2.0)
        client.create_run(experiment)  # a grant on runs that are there says nothing of new ones
        client.rename_experiment(experiment, f"of {owner}, renamed")
        with refused("PERMISSION_DENIED"):
            client.delete_experiment(experiment)  # its runs go with it
    with login(*ADMIN):
        auth.revoke_user_permission(other, "run", "*")
        auth.grant_user_permission(other, "run", "*", "DENY")
    with login(other):
        for call in (lambda: client.get_run(run), lambda: client.create_run(experiment), lambda: client.get_metric_history(run, "m"),
                     lambda: client.list_artifacts(run)):
            with refused("PERMISSION_DENIED"):
                call()
        assert client.search_runs([experiment]) == []
        assert client.get_experiment(experiment).name == f"of {owner}, renamed"
    with login(*ADMIN):
        auth.revoke_user_permission(other, "run", "*")
        auth.revoke_user_permission(other, "experiment", experiment)
        auth.grant_user_permission(other, "experiment", experiment, "DENY")
        auth.grant_user_permission(other, "run", "*", "MANAGE")
    with login(other), refused("PERMISSION_DENIED"):
        client.get_run(run)


def test_logged_models_have_grants_of_their_own(url, auth, user):
    owner, other = user("owner"), user("other")
    client = MlflowClient(url)
    with login(owner):
        experiment = client.create_experiment(f"of {owner}")
        run = client.create_run(experiment).info.run_id
        model = client.create_logged_model(experiment, "m", source_run_id=run).model_id
        client.log_metric(run, "a", 1.0, model_id=model)
        client.log_outputs(run, [mlflow.entities.LoggedModelOutput(model, 0)])
    with login(*ADMIN):
        auth.grant_user_permission(other, "logged_model", "*", "EDIT")
    with login(other):
        client.set_logged_model_tags(model, {"t": "v"})
        with refused("PERMISSION_DENIED"):
            client.delete_logged_model(model)
        with refused("PERMISSION_DENIED"):
            client.create_logged_model(experiment, "n")
    with login(*ADMIN):
        auth.grant_user_permission(other, "run", "*", "DENY")
    with login(other):
        found = client.get_logged_model(model)
        assert (found.source_run_id or "", [metric.run_id or "" for metric in found.metrics]) == ("", [""])
        found, = client.search_logged_models([experiment])
        assert (found.source_run_id or "", [metric.run_id or "" for metric in found.metrics]) == ("", [""])
        with refused("PERMISSION_DENIED"):
            client.search_logged_models([experiment], filter_string=f"source_run_id = '{run}'")
    with login(*ADMIN):
        auth.revoke_user_permission(other, "run", "*")
        auth.revoke_user_permission(other, "logged_model", "*")
        auth.grant_user_permission(other, "logged_model", "*", "DENY")
        auth.grant_user_permission(other, "experiment", experiment, "MANAGE")
    with login(other):
        for call in (lambda: client.get_logged_model(model), lambda: client.create_logged_model(experiment, "n"),
                     lambda: client.log_metric(run, "b", 1.0, model_id=model)):
            with refused("PERMISSION_DENIED"):
                call()
        assert client.search_logged_models([experiment]) == []
        shown = client.get_run(run)
        assert (shown.outputs.model_outputs, shown.inputs.model_inputs) == ([], [])
        shown, = client.search_runs([experiment])
        assert shown.outputs.model_outputs == []
        client.log_metric(run, "b", 1.0)


def test_versions_have_grants_of_their_own(url, auth, user):
    owner, other = user("owner"), user("other")
    client = MlflowClient(url)
    name = f"model of {owner}"
    with login(owner):
        run = client.create_run(client.create_experiment(f"of {owner}")).info.run_id
        client.create_registered_model(name)
        client.create_model_version(name, f"runs:/{run}/model", run_id=run)
    with login(*ADMIN):
        auth.grant_user_permission(other, "registered_model_version", "*", "EDIT")
    with login(other):
        client.set_model_version_tag(name, "1", "k", "v")
        client.update_model_version(name, "1", "text")
        for call in (lambda: client.delete_model_version_tag(name, "1", "k"), lambda: client.delete_model_version(name, "1"),
                     lambda: client.set_registered_model_tag(name, "k", "v"), lambda: client.create_model_version(name, "s3://bucket/m"),
                     lambda: client.set_registered_model_alias(name, "a", "1")):
            with refused("PERMISSION_DENIED"):
                call()
    with login(*ADMIN):
        auth.grant_user_permission(other, "run", "*", "DENY")
    with login(other):
        assert not client.get_model_version(name, "1").run_id
        assert [version.run_id or "" for version in client.search_model_versions(f"name = '{name}'")] == [""]
        with refused("PERMISSION_DENIED"):
            client.search_model_versions(f"name = '{name}' and run_id = '{run}'")  # would tell what is left out
        assert [version.run_id or "" for version in client.get_latest_versions(name)] == [""]
    with login(*ADMIN):
        auth.revoke_user_permission(other, "run", "*")
        auth.revoke_user_permission(other, "registered_model_version", "*")
        auth.grant_user_permission(other, "registered_model_version", "*", "DENY")
        auth.grant_user_permission(other, "registered_model", name, "MANAGE")
    with login(other):
        for call in (lambda: client.get_model_version(name, "1"), lambda: client.create_model_version(name, "s3://bucket/m"),
                     lambda: client.get_latest_versions(name), lambda: client.set_registered_model_alias(name, "a", "1"),
                     lambda: client.delete_registered_model(name)):
            with refused("PERMISSION_DENIED"):
                call()
        assert client.get_registered_model(name).latest_versions == []
        found, = client.search_registered_models(f"name = '{name}'")
        assert found.latest_versions == []
        assert client.search_model_versions(f"name = '{name}'") == []
        client.set_registered_model_tag(name, "k", "v")
        client.delete_registered_model_tag(name, "k")


def ask(url, method, call, fields):
    """The status and the answer of a call that MLflow's client does not make of prompts."""
    given = {"params": fields} if method == "GET" else {"json": fields}
    answer = requests.request(method, f"{url}/api/2.0/mlflow/registered-models/{call}", timeout=60, **given,
                              auth=(os.environ["MLFLOW_TRACKING_USERNAME"], os.environ["MLFLOW_TRACKING_PASSWORD"]))
    return answer.status_code, answer.json() if answer.status_code == 200 else {}


def test_prompts_are_no_models(url, auth, user):
    owner, other = user("owner"), user("other")
    name = f"prompt-of-{owner}"
    marks = [{"key": "mlflow.prompt.is_prompt", "value": "true"}]

    def tag():
        return ask(url, "POST", "set-tag", {"name": name, "key": "k", "value": "v"})[0]

    def found():
        status, answer = ask(url, "GET", "search", {"filter": "tag.`mlflow.prompt.is_prompt` = 'true'", "max_results": 1000})
        assert status == 200
        return name in [model["name"] for model in answer.get("registered_models", [])]

    with login(owner):
        assert ask(url, "POST", "create", {"name": name, "tags": marks})[0] == 200
        assert tag() == 200
        assert auth.get_user_permission(owner, "registered_model", name).permission == "READ"
    with login(*ADMIN):
        auth.grant_user_permission(other, "registered_model", name, "MANAGE")
    with login(other):
        assert tag() == 403
    with login(*ADMIN):
        auth.grant_user_permission(other, "prompt", name, "EDIT")
    with login(other):
        assert tag() == 200
    with login(*ADMIN):
        auth.revoke_user_permission(other, "prompt", name)
        auth.grant_user_permission(other, "prompt", name, "DENY")
    with login(other):
        assert ask(url, "GET", "get", {"name": name})[0] == 403
        assert not found()
    with login(*ADMIN):
        auth.revoke_user_permission(other, "prompt", name)
        auth.grant_user_permission(other, "prompt_version", "*", "DENY")
    with login(other):
        assert ask(url, "GET", "get", {"name": name})[0] == 200
        assert found()
        assert ask(url, "GET", "get-latest-versions", {"name": name})[0] == 403
    with login(*ADMIN):
        auth.grant_user_permission(other, "prompt", "*", "DENY")
    with login(other):
        assert ask(url, "POST", "create", {"name": name + "2", "tags": marks})[0] == 403
        assert ask(url, "POST", "create", {"name": name + "2"})[0] == 200


def test_artifacts_go_with_what_they_are_of(url, auth, user, tmp_path):
    owner, other = user("owner"), user("other")
    client = MlflowClient(url)
    file = tmp_path / "file.txt"
    file.write_text("content")
    with login(owner):
        experiment = client.create_experiment(f"files of {owner}")
        run = client.create_run(experiment).info.run_id
        client.log_artifact(run, str(file))
    with login(*ADMIN):
        auth.grant_user_permission(other, "run", "*", "EDIT")
    with login(other):
        client.log_artifact(run, str(file), "more")
    with login(*ADMIN):
        auth.revoke_user_permission(other, "run", "*")
        auth.grant_user_permission(other, "run", "*", "DENY")

    def listed(who):
        answer = requests.get(f"{url}/api/2.0/mlflow-artifacts/artifacts", {"path": experiment}, auth=(who, PASSWORD), timeout=60)
        assert answer.status_code == 200, answer.text
        return [one["path"] for one in answer.json().get("files", [])]

    assert (listed(owner), listed(other)) == ([run], [])
    answer = requests.get(f"{url}/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts/file.txt", auth=(other, PASSWORD), timeout=60)
    assert answer.status_code == 403

"""Users and permissions, driven by MLflow's own client of its basic-auth app.

The same calls run against `mlflow server --app-name basic-auth` too where TUNE_WITH_MLFLOW=1 is set (it takes a minute to start): what
is asserted here is what MLflow 3.17.2 does.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import mlflow
import pytest
import requests
from mlflow.exceptions import MlflowException, RestException
from mlflow.server import get_app_client
from mlflow.tracking import MlflowClient

from conftest import Server

ADMIN = ("admin", "the first password")
PASSWORD = "a password of twelve"


@contextlib.contextmanager
def login(username, password=PASSWORD):
    names = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ.update(MLFLOW_TRACKING_USERNAME=username, MLFLOW_TRACKING_PASSWORD=password)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def mlflow_server(folder):
    port = free_port()
    config = folder / "auth.ini"
    config.write_text(f"[mlflow]\ndefault_permission = READ\ndatabase_uri = sqlite:///{folder}/auth.db\nadmin_username = {ADMIN[0]}\n"
                      f"admin_password = {ADMIN[1]}\nauthorization_function = mlflow.server.auth:authenticate_request_basic_auth\n")
    env = {**os.environ, "MLFLOW_AUTH_CONFIG_PATH": str(config), "MLFLOW_FLASK_SERVER_SECRET_KEY": "a secret of this test"}
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--port", str(port), "--workers", "1",
               "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "artifacts")]
    process = subprocess.Popen(command, env=env, cwd=folder, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(url + "/health", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.2)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


@pytest.fixture(scope="module", params=["tune"] + (["mlflow"] if os.environ.get("TUNE_WITH_MLFLOW") else []))
def url(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "mlflow":
        with mlflow_server(folder) as address:
            yield address
        return
    secret = folder / "admin-password"
    secret.write_text(ADMIN[1] + "\n")
    server = Server(folder / "data", more=("--auth", "basic", "--admin-password-file", str(secret)))
    yield server.url
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0


@pytest.fixture
def auth(url):
    return get_app_client("basic-auth", tracking_uri=url)


@pytest.fixture
def user(auth):
    """Makes users of names that nobody had before."""
    made = []

    def make(name):
        name = f"{name}-{time.monotonic_ns()}"
        with login(*ADMIN):
            auth.create_user(name, PASSWORD)
        made.append(name)
        return name

    yield make
    with login(*ADMIN):
        for name in made:
            with contextlib.suppress(MlflowException):
                auth.delete_user(name)


@contextlib.contextmanager
def refused(code, text=""):
    with pytest.raises(MlflowException) as caught:
        yield
    if isinstance(caught.value, RestException):
        assert caught.value.error_code == code, str(caught.value)
    else:  # MLflow's own refusals are plain text
        status = {"PERMISSION_DENIED": "403", "UNAUTHENTICATED": "401"}[code]
        assert f"error code {status}" in str(caught.value), str(caught.value)
    assert text in str(caught.value)


def test_accounts(url, auth, user):
    with login(*ADMIN):
        name = user("ann")
        found = auth.get_user(name)
        assert (found.username, found.is_admin, found.password_hash) == (name, False, "REDACTED")
        with refused("RESOURCE_ALREADY_EXISTS", f"User (username={name}) already exists."):
            auth.create_user(name, PASSWORD)
        with refused("INVALID_PARAMETER_VALUE", "Password must be at least 12 characters."):
            auth.create_user("somebody", "short")
        with pytest.raises(MlflowException, match="Username and password cannot be empty."):
            auth.create_user("", PASSWORD)
        with refused("RESOURCE_DOES_NOT_EXIST", "User with username=nobody not found"):
            auth.get_user("nobody")
        auth.update_user_admin(name, True)
        assert auth.get_user(name).is_admin
        with refused("BAD_REQUEST", "Users cannot delete their own account."):
            auth.delete_user("admin")
    with login(name):
        auth.get_user("admin")
    with login(*ADMIN):
        auth.update_user_admin(name, False)
    with login(name):
        with refused("PERMISSION_DENIED"):
            auth.get_user("admin")
        for call in (lambda: auth.create_user("x", PASSWORD), lambda: auth.delete_user("admin"),
                     lambda: auth.update_user_admin(name, True), lambda: auth.update_user_password("admin", PASSWORD)):
            with refused("PERMISSION_DENIED"):
                call()
    with login(name, "a wrong password"), refused("UNAUTHENTICATED", "You are not authenticated."):
        auth.get_user(name)
    with login(*ADMIN):
        auth.delete_user(name)
        with refused("RESOURCE_DOES_NOT_EXIST"):
            auth.delete_user(name)
    with login(name), refused("UNAUTHENTICATED"):
        auth.get_user(name)


def test_passwords(auth, user):
    name = user("bob")
    with login(name):
        with refused("INVALID_PARAMETER_VALUE", "Current password is required when changing your own password."):
            auth.update_user_password(name, "another password")
        with refused("INVALID_PARAMETER_VALUE", "Current password does not match."):
            auth.update_user_password(name, "another password", current_password="wrong")
        with refused("INVALID_PARAMETER_VALUE", "New password must differ from the current password."):
            auth.update_user_password(name, PASSWORD, current_password=PASSWORD)
        auth.update_user_password(name, "another password", current_password=PASSWORD)
    with login(name), refused("UNAUTHENTICATED"):
        auth.get_user(name)
    with login(*ADMIN):
        auth.update_user_password(name, PASSWORD)
    with login(name):
        assert auth.get_user(name).username == name


def test_experiments(url, auth, user):
    owner, other = user("owner"), user("other")
    client = MlflowClient(url)
    with login(owner):
        experiment = client.create_experiment(f"of {owner}")
        run = client.create_run(experiment).info.run_id
        client.log_metric(run, "m", 1.0)
        assert auth.get_user_permission(owner, "experiment", experiment).permission == "MANAGE"
    with login(other):
        assert client.get_run(run).data.metrics == {"m": 1.0}, "READ is the default"
        result = auth.get_user_permission(other, "experiment", experiment)
        assert (result.allowed, result.permission) == (False, "READ")
        for call in (lambda: client.log_metric(run, "m", 2.0), lambda: client.set_tag(run, "t", "v"), lambda: client.delete_run(run),
                     lambda: client.create_run(experiment), lambda: client.delete_experiment(experiment),
                     lambda: client.rename_experiment(experiment, "x"),
                     lambda: auth.grant_user_permission(other, "experiment", experiment, "MANAGE")):
            with refused("PERMISSION_DENIED", "Permission denied"):
                call()
        with refused("PERMISSION_DENIED"):
            client.get_run("0" * 32)
    with login(owner):
        auth.grant_user_permission(other, "experiment", experiment, "EDIT")
        with refused("RESOURCE_ALREADY_EXISTS", f"Permission for user={other} on resource_type=experiment, resource_id={experiment} already"):
            auth.grant_user_permission(other, "experiment", experiment, "READ")
        with refused("INVALID_PARAMETER_VALUE", "Invalid permission 'OWN'. Valid permissions are: ('READ', 'USE', 'EDIT', 'MANAGE',"):
            auth.grant_user_permission(owner, "experiment", experiment, "OWN")
        with refused("INVALID_PARAMETER_VALUE", "Resource-level grants accept only: ('DENY', 'EDIT', 'MANAGE', 'READ', 'USE')."):
            auth.grant_user_permission(owner, "experiment", experiment, "NO_PERMISSIONS")
        with refused("RESOURCE_DOES_NOT_EXIST", "User with username=nobody not found"):
            auth.grant_user_permission("nobody", "experiment", experiment, "READ")
    with login(other):
        client.log_metric(run, "m", 2.0)
        with refused("PERMISSION_DENIED"):
            client.delete_run(run)
    with login(owner):
        auth.revoke_user_permission(other, "experiment", experiment)
        with refused("RESOURCE_DOES_NOT_EXIST", "not found."):
            auth.revoke_user_permission(other, "experiment", experiment)
        auth.grant_user_permission(other, "experiment", experiment, "DENY")
    with login(other):
        with refused("PERMISSION_DENIED"):
            client.get_run(run)
        assert experiment not in [found.experiment_id for found in client.search_experiments()]
        assert client.search_runs([experiment]) == []
    with login(*ADMIN):
        with refused("RESOURCE_DOES_NOT_EXIST"):
            client.get_run("0" * 32)
        client.delete_run(run)


def test_registered_models(url, auth, user):
    owner, other = user("owner"), user("other")
    client = MlflowClient(url)
    name = f"model of {owner}"
    with login(owner):
        client.create_registered_model(name)
        assert auth.get_user_permission(owner, "registered_model", name).permission == "MANAGE"
    with login(other):
        assert client.get_registered_model(name).name == name
        for call in (lambda: client.update_registered_model(name, "text"), lambda: client.delete_registered_model(name),
                     lambda: client.set_registered_model_tag(name, "k", "v"),
                     lambda: client.create_model_version(name, "s3://bucket/model")):
            with refused("PERMISSION_DENIED"):
                call()
    with login(owner):
        auth.grant_user_permission(other, "registered_model", name, "EDIT")
        client.rename_registered_model(name, name + " renamed")
    with login(other):
        client.update_registered_model(name + " renamed", "rights follow the name")
        with refused("PERMISSION_DENIED"):
            client.delete_registered_model(name + " renamed")
    with login(owner):
        auth.revoke_user_permission(other, "registered_model", name + " renamed")
        auth.grant_user_permission(other, "registered_model", name + " renamed", "DENY")
    with login(other):
        assert name + " renamed" not in [model.name for model in client.search_registered_models()]
    with login(owner):
        client.delete_registered_model(name + " renamed")


def test_roles(url, auth, user):
    member, other = user("member"), user("other")
    client = MlflowClient(url)
    with login(*ADMIN):
        experiment = client.create_experiment(f"of {member}'s team")
        role = auth.create_role("default", f"team-{member}", "people")
        assert (role.name, role.workspace, role.description, role.permissions) == (f"team-{member}", "default", "people", [])
        with refused("RESOURCE_ALREADY_EXISTS", f"Role (name=team-{member}, workspace=default) already exists."):
            auth.create_role("default", f"team-{member}")
        granted = auth.add_role_permission(role.id, "experiment", experiment, "READ")
        assert (granted.resource_type, granted.resource_pattern, granted.permission) == ("experiment", experiment, "READ")
        assert auth.update_role_permission(granted.id, "EDIT").permission == "EDIT"
        assert [one.id for one in auth.list_role_permissions(role.id)] == [granted.id]
        assignment = auth.assign_role(member, role.id)
        assert [(one.user_id, one.role_id) for one in auth.list_role_users(role.id)] == [(assignment.user_id, role.id)]
        assert role.id in [one.id for one in auth.list_roles("default")] and role.id in [one.id for one in auth.list_all_roles()]
        assert auth.update_role(role.id, description="others").description == "others"
        with refused("RESOURCE_DOES_NOT_EXIST", "Role with id=999999 not found"):
            auth.get_role(999999)
    with login(member):
        client.create_run(experiment)
        assert [one.name for one in auth.list_user_roles(member)] == [f"team-{member}"]
        with refused("PERMISSION_DENIED"):
            auth.create_role("default", "mine")
    with login(other), refused("PERMISSION_DENIED"):
        client.create_run(experiment)
    with login(*ADMIN):
        auth.remove_role_permission(granted.id)
    with login(member), refused("PERMISSION_DENIED"):
        client.create_run(experiment)
    with login(*ADMIN):
        auth.add_role_permission(role.id, "workspace", "*", "MANAGE")
    with login(member):
        client.create_run(experiment)
        auth.unassign_role(member, role.id)
    with login(member), refused("PERMISSION_DENIED"):
        client.create_run(experiment)
    with login(*ADMIN):
        auth.delete_role(role.id)
        with refused("RESOURCE_DOES_NOT_EXIST"):
            auth.get_role(role.id)


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


def test_artifacts(url, user, tmp_path, monkeypatch):
    owner, other = user("owner"), user("other")
    client = MlflowClient(url)
    file = tmp_path / "file.txt"
    file.write_text("content")
    with login(owner):
        run = client.create_run(client.create_experiment(f"files of {owner}")).info.run_id
        client.log_artifact(run, str(file))
    with login(other):
        assert [entry.path for entry in client.list_artifacts(run)] == ["file.txt"]
        assert open(client.download_artifacts(run, "file.txt", str(tmp_path / "copy") if (tmp_path / "copy").mkdir() is None else None)).read()
        with pytest.raises(Exception, match="403"):
            client.log_artifact(run, str(file), "more")
    with login(owner):
        assert [entry.path for entry in client.list_artifacts(run)] == ["file.txt"]


def test_the_fluent_client(url, user, monkeypatch):
    name = user("fluent")
    monkeypatch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)
    with login(name):
        mlflow.set_tracking_uri(url)
        mlflow.set_experiment(f"of {name}")
        with mlflow.start_run() as run:
            mlflow.log_params({"lr": 0.1})
            mlflow.log_metrics({"loss": 0.5})
            mlflow.log_text("text", "note.txt")
        assert mlflow.get_run(run.info.run_id).data.metrics == {"loss": 0.5}

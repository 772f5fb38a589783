"""Accounts, passwords, roles, and who may do what to experiments, models and artifacts, by MLflow's own client."""

import mlflow
import pytest
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from users_support import ADMIN, PASSWORD, auth, login, refused, url, user  # noqa: F401 (fixtures among them)


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

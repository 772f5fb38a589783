"""Users with real servers: the first start, logins, studies of users, tokens of users."""

import base64
import json
import os
import re
import urllib.error
import urllib.request

from study_support import FAILED, OK, USAGE, call, credentials, server, start, tune, wait_until

PASSWORD = "a password of twelve"
STUDY = {"name": "s", "metric": {"name": "loss", "goal": "min"}, "space": {"x": {"float": [0, 1]}}, "budget": {"trials": 2},
         "command": ["sh", "-c", "echo 'tune: {\"loss\": {x}}'"]}


def ask(url, path, authorization="", body=None, method=None, **headers):
    """(status, headers, JSON) as a program without our token gets it."""
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers = {"Content-Type": "application/json", **headers}
    if authorization:
        headers = {"Authorization": authorization, **headers}
    request = urllib.request.Request(url + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.loads(error.read())


def login(username, password=PASSWORD):
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def make_users(url, *names):
    for name in names:
        status, _, answer = ask(url, "/api/2.0/mlflow/users/create", credentials(url)["Authorization"], {"username": name, "password": PASSWORD})
        assert status == 200, answer


def test_the_first_start_makes_up_a_password_and_says_it_once(tmp_path):
    current = "/api/2.0/mlflow/users/current"
    with server(tmp_path, "--auth", "basic") as (process, url):
        lines = [process.stdout.readline(), process.stdout.readline()]
        password = re.search(r"the password of 'admin' is (\w+) ", lines[1])[1]
        assert ask(url, current, login("admin", password))[2]["user"] == {"id": 1, "username": "admin", "is_admin": True}
        status, headers, answer = ask(url, current)
        assert status == 401 and answer["error_code"] == "UNAUTHENTICATED" and headers["WWW-Authenticate"] == 'Basic realm="mlflow"'
        assert ask(url, current, login("admin", "password1234"))[0] == 401
        assert ask(url, "/api/3.0/mlflow/server-info")[0] == 200
    stored = b"".join(path.read_bytes() for path in (tmp_path / "tune-data").iterdir() if path.is_file())
    assert password.encode() not in stored and b"scrypt:32768:8:1$" in stored
    process = start("server", "--port", 0, "--auth", "basic", "--json", cwd=tmp_path)
    try:
        started = json.loads(process.stdout.readline())
        assert "admin_password" not in started
        assert ask(started["url"], current, login("admin", password))[0] == 200
    finally:
        process.terminate()
        assert process.communicate(timeout=60) and process.returncode == OK


def test_the_first_password_can_be_given(tmp_path, monkeypatch):
    monkeypatch.setenv("TUNE_ADMIN_PASSWORD", "short")
    refused = tune("server", "--port", 0, "--auth", "basic", cwd=tmp_path)
    assert refused.returncode == FAILED and "at least 12 characters" in refused.stderr
    monkeypatch.setenv("TUNE_ADMIN_PASSWORD", "password1234")
    assert "older MLflow servers" in tune("server", "--port", 0, "--auth", "basic", cwd=tmp_path).stderr
    monkeypatch.setenv("TUNE_ADMIN_PASSWORD", PASSWORD)
    with server(tmp_path, "--auth", "basic") as (_, url):
        assert ask(url, "/api/2.0/mlflow/users/current", login("admin"))[0] == 200
    both = tune("server", "--port", 0, "--auth", "basic", "--insecure-no-auth", cwd=tmp_path)
    assert both.returncode in (FAILED, USAGE) and "exclude each other" in both.stderr


def test_a_users_study_is_the_users(tmp_path):
    (tmp_path / "password").write_text(PASSWORD + "\n")
    with server(tmp_path, "--auth", "basic", "--admin-password-file", "password") as (_, url):
        make_users(url, "ann", "bob")
        ann, bob = login("ann"), login("bob")
        status, _, study = ask(url, "/api/2.0/tune/studies", ann, STUDY)
        assert status == 200, study
        for verb in ("pause", "stop", "ask"):
            assert ask(url, f"/api/2.0/tune/studies/s/{verb}", bob, {})[0] == 403
        assert ask(url, "/api/2.0/tune/studies", bob, STUDY)[0] == 403, "nor goes on with it"
        assert ask(url, "/api/2.0/tune/agents/register", ann, {"agent_id": "a"})[0] == 403, "agents are the owner's"
        # The owner's agent runs it, and needs no login.
        agent = start("agent", "--server", url, "--slots", 1, "--state", "agent", cwd=tmp_path)
        wait_until(lambda: ask(url, "/api/2.0/tune/studies/s", bob)[2]["counts"]["complete"] == 2, "both trials are complete")
        agent.terminate()
        assert agent.wait(30) == OK
        assert ask(url, "/api/2.0/tune/studies/s", ann, method="DELETE")[0] == 200


def test_a_model_that_a_user_may_not_change_is_refused_before_the_trials_run(tmp_path):
    (tmp_path / "password").write_text(PASSWORD + "\n")
    with server(tmp_path, "--auth", "basic", "--admin-password-file", "password") as (_, url):
        make_users(url, "ann", "bob")
        assert ask(url, "/api/2.0/mlflow/registered-models/create", login("ann"), {"name": "anns"})[0] == 200
        status, _, answer = ask(url, "/api/2.0/tune/studies", login("bob"), {**STUDY, "register": "anns"})
        assert status == 403 and "'bob' may not add a version to the registered model 'anns'" in answer["message"], answer
        assert ask(url, "/api/2.0/tune/studies/s", login("admin"))[0] == 404, "nothing is left of it"
        assert ask(url, "/api/2.0/tune/studies", login("bob"), {**STUDY, "register": "bobs"})[0] == 200
        assert ask(url, "/api/2.0/tune/studies", login("ann"), {**STUDY, "name": "t", "register": "anns"})[0] == 200


def test_tokens_of_users(tmp_path):
    (tmp_path / "password").write_text(PASSWORD + "\n")
    with server(tmp_path, "--auth", "basic", "--admin-password-file", "password") as (_, url):
        make_users(url, "ann")
        made = ask(url, "/api/2.0/tune/users/current/tokens", login("ann"), {"scope": "read", "name": "board"})[2]
        bearer = "Bearer " + made["secret"]
        assert ask(url, "/api/2.0/mlflow/experiments/search", bearer, {"max_results": 5})[0] == 200
        assert ask(url, "/api/2.0/mlflow/experiments/create", bearer, {"name": "e"})[0] == 403
        token = {**os.environ, "TUNE_TOKEN": made["secret"], "TUNE_RUNTIME_DIR": str(tmp_path / "nobody")}
        assert tune("ls", "--server", url, cwd=tmp_path, env=token).returncode == OK
    with server(tmp_path) as (_, url):
        assert ask(url, "/api/2.0/tune/studies", bearer, {**STUDY})[0] == 401, "without users it is nobody's"
        assert call(url, "/api/2.0/tune/tokens")[1]["tokens"][0]["name"] == "board", "and the owner sees it"


def test_accounts_from_the_command_line(tmp_path):
    """tune user: add, ls, show, password, admin, grant, revoke, rm; with names, ids and bad words."""
    with server(tmp_path, "--auth", "basic") as (_, url):
        def user(*words, password=None, code=OK):
            done = tune("user", *words, "--server", url, cwd=tmp_path, input=password)
            assert done.returncode == code, (words, done.stdout, done.stderr)
            return done.stdout if code == OK else done.stderr

        def may_log(name, password=PASSWORD):
            return ask(url, "/api/2.0/mlflow/runs/create", login(name, password), {"experiment_id": experiment})[0]

        experiment = ask(url, "/api/2.0/mlflow/experiments/create", credentials(url)["Authorization"],
                         {"name": "digits of mine"})[2]["experiment_id"]
        assert user("add", "ann", password=PASSWORD + "\n") == "ann may log in\n"
        secret = tmp_path / "password"
        secret.write_text(PASSWORD + "\n")
        assert "as an administrator" in user("add", "root2", "--admin", "--password-file", secret)
        assert "at least 12 characters" in user("add", "bob", password="short\n", code=USAGE)
        assert "no password" in user("add", "bob", password="", code=USAGE)
        assert "already exists" in user("add", "ann", password=PASSWORD + "\n", code=FAILED)
        assert may_log("ann") == 403
        assert "EDIT on experiment digits of mine" in user("grant", "ann", "experiment", "digits of mine", "EDIT")
        assert may_log("ann") == 200 and "EDIT" in user("show", "ann")
        user("revoke", "ann", "experiment", experiment)
        assert may_log("ann") == 403 and "nothing was granted" in user("show", "ann")
        user("grant", "ann", "experiment", "*", "MANAGE")
        assert may_log("ann") == 200
        assert "no" in user("grant", "ann", "experiment", "no such one", "EDIT", code=FAILED).lower()
        assert "FULL" in user("grant", "ann", "experiment", "*", "FULL", code=USAGE)
        user("password", "ann", password="another one of twelve\n")
        assert may_log("ann") == 401 and may_log("ann", "another one of twelve") == 200
        user("admin", "root2", "off")
        listed = {one["username"]: one["is_admin"] for one in json.loads(user("ls", "--json"))["users"]}
        assert listed == {"admin": True, "ann": False, "root2": False}
        user("rm", "ann")
        assert may_log("ann", "another one of twelve") == 401 and "ann" not in user("ls")
        assert "ann" in user("rm", "ann", code=FAILED)

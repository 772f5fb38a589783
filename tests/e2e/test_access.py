"""Who may do what, with real servers: the token of the data folder, tokens for others, the page's cookie, --host."""

import json
import os
import re
import stat
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from study_support import (FAILED, OK, ROOT, USAGE, call, credentials, read_lines_until, run_arguments, server,
                           start, study_of, tune, tune_json, TUNE)

STUDY = {"name": "s", "metric": {"name": "loss", "goal": "min"}, "space": {"x": {"float": [0, 1]}},
         "budget": {"trials": 3}, "command": ["echo", "hello"]}


def ask(url, path, body=None, method=None, **headers):
    """(status, headers, text) as a program without our token gets it; redirects are not followed."""
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url + path, data=data, headers=headers, method=method)
    try:
        answer = urllib.request.build_opener(Stay).open(request, timeout=60)
        return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def test_nobody_else_changes_the_command_of_a_running_study(tmp_path):
    """Another process posts a study of the same name with another command: its command must never run."""
    process = start(*run_arguments(["sh", "-c", "until test -e go; do sleep 0.05; done"], trials=20), cwd=tmp_path)
    try:
        line = read_lines_until(process, "http://", "stderr")[-1]
        url = re.search(r"http://[^/]+", line)[0]
        stolen = {**STUDY, "command": ["touch", str(tmp_path / "stolen")]}
        status, headers, text = ask(url, "/api/2.0/tune/studies", stolen)
        assert status == 401 and json.loads(text)["error_code"] == "UNAUTHENTICATED"
        assert headers["WWW-Authenticate"].startswith("Bearer")
        for verb in ("stop", "pause", "resume", "ask", "tell", "enqueue"):
            assert ask(url, f"/api/2.0/tune/studies/s/{verb}", {})[0] == 401
        assert ask(url, "/api/2.0/tune/agents/register", {"agent_id": "thief"})[0] == 401
        assert "touch" not in json.dumps(study_of(url)), "and everybody may look"
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert not (tmp_path / "stolen").exists()


def test_our_programs_find_the_token(tmp_path):
    with server(tmp_path) as (_, url):
        token = tmp_path / "tune-data" / "token"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        assert credentials(url) == {"Authorization": "Bearer " + token.read_text().strip()}
        assert call(url, "/api/2.0/tune/studies", STUDY)[0] == 200
        assert tune("pause", "s", "--server", url, cwd=tmp_path).returncode == OK
        assert tune("resume", "s", "--data", "tune-data", cwd=tmp_path).returncode == OK
        client = "import sys, tune_client as t; print(t.load_study('s', server=sys.argv[1]).ask().number)"
        done = subprocess.run([sys.executable, "-c", client, url], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python")})
        assert done.stdout == "0\n", done.stderr
        strange = {**os.environ, "TUNE_TOKEN": "0" * 64}
        refused = tune("stop", "s", "--server", url, cwd=tmp_path, env=strange)
        assert refused.returncode == FAILED and "token" in refused.stderr
        elsewhere = {**os.environ, "TUNE_RUNTIME_DIR": str(tmp_path / "nobody")}
        assert tune("stop", "s", "--server", url, cwd=tmp_path, env=elsewhere).returncode == FAILED
        given = {**elsewhere, "TUNE_TOKEN": token.read_text().strip()}
        assert tune("stop", "s", "--server", url, cwd=tmp_path, env=given).returncode == OK
        before = token.read_text()
    assert credentials(url) == {}, "the server has ended"
    with server(tmp_path):
        assert token.read_text() == before
    token.chmod(0o644)
    with server(tmp_path) as (_, url):
        assert token.read_text() != before and call(url, "/api/2.0/tune/studies", STUDY)[0] == 200
        assert stat.S_IMODE(token.stat().st_mode) == 0o600


def test_the_printed_address_makes_one_browser_the_owners(tmp_path):
    process = start("server", "--port", 0, "--json", cwd=tmp_path)
    try:
        printed = json.loads(process.stdout.readline())
        url = printed["url"]
        assert call(url, "/api/2.0/tune/studies", STUDY)[0] == 200
        for page in (printed["page"], tune_json("open", "--data", "tune-data", cwd=tmp_path)["page"]):
            path = page.removeprefix(url)
            status, headers, _ = ask(url, path)
            assert status == 303 and headers["Location"] == "/" and headers["Cache-Control"] == "no-store"
            cookie = headers["Set-Cookie"]
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
            sent = cookie.split(";")[0]
            assert ask(url, "/api/2.0/tune/studies/s/pause", {}, Cookie=sent)[0] == 200
            assert ask(url, "/api/2.0/tune/studies/s/resume", {}, Cookie=sent[:-1] + "!")[0] == 401
            foreign = ask(url, "/api/2.0/tune/studies/s/stop", {}, Cookie=sent, Origin="http://evil.example")
            assert foreign[0] == 403
            plain = ask(url, "/api/2.0/tune/studies/s/stop", {}, Cookie=sent, **{"Content-Type": "text/plain"})
            assert plain[0] == 400
            status, headers, _ = ask(url, path)
            assert status == 303 and "Set-Cookie" not in headers, "it works once"
        assert ask(url, "//evil.example/?code=x")[1]["Location"] in (None, "/")
    finally:
        process.terminate()
        process.communicate(timeout=60)
    nobody = tune("open", "--data", "tune-data", cwd=tmp_path)
    assert nobody.returncode == FAILED and "tune server" in nobody.stderr


def test_tokens_for_others(tmp_path):
    with server(tmp_path) as (_, url):
        made = {scope: tune("token", "create", "--scope", scope, "--name", f"for {scope}", "--expires", "1d",
                            "--server", url, cwd=tmp_path).stdout.strip() for scope in ("read", "agent", "user")}
        listed = tune_json("token", "ls", "--server", url, cwd=tmp_path)["tokens"]
        assert [(one["scope"], one["name"]) for one in listed] == [(scope, f"for {scope}") for scope in made]
        stored = (tmp_path / "tune-data" / "tokens.json").read_text()
        assert not any(token in stored or token.split("-")[2] in stored for token in made.values())
        wanted = {  # what a token of each scope gets
            ("GET", "tune/studies"): (200, 200, 200),
            ("POST", "mlflow/experiments/create"): (403, 400, 400),
            ("POST", "tune/agents/register"): (403, 400, 400),
            ("POST", "tune/studies"): (403, 403, 400),
            ("POST", "tune/gc"): (403, 403, 403),
            ("GET", "tune/tokens"): (403, 403, 403),
            ("POST", "tune/page-codes"): (403, 403, 403),
        }
        for (method, path), statuses in wanted.items():
            got = tuple(ask(url, "/api/2.0/" + path, None if method == "GET" else {}, Authorization="Bearer " + token)[0]
                        for token in made.values())
            assert got == statuses, path
        user = listed[2]["token_id"]
        assert tune("token", "rm", user, "--server", url, cwd=tmp_path).returncode == OK
        assert tune("token", "rm", user, "--server", url, cwd=tmp_path).returncode == FAILED
        assert ask(url, "/api/2.0/tune/studies", {}, Authorization="Bearer " + made["user"])[0] == 401
    assert tune("token", "create", "--scope", "root", cwd=tmp_path).returncode == USAGE
    with server(tmp_path) as (_, url):
        assert ask(url, "/api/2.0/tune/agents/register", {}, Authorization="Bearer " + made["agent"])[0] == 400


@pytest.mark.parametrize("verb", ["server", "run"])
@pytest.mark.parametrize("flags, word", [
    ([], "--insecure-no-tls"), (["--insecure-no-auth"], "--insecure-no-tls"),
    (["--auth", "off"], "--insecure-no-auth"), (["--auth", "off", "--insecure-no-tls"], "--insecure-no-auth")])
def test_beyond_loopback_it_must_be_told_so(tmp_path, verb, flags, word):
    words = ["server", "--port", 0] if verb == "server" else run_arguments(["echo", 'tune: {"loss": {x}}'], trials=1)
    done = tune(*words[:1], "--host", "0.0.0.0", *flags, *words[1:], cwd=tmp_path)
    assert done.returncode != OK and word in done.stderr, done
    assert not (tmp_path / "tune-data").exists()


@pytest.mark.parametrize("verb", ["server", "run"])
def test_a_name_is_loopback_only_where_it_leads_there(tmp_path, verb):
    """127.example.org is a name like any other: who may do what is decided by the address it stands for."""
    words = ["server", "--port", 0] if verb == "server" else run_arguments(["echo", 'tune: {"loss": {x}}'], trials=1)
    done = tune(*words[:1], "--host", "127.example.invalid", *words[1:], cwd=tmp_path)
    assert done.returncode != OK and "nor a name that resolves" in done.stderr, done
    names = tmp_path / "hosts"
    names.write_text("127.0.0.1 localhost\n0.0.0.0 127.example.org\n")
    if os.geteuid() != 0:
        pytest.skip("needs root, to give the program another /etc/hosts")
    inside = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', names, TUNE]
    done = subprocess.run([*map(str, inside), *map(str, words[:1]), "--host", "127.example.org", *map(str, words[1:])],
                          cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode != OK and "--insecure-no-tls" in done.stderr, done
    assert not (tmp_path / "tune-data").exists()


def test_a_run_beyond_loopback_asks_for_the_token(tmp_path):
    go_on = ["sh", "-c", "until test -e go; do sleep 0.05; done; echo 'tune: {\"loss\": {x}}'"]
    words = run_arguments(go_on, trials=1)
    process = start(*words[:1], "--host", "0.0.0.0", "--insecure-no-tls", *words[1:], cwd=tmp_path)
    try:
        page = read_lines_until(process, "http://", "stderr")[-1]
        here = re.search(r"http://[^/]+", page)[0].replace("0.0.0.0", "127.0.0.1")
        assert ask(here, "/health")[0] == 200 and ask(here, "/api/2.0/tune/studies")[0] == 401
        (tmp_path / "go").touch()
        _, said = process.communicate(timeout=60)
        assert process.returncode == OK, said
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_the_page_that_a_run_prints_is_the_owners(tmp_path):
    words = run_arguments(["sh", "-c", "sleep 600"], trials=1)
    process = start(*words, cwd=tmp_path)
    try:
        page = re.search(r"(http://[^/]+)(/s/\S+)", read_lines_until(process, "/s/", "stderr")[-1])
        url, path = page.groups()
        study = path.split("?")[0].removeprefix("/s/")
        assert ask(url, f"/api/2.0/tune/studies/{study}/pause", {})[0] == 401
        status, headers, _ = ask(url, path)
        assert status == 303 and headers["Location"] == f"/s/{study}"
        cookie = headers["Set-Cookie"].split(";")[0]
        assert ask(url, f"/s/{study}", Cookie=cookie)[0] == 200
        assert ask(url, f"/api/2.0/tune/studies/{study}/pause", {}, Cookie=cookie)[0] == 200
        assert ask(url, f"/api/2.0/tune/studies/{study}/stop", {}, Cookie=cookie)[0] == 200
        assert "Set-Cookie" not in ask(url, path)[1], "the code works once"
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_beyond_loopback_everything_needs_a_token(tmp_path):
    with server(tmp_path, "--host", "0.0.0.0", "--insecure-no-tls") as (_, url):
        assert url.startswith("http://0.0.0.0:")
        here = url.replace("0.0.0.0", "127.0.0.1")
        experiment = {"name": "open"}
        assert ask(here, "/health")[0] == 200 and ask(here, "/")[0] == 200
        for path, body in (("mlflow/experiments/create", experiment), ("mlflow/runs/search", {}), ("tune/studies", None),
                           ("mlflow-artifacts/artifacts", None)):
            assert ask(here, "/api/2.0/" + path, body)[0] == 401, path
        assert ask(here, "/metrics")[0] == 401 and ask(here, "/get-artifact?path=x&run_id=y")[0] == 401
        assert call(here, "/api/2.0/mlflow/experiments/create", experiment)[0] == 200
        script = "import mlflow, sys; mlflow.set_tracking_uri(sys.argv[1]); mlflow.start_run(); mlflow.log_metric('m', 1)"
        for token, code in ((credentials(here)["Authorization"].split()[1], 0), ("0" * 64, 1)):
            done = subprocess.run([sys.executable, "-c", script, here], capture_output=True, text=True, timeout=100,
                                  env={**os.environ, "MLFLOW_TRACKING_TOKEN": token, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"})
            assert done.returncode == code, done.stderr


def test_switched_off_says_what_it_gives_up(tmp_path):
    process = start("server", "--port", 0, "--auth", "off", cwd=tmp_path)
    url = process.stdout.readline().split("listening on ")[1].split()[0]
    assert ask(url, "/api/2.0/tune/studies", STUDY)[0] == 200
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert "no authentication" in said and "commands" in said

"""Webhooks by MLflow's client, received by a real HTTP server."""

import json
import re
import select
import socket
import subprocess
import threading
import time
import uuid

import pytest
import requests

from webhook_receiver import Receiver, is_genuine

LOCAL = ("--webhook-allow-private", "--webhook-allow-http", "--webhook-backoff", "50ms")


@pytest.fixture
def receivers():
    started = []

    def start(**options):
        started.append(Receiver(**options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def hooks(own_server):
    """A server that may send to this machine, and MLflow's client of it."""
    import mlflow

    server = own_server(more=LOCAL)
    return server, mlflow.MlflowClient(tracking_uri=server.url, registry_uri=server.url)


def tune(server, method, path, body=None):
    answer = requests.request(method, f"{server.url}/api/2.0/tune/{path}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def run_hook(server, url, actions=("CREATED",), **fields):
    events = [{"entity": "RUN", "action": action} for action in actions]
    return tune(server, "POST", "webhooks", {"name": "runs", "url": url, "events": events, **fields})["webhook"]


def figure(server, line):
    text = requests.get(f"{server.url}/metrics", timeout=30).text
    return float(re.search(rf"^{re.escape(line)} (\S+)$", text, re.M).group(1))


def wait_until(condition, timeout=60):
    """For what nobody announces: the stats of another process."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it never became so"
        threading.Event().wait(0.02)


def test_the_clients_whole_interface(hooks, receivers):
    server, client = hooks
    receiver = receivers()
    made = client.create_webhook(
        name="all-of-it",
        url=receiver.url,
        events=["model_version.created", "registered_model.created"],
        description="what for",
        secret="geheim",
    )
    assert made.name == "all-of-it"
    assert made.description == "what for"
    assert str(made.status) == "ACTIVE"
    assert made.secret is None
    assert {str(event) for event in made.events} == {"model_version.created", "registered_model.created"}
    assert client.get_webhook(made.webhook_id).url == receiver.url
    changed = client.update_webhook(made.webhook_id, name="renamed", status="DISABLED", events=["prompt.created"])
    assert changed.name == "renamed" and str(changed.status) == "DISABLED"
    assert changed.description == "what for"
    assert [str(event) for event in changed.events] == ["prompt.created"]
    others = {client.create_webhook(name=f"w{i}", url=receiver.url, events=["prompt.created"]).webhook_id
              for i in range(5)}
    listed, token = set(), None
    while True:
        page = client.list_webhooks(max_results=2, page_token=token)
        assert len(page) <= 2
        listed |= {webhook.webhook_id for webhook in page}
        token = page.token
        if not token:
            break
    assert listed == others | {made.webhook_id}
    result = client.test_webhook(made.webhook_id)
    assert result.success and result.response_status == 200 and result.response_body == "ok"
    result = client.test_webhook(made.webhook_id, "model_version_tag.set")
    assert result.success
    _, headers, body = receiver.wait_for(2)[1]
    assert is_genuine("geheim", headers, body)
    assert json.loads(body)["entity"] == "model_version_tag"
    client.delete_webhook(made.webhook_id)
    with pytest.raises(Exception, match="not found"):
        client.get_webhook(made.webhook_id)
    with pytest.raises(Exception, match="Invalid webhook URL scheme: 'ftp'"):
        client.create_webhook(name="x", url="ftp://x", events=["prompt.created"])
    with pytest.raises(Exception, match="Webhook name '-' is invalid"):
        client.create_webhook(name="-", url=receiver.url, events=["prompt.created"])


def test_events_of_the_registry_arrive_as_mlflows_do(hooks, receivers):
    server, client = hooks
    receiver = receivers()
    events = ["registered_model.created", "model_version.created", "model_version_tag.set", "model_version_tag.deleted",
              "model_version_alias.created", "model_version_alias.deleted", "prompt.created", "prompt_version.created",
              "prompt_tag.set", "prompt_tag.deleted", "prompt_version_tag.set", "prompt_version_tag.deleted",
              "prompt_alias.created", "prompt_alias.deleted"]
    client.create_webhook(name="registry", url=receiver.url, events=events, secret="k")
    client.create_registered_model("m", tags={"a": "b"}, description="d")
    client.create_registered_model("plain")
    run = client.create_run("0")
    client.create_model_version("m", source=f"{run.info.artifact_uri}/model", run_id=run.info.run_id, tags={"t": "u"})
    client.set_model_version_tag("m", "1", "key", "value")
    client.delete_model_version_tag("m", "1", "key")
    client.set_registered_model_alias("m", "champion", "1")
    client.delete_registered_model_alias("m", "champion")
    client.set_registered_model_tag("m", "quiet", "x")
    client.update_model_version("m", "1", description="quiet")
    client.create_prompt("p", description="about", tags={"x": "y"})
    client.create_prompt_version("p", template="Hello {{name}}!", tags={"v": "w"})
    client.set_prompt_tag("p", "pk", "pv")
    client.delete_prompt_tag("p", "pk")
    client.set_prompt_version_tag("p", "1", "vk", "vv")
    client.delete_prompt_version_tag("p", "1", "vk")
    client.set_prompt_alias("p", "prod", 1)
    client.delete_prompt_alias("p", "prod")
    client.create_registered_model("last")
    bodies = receiver.bodies(16)
    assert all(is_genuine("k", headers, body) for _, headers, body in receiver.received)
    assert len({headers["X-MLflow-Delivery-Id"] for _, headers, _ in receiver.received}) == 16
    told = [(f"{body['entity']}.{body['action']}", body["data"]) for body in bodies]
    assert told == [
        ("registered_model.created", {"name": "m", "tags": {"a": "b"}, "description": "d"}),
        ("registered_model.created", {"name": "plain", "tags": {}, "description": ""}),
        ("model_version.created", {"name": "m", "version": "1", "source": f"{run.info.artifact_uri}/model",
                                   "run_id": run.info.run_id, "tags": {"t": "u"}, "description": None}),
        ("model_version_tag.set", {"name": "m", "version": "1", "key": "key", "value": "value"}),
        ("model_version_tag.deleted", {"name": "m", "version": "1", "key": "key"}),
        ("model_version_alias.created", {"name": "m", "alias": "champion", "version": "1"}),
        ("model_version_alias.deleted", {"name": "m", "alias": "champion"}),
        ("prompt.created", {"name": "p", "tags": {"x": "y"}, "description": "about"}),
        ("prompt_version.created", {"name": "p", "version": "1", "template": "Hello {{name}}!", "tags": {"v": "w"},
                                    "description": None}),
        ("prompt_tag.set", {"name": "p", "key": "pk", "value": "pv"}),
        ("prompt_tag.deleted", {"name": "p", "key": "pk"}),
        ("prompt_version_tag.set", {"name": "p", "version": "1", "key": "vk", "value": "vv"}),
        ("prompt_version_tag.deleted", {"name": "p", "version": "1", "key": "vk"}),
        ("prompt_alias.created", {"name": "p", "alias": "prod", "version": "1"}),
        ("prompt_alias.deleted", {"name": "p", "alias": "prod"}),
        ("registered_model.created", {"name": "last", "tags": {}, "description": ""}),
    ]


def test_runs_tell_their_life_and_mlflows_clients_do_not_see_it(hooks, receivers):
    server, client = hooks
    receiver = receivers()
    made = run_hook(server, receiver.url, ("CREATED", "FINISHED", "FAILED", "KILLED"), secret="k")
    assert client.list_webhooks() == []
    with pytest.raises(Exception, match="not found"):
        client.get_webhook(made["webhook_id"])
    assert len(tune(server, "GET", "webhooks")["webhooks"]) == 1
    run = client.create_run("0", tags={"a": "b"}).info
    client.update_run(run.run_id, name="renamed")
    client.set_terminated(run.run_id)
    client.set_terminated(run.run_id, "FAILED")
    first, second, third = receiver.bodies(3)
    assert (first["entity"], first["action"]) == ("run", "created")
    assert first["data"]["run_id"] == run.run_id and first["data"]["tags"]["a"] == "b"
    assert (second["action"], second["data"]["status"], second["data"]["run_name"]) == (
        "finished", "FINISHED", "renamed")
    assert third["action"] == "failed"
    assert all(is_genuine("k", headers, body) for _, headers, body in receiver.received)


def test_https_with_a_certificate_that_is_checked(own_server, receivers, tmp_path):
    pem = tmp_path / "own.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", str(pem), "-out", str(tmp_path / "cert.pem"), "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    pem.write_text(pem.read_text() + (tmp_path / "cert.pem").read_text())
    receiver = receivers(certificate=str(pem))
    stranger = own_server(more=("--webhook-allow-private",))
    made = run_hook(stranger, receiver.url)
    result = tune(stranger, "POST", f"webhooks/{made['webhook_id']}/test", {})["result"]
    assert not result["success"] and "certificate" in result["error_message"]
    stranger.stop()
    trusting = own_server(more=("--webhook-allow-private", "--webhook-ca", str(tmp_path / "cert.pem")))
    result = tune(trusting, "POST", f"webhooks/{made['webhook_id']}/test", {})["result"]
    assert result == {"success": True, "response_status": 200, "response_body": "ok"}


def test_private_addresses_and_plain_http_are_refused_by_default(server, receivers):
    receiver = receivers()

    def refusal(url):
        answer = requests.post(f"{server.url}/api/2.0/mlflow/webhooks", timeout=60, json={
            "name": "x", "url": url, "events": [{"entity": "PROMPT", "action": "CREATED"}]})
        assert answer.status_code == 400
        return answer.json()["message"]

    assert refusal(receiver.url) == "Invalid webhook URL scheme: 'http'. Allowed schemes are: https."
    for host, address in (("127.0.0.1", "127.0.0.1"), ("localhost", None), ("[::1]", "::1"),
                          ("0x7f.1", "127.0.0.1"), ("2130706433", "127.0.0.1"),
                          ("169.254.169.254", "169.254.169.254"), ("[64:ff9b::a00:1]", None)):
        message = refusal(f"https://{host}:{receiver.port}/")
        assert message.startswith("Webhook URL must not resolve to a non-public IP address. ")
        assert address is None or message.endswith(f"resolves to {address}.")
    assert receiver.received == []


def test_a_name_that_turns_private_is_caught_at_the_connection(own_server, receivers):
    receiver = receivers()
    open_server = own_server(more=LOCAL)
    run_hook(open_server, receiver.url.replace("127.0.0.1", "localhost"))
    open_server.stop()
    # The check at creation is past, as when a name changes its address afterwards.
    strict = own_server(more=("--webhook-allow-http",))
    requests.post(f"{strict.url}/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}, timeout=30)
    wait_until(lambda: figure(strict, 'tune_webhook_deliveries_total{outcome="refused"}') == 1)
    assert receiver.received == []
    assert figure(strict, "tune_webhook_queue_deliveries") == 0


def test_a_redirect_is_an_answer_not_an_order(hooks, receivers):
    server, client = hooks
    inner = receivers()

    def redirect(handler, count):
        handler.send_response(302)
        handler.send_header("Location", inner.url)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    outer = receivers(respond=redirect)
    run_hook(server, outer.url)
    client.create_run("0")
    wait_until(lambda: figure(server, 'tune_webhook_deliveries_total{outcome="delivered"}') == 1)
    assert len(outer.received) == 1 and inner.received == []


@pytest.fixture
def slow_ones(receivers):
    """A receiver that never answers, one whose answer drips without an end, and how often the first was asked at once."""
    over, asked, overlaps = threading.Event(), [], []

    def is_left(connection):
        """Whether the server has closed its side."""
        try:
            return select.select([connection], [], [], 0)[0] != [] and connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def hang(handler, count):
        overlaps.extend(one for one in asked if not is_left(one))
        asked.append(handler.connection)
        over.wait()

    def drip(handler, count):
        handler.send_response(200)
        handler.end_headers()
        try:
            while not over.wait(0.05):
                handler.wfile.write(b"x")
        except OSError:
            pass

    yield receivers(respond=hang), receivers(respond=drip), overlaps
    over.set()


def test_slow_receivers_hold_up_neither_the_server_nor_others(own_server, receivers, slow_ones):
    server = own_server(more=(*LOCAL, "--webhook-timeout", "200s"))  # what waits for them has no answer in this test
    slow, dripping, _ = slow_ones
    good = receivers()
    for url in (slow.url, dripping.url, good.url):
        run_hook(server, url)
    with requests.Session() as session:
        for _ in range(20):
            answer = session.post(f"{server.url}/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}, timeout=60)
            assert answer.status_code == 200
    good.wait_for(20)
    slow.wait_for(1)
    dripping.wait_for(1)
    wait_until(lambda: figure(server, "tune_webhook_queue_deliveries") == 40)


def test_slow_receivers_are_given_up_one_delivery_after_the_other(own_server, slow_ones):
    server = own_server(more=(*LOCAL, "--webhook-timeout", "1s", "--webhook-retries", "0"))
    slow, dripping, overlaps = slow_ones
    for url in (slow.url, dripping.url):
        run_hook(server, url)
    for _ in range(5):
        requests.post(f"{server.url}/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}, timeout=60)
    wait_until(lambda: figure(server, 'tune_webhook_deliveries_total{outcome="failed"}') >= 2)
    slow.wait_for(2)
    assert overlaps == [], "one at a time"


def test_a_huge_answer_costs_no_memory(hooks, receivers):
    server, client = hooks

    def flood(handler, count):
        handler.send_response(200)
        handler.end_headers()
        try:
            for _ in range(2000):
                handler.wfile.write(b"x" * 100_000)
        except OSError:
            pass

    receiver = receivers(respond=flood)
    before = server.memory_kb()
    made = run_hook(server, receiver.url)
    result = tune(server, "POST", f"webhooks/{made['webhook_id']}/test", {})["result"]
    assert result["success"] and len(result["response_body"]) == 64 * 1024
    client.create_run("0")
    wait_until(lambda: figure(server, 'tune_webhook_deliveries_total{outcome="delivered"}') == 1)
    assert server.falls_to_kb(before + 40_000)


def test_a_thousand_webhooks(hooks, receivers):
    server, client = hooks
    receiver = receivers()
    with requests.Session() as session:
        for i in range(1000):
            answer = session.post(f"{server.url}/api/2.0/tune/webhooks", timeout=30, json={
                "name": f"w{i}", "url": f"{receiver.url}/{i}", "events": [{"entity": "RUN", "action": "CREATED"}]})
            assert answer.status_code == 200, answer.text
        answer = session.post(f"{server.url}/api/2.0/tune/webhooks", timeout=30, json={
            "name": "more", "url": receiver.url, "events": [{"entity": "RUN", "action": "CREATED"}]})
        assert answer.status_code == 429
    client.create_run("0")
    paths = {path for path, _, _ in receiver.wait_for(1000)}
    assert len(paths) == 1000
    assert server.is_alive()


def test_kill_9_loses_no_delivery(own_server, receivers):
    gate = threading.Event()

    def refuse_until_open(handler, count):
        handler.send_response(200 if gate.is_set() else 503)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    receiver = receivers(respond=refuse_until_open)
    # Slow retries: what was not delivered waits while the server dies.
    server = own_server(more=(*LOCAL[:2], "--webhook-backoff", "60s"))
    run_hook(server, receiver.url, secret="k")
    created = []
    with requests.Session() as session:
        for _ in range(50):
            answer = session.post(f"{server.url}/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}, timeout=30)
            created.append(answer.json()["run"]["info"]["run_id"])
    receiver.wait_for(1)
    server.kill()
    first_id = receiver.received[0][1]["X-MLflow-Delivery-Id"]
    gate.set()
    seen = len(receiver.received)
    again = own_server(more=LOCAL)
    wait_until(lambda: figure(again, "tune_webhook_queue_deliveries") == 0)
    after = receiver.received[seen:]
    told = [json.loads(body)["data"]["run_id"] for _, _, body in after]
    assert told == created, "each answered run, in order"
    assert after[0][1]["X-MLflow-Delivery-Id"] == first_id, "the same delivery has the same id"
    assert all(is_genuine("k", headers, body) for _, headers, body in after)
    again.stop()
    last = own_server(more=LOCAL)
    assert figure(last, "tune_webhook_queue_deliveries") == 0


def test_secrets_are_never_returned_and_the_database_is_private(hooks, receivers):
    server, client = hooks
    secret = uuid.uuid4().hex
    made = client.create_webhook(name="x", url=receivers().url, events=["prompt.created"], secret=secret)
    for path in ("mlflow/webhooks", f"mlflow/webhooks/{made.webhook_id}", "tune/webhooks"):
        assert secret not in requests.get(f"{server.url}/api/2.0/{path}", timeout=30).text
    assert secret not in requests.get(f"{server.url}/metrics", timeout=30).text
    for name in ("tune.db", "tune.db-wal", "tune.db-shm"):
        assert (server.data / name).stat().st_mode & 0o077 == 0

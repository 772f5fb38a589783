"""kill -9 at random moments under a mixed load, again and again on one folder: what was answered is there, and nothing
half-written. TUNE_KILLS sets how often (default 3; 200 take about ten minutes)."""

import os
import random
import threading

import requests

KILLS = int(os.environ.get("TUNE_KILLS", "3"))
BATCH = 20


class Client:
    """One client's writes. It knows what was answered; the write under way at the kill may be there or not."""

    def __init__(self, number):
        self.number = number
        self.step = 0
        self.metrics, self.batches, self.params = set(), set(), set()
        self.tag, self.tag_sent = -1, -1
        self.created, self.deleting, self.deleted = set(), set(), set()
        self.models, self.keyed = set(), {}
        self.run = None

    def loop(self, url, stop):
        try:
            with requests.Session() as session:
                session.headers["Connection"] = "keep-alive"
                while not stop.is_set():
                    self.one(session, url)
        except requests.RequestException:
            return  # the kill

    def post(self, session, url, path, body, **headers):
        answer = session.post(f"{url}/api/2.0/{path}", json=body, headers=headers, timeout=30)
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    def one(self, session, url):
        step = self.step
        self.step += 1  # never again, whether answered or not
        kind = step % 8
        if kind == 0:
            self.post(session, url, "mlflow/runs/log-metric",
                      {"run_id": self.run, "key": "one", "value": step, "timestamp": step, "step": step})
            self.metrics.add(step)
        elif kind in (1, 2):
            self.post(session, url, "mlflow/runs/log-batch", {
                "run_id": self.run, "params": [{"key": f"b{step}", "value": "1"}],
                "metrics": [{"key": "many", "value": i, "timestamp": step, "step": step * BATCH + i}
                            for i in range(BATCH)]})
            self.batches.add(step)
        elif kind == 3:
            self.post(session, url, "mlflow/runs/log-parameter",
                      {"run_id": self.run, "key": f"p{step}", "value": str(step)})
            self.params.add(step)
        elif kind == 4:
            self.tag_sent = step
            self.post(session, url, "mlflow/runs/set-tag", {"run_id": self.run, "key": "t", "value": str(step)})
            self.tag = step
        elif kind == 5:
            made = self.post(session, url, "mlflow/runs/create", {"experiment_id": "0", "start_time": step})
            run = made["run"]["info"]["run_id"]
            if step % 16 == 5:
                self.deleting.add(run)  # from here on it may be gone
                self.post(session, url, "mlflow/runs/delete", {"run_id": run})
                self.deleted.add(run)
            self.created.add(run)
        elif kind == 6:
            key = f"{self.number}-{step}"
            made = self.post(session, url, "mlflow/runs/create", {"experiment_id": "0", "start_time": step},
                             **{"Idempotency-Key": key})
            self.keyed[key] = (step, made["run"]["info"]["run_id"])
        else:
            name = f"model-{self.number}-{step}"
            self.post(session, url, "mlflow/registered-models/create", {"name": name})
            self.models.add(name)
            self.post(session, url, "mlflow/model-versions/create", {"name": name, "source": "s3://b/m"})


def collect(url, credentials, stop):
    """Garbage collections without a pause, as a fault of their own."""
    try:
        with requests.Session() as session:
            while not stop.is_set():
                state = session.post(f"{url}/api/2.0/tune/gc", json={"older_than_ms": 0}, headers=credentials, timeout=30).json()
                while state["job"]["is_running"]:
                    after = state["job"]["version"]
                    state = session.get(f"{url}/api/2.0/tune/job?after={after}", timeout=30).json()
                assert "error" not in state["job"], state
    except requests.RequestException:
        return


def get(url, path):
    answer = requests.get(f"{url}/api/2.0/mlflow/{path}", timeout=30)
    return answer.status_code, answer.json()


def history(url, run, key):
    status, answer = get(url, f"metrics/get-history?run_id={run}&metric_key={key}")
    assert status == 200
    return [point["step"] for point in answer.get("metrics", [])]


def check(url, client):
    one = history(url, client.run, "one")
    assert client.metrics <= set(one) and len(set(one)) == len(one)
    many = history(url, client.run, "many")
    assert len(set(many)) == len(many) and len(many) % BATCH == 0, "half a batch"
    whole = {step // BATCH for step in many}
    assert client.batches <= whole and len(whole) * BATCH == len(many)
    _, answer = get(url, f"runs/get?run_id={client.run}")
    data = answer["run"]["data"]
    params = {pair["key"] for pair in data["params"]}
    assert {f"p{step}" for step in client.params} <= params
    assert {f"b{step}" for step in whole} == {key for key in params if key.startswith("b")}, "half a batch"
    tag = int(next((pair["value"] for pair in data["tags"] if pair["key"] == "t"), -1))
    assert tag in (client.tag, client.tag_sent)
    client.tag = tag


def check_new(url, client):
    """What this round created; earlier rounds' was checked before."""
    for run in client.created:
        status, answer = get(url, f"runs/get?run_id={run}")
        if run in client.deleted:
            assert status == 404 or answer["run"]["info"]["lifecycle_stage"] == "deleted"
        elif run not in client.deleting:
            assert status == 200, "a run that nobody deleted is gone"
    for name in client.models:
        assert get(url, f"registered-models/get?name={name}")[0] == 200
    for key, (step, run) in list(client.keyed.items())[-3:]:
        again = requests.post(f"{url}/api/2.0/mlflow/runs/create", json={"experiment_id": "0", "start_time": step},
                              headers={"Idempotency-Key": key}, timeout=30)
        assert again.json()["run"]["info"]["run_id"] == run, "a retry made a second run"
    for each in (client.created, client.deleting, client.deleted, client.models, client.keyed):
        each.clear()


def test_what_was_answered_survives_every_kill(own_server):
    seed = int(os.environ.get("TUNE_SEED", "1"))
    chance = random.Random(seed)
    clients = [Client(number) for number in range(6)]
    server = own_server()
    for client in clients:
        made = requests.post(f"{server.url}/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}, timeout=30)
        client.run = made.json()["run"]["info"]["run_id"]
    acknowledged = 0
    for round_number in range(KILLS):
        stop = threading.Event()
        threads = [threading.Thread(target=client.loop, args=(server.url, stop)) for client in clients]
        threads.append(threading.Thread(target=collect, args=(server.url, server.credentials, stop)))
        before = sum(client.step for client in clients)
        for thread in threads:
            thread.start()
        # A moment in the stream of writes, not of the clock: the same load on any machine.
        enough = before + chance.randrange(30, 500)
        while sum(client.step for client in clients) < enough and any(t.is_alive() for t in threads[:-1]):
            stop.wait(chance.random() * 0.01)
        server.kill()
        stop.set()
        for thread in threads:
            thread.join()
        server = own_server()
        for client in clients:
            check(server.url, client)
            check_new(server.url, client)
        acknowledged = sum(len(c.metrics) + len(c.batches) + len(c.params) for c in clients)
    print(f"{KILLS} kills, {sum(client.step for client in clients)} writes sent, "
          f"{acknowledged} of them metrics, batches and params that were answered")
    assert acknowledged > 10 * KILLS

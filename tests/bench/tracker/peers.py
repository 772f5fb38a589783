"""MLflow's own tracking server (SQLite, 4 workers, its defaults) on the requests of http_bench; prints JSON lines."""

import http.client
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

PEER = "MLflow 3.17.2"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Client:
    """One kept-alive connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def call(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:200]}")
        return json.loads(content or b"{}")


def start_server(folder, port):
    """Starts the server and returns it with the seconds to its first answer."""
    began = time.monotonic()
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "4"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/artifacts"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return server, time.monotonic() - began
        except OSError:
            time.sleep(0.02)  # the server has no other way to say that it listens


def create_run(client):
    body = {"experiment_id": "0", "start_time": 1}
    return client.call("POST", "/api/2.0/mlflow/runs/create", body)["run"]["info"]["run_id"]


def log_metric_rate(port, client_count, seconds):
    counts = [0] * client_count
    deadline = time.monotonic() + seconds

    def work(index):
        client = Client(port)
        run_id = create_run(client)
        while time.monotonic() < deadline:
            step = counts[index]
            body = {"run_id": run_id, "key": "loss", "value": 0.5, "timestamp": step + 1, "step": step}
            client.call("POST", "/api/2.0/mlflow/runs/log-metric", body)
            counts[index] += 1

    began = time.monotonic()
    threads = [threading.Thread(target=work, args=(index,)) for index in range(client_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


def log_batch_rate(port, batches):
    client = Client(port)
    run_id = create_run(client)
    began = time.monotonic()
    for batch in range(batches):
        metrics = [
            {"key": f"m{i % 10}", "value": i * 0.5, "timestamp": batch * 1000 + i + 1, "step": batch * 1000 + i}
            for i in range(1000)
        ]
        client.call("POST", "/api/2.0/mlflow/runs/log-batch", {"run_id": run_id, "metrics": metrics})
    return batches * 1000 / (time.monotonic() - began)


def search_p50_ms(port, run_count, repeats):
    client = Client(port)
    experiment = client.call("POST", "/api/2.0/mlflow/experiments/create", {"name": "search"})["experiment_id"]
    for i in range(run_count):
        run = client.call("POST", "/api/2.0/mlflow/runs/create", {"experiment_id": experiment, "start_time": i + 1})
        batch = {"run_id": run["run"]["info"]["run_id"], "params": [{"key": "lr", "value": str(i)}]}
        batch["metrics"] = [{"key": "loss", "value": (i * 7919) % 1000 / 1000, "timestamp": 1, "step": 0}]
        client.call("POST", "/api/2.0/mlflow/runs/log-batch", batch)
    times = []
    body = {"experiment_ids": [experiment], "filter": "metrics.loss < 0.5", "max_results": 50}
    body["order_by"] = ["metrics.loss ASC"]
    for _ in range(repeats):
        began = time.monotonic()
        client.call("POST", "/api/2.0/mlflow/runs/search", body)
        times.append(time.monotonic() - began)
    return sorted(times)[len(times) // 2] * 1000


def say(name, value, unit, better):
    print(json.dumps({"name": name, "value": value, "unit": unit, "better": better, "peer": PEER}), flush=True)


def main():
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server, start_s = start_server(pathlib.Path(folder), port)
        try:
            say("server start to first answer", start_s * 1000, "ms", "lower")
            say("log-metric, 16 clients, durable", log_metric_rate(port, 16, 10), "1/s", "higher")
            say("log-batch of 1,000 metrics, one client", log_batch_rate(port, 20), "rows/s", "higher")
            say("runs/search, filter and order, 50 of 1,000 runs, p50", search_p50_ms(port, 1000, 20), "ms", "lower")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What running trials costs, as one table: no-op trials as processes and in a pool, what a trial of one second takes
beyond its second, how long a lease and a prune order take, and 200 agents that each report one result a second.

Real `tune server`, agents, supervisors and processes; only the 200 agents are connections of this program. Ray Tune
stands beside where a Python with it is named: RAY_PYTHON=build/engines-venv/bin/python.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin")).resolve()
TUNE = BIN / "tune"
AGENTS = int(os.environ.get("TUNE_BENCH_AGENTS", 200))
SECONDS = int(os.environ.get("TUNE_BENCH_SECONDS", 60))
ROWS = []


def row(name, value, unit, target=None, better="lower", peer=None):
    more = {key: given for key, given in (("target", target), ("peer", peer)) if given is not None}
    ROWS.append((name, value, unit, target, better, peer))
    print(json.dumps({"name": name, "value": value, "unit": unit, "better": better, **more}), flush=True)


def processor_s():
    """Of all processes that were waited for, with theirs: server, agent, supervisors and trials."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processor_row(name, trials, parallel, command, *flags):
    """Of a trial, without the start of `tune run` and of the pool: it depends little on what else the machine does."""
    before = processor_s()
    run_study(2, parallel, command, *flags)
    between = processor_s()
    taken_s = run_study(trials, parallel, command, *flags)
    used_s = processor_s() - between - (between - before)
    row(name + ", processor time of all processes a trial", round(used_s / (trials - 2) * 1e3, 2), "ms")
    return taken_s


def run_study(trials, parallel, command, *flags):
    """Seconds of a whole `tune run`, its start included; every trial must complete."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        result = subprocess.run(
            [TUNE, "run", "-q", "--json", "--data", folder, "--port", "0", "-n", str(trials), "-j", str(parallel), "-m",
             "x:min", "--sampler", "random", *flags, "x=0..1", "--", *command],
            cwd=folder, stdout=subprocess.PIPE, check=True)
        taken_s = time.monotonic() - began
    complete = json.loads(result.stdout)["study"]["counts"]["complete"]
    if complete != trials:
        sys.exit(f"worker_bench: {complete} of {trials} trials are complete")
    return taken_s


def throughput():
    for parallel in (2, 8):
        name = f"no-op trials as processes, {parallel} at once"
        taken_s = processor_row(name, 1000, parallel, ["/bin/echo", 'tune: {"x": {x}}'])
        row(name, round(1000 / taken_s), "1/s", 200, "higher")
    pool = [BIN / "tune-trainer", "pool", "--device=cpu", "--parallel=2", "--only-reports"]
    for size in (16, 128):
        name = f"no-op trials in a pool of {size}"
        taken_s = processor_row(name, 10_000, size, pool, "--pool", str(size))
        row(name, round(10_000 / taken_s), "1/s", 1000, "higher")


def overhead():
    """Trials of one second, two at a time, over the seconds that they sleep."""
    trials, parallel = 30, 2
    start_s = run_study(2, parallel, ["/bin/echo", 'tune: {"x": {x}}'])
    taken_s = run_study(trials, parallel, ["/bin/sh", "-c", 'sleep 1; echo "$0"', 'tune: {"x": {x}}'])
    row("1 s trials: time beyond their seconds, without the start of `tune run`",
        round(((taken_s - start_s) / (trials / parallel) - 1) * 100, 2), "%", 1)


class Server:
    """A `tune server` in a folder of its own, and its API."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([TUNE, "server", "--port", "0", "--data", self.folder.name],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.partition("http://127.0.0.1:")[2].split()[0])
        self.token = (pathlib.Path(self.folder.name) / "token").read_text().strip()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def call(self, connection, path, body=None, method=None):
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        connection.request(method or ("GET" if body is None else "POST"), "/api/2.0/tune/" + path,
                           None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"worker_bench: {path}: {text.decode()[:300]}")
        return json.loads(text)

    def study(self, connection, name, trials, command=("none",), **more):
        self.call(connection, "studies", {
            "name": name, "metric": {"name": "x", "goal": "minimize"}, "space": {"x": "0..1"},
            "sampler": {"type": "random", "seed": 1}, "budget": {"trials": trials}, "command": list(command), **more})


class Agent:
    """One connection that speaks the agents' protocol and runs nothing."""

    def __init__(self, server, name, slots=1):
        self.server, self.name = server, name
        self.connection = server.connect()
        server.call(self.connection, "agents/register", {"agent_id": name, "host": name, "slots": slots, "cpus": 1})

    def call(self, path, body):
        return self.server.call(self.connection, f"agents/{self.name}/{path}", body)

    def lease(self):
        while not (leases := self.call("lease", {"request_id": uuid.uuid4().hex, "free_slots": 1,
                                                 "wait_ms": 20_000}).get("leases")):
            pass
        return leases[0]

    def report(self, lease, step):
        self.call("report", {"reports": [{"run_id": lease["run_id"], "attempt": lease["attempt"], "metrics": [
            {"key": "x", "value": lease["params"]["x"], "step": step, "timestamp_ms": int(time.time() * 1000)}]}]})

    def finish(self, lease):
        self.call(f"attempts/{lease['run_id']}/{lease['attempt']}/finish",
                  {"request_id": uuid.uuid4().hex, "outcome": "done", "exit_code": 0})


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def lease_latency(count=500):
    """From asking for a trial to having it, one agent, one trial after another."""
    with Server() as server:
        agent = Agent(server, "one")
        server.study(agent.connection, "s", count)
        times = []
        for _ in range(count):
            began = time.perf_counter()
            lease = agent.lease()
            times.append((time.perf_counter() - began) * 1e3)
            agent.report(lease, 0)
            agent.finish(lease)
    row("lease latency, p50", round(statistics.median(times), 2), "ms")
    row("lease latency, p99", round(percentile(times, 0.99), 2), "ms", 20)


def prune_latency(count=20):
    """From the report that the pruner condemns to the trial's process being gone; it ends on SIGTERM by itself."""
    script = "import os, time, sys\nprint('tune: {\"x\": 9, \"step\": 1}', flush=True)\n" \
             "open(os.environ['FOLDER'] + '/' + os.environ['TUNE_TRIAL'], 'w').write(str(os.getpid()) + ' ' + " \
             "str(time.time()))\ntime.sleep(600)\n"
    times = []
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "trial.py").write_text(script)
        agent = subprocess.Popen([TUNE, "agent", "--server", f"http://127.0.0.1:{server.port}", "--state",
                                  folder + "/agent", "--slots", "1", "--no-gpus"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        server.study(server.connect(), "s", count, [sys.executable, folder + "/trial.py"], env={"FOLDER": folder},
                     pruner={"type": "threshold", "upper": 1})
        for number in range(count):
            path = pathlib.Path(folder) / str(number)
            while not path.exists() or len(words := path.read_text().split()) < 2:
                time.sleep(0.001)
            while pathlib.Path("/proc/" + words[0]).exists():
                time.sleep(0.001)
            times.append(time.time() - float(words[1]))
        agent.terminate()
        agent.wait()
    row("prune: from the report to the process gone, p50", round(statistics.median(times) * 1e3), "ms")
    row("prune: the slowest of 20", round(max(times) * 1e3), "ms", 1000)


def many_agents():
    """Each runs one trial that reports once a second; the time until the last end has been taken."""
    with Server() as server:
        server.study(server.connect(), "s", AGENTS)
        with concurrent.futures.ThreadPoolExecutor(AGENTS) as threads:
            agents = list(threads.map(lambda i: Agent(server, f"agent-{i}"), range(AGENTS)))
            ready = threading.Barrier(AGENTS + 1)

            def work(agent):
                ready.wait()
                lease = agent.lease()
                began = time.monotonic()
                for second in range(SECONDS):
                    agent.report(lease, second)
                    time.sleep(max(0.0, began + second + 1 - time.monotonic()))
                agent.finish(lease)

            jobs = [threads.submit(work, agent) for agent in agents]
            ready.wait()
            began = time.monotonic()
            for job in jobs:
                job.result()
            taken_s = time.monotonic() - began
    row(f"{AGENTS} agents, 1 result/s each for {SECONDS} s", round(taken_s, 2), "s", SECONDS + 1)


RAY = """
import time, ray
from ray import tune
ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
began = time.monotonic()
tune.Tuner(lambda config: {"x": config["x"]}, param_space={"x": tune.uniform(0, 1)},
           tune_config=tune.TuneConfig(num_samples=30, metric="x", mode="min")).fit()
print("RAY", 30 / (time.monotonic() - began), ray.__version__)
"""


def ray_beside():
    python = os.environ.get("RAY_PYTHON")
    if not python:
        return
    result = subprocess.run([python, "-c", RAY], capture_output=True, text=True, check=False)
    line = next((line for line in result.stdout.splitlines() if line.startswith("RAY ")), None)
    if line is None:
        sys.exit("worker_bench: Ray Tune did not run: " + result.stderr[-500:])
    _, rate, version = line.split()
    row("no-op trials, 2 at once", round(float(rate), 2), "1/s", better="higher", peer=f"Ray Tune {version}")


def main():
    parts = {"throughput": throughput, "overhead": overhead, "lease": lease_latency, "prune": prune_latency,
             "agents": many_agents, "ray": ray_beside}
    for name in sys.argv[1:] or parts:
        parts[name]()
    print("\n| measured | value | aim | |\n|---|---|---|---|", file=sys.stderr)
    for name, value, unit, target, better, peer in ROWS:
        aim = "" if target is None else f"{'>=' if better == 'higher' else '<'} {target} {unit}"
        print(f"| {name} | {value} {unit} | {aim} | {peer or ''} |", file=sys.stderr)
    print(f"\nload average: {' '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores",
          file=sys.stderr)


if __name__ == "__main__":
    main()

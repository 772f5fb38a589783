#!/usr/bin/env python3
"""A rack of agents against a real server over loopback: 2,000 agents of 8 GPUs each, simulated by this one process.

    tests/bench/tuner/rack_bench.py [--agents 2000] [--seconds 240] [--bin build/release/bin]

An agent registers, keeps a lease poll open while it has free GPUs, sends a heartbeat every 15 s and ends what it was
given after a drawn time; no processes run. Each has one connection of its own and they share 40 for the rest. At once
there are: four studies of single-GPU trials without an end, one of trials of 8 GPUs, one of gangs of 64 GPUs (8
agents), and later one more of such gangs, which finds every GPU taken.
Printed: how long the first filling takes, when all GPUs are free at once and each needs a trial that has never been on a
disk; then, for places that become free later, from the moment the last of a trial's GPUs is free to its lease at the
last of its agents; how evenly the four studies share; how long the late gangs wait; memory and processor time of the
server, and processor time of this program, which tells whether the load or the server is at its limit.
"""

import argparse
import asyncio
import collections
import json
import os
import pathlib
import random
import resource
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
GPUS = 8
SINGLES = ("single-a", "single-b", "single-c", "single-d")
SECONDS = {"single": (60, 120), "eight": (10, 30), "gang": (10, 30), "late": (10, 20)}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Connection:
    """One keep-alive connection; one request at a time."""

    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None

    async def post(self, path, body):
        payload = json.dumps(body).encode()
        head = (f"POST /api/2.0/tune/{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(payload)}\r\n\r\n").encode()
        for attempt in range(3):
            try:
                if self.writer is None:
                    self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
                self.writer.write(head + payload)
                status = (await self.reader.readline()).split(b" ")[1]
                length = 0
                while (line := await self.reader.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                return int(status), json.loads(await self.reader.readexactly(length) or b"{}")
            except (OSError, IndexError, asyncio.IncompleteReadError):
                self.writer = None
                await asyncio.sleep(0.2 * (attempt + 1))
        return 0, {}


class Rack:
    """All agents, and what was measured."""

    def __init__(self, port, agents):
        self.port, self.count, self.is_over = port, agents, False
        self.calls = asyncio.LifoQueue()  # connections for requests that are no polls
        for _ in range(40):
            self.calls.put_nowait(Connection(port))
        self.placed = collections.defaultdict(list)  # after the first filling
        self.placed_first = collections.defaultdict(list)
        self.filled_at, self.trials_filled = None, 0
        self.held = collections.Counter()
        self.parts = collections.defaultdict(list)
        self.ended = collections.Counter()
        self.late_waits, self.late_since = [], None
        self.trials = 0

    def started(self, agent, lease, now):
        study = lease["study"]
        kind = study.split("-")[0]
        nodes = len(lease["gang"]["nodes"]) if lease.get("gang") else 1
        parts = self.parts[(lease["run_id"], lease["attempt"])]
        parts.append(max(agent.free_since, agent.polled_at if nodes == 1 else 0))
        if len(parts) < nodes:
            return
        self.trials += 1
        self.held[study] += {"single": 1, "eight": 8}.get(kind, 64)
        if kind == "late" and self.late_since is not None:
            self.late_waits.append(now - self.late_since)
            self.late_since = None
        elif kind != "late":
            (self.placed if self.filled_at else self.placed_first)[kind].append(now - max(parts))
        if self.filled_at is None and sum(self.held.values()) >= 0.99 * self.count * GPUS:
            self.filled_at, self.trials_filled = now, self.trials

    def finished(self, lease, now):
        key = (lease["run_id"], lease["attempt"])
        nodes = len(lease["gang"]["nodes"]) if lease.get("gang") else 1
        self.ended[key] += 1
        if self.ended[key] < nodes:
            return
        del self.ended[key]
        self.parts.pop(key, None)
        kind = lease["study"].split("-")[0]
        self.held[lease["study"]] -= {"single": 1, "eight": 8}.get(kind, 64)
        if kind == "late":
            self.late_since = now


class Agent:
    def __init__(self, rack, number):
        self.rack, self.id = rack, f"agent-{number:05}"
        self.polls = Connection(rack.port)
        self.running = {}
        self.free = GPUS
        self.free_since = self.polled_at = 0.0
        self.wake = asyncio.Event()

    async def call(self, path, body):
        connection = await self.rack.calls.get()
        try:
            return await connection.post(path, body)
        finally:
            self.rack.calls.put_nowait(connection)

    async def register(self):
        gpus = [f"GPU-{i}" for i in range(GPUS)]
        await self.call("agents/register", {
            "agent_id": self.id, "host": self.id, "pid": 1, "slots": GPUS, "cpus": 96, "memory_bytes": 1 << 40,
            "gpus": gpus, "devices": [{"uuid": gpu, "bytes": 80 << 30} for gpu in gpus], "address": self.id})
        self.free_since = time.monotonic()

    async def lease_forever(self):
        serial = 0
        while not self.rack.is_over:
            if self.free <= 0:
                self.wake.clear()
                await self.wake.wait()
            serial += 1
            self.polled_at = time.monotonic()
            status, reply = await self.polls.post(f"agents/{self.id}/lease", {
                "request_id": f"{self.id}-{serial}", "free_slots": self.free, "wait_ms": 25_000, "port": 20_000})
            now = time.monotonic()
            if status != 200:
                await asyncio.sleep(1)
            for lease in reply.get("leases", []):
                self.free -= int(lease["gpus_per_trial"])
                self.running[lease["run_id"]] = lease["attempt"]
                self.rack.started(self, lease, now)
                asyncio.create_task(self.run(lease))

    async def run(self, lease):
        kind = lease["study"].split("-")[0]
        # All parts of a gang draw the same time.
        await asyncio.sleep(random.Random(lease["run_id"] + str(lease["attempt"])).uniform(*SECONDS[kind]))
        while not self.rack.is_over:
            status, _ = await self.call(f"agents/{self.id}/attempts/{lease['run_id']}/{lease['attempt']}/finish",
                                        {"request_id": f"{self.id}-{lease['run_id']}-{lease['attempt']}",
                                         "outcome": "pruned"})
            if status in (200, 404, 409):
                break
            await asyncio.sleep(0.5)
        self.running.pop(lease["run_id"], None)
        self.free += int(lease["gpus_per_trial"])
        self.free_since = time.monotonic()
        self.rack.finished(lease, self.free_since)
        self.wake.set()

    async def beat_forever(self):
        await asyncio.sleep(random.uniform(0, 15))
        while not self.rack.is_over:
            running = [{"run_id": run, "attempt": attempt} for run, attempt in self.running.items()]
            await self.call(f"agents/{self.id}/heartbeat", {"wait_ms": 0, "running": running})
            await asyncio.sleep(15)


def study(name, resources, **budget):
    return {"name": name, "metric": {"name": "loss"}, "space": {"x": {"float": [0, 1]}}, "sampler": {"type": "random"},
            "command": ["true"], "resources": resources, "budget": budget}


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))] if values else float("nan")


def figure(name, value, unit, better="lower", **more):
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit, "better": better, **more}), flush=True)


async def simulate(port, agents, seconds, memory_mb, processor_s):
    rack = Rack(port, agents)
    fleet = [Agent(rack, number) for number in range(agents)]
    before = memory_mb()
    calls = Connection(port)
    gangs = max(agents // 100, 1)
    await calls.post("studies", study("gang-64", {"gpus": 8, "nnodes": 8}, parallel=gangs))
    await calls.post("studies", study("eight-8", {"gpus": 8}, parallel=gangs * 5))
    for name in SINGLES:
        await calls.post("studies", study(name, {"gpus": 1}))
    begun = time.monotonic()
    await asyncio.gather(*(agent.register() for agent in fleet))
    figure(f"{agents} agents register", time.monotonic() - begun, "s")
    filling_since, server_before, own_before = time.monotonic(), processor_s(), time.process_time()
    tasks = [asyncio.create_task(work) for agent in fleet for work in (agent.lease_forever(), agent.beat_forever())]
    late_at = time.monotonic() + seconds / 4
    end = time.monotonic() + seconds
    shares = []
    server_filled = own_filled = None
    while time.monotonic() < end:
        await asyncio.sleep(1)
        if rack.filled_at and server_filled is None:
            server_filled, own_filled = processor_s(), time.process_time()
        if time.monotonic() > late_at and len(shares) == 0:
            rack.late_since = time.monotonic()
            await calls.post("studies", study("late-64", {"gpus": 8, "nnodes": 8}, parallel=1))
        if time.monotonic() > late_at:
            held = [rack.held[name] for name in SINGLES]
            shares.append(sum(held) ** 2 / (len(held) * sum(x * x for x in held)) if any(held) else 0)
    after = memory_mb()
    server_after, own_after = processor_s(), time.process_time()
    waiting = time.monotonic() - rack.late_since if rack.late_since else 0
    rack.is_over = True
    for task in tasks:
        task.cancel()
    if rack.filled_at:
        figure(f"first filling of {agents * GPUS} GPUs", rack.filled_at - filling_since, "s",
               samples=rack.trials_filled)
        figure("the server's processor time a trial meanwhile",
               (server_filled - server_before) / rack.trials_filled * 1e3, "ms")
        figure("this program's processor time a trial meanwhile", (own_filled - own_before) / rack.trials_filled * 1e3, "ms")
        later = max(rack.trials - rack.trials_filled, 1)
        figure("the server's processor time a trial afterwards", (server_after - server_filled) / later * 1e3, "ms")
        figure("this program's processor time a trial afterwards", (own_after - own_filled) / later * 1e3, "ms")
    for kind, gpus in (("single", 1), ("eight", 8), ("gang", 64)):
        times = rack.placed_first[kind]
        figure(f"first filling: GPUs free to {gpus} placed p50", percentile(times, 0.5), "s", samples=len(times))
        figure(f"first filling: GPUs free to {gpus} placed p99", percentile(times, 0.99), "s")
        times = rack.placed[kind]
        figure(f"GPUs free to {gpus} placed p50", percentile(times, 0.5), "s", target=1, samples=len(times))
        figure(f"GPUs free to {gpus} placed p99", percentile(times, 0.99), "s", target=1)
    figure("fairness (Jain) of four studies that share, mean", statistics.mean(shares), "", "higher", target=0.95)
    figure("fairness (Jain) of four studies that share, least", min(shares), "", "higher")
    figure(f"longest wait of a late gang of 64 GPUs among trials of at most {SECONDS['single'][1]} s",
           max(rack.late_waits + [waiting]), "s", samples=len(rack.late_waits))
    figure("GPUs in use at the end", 100 * sum(rack.held.values()) / (agents * GPUS), "%", "higher")
    figure("trials started", rack.trials, "", "higher")
    figure(f"memory of the server with {agents} agents and their trials", after, "MB")
    figure("memory of the server before", before, "MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--bin", default=os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin"))
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = options.agents * 4 + 1000
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, wanted), hard), hard))
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="tune-rack-") as data:
        server = subprocess.Popen([pathlib.Path(options.bin) / "tune", "server", "--port", str(port), "--data", data, "--auth",
                                   "off", "--connections-per-client", str(options.agents * 4 + 100)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
                    break
                except OSError:
                    time.sleep(0.1)

            def memory_mb():
                status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
                return int(status.split("VmRSS:")[1].split()[0]) / 1024

            def processor_s():
                fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

            asyncio.run(simulate(port, options.agents, options.seconds, memory_mb, processor_s))
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()

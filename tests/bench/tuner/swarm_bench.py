#!/usr/bin/env python3
"""Thousands of simulated agents on one server over loopback, of which some work: what a heartbeat takes, what lies
between the end of a trial and the start of the next, what the server needs, and whether anything is lost or doubled
when it is killed.

    tests/bench/tuner/swarm_bench.py [--agents 10000] [--working 1000] [--kills 20] [--seconds 120] [--tls]

The agents are one process (build/release/bin/agent_swarm) that keeps the rules of `tune agent`: one long-poll each,
and a second connection while there is something to report. They come from four addresses with the token of the data
folder; with `--tls` through TLS, and each checks the server's certificate. A trial is a timer of 5 to 15 s. `--kills` ends the server with SIGKILL at random moments and starts it again on
the same folder; afterwards each trial has to be complete after one attempt, which one agent was given once.
"""

import argparse
import json
import os
import pathlib
import random
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
STUDY = "swarm"
ADDRESSES = 4


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certificate(folder):
    """A key and a certificate for this machine that is its own authority."""
    pem, key = folder / "server.pem", folder / "server.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", pem],
                   check=True, capture_output=True)
    return pem, key


class Server:
    """A server that is killed and comes back."""

    def __init__(self, bin_dir, folder, agents, heartbeat_ms, with_tls=False):
        self.folder, self.port = pathlib.Path(folder), free_port()
        self.url, self.tls, self.ca = f"http://127.0.0.1:{self.port}", None, None
        self.command = [bin_dir / "tune", "server", "--port", str(self.port), "--data", self.folder / "data",
                        "--heartbeat", f"{heartbeat_ms}ms", "--connections", str(max(2048, agents * 3 // 2))]
        if with_tls:
            self.ca, key = certificate(self.folder)
            self.command += ["--tls-cert", self.ca, "--tls-key", key]
            self.url, self.tls = self.url.replace("http", "https"), ssl.create_default_context(cafile=self.ca)
        self.cpu_s = 0.0
        self.start()

    def start(self):
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        while True:
            try:
                return urllib.request.urlopen(self.url + "/health", timeout=5, context=self.tls).read()
            except OSError:
                if self.process.poll() is not None:
                    sys.exit((self.folder / "server.log").read_text())
                time.sleep(0.05)

    def kill(self):
        self.cpu_s += self.running_cpu_s()
        self.process.kill()
        self.process.wait()

    def running_cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def queued_s(self):
        """How long its threads could have run and had no processor."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[1]) for task in tasks) / 1e9

    def memory_mb(self, field="VmRSS"):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split(field + ":")[1].split()[0]) / 1024

    def token(self):
        return (self.folder / "data" / "token").read_text().strip()

    def call(self, path, body=None):
        request = urllib.request.Request(
            f"{self.url}/api/2.0/tune/{path}", None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": "Bearer " + self.token()})
        return json.loads(urllib.request.urlopen(request, timeout=30, context=self.tls).read())

    def trials(self):
        trials, token = [], ""
        while True:
            page = self.call(f"studies/{STUDY}/trials?max_results=1000" + (f"&page_token={token}" if token else ""))
            trials += page["trials"]
            token = page.get("next_page_token")
            if not token:
                return trials


def watch(server, trials, kills, deadline_s):
    """Waits until the study is complete, with so many kills on the way."""
    begun, peak, killed = time.monotonic(), 0.0, 0
    while time.monotonic() - begun < deadline_s:
        time.sleep(0.5)
        peak = max(peak, server.memory_mb())
        try:
            study = server.call(f"studies/{STUDY}")
        except (OSError, urllib.error.URLError):
            continue
        done = study["counts"].get("complete", 0)
        if study["state"] == "completed" or done >= trials:
            return time.monotonic() - begun, peak, killed
        if killed < kills and done * (kills + 1) >= trials * (killed + random.uniform(0.6, 1.0)):
            server.kill()
            killed += 1
            server.start()
    sys.exit(f"the study did not end within {deadline_s} s: {json.dumps(study)[:600]}; see {server.folder}/server.log")


def faults(said, trials, expected):
    """What is wrong, compared with the store: nothing, if no attempt was lost or doubled."""
    wrong = []
    states = {}
    for trial in trials:
        states[trial["state"]] = states.get(trial["state"], 0) + 1
    if states != {"complete": expected}:
        wrong.append(f"trials by state: {states}, not {expected} complete")
    again = [trial for trial in trials if trial["attempt"] != 1]
    if again:
        wrong.append(f"{len(again)} trials took more than one attempt, e.g. {json.dumps(again[0])[:300]}")
    held = {f"{trial['run_id']}/{trial['attempt']}" for trial in trials}
    doubled = [attempt for attempt, times in said["attempts"].items() if times != 1]
    if doubled:
        wrong.append(f"{len(doubled)} attempts were given more than once, e.g. {doubled[0]}")
    if set(said["attempts"]) != held:
        wrong.append(f"{len(held - set(said['attempts']))} attempts of the store reached no agent, "
                     f"{len(set(said['attempts']) - held)} of agents are not in the store")
    if said["finished"] != expected or said["stale"]:
        wrong.append(f"{said['finished']} ends were taken and {said['stale']} refused, of {expected}")
    return wrong


def measure(bin_dir, folder, agents, working, kills, trials, trial_ms=10_000, heartbeat_ms=10_000, deadline_s=900,
            with_tls=False):
    """Runs it once. Returns the figures and what is wrong (`faults`)."""
    server = Server(bin_dir, folder, agents, heartbeat_ms, with_tls)
    swarm = None
    try:
        before = server.memory_mb()
        swarm = subprocess.Popen([bin_dir / "agent_swarm", str(server.port), server.token(), str(agents),
                                  str(ADDRESSES), str(trial_ms), str(heartbeat_ms), *([server.ca] if with_tls else [])],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = json.loads(swarm.stdout.readline())
        time.sleep(3)  # what they were registered with is freed
        idle = server.memory_mb()
        cpu_s, queued_s = server.running_cpu_s(), server.queued_s()
        server.call("studies", {"name": STUDY, "metric": {"name": "loss"}, "space": {"x": {"float": [0, 1]}},
                                "sampler": {"type": "random", "seed": 1}, "command": ["true"],
                                "budget": {"trials": trials, "parallel": working}})
        seconds, peak, killed = watch(server, trials, kills, deadline_s)
        cpu_s = server.cpu_s + server.running_cpu_s() - cpu_s
        queued_s = server.queued_s() - (0 if killed else queued_s)
        time.sleep(1)  # answers to the last ends
        said = json.loads(swarm.communicate(timeout=120)[0])
        wrong = faults(said, server.trials(), trials)
        said.update(ready_ms=ready["ms"], idle_bytes=(idle - before) * (1 << 20) / agents, peak_mb=peak, kills=killed,
                    queued_s=queued_s, cpu=100 * cpu_s / seconds, seconds=seconds)
        return said, wrong
    finally:
        if swarm and swarm.poll() is None:
            swarm.kill()
        server.kill()


def figure(name, value, unit, better="lower", **more):
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit, "better": better, **more}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--working", type=int, help="default: one in ten")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120, help="about how long trials run, without kills")
    parser.add_argument("--tls", action="store_true", help="through TLS; the agents check the certificate")
    parser.add_argument("--bin", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin")))
    options = parser.parse_args()
    working = options.working or max(options.agents // 10, 1)
    trials = max(int(working * options.seconds / 10), working)
    with tempfile.TemporaryDirectory(prefix="tune-swarm-") as folder:
        said, wrong = measure(options.bin.absolute(), folder, options.agents, working, options.kills, trials,
                              with_tls=options.tls)
    of = f"{options.agents:,} agents" + (" through TLS" if options.tls else "") + f", {working:,} of them working" + (
        f", {said['kills']} kill -9 of the server" if options.kills else "")
    figure(f"{of}: heartbeat p50", said["heartbeat_p50"], "ms", samples=said["heartbeats"])
    # Who calls while the server is down or begins again waits for it: that is no figure of a server that runs.
    aims = [{}, {}] if options.kills else [{"target": 50}, {"target": 100}]
    figure(f"{of}: heartbeat p99", said["heartbeat_p99"], "ms", **aims[0])
    figure(f"{of}: end of a trial to the start of the next p50", said["lease_to_start_p50"], "ms",
           samples=said["leases"])
    figure(f"{of}: end of a trial to the start of the next p99", said["lease_to_start_p99"], "ms",
           **aims[1])
    figure(f"{of}: answers of polls later than asked p99", said["late_p99"], "ms")
    figure(f"{of}: what the program that measures adds, p99", said["own_p99"], "ms")
    if not options.kills:
        figure(f"{of}: the server's threads waited for a processor", 100 * said["queued_s"] / said["seconds"],
               "% of the time, all together")
    if said["slow"]:
        begun = min(at for at, _ in said["slow"])
        slow = [(round((at - begun) / 1000, 2), round(ms)) for at, ms in said["slow"]]
        print(f"slow heartbeats, s and ms: {slow[:40]}; this program was late by {said['own_max']:.0f} ms at most",
              file=sys.stderr)
    figure(f"{of}: memory of the server, most", said["peak_mb"], "MB", target=1024)
    figure(f"{of}: memory of an agent that waits", said["idle_bytes"], "bytes")
    figure(f"{of}: processor of the server", said["cpu"], "% of a core")
    figure(f"{of}: all registered after the first start", said["ready_ms"], "ms")
    if options.kills:
        figure(f"{of}: until all are back, most", said["return_max"], "ms", samples=said["returns"])
    figure(f"{of}: differences between the store and the agents", len(wrong), "", target=0)
    for sentence in wrong:
        sys.exit(f"wrong: {sentence}")


if __name__ == "__main__":
    main()

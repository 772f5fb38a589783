"""`tune-trainer pool`: many trials in one process are what each would be in its own."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

from trainer_support import (BAD_CONFIG, DONE, OUT_OF_MEMORY, PREEMPTED, TIMEOUT_S, TRAINER, clean_environment, train,
                             write_digits)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("pool") / "digits")


class Pool:
    """A running pool; what it says by trial."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([str(TRAINER), "pool", *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=clean_environment())
        self.events = []

    def send(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def run(self, trial, attempt=1, **parameters):
        self.send(op="run", trial=trial, attempt=attempt, parameters={k: str(v) for k, v in parameters.items()})

    def read(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.events.append(json.loads(line))
        return self.events[-1]

    def read_until(self, **wanted):
        while True:
            event = self.read()
            if all(event.get(name) == value for name, value in wanted.items()):
                return event

    def finish(self):
        rest, errors = self.process.communicate(timeout=TIMEOUT_S)
        self.events += [json.loads(line) for line in rest.splitlines() if line.endswith("}")]
        return errors

    def of(self, trial, kind):
        return [event for event in self.events if event.get("trial") == trial and event["event"] == kind]

    def ended(self, trial):
        event, = self.of(trial, "ended")
        return event

    def close(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def pool():
    pools = []

    def start(*arguments):
        pools.append(Pool("--device=cpu", *arguments))
        return pools[-1]

    yield start
    for each in pools:
        each.close()


@pytest.mark.parametrize("parallel", [1, 4])
def test_trials_are_what_each_would_be_alone(data, tmp_path, pool, parallel):
    trials = {str(i): dict(data=data, epochs=2, width=16, dropout=0.2, lr=10 ** -(i % 4 + 1), seed=i,
                           model="cnn" if i % 3 == 0 else "mlp") for i in range(8)}
    trials["bad"] = dict(data=data, lr=-1)
    trials["nowhere"] = dict(data=tmp_path / "nothing")
    running = pool(f"--parallel={parallel}")
    for name, parameters in trials.items():
        running.run(name, checkpoint_dir=tmp_path / f"pool-{name}", **parameters)
    assert running.finish() == "", "a pool has nothing to say on stderr"
    assert running.process.returncode == DONE
    assert running.ended("bad")["exit_code"] == BAD_CONFIG
    assert "lr: '-1' is not" in running.ended("bad")["message"]
    assert running.ended("nowhere")["exit_code"] == BAD_CONFIG
    for name in "01234567":
        alone = train(checkpoint_dir=tmp_path / f"alone-{name}", **trials[name])
        assert [event["values"] for event in running.of(name, "metrics")] == alone.lines
        end = running.ended(name)
        assert (end["exit_code"], end["epochs"], end["attempt"]) == (DONE, 2, 1)
        for file in ("last.safetensors", "best.safetensors"):
            assert (tmp_path / f"pool-{name}" / file).read_bytes() == (tmp_path / f"alone-{name}" / file).read_bytes()


def test_a_killed_pool_loses_attempts_and_no_trial(data, tmp_path, pool):
    trials = {str(i): dict(data=data, epochs=12, width=16, seed=i, checkpoint_every=1) for i in range(6)}
    ended = {}
    for attempt in range(1, 30):
        running = pool("--parallel=2")
        for name in trials.keys() - ended.keys():
            running.run(name, attempt=attempt, checkpoint_dir=tmp_path / name, **trials[name])
        if attempt <= 3:
            for _ in range(12 * attempt):
                running.read()
            running.process.send_signal(signal.SIGKILL)
        running.finish()
        for name in trials.keys() - ended.keys():
            for event in running.of(name, "ended"):
                ended[name] = event
        if len(ended) == len(trials):
            break
    assert attempt > 3 and ended.keys() == trials.keys()
    for name, parameters in trials.items():
        assert ended[name]["exit_code"] == DONE
        assert train(checkpoint_dir=tmp_path / f"alone-{name}", **parameters).code == DONE
        assert (tmp_path / name / "last.safetensors").read_bytes() == \
            (tmp_path / f"alone-{name}" / "last.safetensors").read_bytes()


def test_pruned_and_stopped_trials_end_and_others_go_on(data, tmp_path, pool):
    running = pool("--parallel=3")
    for name in ("pruned", "stopped", "stays"):
        running.run(name, data=data, epochs=100_000 if name != "stays" else 3, checkpoint_dir=tmp_path / name)
    running.read_until(trial="pruned", event="metrics")
    running.send(op="prune", trial="pruned", attempt=7)  # another attempt: nothing happens
    running.send(op="prune", trial="pruned", attempt=1)
    assert running.read_until(trial="pruned", event="ended")["exit_code"] == 10
    running.send(op="stop", trial="stopped", attempt=1)
    running.read_until(trial="stopped", event="ended")
    running.finish()
    assert running.ended("stopped")["exit_code"] == PREEMPTED
    assert (tmp_path / "stopped" / "last.safetensors").exists()
    assert running.ended("stays")["exit_code"] == DONE


def test_sigterm_ends_all_with_checkpoints(data, tmp_path, pool):
    running = pool("--parallel=2")
    for name in ("a", "b", "waits"):
        running.run(name, data=data, epochs=100_000, checkpoint_dir=tmp_path / name)
    running.read_until(trial="a", event="metrics")
    running.process.terminate()
    running.finish()
    assert running.process.returncode == PREEMPTED
    assert [running.ended(name)["exit_code"] for name in ("a", "b", "waits")] == [PREEMPTED] * 3
    assert (tmp_path / "a" / "last.safetensors").exists()
    assert not running.of("waits", "started")


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024


def test_a_pruned_trial_frees_its_memory(data, pool):
    running = pool("--parallel=1")
    running.run("small", data=data, epochs=1)
    running.read_until(trial="small", event="ended")
    before = resident_bytes(running.process.pid)
    for name in ("first", "second"):
        running.run(name, data=data, width=4000, depth=2, epochs=1000, log_every=1)
        running.read_until(trial=name, event="metrics")
        running.read_until(trial=name, event="metrics")
        held = resident_bytes(running.process.pid) - before
        assert held > 150e6, "weights and their moments: 3 x 65 MB"
        running.send(op="prune", trial=name, attempt=1)
        running.read_until(trial=name, event="ended")
        left = resident_bytes(running.process.pid) - before
        assert left < 0.2 * held, (name, left, held)


def test_lines_that_cannot_be_obeyed(data, pool):
    running = pool()
    running.process.stdin.write("run 7\n\n")
    running.process.stdin.write("[" * (3 << 20) + "\n")
    running.send(op="dance")
    running.send(op="run", trial="a", attempt=1, report={"loss": 0.5})
    running.read_until(trial="a", event="ended")
    running.send(op="finish")
    running.finish()
    assert running.process.returncode == DONE
    messages = [event["message"] for event in running.events if event["event"] == "refused"]
    assert len(messages) > 2 and "'dance' is not run, stop, prune or finish" in messages[-1]
    assert running.of("a", "metrics")[0]["values"] == {"loss": 0.5}


def test_a_socket(tmp_path):
    path = tmp_path / "pool.sock"
    process = subprocess.Popen([str(TRAINER), "pool", "--device=cpu", f"--socket={path}"], env=clean_environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with socket.socket(socket.AF_UNIX) as client:
        deadline = time.monotonic() + TIMEOUT_S
        while True:  # until it listens
            try:
                client.connect(str(path))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.01)
        stream = client.makefile("rw")
        stream.write(json.dumps(dict(op="run", trial="a", attempt=1, report={"x": 1})) + "\n")
        stream.flush()
        events = [json.loads(stream.readline())["event"] for _ in range(3)]
        stream.close()
    output, errors = process.communicate(timeout=TIMEOUT_S)
    assert events == ["started", "metrics", "ended"]
    assert (process.returncode, output, errors) == (DONE, "", "")
    assert not path.exists()


def test_a_reader_that_is_gone_stops_the_trials(data, tmp_path, pool):
    running = pool()
    running.run("a", data=data, epochs=100_000, checkpoint_dir=tmp_path)
    running.read_until(trial="a", event="metrics")
    os.close(running.process.stdout.fileno())
    assert running.process.wait(timeout=TIMEOUT_S) == PREEMPTED
    assert (tmp_path / "last.safetensors").exists()
    running.process.stdout = open(os.devnull)


def test_out_of_memory_ends_one_trial(data, pool):
    running = pool("--parallel=1")
    running.run("huge", data=data, width=1_000_000, depth=8)
    running.run("fine", data=data, epochs=1)
    running.finish()
    assert running.ended("huge")["exit_code"] == OUT_OF_MEMORY
    assert running.ended("fine")["exit_code"] == DONE

"""tune_ray on a real Ray cluster of several nodes on this machine, and ray.tune's trainables as our trials."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from conftest import BIN_DIR, CLIENTS, is_alive, long, processes_with, wait_for
from faults import COMMAND, LONG_S, Own, started
from ray_support import fit, no_cluster, run_example  # noqa: F401 (a fixture)

ray = pytest.importorskip("ray")

import tune_client as client  # noqa: E402
import tune_ray  # noqa: E402
from tune_ray import tune  # noqa: E402
from tune_ray.tune.schedulers import ASHAScheduler, MedianStoppingRule  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    """A head without places, and two nodes of one core. Nodes have nothing of ours on their path: what they run is sent to them."""
    monkey = pytest.MonkeyPatch()
    monkey.delenv("PYTHONPATH")
    monkey.delenv("TUNE_BIN_DIR")
    from ray.cluster_utils import Cluster

    os.environ["RAY_DISABLE_MEMORY_MONITOR"] = os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_worker_niceness"] = "0"  # with Ray's own, 15, a machine that does something else as well gives actors no time
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 << 20, "include_dashboard": False})
    nodes = [made.add_node(num_cpus=1, object_store_memory=100 << 20) for _ in range(2)]
    ray.init(address=made.address, log_to_driver=False)
    monkey.setenv("TUNE_BIN_DIR", str(BIN_DIR))
    made.nodes_of_test = nodes
    yield made
    ray.shutdown()
    made.shutdown()
    monkey.undo()


def train(config):
    """Of ray.tune's documentation: a training that reports, checkpoints and resumes."""
    start = 0
    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            start = json.loads(pathlib.Path(folder, "state.json").read_text())["step"] + 1
    for step in range(start, config["steps"]):
        if step == 2 and config.get("kill") and not os.path.exists(config["kill"]):
            pathlib.Path(config["kill"]).touch()
            if config.get("raise"):
                raise RuntimeError("the node is gone")
            os.kill(os.getpid(), signal.SIGKILL)
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "state.json").write_text(json.dumps({"step": step}))
            tune.report({"loss": config["lr"] + 1 / (step + 1), "step": step, "began_at": start},
                        checkpoint=tune.Checkpoint.from_directory(folder))


def test_a_tuner_runs_a_trainable_that_reports_and_checkpoints(url, tmp_path, no_cluster):
    grid = fit(url, tmp_path, {"lr": tune.loguniform(1e-4, 1e-1), "steps": 3, "net": {"width": tune.choice([8, 16])}}, train, num_samples=4,
               max_concurrent_trials=2, run={"checkpoint_config": tune.CheckpointConfig(num_to_keep=2)}, name="reports")
    assert len(grid) == 4 and grid.num_errors == 0 and grid.num_terminated == 4
    best = grid.get_best_result()
    assert best.metrics["loss"] == min(result.metrics["loss"] for result in grid) == pytest.approx(best.config["lr"] + 1 / 3)
    assert best.config["steps"] == 3 and best.config["net"]["width"] in (8, 16) and best.metrics["training_iteration"] == 3
    assert [row["step"] for row in best.history] == [0, 1, 2] and len(best.metrics_dataframe) == 3
    assert json.loads(pathlib.Path(best.checkpoint.path, "state.json").read_text()) == {"step": 2}
    assert sorted(path.name for path in pathlib.Path(best.path).glob("checkpoint_*")) == ["checkpoint_000002", "checkpoint_000003"]
    assert set(grid.get_dataframe().columns) >= {"loss", "config/lr", "config/steps"}
    study = client.load_study("reports", url)
    assert study.info()["state"] == "completed" and study.best_value == best.metrics["loss"]
    run = study._connection.call(f"/api/2.0/mlflow/runs/get?run_id={best.run_id}")["run"]
    assert {metric["key"]: metric["value"] for metric in run["data"]["metrics"]}["began_at"] == 0


def test_a_killed_worker_resumes_from_the_checkpoint(url, tmp_path, no_cluster):
    grid = fit(url, tmp_path, {"lr": 0.1, "steps": 4, "kill": str(tmp_path / "killed")}, train, num_samples=1)
    [result] = grid
    assert result.error is None and [row["step"] for row in result.history] == [0, 1, 2, 3] and result.metrics["began_at"] == 2
    assert result.metrics["training_iteration"] == 4


def test_failures_are_tried_again_as_often_as_said(url, tmp_path, no_cluster):
    space = {"lr": 0.1, "steps": 4, "kill": str(tmp_path / "failed"), "raise": True}
    [result] = fit(url, tmp_path, space, train, run={"failure_config": tune.FailureConfig(max_failures=1)})
    assert result.error is None and result.metrics["began_at"] == 2
    os.unlink(tmp_path / "failed")
    grid = fit(url, tmp_path, space, train)
    assert grid.num_errors == 1 and "the node is gone" in str(grid.errors[0])


def test_grids_and_samples(url, tmp_path, no_cluster):
    def trainable(config):
        return {"loss": config["a"] * 10 + config["c"](1)}

    grid = fit(url, tmp_path, {"a": tune.grid_search([1, 2]), "b": tune.grid_search(["x", "y"]), "u": tune.uniform(0, 1),
                               "c": tune.choice([abs])}, trainable, num_samples=2, max_concurrent_trials=2)
    seen = sorted((result.config["a"], result.config["b"]) for result in grid)
    assert seen == sorted([(a, b) for a in (1, 2) for b in "xy"] * 2)
    assert len({result.config["u"] for result in grid}) == 8 and grid.get_best_result().config["a"] == 1


def test_schedulers_stop_trainings(url, tmp_path, no_cluster):
    def trainable(config):
        for step in range(100):
            tune.report({"loss": config["x"]})

    grid = fit(url, tmp_path, {"x": tune.uniform(0, 1)}, trainable, num_samples=10, max_concurrent_trials=1,
               scheduler=ASHAScheduler(max_t=9, grace_period=1, reduction_factor=3), name="asha")
    counts = [len(result.history) for result in grid]
    assert max(counts) == 9 and min(counts) < 9
    study = client.load_study("asha", url)
    assert study.info()["pruner"]["type"] == "asha" and study.info()["counts"]["pruned"] >= 1
    fit(url, tmp_path, {"x": tune.uniform(0, 1)}, trainable, scheduler=MedianStoppingRule(), run={"stop": {"training_iteration": 4}}, name="median")
    assert client.load_study("median", url).info()["pruner"]["type"] == "median"


class Stepped(tune.Trainable):
    def setup(self, config):
        self.total = 0

    def step(self):
        self.total += self.config["add"]
        return {"loss": -self.total, "done": self.iteration == 3}

    def save_checkpoint(self, checkpoint_dir):
        pathlib.Path(checkpoint_dir, "total").write_text(str(self.total))

    def load_checkpoint(self, checkpoint):
        self.total = int(pathlib.Path(checkpoint, "total").read_text())


def test_a_trainable_class_steps(url, tmp_path, no_cluster):
    [result] = fit(url, tmp_path, {"add": tune.randint(2, 3)}, Stepped, run={"checkpoint_config": tune.CheckpointConfig(checkpoint_frequency=1)})
    assert result.metrics["loss"] == -8 and len(result.history) == 4
    assert pathlib.Path(result.checkpoint.path, "total").read_text() == "8"


def test_a_function_with_parameters_and_a_context(url, tmp_path, no_cluster):
    def trainable(config, data):
        context = tune.get_context()
        return {"loss": len(data), "name": context.get_trial_name(), "dir": context.get_trial_dir()}

    made = tune.with_resources(tune.with_parameters(trainable, data=[1, 2, 3]), {"cpu": 1})
    [result] = fit(url, tmp_path, {}, made)
    assert result.metrics["loss"] == 3 and result.metrics["name"] == "trainable_00000" and result.metrics["dir"] == result.path


SCRIPT = """
import json, os, pathlib, sys, time
from tune_ray import tune

FOLDER = pathlib.Path(sys.argv[2])

def train(config):
    checkpoint = tune.get_checkpoint()
    start = int(pathlib.Path(checkpoint.path, "n").read_text()) + 1 if checkpoint else 0
    for n in range(start, 4):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "n").write_text(str(n))
            tune.report({"loss": config["x"], "start": start}, checkpoint=tune.Checkpoint(folder))
        (FOLDER / f"at-{n}-{os.getpid()}").touch()
        while n == 1 and not (FOLDER / "go").exists():
            time.sleep(0.02)

if __name__ == "__main__":
    if tune.Tuner.can_restore(FOLDER / "restored"):
        tuner = tune.Tuner.restore(FOLDER / "restored", train)
    else:
        tuner = tune.Tuner(train, param_space={"x": tune.uniform(0, 1)},
                           tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=3, max_concurrent_trials=1),
                           run_config=tune.RunConfig(name="restored", storage_path=str(FOLDER), server=sys.argv[1]))
    grid = tuner.fit()
    print(json.dumps([[result.metrics.get("start"), result.metrics["training_iteration"]] for result in grid]))
"""


def test_a_tuner_whose_driver_is_killed_is_restored(url, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "script.py", url, tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(CLIENTS)}
    environment.pop("RAY_ADDRESS", None)
    first = subprocess.Popen(command, env=environment)
    wait_for(lambda: list(tmp_path.glob("at-1-*")), "the middle of the first trial")
    first.kill()
    first.wait()
    wait_for(lambda: not any(is_alive(int(path.name.split("-")[2])) for path in tmp_path.glob("at-1-*")), "the worker's end")
    (tmp_path / "go").touch()
    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout) == [[2, 4], [0, 4], [0, 4]]


def test_what_has_no_counterpart_is_refused(url, tmp_path, no_cluster):
    with pytest.raises(client.TuneError, match="sample_from"):
        tune.sample_from(lambda spec: 1)
    with pytest.raises(client.TuneError, match="scheduler dict is not supported"):
        fit(url, tmp_path, {"x": tune.uniform(0, 1)}, train, scheduler={})
    with pytest.raises(client.TuneError, match="search_alg"):
        fit(url, tmp_path, {"x": tune.uniform(0, 1)}, train, search_alg=3)
    with pytest.raises(RuntimeError, match="no trial runs here"):
        tune.report({"loss": 1})
    with pytest.raises(client.TuneError, match="no Tuner left its state"):
        tune.Tuner.restore(tmp_path)


def test_objects_of_ray_tune_are_taken(url, tmp_path, no_cluster):
    theirs = pytest.importorskip("ray.tune")
    from ray.tune.schedulers import ASHAScheduler as TheirASHA

    from tune_ray.tune._schedule import pruner_of
    from tune_ray.tune._space import Space

    space = {"a": theirs.uniform(0, 1), "b": theirs.loguniform(1e-4, 1), "c": theirs.randint(2, 9), "d": theirs.choice(["x", "y"]),
             "e": theirs.quniform(0, 1, 0.25), "f": theirs.lograndint(1, 100), "g": theirs.grid_search([1, 2]), "h": theirs.randn(1, 2)}
    assert Space(space).declared == {"a": {"float": [0, 1]}, "b": {"float": [1e-4, 1], "log": True}, "c": {"int": [2, 8]},
                                     "d": {"choice": ["x", "y"]}, "e": {"float": [0, 1], "step": 0.25},
                                     "f": {"int": [1, 99], "log": True}, "g": {"choice": [1, 2]}, "h": {"normal": [1, 2]}}
    assert pruner_of(TheirASHA(max_t=27, grace_period=3, reduction_factor=3)) == ({"type": "asha", "min": 3, "max": 27, "eta": 3}, 27)


def test_trials_run_as_actors(cluster, url, tmp_path):
    def trainable(config):
        (tmp_path / f"ran-{os.getpid()}").touch()
        while len(list(tmp_path.glob("ran-*"))) < 2:  # until the other actor runs one, too
            time.sleep(0.02)
        return {"loss": config["x"], "node": ray.get_runtime_context().get_node_id(), "pid": os.getpid()}

    grid = fit(url, tmp_path, {"x": tune.uniform(0, 1)}, trainable, num_samples=6)
    assert grid.num_errors == 0 and len({result.metrics["pid"] for result in grid}) == 2
    assert len({result.metrics["node"] for result in grid}) == 2, "one on each node"
    import hyperopt

    trials = client.TuneTrials(parallelism=2, engine="ray", server=url)
    best = hyperopt.fmin(lambda x: x ** 2, hyperopt.hp.uniform("x", -1, 1), algo=hyperopt.rand.suggest, max_evals=4, trials=trials,
                         verbose=False)
    assert set(best) == {"x"} and trials.count_successful_trials() == 4


def test_rays_first_example_runs_on_its_cluster(cluster, url, tmp_path):
    """docs.ray.io/en/latest/tune/examples/includes/tune_basic_example.html, with its import changed."""
    shown = run_example("tune_basic_example", url, tmp_path, RAY_ADDRESS=cluster.address)
    assert "'activation': 'relu'" in shown or "'activation': 'tanh'" in shown


def test_agents_run_a_study_and_survive_a_node(cluster, url, tmp_path):
    (tmp_path / "hold").touch()
    (tmp_path / "trial.py").write_text(COMMAND)
    study = client.create_study("ray-agents", space={"x": {"float": [0, 1]}}, metric="loss", trials=6, server=url, sampler="random",
                                command=[sys.executable, str(tmp_path / "trial.py"), str(tmp_path)])
    with tune_ray.run_agents(url, study="ray-agents", slots=2, strategy="SPREAD") as agents:
        wait_for(lambda: len(started(tmp_path)) >= 2, "a trial on each node")
        before = started(tmp_path)
        cluster.remove_node(cluster.nodes_of_test.pop(), allow_graceful=False)
        wait_for(lambda: not all(map(is_alive, before)), "the end of the trial whose node is gone")
        cluster.nodes_of_test.append(cluster.add_node(num_cpus=1, object_store_memory=100 << 20))
        (tmp_path / "hold").unlink()
        assert agents.wait(150)
    info = study.info()
    assert info["counts"]["complete"] == 6 == info["trials"]
    wait_for(lambda: not processes_with("agent --server " + url), "the agents' end")
    assert not any(map(is_alive, started(tmp_path)))


AGENTS = """
import os, sys
import ray
ray.init(address=sys.argv[1], log_to_driver=False)
sys.path.insert(0, sys.argv[2])
import tune_ray
with tune_ray.run_agents(os.environ["TUNE_SERVER"], study=sys.argv[3], slots=2, strategy="SPREAD") as agents:
    print("ended", agents.wait(), flush=True)
"""


@long
@pytest.mark.timeout(900)
def test_whatever_dies_costs_no_trial(cluster, tmp_path):
    """kill -9 of an agent, a raylet, the server and the driver, one after the other, in the middle of a study."""
    (tmp_path / "driver.py").write_text(AGENTS)

    def drive():
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        own.drivers.append(subprocess.Popen([sys.executable, tmp_path / "driver.py", cluster.address, CLIENTS, "ray-faults"], text=True,
                                            env={**environment, "TUNE_SERVER": own.url}, stdout=subprocess.PIPE))
        return own.drivers[-1]

    with Own(tmp_path) as own:
        study = own.study("ray-faults", 8)
        driver = drive()
        own.kill_agent()
        before = own.trials()
        cluster.remove_node(cluster.nodes_of_test.pop(), allow_graceful=False)
        wait_for(lambda: not before <= own.trials(), "the end of the trial whose node is gone", LONG_S)
        cluster.nodes_of_test.append(cluster.add_node(num_cpus=1, object_store_memory=100 << 20))
        wait_for(lambda: len(own.trials()) == 2, "two trials again", LONG_S)
        own.restart_server()
        driver.kill()
        driver.wait()
        wait_for(lambda: not own.trials() and not own.agents(wait=False), "the end of agents and trials, after that of the driver", LONG_S)
        own.release()
        shown, _ = drive().communicate(timeout=LONG_S)
        assert shown == "ended True\n"
        own.check(study, 8)


@long
@pytest.mark.timeout(900)
def test_a_lost_node_costs_a_tuner_no_trial(cluster, url, tmp_path):
    """kill -9 of a raylet with a trial on it: it resumes from its checkpoint once there is room."""
    import threading

    def trainable(config):
        checkpoint = tune.get_checkpoint()
        start = int(pathlib.Path(checkpoint.path, "n").read_text()) + 1 if checkpoint else 0
        for n in range(start, 4):
            state = tmp_path / f"state-{config['i']}"
            state.mkdir(exist_ok=True)
            (state / "n").write_text(str(n))
            tune.report({"loss": config["i"], "start": start}, checkpoint=tune.Checkpoint(state))
            (tmp_path / f"at-{n}-{config['i']}-{os.getpid()}").touch()
            while n == 1 and not (tmp_path / "go").exists():
                time.sleep(0.02)

    grids = []
    thread = threading.Thread(target=lambda: grids.append(fit(url, tmp_path, {"i": tune.grid_search([0, 1, 2, 3])}, trainable, name="lost-node")))
    thread.start()
    wait_for(lambda: len(list(tmp_path.glob("at-1-*"))) == 2, "a trial on each node", LONG_S)
    pids = [int(path.name.split("-")[3]) for path in tmp_path.glob("at-1-*")]
    cluster.remove_node(cluster.nodes_of_test.pop(), allow_graceful=False)
    wait_for(lambda: not all(map(is_alive, pids)), "the end of the trial whose node is gone", LONG_S)
    cluster.nodes_of_test.append(cluster.add_node(num_cpus=1, object_store_memory=100 << 20))
    (tmp_path / "go").touch()
    thread.join(LONG_S)
    [grid] = grids
    assert not grid.errors and [result.config["i"] for result in grid] == [0, 1, 2, 3]
    assert sorted(result.metrics["start"] for result in grid) == [0, 0, 0, 2] and {result.metrics["training_iteration"] for result in grid} == {4}
    info = client.load_study("lost-node", url).info()
    assert info["counts"]["complete"] == 4 == info["trials"]
    wait_for(lambda: not any(map(is_alive, pids)), "the workers' end", LONG_S)


def test_too_few_places_are_said_at_once(cluster, url, monkeypatch):
    monkeypatch.setattr("tune_ray._cluster._FOR_PLACES_S", 0.5)  # no node is still to come
    with pytest.raises(client.TuneError, match="9 slots of 1 CPU were asked for, and the cluster's . nodes have room for [23]"):
        tune_ray.run_agents(url, slots=9)
    with pytest.raises(client.TuneError, match="GPU"):
        tune_ray.run_agents(url, slots=1, gpus=1)
    with pytest.raises(client.TuneError, match="nodes have room for 1 with the strategy STRICT_PACK"):
        tune_ray.run_agents(url, slots=2, strategy="STRICT_PACK")
    with pytest.raises(client.TuneError, match="nodes have room for [23] with the strategy STRICT_SPREAD"):
        tune_ray.run_agents(url, slots=4, strategy="STRICT_SPREAD")
    with pytest.raises(ValueError, match="slots and cpus"):
        tune_ray.run_agents(url, slots=0)


def test_a_decorated_function_runs_in_all_ranks_of_the_cluster(cluster, monkeypatch):
    monkeypatch.setattr("tune_client._distributed._active_spark", lambda: None)  # of another module's tests

    @client.distributed(processes=2, remote=True)
    def meet():
        import socket

        rank, place = int(os.environ["RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        if rank == 0:
            with socket.create_server(place) as server, server.accept()[0] as other:
                return rank, os.environ["LOCAL_RANK"], other.recv(5)
        while True:
            try:
                with socket.create_connection(place) as first:
                    first.sendall(b"hello")
                    return rank, os.environ["LOCAL_RANK"], None
            except ConnectionRefusedError:
                time.sleep(0.05)  # the first rank has not begun

    assert meet.distributed() == [(0, "0", b"hello"), (1, "0", None)]

    @client.distributed(processes=2, remote=True)
    def fail():
        if os.environ["RANK"] == "1":
            print("no data here", flush=True)
            raise SystemExit(3)
        time.sleep(120)  # ends with the other one

    with pytest.raises(RuntimeError, match=r"failed with return code 3 in rank 1 of 2[^$]*no data here"):
        fail.distributed()
    wait_for(lambda: ray.available_resources().get("CPU", 0) == 2, "the places of the ranks")


def test_a_decorated_function_runs_here_and_says_when_there_is_no_engine(monkeypatch):
    @client.distributed(processes=2)
    def rank_of():
        return int(os.environ["RANK"])

    assert rank_of.distributed() == [0, 1]
    monkeypatch.setattr("tune_client._distributed._active_spark", lambda: None)
    monkeypatch.setattr("tune_client._distributed._has_ray", lambda: False)
    with pytest.raises(client.TuneError, match="remote=True needs an engine"):
        client.distributed(processes=2, remote=True)(rank_of).distributed()


def test_an_agent_that_is_stopped_while_it_starts_ends():
    from tune_ray._node import Agent

    agent = Agent()
    agent.stop()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        agent._note(process)
        assert process.wait(60) == 0

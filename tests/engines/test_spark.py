"""tune_spark on a real local-cluster of two executors: agents, workers and distributed training, with executors that are killed."""

import json
import os
import pathlib
import signal
import sys
import time

import pytest
from conftest import is_alive, processes_with, wait_for
from faults import COMMAND, started

pytest.importorskip("pyspark")
from hyperopt import fmin, hp, rand, tpe  # noqa: E402

import tune_client as tune  # noqa: E402
import tune_spark  # noqa: E402


def executors():
    return processes_with("CoarseGrainedExecutorBackend")


def plain(point):
    return (point["x"] - 1) ** 2


def test_a_training_that_never_fits_is_refused_before_spark_waits_for_it(spark):
    before = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
    with pytest.raises(tune.TuneError, match="needs 9 tasks at once, and this Spark runs 2"):
        tune_spark.TuneDistributor(9, local_mode=False, use_gpu=False).run(plain, {"x": 1})
    assert spark.sparkContext.statusTracker().getJobIdsForGroup(None) == before, "it was submitted"


def test_hyperopts_trials_run_as_tasks(spark, url):
    """The example of SparkTrials' documentation, with its import changed."""
    from sklearn.datasets import load_iris
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    features, target = load_iris(return_X_y=True)

    def objective(c):
        return {"loss": -cross_val_score(SVC(C=c), features, target).mean(), "status": "ok", "pid": os.getpid()}

    trials = tune.TuneTrials(parallelism=2, spark_session=spark, server=url)
    best = fmin(fn=objective, space=hp.lognormal("C", 0, 1.0), algo=tpe.suggest, max_evals=6, trials=trials, verbose=False)
    assert set(best) == {"C"} and len(trials) == 6 and trials.best_trial["result"]["loss"] < -0.9
    assert len({result["pid"] for result in trials.results}) == 2
    assert trials.engine == "spark"
    assert tune.load_study(trials.study_name, url).info()["state"] == "completed"


def test_a_lost_executor_costs_no_trial_of_hyperopts(spark, url, tmp_path):
    def objective(point):
        (tmp_path / f"ran-{os.getpid()}").touch()
        while not (tmp_path / "go").exists():
            time.sleep(0.05)
        return point["x"]

    def kill():
        wait_for(lambda: len(list(tmp_path.glob("ran-*"))) == 2, "both workers")
        os.kill(executors()[0], signal.SIGKILL)
        (tmp_path / "go").touch()

    import threading

    killer = threading.Thread(target=kill)
    killer.start()
    trials = tune.TuneTrials(parallelism=2, spark_session=spark, server=url)
    fmin(objective, {"x": hp.uniform("x", 0, 1)}, algo=rand.suggest, max_evals=6, trials=trials, verbose=False)
    killer.join()
    assert trials.count_successful_trials() == 6 == trials.count_total_trials()
    wait_for(lambda: len(executors()) == 2, "the executor in its place")


def command_study(url, name, tmp_path, trials):
    (tmp_path / "trial.py").write_text(COMMAND)
    return tune.create_study(name, space={"x": {"float": [0, 1]}}, metric="loss", trials=trials, server=url, sampler="random",
                             command=[sys.executable, str(tmp_path / "trial.py"), str(tmp_path)])


def test_agents_run_a_study_and_survive_an_executor(spark, url, tmp_path):
    (tmp_path / "hold").touch()
    study = command_study(url, "spark-agents", tmp_path, 8)
    with tune_spark.run_agents(spark, url, study="spark-agents", slots=2) as agents:
        wait_for(lambda: len(started(tmp_path)) >= 2, "a trial on each executor")
        assert len(processes_with("agent --server " + url)) >= 2
        before = started(tmp_path)
        os.kill(executors()[0], signal.SIGKILL)
        wait_for(lambda: not all(map(is_alive, before)), "the end of the trial whose executor is gone")
        (tmp_path / "hold").unlink()
        assert agents.wait(150)
    info = study.info()
    assert info["counts"]["complete"] == 8 == info["trials"] and info["ended_by"] == "trials"
    wait_for(lambda: not processes_with("agent --server " + url), "the agents' end")
    assert not any(map(is_alive, started(tmp_path)))
    wait_for(lambda: len(executors()) == 2, "the executor in its place")


def test_stopped_agents_leave_nothing(spark, url, tmp_path):
    (tmp_path / "hold").touch()
    study = command_study(url, "spark-stopped", tmp_path, 2)
    agents = tune_spark.run_agents(spark, url, slots=2)
    wait_for(lambda: len(started(tmp_path)) == 2, "both trials")
    agents.stop()
    agents.stop()
    wait_for(lambda: not processes_with("agent --server " + url), "the agents' end")
    assert not any(map(is_alive, started(tmp_path)))
    assert study.info()["counts"]["failed"] == 0, "they wait for others"
    study.delete()


def test_bad_input_is_refused_at_once(spark, url):
    tune.create_study("no-command", space={"x": {"float": [0, 1]}}, metric="loss", server=url)
    with pytest.raises(tune.TuneError, match="has no command"):
        tune_spark.run_agents(spark, url, study="no-command")
    with pytest.raises(tune.TuneError, match="no answer from"):
        tune_spark.run_agents(spark, "http://127.0.0.1:9")
    with pytest.raises(ValueError, match="slots must be at least 1"):
        tune_spark.run_agents(spark, url, slots=0)
    with pytest.raises(ValueError, match="num_processes has to be a positive integer"):
        tune_spark.TuneDistributor(0)
    with pytest.raises(RuntimeError, match="spark.task.resource.gpu.amount"):
        tune_spark.TuneDistributor(2, local_mode=False, use_gpu=True)
    with pytest.raises(RuntimeError, match="GPUs were unable to be found|GPU resources were not configured"):
        tune_spark.TuneDistributor(1, local_mode=True, use_gpu=True)
    with pytest.raises(ValueError, match="takes no key-word arguments"):
        tune_spark.TuneDistributor(1, use_gpu=False).run("train.py", lr=1)


def train(learning_rate, steps=3):
    """As Spark's documentation has it, on the CPU: each rank has other data, and all end with the same weights."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(backend="gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    torch.manual_seed(1 + dist.get_rank())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} is done")
    weights = [parameter.detach().numpy().tolist() for parameter in model.parameters()]
    dist.destroy_process_group()
    return weights


@pytest.mark.parametrize("local_mode", [True, False])
def test_a_model_is_trained_by_two_processes(spark, absent_cuda, local_mode, capfd):
    if not absent_cuda:
        pytest.skip("setup.sh ran with --no-torch")
    distributor = tune_spark.TuneDistributor(num_processes=2, local_mode=local_mode, use_gpu=False)
    weights = distributor.run(train, 1e-1, steps=4)
    assert weights == distributor.run_all(train, 1e-1, steps=4)[1], "all ranks have the same weights in the end"
    shown = capfd.readouterr()
    for rank in (0, 1):
        assert f"rank {rank} of 2 is done" in shown.out + shown.err, "what ranks print is streamed to the driver"


def world(*words, **more):
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT", "HOROVOD_RANK", "CUDA_VISIBLE_DEVICES")
    return {**{name: os.environ.get(name) for name in names}, "words": words, "more": more, "pid": os.getpid()}


def test_ranks_and_their_environment(spark):
    first, second = tune_spark.TuneDistributor(2, False, False).run_all(world, 1, a=2)
    assert (first["RANK"], second["RANK"], first["WORLD_SIZE"]) == ("0", "1", "2")
    assert first["LOCAL_RANK"] == second["LOCAL_RANK"] == "0" and first["MASTER_PORT"] == second["MASTER_PORT"]
    assert first["words"] == (1,) and second["more"] == {"a": 2} and first["CUDA_VISIBLE_DEVICES"] == ""
    local = tune_spark.TuneDistributor(3, True, False).run_all(world)
    assert [each["LOCAL_RANK"] for each in local] == ["0", "1", "2"]


def test_a_large_value_comes_back_whole(spark):
    value = tune_spark.TuneDistributor(2, False, False).run(lambda: bytes(range(256)) * 12_000)
    assert value == bytes(range(256)) * 12_000


@pytest.mark.parametrize("local_mode", [True, False])
def test_a_file_is_run_with_its_words(spark, tmp_path, local_mode):
    script = tmp_path / "train.py"
    script.write_text("import os, pathlib, sys\nif __name__ == '__main__':\n"
                      "    pathlib.Path(sys.argv[1], 'rank-' + os.environ['RANK']).write_text(' '.join(sys.argv[2:]))\n")
    assert tune_spark.TuneDistributor(2, local_mode, False).run(str(script), tmp_path, "--lr=0.1", "--epochs=2") is None
    assert [(tmp_path / f"rank-{rank}").read_text() for rank in (0, 1)] == ["--lr=0.1 --epochs=2"] * 2


@pytest.mark.parametrize("local_mode", [True, False])
def test_a_failure_ends_all_and_shows_the_last_lines(spark, tmp_path, local_mode):
    def fail():
        (tmp_path / f"pid-{os.getpid()}").touch()
        if os.environ["RANK"] == "1":
            for line in range(300):
                print("line", line)
            raise ValueError("the data are gone")
        time.sleep(1000)

    with pytest.raises(RuntimeError) as caught:
        tune_spark.TuneDistributor(2, local_mode, False).run(fail)
    text = str(caught.value)
    assert "rank 1 of 2" in text and "last 100 lines" in text and "ValueError: the data are gone" in text
    assert "line 299\n" in text and "line 150\n" not in text
    pids = [int(path.name[4:]) for path in tmp_path.glob("pid-*")]
    assert pids and len(pids) <= 2, "Spark does not run it again"
    wait_for(lambda: not any(map(is_alive, pids)), "the other rank's end")


def test_an_executor_that_is_killed_begins_the_training_anew(spark, tmp_path):
    def work():
        mine = tmp_path / f"rank-{os.environ['RANK']}-{os.getpid()}"
        mine.touch()
        while not (tmp_path / "go").exists():
            time.sleep(0.05)
        return os.getpid()

    def kill():
        wait_for(lambda: len(list(tmp_path.glob("rank-*"))) == 2, "both ranks")
        os.kill(executors()[0], signal.SIGKILL)
        wait_for(lambda: len(list(tmp_path.glob("rank-*"))) == 4, "both ranks again")
        (tmp_path / "go").touch()

    import threading

    killer = threading.Thread(target=kill)
    killer.start()
    values = tune_spark.TuneDistributor(2, False, False).run_all(work)
    killer.join()
    pids = [int(path.name.split("-")[2]) for path in tmp_path.glob("rank-*")]
    assert len(pids) == 4 and set(values) < set(pids)
    wait_for(lambda: not any(map(is_alive, pids)), "the end of all ranks")


def test_a_data_frame_is_read_by_partition(spark):
    def read():
        import pyarrow

        with open(os.environ["SPARK_DATAFRAME_SCHEMA_FILE"]) as file:
            names = [field["name"] for field in json.load(file)["fields"]]
        with pyarrow.OSFile(os.environ["SPARK_PARTITION_ARROW_DATA_FILE"]) as file:
            return names, sorted(pyarrow.ipc.open_stream(file).read_all().column("id").to_pylist())

    frame = spark.range(0, 10, 1, 2)
    names, rows = tune_spark.TuneDistributor(2, False, False)._train_on_dataframe(read, frame)
    assert names == ["id"] and rows == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match=r"has 1 partitions, and the training 2 processes: repartition\(2\)"):
        tune_spark.TuneDistributor(2, False, False)._train_on_dataframe(read, spark.range(0, 10, 1, 1))


def test_a_decorated_function_runs_in_all_ranks(spark):
    @tune.distributed(processes=2, remote=True)
    def rank_of(more):
        return int(os.environ["RANK"]), os.environ["WORLD_SIZE"], more, os.getpid()

    found = rank_of.distributed(more="a")
    assert [each[:3] for each in found] == [(0, "2", "a"), (1, "2", "a")]
    assert os.getpid() not in {each[3] for each in found}


def test_runners_of_horovod_and_tensorflow(spark):
    assert tune_spark.HorovodRunner(np=-2).run(world, a=1)["WORLD_SIZE"] == "2"
    found = tune_spark.HorovodRunner(np=2, driver_log_verbosity="all").run(world, a=1)
    assert (found["HOROVOD_RANK"], found["LOCAL_WORLD_SIZE"], found["more"]) == ("0", "1", {"a": 1})
    runner = tune_spark.MirroredStrategyRunner(num_slots=2, use_gpu=False, use_custom_strategy=True)
    config = runner.run(lambda: json.loads(os.environ["TF_CONFIG"]))
    assert len(set(config["cluster"]["worker"])) == 2 and config["task"] == {"type": "worker", "index": 0}
    with pytest.raises(ValueError, match="driver_log_verbosity"):
        tune_spark.HorovodRunner(1, driver_log_verbosity="some")


def test_the_port_is_nobody_elses(tmp_path):
    """The race of TorchDistributor: between choosing a free port and listening on it."""
    import socket

    from tune_client._gang import held_port

    with held_port("127.0.0.1") as port:
        taken = [socket.socket() for _ in range(300)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        assert port not in {each.getsockname()[1] for each in taken}
        with socket.socket() as plain_one, pytest.raises(OSError):
            plain_one.bind(("127.0.0.1", port))
        with socket.socket() as store:
            store.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            store.bind(("127.0.0.1", port))
            store.listen()
        for each in taken:
            each.close()

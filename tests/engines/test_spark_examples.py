"""Published examples of distributed training on Spark with one import changed, on two real executors."""

import doctest
import os

import numpy
import pytest
from test_examples import replaced

pytest.importorskip("pyspark")

import tune_client  # noqa: E402
import tune_spark  # noqa: E402


def docstring_examples():
    """Of spark.apache.org/docs/latest/api/python/reference/api/pyspark.ml.torch.distributor.TorchDistributor.html: those with a function of
    torch and a file; the third one leaves out what Lightning needs. As text, without prompts."""
    from pyspark.ml.torch.distributor import TorchDistributor

    texts = [example.source for example in doctest.DocTestParser().get_examples(TorchDistributor.__doc__)]
    ends = [i for i, text in enumerate(texts) if ".run(" in text]
    assert len(ends) == 3
    return ["".join(texts[begin:end + 1]) for begin, end in zip([0, *(end + 1 for end in ends)], ends[:2])]


def run(text):
    known = {"TorchDistributor": tune_spark.TuneDistributor}
    exec(text, known)
    return known


CPU = {"gpu": ("use_gpu=True", "use_gpu=False")}


def test_torch_distributors_function(spark, absent_cuda):
    if not absent_cuda:
        pytest.skip("there is no torch")
    text, _ = docstring_examples()
    known = run(replaced(text, **CPU, backend=("nccl", "gloo"), end=("torch.destroy_process_group", "torch.distributed.destroy_process_group"),
                         value=("return model", "return learning_rate, torch.distributed.is_initialized()")))
    assert known["model"] == (1e-3, False)


def test_torch_distributors_file(spark, tmp_path):
    _, text = docstring_examples()
    script = tmp_path / "train.py"
    script.write_text("import os, pathlib, sys\npathlib.Path(__file__ + os.environ['RANK']).write_text(' '.join(sys.argv[1:]))\n")
    run(replaced(text, **CPU, path=("/path/to/train.py", str(script))))
    assert [(tmp_path / f"train.py{rank}").read_text() for rank in (0, 1)] == ["--learning-rate=1e-3"] * 2


def digits():
    """As many small pictures of digits as scikit-learn brings, in the place of MNIST."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype("float32"), labels


def train_digits(folder, run_id, epochs=3, learning_rate=0.1):
    """The steps of Databricks' notebook "Distributed training with TorchDistributor on MNIST": a sampler for each rank, DDP, the loss of
    rank 0 to MLflow, checkpoints, and a test of the last one. Gives the share that it names rightly."""
    import contextlib

    import mlflow
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    images, labels = map(torch.from_numpy, digits())
    data = TensorDataset(images, labels)
    sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=rank, seed=1)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    torch.manual_seed(0)
    net = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)))
    optimizer = torch.optim.SGD(net.parameters(), lr=learning_rate, momentum=0.5)
    with mlflow.start_run(run_id=run_id) if rank == 0 else contextlib.nullcontext():
        for epoch in range(1, epochs + 1):
            sampler.set_epoch(epoch)
            for batch, targets in loader:
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(net(batch), targets)
                loss.backward()
                optimizer.step()
            if rank == 0:
                mlflow.log_metric("train_loss", loss.item(), step=epoch)
                torch.save(net.module.state_dict(), f"{folder}/checkpoint-{epoch}.pt")
    dist.destroy_process_group()
    if rank != 0:
        return None
    net.module.load_state_dict(torch.load(f"{folder}/checkpoint-{epochs}.pt"))
    return (net.module(images).argmax(1) == labels).double().mean().item()


def test_mnist_with_torch_distributor(spark, absent_cuda, url, tmp_path):
    if not absent_cuda:
        pytest.skip("there is no torch")
    import mlflow

    mlflow.set_tracking_uri(url)
    try:
        mlflow.set_experiment("digits")
        with mlflow.start_run() as made:
            run_id = made.info.run_id
        client = mlflow.MlflowClient()

        def main(folder):
            import mlflow
            mlflow.set_tracking_uri(url)
            return train_digits(folder, run_id)

        right = tune_spark.TuneDistributor(num_processes=2, local_mode=False, use_gpu=False).run(main, str(tmp_path))
        losses = [metric.value for metric in client.get_metric_history(run_id, "train_loss")]
    finally:
        mlflow.set_tracking_uri(None)
    assert right > 0.7 and len(losses) == 3 and losses[-1] < losses[0]


def test_horovod_runner_without_horovod(spark):
    """docs.databricks.com/.../horovod-runner.html: the runner, a function with its imports inside, run(); hvd.init() left out."""
    hr = tune_spark.HorovodRunner(np=2)

    def train(learning_rate):
        import os
        return learning_rate, int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])

    assert hr.run(train, learning_rate=0.1) == (0.1, 0, 2)


def test_distributed_decorator(monkeypatch):
    """learn.microsoft.com/azure/databricks/machine-learning/ai-runtime/distributed-training: gpus, gpu_type, .distributed()."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")

    @tune_client.distributed(gpus=2, gpu_type="H100")
    def run_train(epochs):
        import os
        return os.environ["LOCAL_RANK"], os.environ["WORLD_SIZE"], epochs

    assert run_train.distributed(epochs=3) == [("0", "2", 3), ("1", "2", 3)]


def test_spark_trials_on_digits(spark, url):
    """hyperopt.github.io/hyperopt/scaleout/spark: a sparse logistic regression by its penalty and its strength, SparkTrials() replaced."""
    from hyperopt import STATUS_OK, fmin, hp, tpe
    from sklearn.linear_model import LogisticRegression

    images, labels = digits()

    def train(params):
        model = LogisticRegression(C=1.0 / params["regParam"], l1_ratio={"l1": 1.0, "l2": 0.0}[params["penalty"]], solver="saga", tol=0.1)
        model.fit(images[:600], labels[:600])
        return {"loss": -model.score(images[600:1200], labels[600:1200]), "status": STATUS_OK}

    space = {"penalty": hp.choice("penalty", ["l1", "l2"]), "regParam": hp.loguniform("regParam", -10.0, 0)}
    trials = tune_client.TuneTrials(spark_session=spark, server=url)
    best = fmin(fn=train, space=space, algo=tpe.suggest, trials=trials, max_evals=8, verbose=False, rstate=numpy.random.default_rng(0))
    assert trials.parallelism == 2 and len(trials) == 8 and set(best) == {"penalty", "regParam"}
    assert trials.best_trial["result"]["loss"] < -0.7

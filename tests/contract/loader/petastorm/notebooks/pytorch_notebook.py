"""The steps of Databricks' notebook of Petastorm and PyTorch (one node, distributed tuning by Hyperopt, distributed training), written anew
for images that are made here and a model of one layer. test_notebooks.py changes `petastorm` in the imports and nothing else.

    pytorch_notebook.py FOLDER      prints a line of JSON
"""

import io
import json
import sys
from functools import partial

import numpy as np
import torch
from hyperopt import STATUS_OK, SparkTrials, fmin, hp, tpe
from PIL import Image
from pyspark.ml.torch.distributor import TorchDistributor
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from petastorm import TransformSpec
from petastorm.spark import SparkDatasetConverter, make_spark_converter

BATCH_SIZE = 16
CLASSES = 4


def flower(label, random):
    """A PNG whose class is the quarter that is bright."""
    pixels = random.integers(0, 60, (32, 32, 3)).astype(np.uint8)
    top, left = 16 * (label // 2), 16 * (label % 2)
    pixels[top : top + 16, left : left + 16] += 180
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return bytearray(file.getvalue())


def transform_row(is_train, frame):
    """Of a batch, as a pandas DataFrame."""

    def image(content):
        pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB").resize((16, 16)), np.float32) / 255
        if is_train:
            pixels = pixels + 0.01
        return pixels.transpose(2, 0, 1)

    frame["features"] = frame["content"].map(image)
    return frame.drop(columns=["content"])


def transform_spec(is_train):
    return TransformSpec(
        partial(transform_row, is_train),
        edit_fields=[("features", np.float32, (3, 16, 16), False)],
        selected_fields=["features", "label"],
    )


def new_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, CLASSES))


def train_one_epoch(model, optimizer, batches, steps):
    for _ in range(steps):
        batch = next(batches)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch["features"]), batch["label"]).backward()
        optimizer.step()


def evaluate(model, batches, steps):
    right = count = 0
    with torch.no_grad():
        for _ in range(steps):
            batch = next(batches)
            right += int((model(batch["features"]).argmax(1) == batch["label"]).sum())
            count += len(batch["label"])
    return right / count


def train_and_evaluate(converter_train, converter_val, lr=0.05, epochs=2):
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    with (
        converter_train.make_torch_dataloader(transform_spec=transform_spec(True), batch_size=BATCH_SIZE) as train_loader,
        converter_val.make_torch_dataloader(transform_spec=transform_spec(False), batch_size=BATCH_SIZE) as val_loader,
    ):
        batches, steps = iter(train_loader), len(converter_train) // BATCH_SIZE
        val_batches, val_steps = iter(val_loader), max(1, len(converter_val) // BATCH_SIZE)
        for _ in range(epochs):
            train_one_epoch(model, optimizer, batches, steps)
            accuracy = evaluate(model, val_batches, val_steps)
    return accuracy


def train_distributed(converter_train, lr):
    """Of each rank the rows of its shard, and its model in the end."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(new_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=lr * size, momentum=0.9)
    with converter_train.make_torch_dataloader(
        transform_spec=transform_spec(True), cur_shard=rank, shard_count=size, batch_size=BATCH_SIZE
    ) as loader:
        train_one_epoch(model, optimizer, iter(loader), len(converter_train) // (BATCH_SIZE * size))
    with converter_train.make_torch_dataloader(cur_shard=rank, shard_count=size, num_epochs=1, schema_fields=["number"]) as loader:
        mine = [number for batch in loader for number in batch["number"].tolist()]
    found = [None] * size
    dist.all_gather_object(found, (mine, model.module[1].bias.tolist()))
    dist.destroy_process_group()
    return found


def main(folder):
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    random = np.random.default_rng(1)
    rows = [(i, flower(i % CLASSES, random), i % CLASSES) for i in range(240)]
    frame = spark.createDataFrame(rows, ["number", "content", "label"]).select(col("number"), col("content"), col("label"))
    frame_train, frame_val = frame.randomSplit([0.8, 0.2], seed=12345)

    spark.conf.set(SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF, f"file://{folder}/cache")
    converter_train = make_spark_converter(frame_train.repartition(2))
    converter_val = make_spark_converter(frame_val.repartition(2))

    one = train_and_evaluate(converter_train, converter_val)

    def objective(lr):
        return {"loss": -train_and_evaluate(converter_train, converter_val, lr, 1), "status": STATUS_OK}

    trials = SparkTrials(parallelism=2)
    best = fmin(fn=objective, space=hp.loguniform("lr", -6, -2), algo=tpe.suggest, max_evals=2, trials=trials, verbose=False,
                rstate=np.random.default_rng(1))  # fmt: skip

    distributor = TorchDistributor(num_processes=2, local_mode=False, use_gpu=False)
    ranks = distributor.run(train_distributed, converter_train, 0.01)

    told = {"rows": [len(converter_train), len(converter_val)], "one node": one, "best": best, "losses": trials.losses(), "ranks": ranks}
    converter_train.delete()
    converter_val.delete()
    spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])

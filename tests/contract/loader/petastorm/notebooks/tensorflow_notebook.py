"""The steps of Databricks' notebook of Petastorm and TensorFlow (one node, distributed tuning by Hyperopt, distributed training), written anew
for images that are made here and a model of one layer. test_notebooks.py changes `petastorm` in the imports and nothing else.

    tensorflow_notebook.py FOLDER      prints a line of JSON
"""

import io
import json
import os
import pathlib
import sys

import numpy as np
import tensorflow as tf
from hyperopt import STATUS_OK, SparkTrials, fmin, hp, tpe
from PIL import Image
from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from tune_spark import MirroredStrategyRunner

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


def transform(frame):
    """Of a batch, as a pandas DataFrame."""

    def image(content):
        return np.asarray(Image.open(io.BytesIO(content)).convert("RGB").resize((16, 16)), np.float32) / 255

    frame["features"] = frame["content"].map(image)
    return frame.drop(columns=["content"])


TRANSFORM_SPEC = TransformSpec(
    transform, edit_fields=[("features", np.float32, (16, 16, 3), False)], selected_fields=["features", "label"]
)


def new_model(lr):
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Input((16, 16, 3)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(CLASSES)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.SGD(lr, momentum=0.9), loss=loss, metrics=["accuracy"])
    return model


def pairs(dataset):
    return dataset.map(lambda batch: (batch.features, batch.label))


def train_and_evaluate(converter_train, converter_val, lr=0.05, epochs=2):
    model = new_model(lr)
    options = {"transform_spec": TRANSFORM_SPEC, "batch_size": BATCH_SIZE}
    with converter_train.make_tf_dataset(**options) as train, converter_val.make_tf_dataset(**options) as val:
        history = model.fit(
            pairs(train), steps_per_epoch=len(converter_train) // BATCH_SIZE, epochs=epochs,
            validation_data=pairs(val), validation_steps=max(1, len(converter_val) // BATCH_SIZE), verbose=0,
        )  # fmt: skip
    return float(history.history["val_accuracy"][-1])


def train_distributed(converter_train, lr, folder):
    """Each worker writes down the rows of its shard, and its model in the end."""
    cluster = json.loads(os.environ["TF_CONFIG"])
    rank, size = cluster["task"]["index"], len(cluster["cluster"]["worker"])
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = new_model(lr)
    with converter_train.make_tf_dataset(num_epochs=1, cur_shard=rank, shard_count=size, schema_fields=["number"]) as dataset:
        mine = [int(number) for batch in dataset for number in batch.number]
    with converter_train.make_tf_dataset(
        transform_spec=TRANSFORM_SPEC, cur_shard=rank, shard_count=size, batch_size=BATCH_SIZE
    ) as dataset:
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        model.fit(pairs(dataset).with_options(options), steps_per_epoch=len(converter_train) // (BATCH_SIZE * size), verbose=0)
    (pathlib.Path(folder) / f"rank-{rank}").write_text(json.dumps([mine, model.get_weights()[1].tolist()]))


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

    runner = MirroredStrategyRunner(num_slots=2, use_gpu=False, use_custom_strategy=True)
    runner.run(train_distributed, converter_train=converter_train, lr=0.01, folder=folder)
    ranks = [json.loads((pathlib.Path(folder) / f"rank-{rank}").read_text()) for rank in range(2)]

    told = {"rows": [len(converter_train), len(converter_val)], "one node": one, "best": best, "losses": trials.losses(), "ranks": ranks}
    converter_train.delete()
    converter_val.delete()
    spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])

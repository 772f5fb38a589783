"""tuneloader.pytorch over readers, Petastorm's own examples with one import changed, and Lightning."""

import decimal
import pathlib
import re
import sys
import types

import numpy as np
import pytest

tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
pa = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")
import pyarrow.parquet as pq  # noqa: E402
from tuneloader import TransformSpec, make_batch_reader, make_reader  # noqa: E402
from tuneloader.codecs import CompressedImageCodec, NdarrayCodec, ScalarCodec  # noqa: E402
from tuneloader.etl.dataset_metadata import materialize_dataset  # noqa: E402
from tuneloader.pytorch import BatchedDataLoader, DataLoader, InMemBatchedDataLoader, decimal_friendly_collate  # noqa: E402
from tuneloader.unischema import Unischema, UnischemaField, encode_row  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "petastorm"
ROWS = f"file://{HERE}/rows"
PLAIN = f"file://{HERE}/plain"
NUMBERS = ["id", "y", "flag", "vector"]


def ids_of(loader):
    return [batch["id"].tolist() for batch in loader]


@pytest.mark.parametrize("kind", [DataLoader, BatchedDataLoader])
def test_batches_are_cut_in_the_order_of_the_reader(kind):
    with kind(make_batch_reader(PLAIN, NUMBERS, shuffle_row_groups=False), batch_size=7) as loader:
        batches = list(loader)
    assert [len(batch["id"]) for batch in batches] == [7] * 8 + [4]
    assert sum((batch["id"].tolist() for batch in batches), []) == list(range(60))
    assert batches[0]["y"].dtype == torch.float32 and batches[0]["flag"].dtype == torch.uint8
    assert batches[0]["vector"].tolist() == [[float(i), 0.5, -1.0] for i in range(7)]


@pytest.mark.parametrize("kind", [DataLoader, BatchedDataLoader])
def test_rows_are_batched_too(kind):
    fields = ["id", "small", "grey", "flag"]
    with kind(make_reader(ROWS, fields, shuffle_row_groups=False), batch_size=16) as loader:
        batches = list(loader)
    assert sum((batch["id"].tolist() for batch in batches), []) == list(range(40))
    assert batches[0]["grey"].shape == (16, 5, 4) and batches[0]["grey"].dtype == torch.uint8
    assert batches[0]["small"].dtype == torch.int32 and batches[0]["flag"].dtype == torch.uint8


def test_cutting_columns_gives_what_collating_rows_gives():
    def collate(rows):
        return decimal_friendly_collate(rows)

    reader = {"schema_fields": NUMBERS, "shuffle_row_groups": False}
    by_rows = list(DataLoader(make_batch_reader(PLAIN, **reader), batch_size=9, collate_fn=collate))
    by_columns = list(DataLoader(make_batch_reader(PLAIN, **reader), batch_size=9))
    assert len(by_rows) == len(by_columns) == 7
    for rows, columns in zip(by_rows, by_columns):
        for name in NUMBERS:
            assert rows[name].dtype == columns[name].dtype and torch.equal(rows[name], columns[name]), name


@pytest.mark.parametrize("kind", [DataLoader, BatchedDataLoader])
@pytest.mark.parametrize("capacity", [2, 20, 1000])
def test_a_shuffling_queue_gives_each_row_once(kind, capacity):
    for reader in (make_batch_reader(PLAIN, ["id", "y"], seed=1), make_reader(ROWS, ["id"], seed=1)):
        np.random.seed(7)
        count = 60 if reader.batched_output else 40
        with kind(reader, batch_size=8, shuffling_queue_capacity=capacity) as loader:
            ids = sum(ids_of(loader), [])
        assert sorted(ids) == list(range(count)) and ids != list(range(count))


def test_passes_follow_one_another_and_not_at_once():
    loader = DataLoader(make_batch_reader(PLAIN, ["id"], seed=1), batch_size=30)
    first = ids_of(loader)
    assert sorted(sum(ids_of(loader), [])) == list(range(60)) and len(first) == 2
    begun = iter(loader)
    next(begun)
    with pytest.raises(RuntimeError, match="is not finished"):
        next(iter(loader))
    loader.reader.stop()
    with pytest.raises(TypeError, match="the field 'text' is"):
        ids_of(failed := DataLoader(make_batch_reader(PLAIN, ["id", "text"])))
    with pytest.raises(RuntimeError, match="the last pass over this loader failed"):
        next(iter(failed))
    with pytest.raises(TypeError, match="None, which the field 'packed' holds"):
        ids_of(DataLoader(make_reader(ROWS, ["id", "packed"])))


def test_texts_and_decimals_of_rows_stay_lists():
    with DataLoader(make_reader(ROWS, ["id", "amount"], shuffle_row_groups=False), batch_size=3) as loader:
        batch = next(iter(loader))
    assert batch["amount"] == [decimal.Decimal(i).scaleb(-2) for i in range(3)]


def test_rows_held_in_memory_for_several_epochs():
    loader = InMemBatchedDataLoader(make_batch_reader(PLAIN, ["id", "y"], num_epochs=None, seed=1), batch_size=10, num_epochs=2,
                                    rows_capacity=25, shuffle=True, seed=3)  # fmt: skip
    batches = ids_of(loader)
    assert [len(batch) for batch in batches] == [10, 10, 5] * 2
    first, second = sum(batches[:3], []), sum(batches[3:], [])
    assert sorted(first) == sorted(second) and first != second
    with pytest.raises(RuntimeError, match="makes one pass"):
        next(iter(loader))


HelloWorldSchema = Unischema("HelloWorldSchema", [
    UnischemaField("id", np.int32, (), ScalarCodec("IntegerType"), False),
    UnischemaField("image1", np.uint8, (16, 32, 3), CompressedImageCodec("png"), False),
    UnischemaField("array_4d", np.uint8, (None, 4, 3, None), NdarrayCodec(), False),
])  # fmt: skip
MnistSchema = Unischema("MnistSchema", [
    UnischemaField("idx", np.int_, (), ScalarCodec("IntegerType"), False),
    UnischemaField("digit", np.int_, (), ScalarCodec("IntegerType"), False),
    UnischemaField("image", np.uint8, (28, 28), NdarrayCodec(), False),
])  # fmt: skip


def materialize(folder, schema, rows, row_group_size=50):
    url = f"file://{folder}"
    with materialize_dataset(None, url, schema, 1):
        pathlib.Path(folder).mkdir(parents=True)
        table = pa.Table.from_pylist([encode_row(schema, row) for row in rows])
        pq.write_table(table, pathlib.Path(folder) / "part-0.parquet", row_group_size=row_group_size)
    return url


def example(name, **more):
    """One of Petastorm's examples, its import changed."""
    code = (HERE / "examples" / name).read_text()
    changed = re.sub(r"^from petastorm", "from tuneloader", code, flags=re.M)
    assert changed != code
    names = {"__name__": "example", **more}
    exec(compile(changed, name, "exec"), names)
    return types.SimpleNamespace(**names)


def test_the_hello_world_examples_run_with_one_import_changed(tmp_path, capsys):
    random = np.random.default_rng(1)
    rows = [{"id": i, "image1": random.integers(0, 255, (16, 32, 3), np.uint8),
             "array_4d": random.integers(0, 255, (4, 4, 3, 3), np.uint8)} for i in range(10)]  # fmt: skip
    url = materialize(tmp_path / "hello", HelloWorldSchema, rows)
    example("petastorm_python_hello_world.py").python_hello_world(url)
    assert sorted(map(int, capsys.readouterr().out.split())) == list(range(10))
    example("petastorm_pytorch_hello_world.py").pytorch_hello_world(url)
    assert capsys.readouterr().out.startswith("tensor([")
    table = pa.table({"id": range(10), "value1": range(10), "value2": range(10)})
    pq.write_table(table, tmp_path / "external.parquet")
    url = f"file://{tmp_path}/external.parquet"
    example("external_python_hello_world.py").python_hello_world(url)
    assert "value2: [0 1 2 3 4 5 6 7 8 9]" in capsys.readouterr().out
    example("external_pytorch_hello_world.py").pytorch_hello_world(url)
    assert capsys.readouterr().out.startswith("id batch: tensor([0])")


def digits(count, seed):
    """Rows of an easy task: the digit is where the image is bright."""
    random = np.random.default_rng(seed)
    for i in range(count):
        digit = int(random.integers(10))
        image = random.integers(0, 60, (28, 28)).astype(np.uint8)
        image[2 * digit : 2 * digit + 5, 4:24] = 255
        yield {"idx": i, "digit": digit, "image": image}


class _Transforms(types.ModuleType):
    """What the example takes of torchvision, which is not needed for the rest of the tests."""

    class Compose:
        def __init__(self, steps):
            self.steps = steps

        def __call__(self, value):
            for step in self.steps:
                value = step(value)
            return value

    class ToTensor:
        def __call__(self, image):
            return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))).float() / 255

    class Normalize:
        def __init__(self, mean, std):
            self.mean, self.std = mean[0], std[0]

        def __call__(self, image):
            return (image - self.mean) / self.std

    @staticmethod
    def Lambda(function):
        return function


def test_the_mnist_example_learns_with_one_import_changed(tmp_path, monkeypatch, capsys):
    for name, count in (("train", 600), ("test", 100)):
        materialize(tmp_path / "mnist" / name, MnistSchema, digits(count, len(name)))
    vision = types.ModuleType("torchvision")
    vision.transforms = _Transforms("torchvision.transforms")
    mnist = types.ModuleType("examples.mnist")
    mnist.DEFAULT_MNIST_DATA_PATH = str(tmp_path / "mnist")
    for name, module in (("torchvision", vision), ("torchvision.transforms", vision.transforms), ("examples.mnist", mnist)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "examples", types.ModuleType("examples"))
    monkeypatch.setattr(sys, "argv", ["main", "--epochs", "2", "--batch-size", "20", "--lr", "0.05", "--no-cuda"])
    example("mnist_pytorch_example.py").main()
    accuracies = [int(found) for found in re.findall(r"Accuracy: (\d+)/100", capsys.readouterr().out)]
    assert len(accuracies) == 2 and accuracies[-1] > 60, accuracies


def test_lightning_trains_on_a_reader(tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")
    url = materialize(tmp_path / "train", MnistSchema, digits(200, 1))

    def scaled(row):
        return {"image": row["image"].astype(np.float32).reshape(-1) / 255, "digit": row["digit"]}

    spec = TransformSpec(scaled, edit_fields=[("image", np.float32, (784,), False)], removed_fields=["idx"])

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(784, 10)
            self.losses = []

        def training_step(self, batch, _):
            loss = torch.nn.functional.cross_entropy(self.linear(batch["image"]), batch["digit"])
            self.losses.append(float(loss))
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    model = Model()
    trainer = lightning.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                accelerator="cpu", default_root_dir=tmp_path)  # fmt: skip
    with DataLoader(make_reader(url, transform_spec=spec, num_epochs=4, seed=1), batch_size=20) as loader:
        trainer.fit(model, loader)
    assert len(model.losses) == 40 and model.losses[-1] < model.losses[0] / 2

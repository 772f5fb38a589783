"""StreamingDataset, StreamingDataLoader, MDSWriter and their companions against the installed mosaicml-streaming 0.13.0, and
under torch's DataLoader and Lightning."""

import copy
import json
import pathlib
import pickle
from decimal import Decimal

import numpy as np
import pytest
from servers import FileServer

mosaic = pytest.importorskip("mosaic", reason="mosaicml-streaming is not installed; run ./setup.sh")
tuneloader = pytest.importorskip("tuneloader", reason="the module tuneloader is not built")
torch = pytest.importorskip("torch", reason="setup.sh ran with --no-torch")

from torch.utils.data import DataLoader  # noqa: E402

from tuneloader import MDSWriter, Stream, StreamingDataLoader, StreamingDataset  # noqa: E402

SAMPLES = 103


@pytest.fixture
def data(tmp_path):
    with MDSWriter(out=str(tmp_path / "data"), columns={"x": "int", "v": "ndarray:float32:3"}, size_limit=700) as out:
        for i in range(SAMPLES):
            out.write({"x": i, "v": np.full(3, i, np.float32)})
    return str(tmp_path / "data")


def ids(iterable):
    return [int(sample["x"]) for sample in iterable]


def batches(loader):
    return [batch["x"].tolist() for batch in loader]


@pytest.mark.parametrize("algorithm", ["naive", "py1s", "py2s", "py1br", "py1e"])
def test_epochs_and_resume_are_mosaics(data, algorithm):
    options = {"local": data, "batch_size": 4, "shuffle": True, "shuffle_algo": algorithm, "shuffle_seed": 11,
               "shuffle_block_size": 50}  # fmt: skip
    mosaic.clean_stale_shared_memory()
    theirs, ours = mosaic.StreamingDataset(**options), StreamingDataset(**options)
    assert len(ours) == len(theirs) and ours.size == theirs.size and ours.epoch_size == theirs.epoch_size
    assert [ids(ours) for _ in range(3)] == [ids(theirs) for _ in range(3)]
    state = ours.state_dict(40, from_beginning=True)
    assert state == theirs.state_dict(40, from_beginning=True)
    del theirs
    mosaic.clean_stale_shared_memory()
    theirs, ours = mosaic.StreamingDataset(**options), StreamingDataset(**options)
    theirs.load_state_dict(state)
    ours.load_state_dict(json.loads(json.dumps(state)))
    assert [ids(ours) for _ in range(2)] == [ids(theirs) for _ in range(2)]
    assert ours.state_dict(8, False) == theirs.state_dict(8, False)


def test_streams_are_mixed_as_mosaic_mixes_them(data, tmp_path):
    with MDSWriter(out=str(tmp_path / "more" / "train"), columns={"x": "int", "v": "ndarray:float32:3"}) as out:
        for i in range(60):
            out.write({"x": 1000 + i, "v": np.zeros(3, np.float32)})
    places = [(data, None, 0.7), (str(tmp_path / "more"), "train", 0.3)]
    options = {"batch_size": 10, "shuffle": True, "epoch_size": "0.2k", "batching_method": "stratified"}

    def dataset(module):
        streams = [module.Stream(local=local, split=split, proportion=part) for local, split, part in places]
        return module.StreamingDataset(streams=streams, **{**options, "epoch_size": 200})

    mosaic.clean_stale_shared_memory()
    ours = dataset(tuneloader)
    assert [ids(ours) for _ in range(2)] == [ids(theirs) for theirs in [dataset(mosaic)] for _ in range(2)]
    assert len(ours) == 200
    assert StreamingDataset(streams=ours.streams, **options).epoch_size == 200


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_of_a_plain_dataloader_go_through_the_epochs(data, persistent):
    alone = StreamingDataset(local=data, batch_size=4, shuffle=True)
    expected = [batches(DataLoader(alone, batch_size=4)) for _ in range(3)]
    assert sorted(sum(expected[0], [])) == list(range(SAMPLES)) and expected[0] != expected[1]
    dataset = StreamingDataset(local=data, batch_size=4, shuffle=True)
    loader = DataLoader(dataset, batch_size=4, num_workers=2, persistent_workers=persistent)
    assert [batches(loader) for _ in range(2)] == expected[:2]
    assert dataset.next_epoch == 2
    # Another number of workers, or none, takes up where these have left off.
    assert batches(DataLoader(dataset, batch_size=4, num_workers=3)) == expected[2]
    assert batches(DataLoader(dataset, batch_size=4)) == batches(DataLoader(alone, batch_size=4))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_streaming_dataloader_resumes_after_the_batches_that_were_used(data, workers):
    def loader():
        dataset = StreamingDataset(local=data, batch_size=4, shuffle=True, shuffle_seed=5)
        return StreamingDataLoader(dataset, batch_size=4, num_workers=workers)

    whole = loader()
    first, second = batches(whole), batches(whole)
    stopped = loader()
    batches(stopped)
    used = [batch["x"].tolist() for _, batch in zip(range(9), stopped)]
    state = stopped.state_dict()
    assert state == {"epoch": 1, "sample_in_epoch": 36, "num_canonical_nodes": 1, "shuffle_seed": 5,
                     "initial_physical_nodes": 1}  # fmt: skip
    resumed = loader()
    resumed.load_state_dict(state)
    assert used + batches(resumed) == second != first


class Doubled(StreamingDataset):
    """The usual way to transform samples in users' code."""

    def __getitem__(self, at):
        sample = super().__getitem__(at)
        return sample["v"] * 2, sample["x"]


class Named(StreamingDataset):
    """The other one."""

    def get_item(self, sample_id, retry=7):
        return {"x": super().get_item(sample_id)["x"], "name": f"sample {sample_id}"}


def test_subclasses_transform_samples(data):
    dataset = Doubled(local=data, batch_size=8, shuffle=True)
    for values, numbers in DataLoader(dataset, batch_size=8, num_workers=2):
        assert (values == 2 * numbers[:, None]).all() and values.dtype == torch.float32
    named = Named(local=data, batch_size=8)
    assert [sample["name"] for sample in named] == [f"sample {i}" for i in range(SAMPLES)]
    assert named[-1]["name"] == f"sample {SAMPLES - 1}" and [s["x"] for s in named[3:9:2]] == [3, 5, 7]
    assert [s["x"] for s in named[np.array([5, 2])]] == [5, 2]
    with pytest.raises(IndexError, match="there is no sample 103"):
        named[103]


def test_data_sets_are_copied_and_pickled(data):
    dataset = StreamingDataset(local=data, batch_size=4, shuffle=True)
    ids(dataset)
    following = ids(copy.deepcopy(dataset))
    assert ids(pickle.loads(pickle.dumps(dataset))) == following == ids(dataset)
    local = pickle.loads(pickle.dumps(tuneloader.LocalDataset(data)))
    assert len(local) == SAMPLES and ids(DataLoader(local, batch_size=None, num_workers=1)) == list(range(SAMPLES))


def test_every_encoding_is_read_as_mosaic_reads_it(tmp_path):
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(1)
    picture = image.fromarray(random.integers(0, 255, (5, 7, 3), dtype=np.uint8))
    samples = [
        {
            "int": i - 2, "str": "é" * i, "bytes": bytes(i), "json": {"a": [i, None, 0.5]}, "str_int": 10 ** (20 * i),
            "str_float": 0.1 * i, "str_decimal": Decimal(i) / 8, "ndarray": np.arange(i + 1, dtype=np.int16),
            "ndarray:float32": np.ones((1, i + 1), np.float32), "ndarray:uint8:2,2": np.full((2, 2), i, np.uint8),
            "uint8": np.uint8(i), "int16": np.int16(-i), "float16": np.float16(i / 3), "float32": np.float32(i / 3),
            "float64": i / 3, "uint64": np.uint64(2**64 - 1 - i), "pil": picture, "jpeg": picture, "png": picture,
            "list[png]": [picture] * i, "pkl": {"set": {i}},
        }
        for i in range(4)
    ]  # fmt: skip
    columns = {name: name for name in samples[0]}
    for module, name in ((tuneloader, "ours"), (mosaic, "theirs")):
        with module.MDSWriter(out=str(tmp_path / name), columns=columns, hashes=["sha1"]) as out:
            for sample in samples:
                out.write(sample)
    for file in ("shard.00000.mds", "index.json"):
        assert (tmp_path / "ours" / file).read_bytes() == (tmp_path / "theirs" / file).read_bytes()
    with pytest.raises(ValueError, match="column 'pkl' holds pickles"):
        StreamingDataset(local=str(tmp_path / "ours"))
    ours = StreamingDataset(local=str(tmp_path / "ours"), allow_unsafe_types=True)
    theirs = mosaic.LocalDataset(str(tmp_path / "theirs"))
    for i in range(4):
        for name, value in theirs[i].items():
            got = ours[i][name]
            assert type(got) is type(value), name
            if isinstance(value, np.ndarray):
                assert got.dtype == value.dtype and got.shape == value.shape and (got == value).all() and got.flags.writeable
            elif name == "list[png]":
                assert [part.tobytes() for part in got] == [part.tobytes() for part in value]
            else:
                assert got == value or got.tobytes() == value.tobytes(), name


EXAMPLE = """
import numpy as np
from PIL import Image
from streaming import MDSWriter

# Local or remote directory in which to store the compressed output files
data_dir = 'path-to-dataset'

# A dictionary mapping input fields to their data types
columns = {
    'image': 'jpeg',
    'class': 'int'
}

# Shard compression, if any
compression = 'zstd'

# Save the samples as shards using MDSWriter
with MDSWriter(out=data_dir, columns=columns, compression=compression) as out:
    for i in range(100):
        sample = {
            'image': Image.fromarray(np.random.randint(0, 256, (32, 32, 3), np.uint8)),
            'class': np.random.randint(10),
        }
        out.write(sample)

from torch.utils.data import DataLoader
from streaming import StreamingDataset

# Create streaming dataset
dataset = StreamingDataset(local=data_dir, shuffle=True, batch_size=10)

# Let's see what is in sample #37...
sample = dataset[37]
img = sample['image']
cls = sample['class']

# Create PyTorch DataLoader
dataloader = DataLoader(dataset, batch_size=10, collate_fn=lambda samples: [sample['class'] for sample in samples])
seen = sum(map(len, dataloader))
"""


def test_mosaics_first_example_runs_with_one_import_changed(tmp_path, monkeypatch):
    pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(EXAMPLE.replace("from streaming import", "from tuneloader import"), names)
    assert names["img"].size == (32, 32) and 0 <= names["cls"] < 10 and names["seen"] == 100
    mosaic.clean_stale_shared_memory()
    read = mosaic.StreamingDataset(local="path-to-dataset", batch_size=1)
    assert len(read) == 100 and read[37]["class"] == names["cls"]


def test_lightning_trains_on_it(data, tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")

    class Line(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)
            self.seen = []

        def training_step(self, batch, number):
            self.seen += batch["x"].tolist()
            return (self.layer(batch["v"] / SAMPLES).squeeze(1) - batch["x"] / SAMPLES).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    model = Line()
    loader = StreamingDataLoader(StreamingDataset(local=data, batch_size=8, shuffle=True), batch_size=8, num_workers=2)
    trainer = lightning.Trainer(
        max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        accelerator="cpu", default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(model, loader)
    epochs = model.seen[:SAMPLES], model.seen[SAMPLES:]
    assert [sorted(epoch) for epoch in epochs] == [list(range(SAMPLES))] * 2 and epochs[0] != epochs[1]


def test_parts_are_merged(tmp_path):
    for part in ("b/p1", "a/p0"):
        with MDSWriter(out=str(tmp_path / part), columns={"x": "int"}) as out:
            for i in range(3):
                out.write({"x": i + 10 * part.startswith("b")})
    tuneloader.merge_index(str(tmp_path))
    assert ids(tuneloader.LocalDataset(tmp_path)) == [0, 1, 2, 10, 11, 12]
    tuneloader.merge_index([str(tmp_path / part / "index.json") for part in ("b/p1", "a/p0")], str(tmp_path))
    assert ids(mosaic.LocalDataset(str(tmp_path))) == [10, 11, 12, 0, 1, 2]
    with pytest.raises(FileNotFoundError, match="there is no index.json beneath"):
        tuneloader.merge_index(str(tmp_path / "a" / "p0"))


def test_a_dataframe_is_written(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"n": np.arange(5, dtype=np.int16), "ok": [True, False] * 2 + [True], "t": list("abcdé"), "f": np.arange(5) / 2,
         "v": [[i, i + 1] for i in range(5)]}
    )  # fmt: skip
    tuneloader.dataframe_to_mds(frame, mds_kwargs={"out": str(tmp_path / "a"), "compression": None})
    read = list(mosaic.LocalDataset(str(tmp_path / "a")))
    assert [(s["n"], s["ok"], s["t"], s["f"], s["v"].tolist()) for s in read] == [
        (i, (i + 1) % 2, "abcdé"[i], i / 2, [i, i + 1]) for i in range(5)
    ]
    tuneloader.dataframe_to_mds(
        frame, mds_kwargs={"out": str(tmp_path / "b"), "columns": {"x": "int"}, "compression": "gz"},
        udf_iterable=lambda rows, by: ({"x": int(n) * by} for n in rows["n"]), udf_kwargs={"by": 3},
    )  # fmt: skip
    assert ids(tuneloader.LocalDataset(tmp_path / "b")) == [0, 3, 6, 9, 12]
    with pytest.raises(ValueError, match="column 't' has missing values"):
        tuneloader.dataframe_to_mds(pandas.DataFrame({"t": ["a", None]}), mds_kwargs={"out": str(tmp_path / "c")})


def test_samples_in_memory_become_a_data_set(tmp_path):
    random = np.random.default_rng(4)
    images, flags = random.integers(0, 255, (20, 3, 2), dtype=np.uint8), random.random(20) < 0.5
    columns = {"image": images, "flag": flags, "rate": random.random(20, np.float32), "word": [f"w{i}" for i in range(20)]}
    assert tuneloader.to_mds(columns, tmp_path / "arrays", hashes=["xxh64"]) == 20
    [batch] = tuneloader.Dataset(tmp_path / "arrays", batch_size=20)
    for name in ("image", "flag", "rate"):
        assert (batch[name] == columns[name]).all()
    assert batch["image"].shape == (20, 3, 2) and batch["word"] == columns["word"]

    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": range(5), "s": list("abcde")})
    assert tuneloader.to_mds(frame, tmp_path / "frame", columns={"x": "int16"}) == 5
    [batch] = tuneloader.Dataset(tmp_path / "frame", batch_size=5)
    assert batch["x"].dtype == np.int16 and batch["s"] == list("abcde")

    # What a Hugging Face data set yields: dicts of Python values.
    rows = ({"tokens": list(range(i + 1)), "label": i, "meta": {"id": i}} for i in range(4))
    assert tuneloader.to_mds(rows, tmp_path / "rows") == 4
    read = tuneloader.LocalDataset(tmp_path / "rows")
    assert [(s["tokens"].tolist(), s["label"], s["meta"]) for s in read] == [
        (list(range(i + 1)), i, {"id": i}) for i in range(4)
    ]
    for source, message in [
        ([], "the source has no samples"),
        ([1], "a sample must be a dict by column, not int"),
        ({"a": [1], "b": [1, 2]}, "the same number of samples"),
        ([{"a": None}], "column 'a' holds NoneType"),
        ({"a": [1]}, "the source has no column b; it has a"),
    ]:
        with pytest.raises(ValueError, match=message):
            tuneloader.to_mds(source, tmp_path / "none", columns={"b": "int"} if "no column b" in message else None)


def test_what_is_not_served_is_refused_by_name(data, tmp_path):
    with pytest.raises(NotImplementedError, match="stream_name and stream_config"):
        StreamingDataset(local=data, stream_name="mine")
    with pytest.raises(ValueError, match="either `streams` or `remote`/`local`"):
        StreamingDataset(local=data, streams=[Stream(local=data)])
    with pytest.raises(ValueError, match="pass `batch_size`"):
        next(iter(StreamingDataset(local=data)))
    with pytest.raises(TypeError, match="takes a DataFrame of Spark or pandas, not builtins.dict"):
        tuneloader.dataframe_to_mds({}, mds_kwargs={"out": str(tmp_path)})
    assert not list(pathlib.Path("/dev/shm").glob("*tune*"))


@pytest.mark.parametrize("shuffle", [False, True])
def test_remote_data_are_those_that_lie_there(tmp_path, shuffle):
    """Of one stream and of two, sample by sample and in batches, each file asked for once."""
    for name, count in (("a", 70), ("b", 50)):
        with tuneloader.MDSWriter(out=str(tmp_path / "far" / name), columns={"x": "int"}, size_limit=200) as writer:
            for i in range(count):
                writer.write({"x": i})
    with FileServer(tmp_path / "far") as server:
        for names in (["a"], ["a", "b"]):
            options = {"batch_size": 8, "shuffle": shuffle, "num_canonical_nodes": 1}
            here = [tuneloader.Stream(local=str(tmp_path / "far" / name)) for name in names]
            there = [tuneloader.Stream(remote=f"{server.url}/{name}", local=str(tmp_path / "near" / name)) for name in names]
            expected = StreamingDataset(streams=here, **options)
            dataset = StreamingDataset(streams=there, **options)
            for _ in range(2):
                assert ids(dataset) == ids(expected)
            assert dataset[3] == expected[3] and dataset[-1] == expected[-1]
            batches = [batch["x"].tolist() for batch in tuneloader.Dataset(streams=there, **options)]
            assert batches == [batch["x"].tolist() for batch in tuneloader.Dataset(streams=here, **options)]
    again = StreamingDataset(remote=f"{server.url}/a", local=str(tmp_path / "near" / "a"), batch_size=8, download_retry=1)
    assert set(ids(again)) == set(range(70)), "the server is gone, the cache is there"

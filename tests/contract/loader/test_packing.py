"""tuneloader.PackedDataset against a straightforward packer in Python, over random data and options, resumed at every point."""

import json
import os
import random

import numpy as np
import pytest
import tuneloader_path  # noqa: F401
from tuneloader import Dataset, MDSWriter, PackedDataset

SETUPS = int(os.environ.get("TUNE_PACKING_SETUPS", "25"))


def concat(documents, length):
    """[[(sample, offset, tokens)]]: one document after the other."""
    sequences, room = [], 0
    for sample, tokens in documents:
        at = 0
        while at < len(tokens):
            if room == 0:
                sequences.append([])
                room = length
            taken = min(room, len(tokens) - at)
            sequences[-1].append((sample, at, tokens[at:at + taken]))
            at += taken
            room -= taken
    return sequences


def best_fit(documents, length):
    """The same for one window: longest first, into the fullest sequence that takes it, else a new one."""
    pieces = [(place, at, tokens[at:at + length], sample)
              for place, (sample, tokens) in enumerate(documents) for at in range(0, len(tokens), length)]
    sequences = []
    for piece in sorted(pieces, key=lambda piece: -len(piece[2])):
        rooms = [length - sum(len(other[2]) for other in sequence) for sequence in sequences]
        fits = [(room, i) for i, room in enumerate(rooms) if room >= len(piece[2])]
        if fits:
            sequences[min(fits)[1]].append(piece)
        else:
            sequences.append([piece])
    ordered = sorted(sorted(sequence, key=lambda piece: piece[:2]) for sequence in sequences)
    return [[(sample, at, tokens) for _, at, tokens, sample in sequence] for sequence in ordered]


def expected_batches(documents, *, packing, length, batch_size, window, pad_token, end_token, drop_last):
    """[{name: array}] of one epoch."""
    ended = [(sample, [*tokens, *([] if end_token is None else [end_token])]) for sample, tokens in documents]
    if packing == "concat":
        sequences = concat(ended, length)
        if drop_last and sequences and sum(len(piece[2]) for piece in sequences[-1]) < length:
            sequences.pop()
    else:
        sequences = [sequence for begin in range(0, len(ended), window)
                     for sequence in best_fit(ended[begin:begin + window], length)]
    batches = []
    for begin in range(0, len(sequences), batch_size):
        own = sequences[begin:begin + batch_size]
        if drop_last and len(own) < batch_size:
            break
        batch = {"tokens": np.full((len(own), length), pad_token), "segment_ids": np.zeros((len(own), length)),
                 "positions": np.zeros((len(own), length)), "pieces": []}
        for row, sequence in enumerate(own):
            at = 0
            for number, (sample, offset, tokens) in enumerate(sequence):
                place = slice(at, at + len(tokens))
                batch["tokens"][row, place] = tokens
                batch["segment_ids"][row, place] = number + 1
                batch["positions"][row, place] = range(len(tokens))
                batch["pieces"].append((row, at, len(tokens), sample, offset))
                at += len(tokens)
        batch["pieces"] = np.array(batch["pieces"]).reshape(-1, 5)
        batches.append(batch)
    return batches


def write(folder, lengths, draw, encoding):
    documents = []
    with MDSWriter(out=str(folder), columns={"tokens": encoding}, size_limit=1 << 12) as out:
        for length in lengths:
            tokens = [draw.randrange(60000) for _ in range(length)]
            array = np.array(tokens, np.uint16)
            out.write({"tokens": array.tobytes() if encoding == "bytes" else array})
            documents.append(tokens)
    return documents


def assert_equal(batch, wanted):
    assert batch["tokens"].dtype == np.int64
    assert batch["segment_ids"].dtype == batch["positions"].dtype == np.int32
    for name, value in wanted.items():
        np.testing.assert_array_equal(batch[name], value, err_msg=name)


def copied(batch):
    return {name: value.copy() for name, value in batch.items()}


@pytest.mark.parametrize("seed", range(SETUPS))
def test_sequences_are_those_of_the_reference_and_resume_at_every_point(seed, tmp_path):
    draw = random.Random(seed)
    encoding = draw.choice(["bytes", "ndarray:uint16"])
    # Arrays of MDS are never empty, bytes may be.
    lengths = [draw.choice([0 if encoding == "bytes" else 1, draw.randint(1, 8), draw.randint(1, 90)])
               for _ in range(draw.randint(1, 25))]
    documents = write(tmp_path / "data", lengths, draw, encoding)
    order = {"shuffle": draw.random() < 0.7, "seed": draw.randrange(100), "threads": draw.choice([0, 2])}
    packing = {"packing": draw.choice(["concat", "best_fit"]), "length": draw.choice([5, 7, 16, 64]),
               "batch_size": draw.choice([1, 2, 5]), "window": draw.choice([1, 3, 8, 1024]),
               "pad_token": draw.choice([0, -100]), "end_token": draw.choice([None, 60001]),
               "drop_last": draw.random() < 0.3}
    options = {"column": "tokens", "bytes_as": "uint16" if encoding == "bytes" else None, **packing, **order}
    with PackedDataset(tmp_path / "data", **options) as data:
        for epoch in range(2):
            with Dataset(tmp_path / "data", ids="id", batch_size=packing["window"], **order) as plain:
                plain.start_epoch(epoch)
                samples = [(int(i), documents[i]) for batch in plain for i in batch["id"]]
            wanted = expected_batches(samples, **packing)
            states, batches = [data.state_dict()], []
            assert data.epoch == epoch
            for batch in data:
                batches.append(copied(batch))
                states.append(data.state_dict())
            assert len(batches) == len(wanted)
            for batch, own in zip(batches, wanted):
                assert_equal(batch, own)
            # At every point of small sets, at some of larger ones: each reads all of the rest.
            points = list(enumerate(states))
            for at, state in points if len(points) <= 12 else draw.sample(points, 12):
                with PackedDataset(tmp_path / "data", **{**options, "threads": 0}) as resumed:
                    resumed.load_state_dict(json.loads(json.dumps(state)))
                    rest = list(resumed)
                    assert len(rest) == len(wanted) - at
                    for batch, own in zip(rest, wanted[at:]):
                        assert_equal(batch, own)


def test_ranks_read_every_document_once(tmp_path):
    draw = random.Random(1)
    documents = write(tmp_path / "data", [draw.randint(1, 30) for _ in range(64)], draw, "bytes")
    seen = []
    for rank in range(2):
        with PackedDataset(tmp_path / "data", column="tokens", bytes_as="uint16", length=32, window=4, batch_size=3,
                           shuffle=True, rank=rank, world_size=2) as data:
            for batch in data:
                for row, begin, count, sample, offset in batch["pieces"]:
                    assert list(batch["tokens"][row, begin:begin + count]) == documents[sample][offset:offset + count]
                    seen.append((sample, offset, count))
    assert sorted(sample for sample, offset, count in seen if offset == 0) == list(range(64))
    assert sum(count for _, _, count in seen) == sum(map(len, documents))


def test_best_fit_leaves_little_padding(tmp_path):
    draw = random.Random(2)
    documents = write(tmp_path / "data", [min(512, int(draw.lognormvariate(4, 1)) + 1) for _ in range(2000)], draw, "bytes")
    options = {"column": "tokens", "bytes_as": "uint16", "length": 512, "batch_size": 8, "packing": "best_fit"}
    with PackedDataset(tmp_path / "data", **options) as data:
        batches = [copied(batch) for batch in data]
    sequences = sum(len(batch["tokens"]) for batch in batches)
    total = sum(map(len, documents))
    assert sequences * 512 < 1.02 * total + 2 * 512
    assert all((batch["pieces"][:, 4] == 0).all() for batch in batches), "no document is cut"


def test_a_list_column_of_a_table(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [[1, 2, 3], [], [4], [5, 6, 7, 8, 9]]
    pq.write_table(pa.table({"ids": pa.array(rows, pa.list_(pa.int32()))}), tmp_path / "t.parquet")
    with PackedDataset(tmp_path / "t.parquet", column="ids", length=4, end_token=0, pad_token=-1) as data:
        (first, second, third, *rest) = [copied(batch) for batch in data]
    assert first["tokens"].tolist() == [[1, 2, 3, 0]]
    assert second["tokens"].tolist() == [[0, 4, 0, 5]]
    assert second["segment_ids"].tolist() == [[1, 2, 2, 3]]
    assert third["tokens"].tolist() == [[6, 7, 8, 9]]
    assert third["positions"].tolist() == [[0, 1, 2, 3]]
    assert [batch["tokens"].tolist() for batch in rest] == [[[0, -1, -1, -1]]]


def test_what_is_wrong_is_said(tmp_path):
    draw = random.Random(3)
    write(tmp_path / "data", [3, 4], draw, "bytes")
    for options, words in [({"length": 0}, "length"), ({"length": 8}, "bytes_as"), ({"length": 8, "packing": "x"}, "best_fit"),
                           ({"length": 8, "bytes_as": "float32"}, "no integers"),
                           ({"length": 8, "bytes_as": "uint16", "window": 0}, "window")]:
        with pytest.raises(ValueError, match=words):
            PackedDataset(tmp_path / "data", column="tokens", **options)
    with PackedDataset(tmp_path / "data", column="tokens", length=4, bytes_as="uint16") as data:
        next(iter(data))
        state = data.state_dict()
        with pytest.raises(TypeError):
            len(data)
    with PackedDataset(tmp_path / "data", column="tokens", length=5, bytes_as="uint16") as other:
        with pytest.raises(ValueError, match="length=4"):
            other.load_state_dict(state)
        with pytest.raises(ValueError, match="offset"):
            other.load_state_dict({**state, "offset": -1})
    write(tmp_path / "odd", [3], draw, "bytes")
    with pytest.raises(OSError, match="sample 0"), PackedDataset(
            tmp_path / "odd", column="tokens", length=4, bytes_as="uint32") as data:
        list(data)

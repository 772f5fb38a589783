"""Images and padding of `tuneloader.Dataset`, beside Pillow's own pixels and torchvision's arithmetic."""

import io
import random

import numpy as np
import pytest
from PIL import Image as Pillow

from tuneloader import Dataset, Image, MDSWriter, Pad


def scene(rng, width, height, mode="RGB"):
    noise = rng.integers(0, 255, (height // 4 + 1, width // 4 + 1, 3), dtype=np.uint8)
    return Pillow.fromarray(noise).resize((width, height), Pillow.Resampling.BICUBIC).convert(mode)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """120 images of many sizes, as JPEG, PNG and raw pixels of the same image."""
    folder = str(tmp_path_factory.mktemp("photos"))
    rng = np.random.default_rng(0)
    stored = []
    with MDSWriter(out=folder, columns={"jpg": "bytes", "png": "png", "raw": "pil", "id": "int"}) as out:
        for i in range(120):
            image = scene(rng, int(rng.integers(20, 300)), int(rng.integers(20, 300)), "L" if i % 5 == 0 else "RGB")
            file = io.BytesIO()
            image.save(file, "JPEG", quality=int(rng.integers(40, 95)), progressive=i % 3 == 0, subsampling=i % 3)
            out.write({"jpg": file.getvalue(), "png": image, "raw": image, "id": i})
            stored.append((file.getvalue(), image))
    return folder, stored


def pixels(image):
    return np.asarray(image.convert("RGB"))


def resized_shorter(image, shorter):
    if image.width <= image.height:
        size = (shorter, int(shorter * image.height / image.width))
    else:
        size = (int(shorter * image.width / image.height), shorter)
    return image.resize(size, Pillow.Resampling.BILINEAR)


def cropped_middle(image, height, width):
    top, left = round((image.height - height) / 2), round((image.width - width) / 2)
    return image.crop((left, top, left + width, top + height))


def test_pixels_are_pillows_for_random_sizes(photos):
    folder, stored = photos
    draw = random.Random(1)
    for _ in range(12):
        size = (draw.randint(1, 200), draw.randint(1, 200))
        shorter = draw.randint(max(size), 260)
        stretch = Image(size, scaled_decode=False)
        middle = Image(size, fit="center_crop", shorter_side=shorter, scaled_decode=False)
        whole = next(iter(Dataset(folder, batch_size=120, transforms={"jpg": stretch, "png": stretch, "raw": stretch})))
        cut = next(iter(Dataset(folder, batch_size=120, columns=["jpg"], transforms={"jpg": middle})))
        for i, (file, image) in enumerate(stored):
            decoded = Pillow.open(io.BytesIO(file)).convert("RGB")
            wanted = (size[1], size[0])
            assert np.array_equal(whole["jpg"][i], pixels(decoded.resize(wanted, Pillow.Resampling.BILINEAR))), (size, i)
            assert np.array_equal(whole["png"][i], pixels(image.convert("RGB").resize(wanted, Pillow.Resampling.BILINEAR)))
            assert np.array_equal(whole["raw"][i], whole["png"][i])
            assert np.array_equal(cut["jpg"][i], pixels(cropped_middle(resized_shorter(decoded, shorter), *size))), (size, shorter, i)


def test_scaled_decoding_is_nearly_the_same(photos):
    folder, _ = photos
    exact = next(iter(Dataset(folder, batch_size=120, transforms={"jpg": Image(24, scaled_decode=False)})))["jpg"]
    quick = next(iter(Dataset(folder, batch_size=120, transforms={"jpg": Image(24)})))["jpg"]
    assert not np.array_equal(exact, quick)
    assert np.abs(exact.astype(int) - quick.astype(int)).mean() < 8  # of noise, which holds all that scaling takes away


def test_random_parts_are_the_same_however_they_are_read(photos, tmp_path):
    folder, _ = photos
    image = Image(32, fit="random_resized_crop", flip=0.5, scaled_decode=False)

    def epochs(count=2, **options):
        dataset = Dataset(folder, columns=["jpg", "id"], transforms={"jpg": image}, **options)
        return [{int(i): x.tobytes() for batch in dataset for i, x in zip(batch["id"], batch["jpg"])} for _ in range(count)]

    first = epochs(batch_size=7, threads=0)
    assert first[0] != first[1] and len(set(first[0].values())) == 120
    assert epochs(batch_size=50, threads=4, shuffle=True) == first
    halves = [epochs(batch_size=10, rank=rank, world_size=2, shuffle=True) for rank in range(2)]
    assert [halves[0][e] | halves[1][e] for e in range(2)] == first
    shared = dict(decoded_cache=tmp_path / "shared", decoded_cache_limit=50_000_000)
    assert epochs(batch_size=16, **shared) == first
    resumed = Dataset(folder, batch_size=10, columns=["jpg", "id"], transforms={"jpg": image}, shuffle=True)
    before = next(iter(resumed))
    state = resumed.state_dict()
    resumed.load_state_dict(state)
    assert {int(i): x.tobytes() for i, x in zip(before["id"], before["jpg"])}.items() <= first[0].items()
    assert all(first[0][int(i)] == x.tobytes() for batch in resumed for i, x in zip(batch["id"], batch["jpg"]))


def test_floats_and_layouts(photos):
    folder, _ = photos
    plain = next(iter(Dataset(folder, batch_size=9, columns=["png"], transforms={"png": Image((8, 12))})))["png"]
    mean, std = (0.5, 0.25, 0.1), (0.2, 0.3, 0.4)
    for dtype in ("float32", "float16"):
        image = Image((8, 12), dtype=dtype, mean=mean, std=std, layout="chw")
        dataset = Dataset(folder, batch_size=9, columns=["png"], transforms={"png": image})
        got = next(iter(dataset))["png"]
        assert got.dtype == dtype and got.shape == (9, 3, 8, 12) and dataset.columns[0].shape == (3, 8, 12)
        expected = ((plain / 255 - mean) / std).transpose(0, 3, 1, 2)
        assert np.allclose(got, expected, atol=2e-3 if dtype == "float16" else 1e-6)
    grey = next(iter(Dataset(folder, batch_size=9, columns=["raw"], transforms={"raw": Image(20, channels=1)})))["raw"]
    assert grey.shape == (9, 20, 20, 1)


def test_padding(tmp_path):
    folder = str(tmp_path / "text")
    with MDSWriter(out=folder, columns={"tokens": "ndarray:int32", "packed": "bytes"}) as out:
        for i in range(20):
            out.write({"tokens": np.arange(i + 1, dtype=np.int32), "packed": np.arange(i, dtype=np.uint16).tobytes()})
    transforms = {"tokens": Pad(6, value=-1), "packed": Pad(4, side="start", bytes_as="uint16")}
    batch = next(iter(Dataset(folder, batch_size=20, transforms=transforms)))
    for i in range(20):
        kept = min(i + 1, 6)
        assert batch["tokens"][i].tolist() == [*range(kept), *[-1] * (6 - kept)]
        assert batch["tokens_mask"][i].tolist() == [1] * kept + [0] * (6 - kept)
        kept = min(i, 4)
        assert batch["packed"][i].tolist() == [0] * (4 - kept) + list(range(i - kept, i))
    with pytest.raises(ValueError, match="sample 6, column 'tokens': it has 7 elements, more than the padded length 6"):
        next(iter(Dataset(folder, batch_size=20, transforms={"tokens": Pad(6, cut=False)})))


def test_bad_input_is_named(photos, tmp_path):
    folder, stored = photos
    for wrong, words in [
        ({"photo": Image(8)}, "there is no column 'photo'"),
        ({"id": Image(8)}, "holds no images"),
        ({"jpg": Image(0)}, "height and width"),
        ({"jpg": Image(8, fit="centre")}, "no fit of images 'centre'"),
        ({"jpg": Image(8, mean=(0.5, 0.5, 0.5))}, "float32"),
        ({"jpg": 8}, "an Image or a Pad"),
    ]:
        with pytest.raises(ValueError, match=words):
            Dataset(folder, transforms=wrong)
    with pytest.raises(ValueError, match="too small for a crop"):
        list(Dataset(folder, transforms={"jpg": Image(250, fit="random_crop")}))
    broken = str(tmp_path / "broken")
    with MDSWriter(out=broken, columns={"jpg": "bytes"}) as out:
        for file in (stored[0][0], stored[1][0][:-200], b"nothing"):
            out.write({"jpg": file})
    dataset = Dataset(broken, transforms={"jpg": Image(8)}, threads=0)
    rows = iter(dataset)
    next(rows)
    with pytest.raises(Exception, match="sample 1, column 'jpg': the JPEG file is damaged near byte"):
        next(rows)


def test_the_figures_say_what_holds_the_reader_up(photos):
    folder, _ = photos
    dataset = Dataset(folder, batch_size=10, columns=["jpg"], transforms={"jpg": Image(200)})
    for _ in dataset:
        pass
    stats = dataset.stage_stats()
    assert stats["samples"] == 120 and stats["transform_s"] > stats["decompress_s"] == 0
    assert stats["bottleneck"].endswith(".")

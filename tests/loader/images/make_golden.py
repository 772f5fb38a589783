"""Writes small images and what Pillow makes of them: expected.json, read by image_test.cc.

    python tests/loader/images/make_golden.py      # Pillow 13.0.0
"""

import json
import math
from pathlib import Path

import numpy
import xxhash
from PIL import Image

FOLDER = Path(__file__).parent


def scene(width, height):
    """Smooth colours with a few hard edges: nothing that JPEG could not hold."""
    y, x = numpy.mgrid[0:height, 0:width]
    red = 127 + 120 * numpy.sin(x / 7) * numpy.cos(y / 11)
    green = 255 * x / width
    blue = numpy.where((x // 16 + y // 16) % 2 == 0, 40, 210)
    return Image.fromarray(numpy.stack([red, green, blue], axis=-1).astype(numpy.uint8))


def stretched(image, width, height):
    return image.resize((width, height), Image.Resampling.BILINEAR)


def middle(image, width, height, shorter):
    """torchvision: Resize(shorter), CenterCrop((height, width))."""
    if image.width <= image.height:
        image = stretched(image, shorter, int(shorter * image.height / image.width))
    else:
        image = stretched(image, int(shorter * image.width / image.height), shorter)
    top = round((image.height - height) / 2)
    left = round((image.width - width) / 2)
    return image.crop((left, top, left + width, top + height))


def main():
    large = scene(203, 151)
    files = {
        "rgb.png": large,
        "grey.png": large.convert("L"),
        "palette.png": large.quantize(64),
        "alpha.png": Image.merge("RGBA", (*large.split(), large.getchannel("G"))),
        "rgb.jpg": large,
        "grey.jpg": large.convert("L"),
        "progressive.jpg": large,
        "cmyk.jpg": large.convert("CMYK"),
    }
    cases = []
    for name, image in files.items():
        image.save(FOLDER / name, progressive=name.startswith("progressive"), quality=90)
        stored = Image.open(FOLDER / name)
        colours = Image.merge("RGB", stored.split()[:3]) if stored.mode == "RGBA" else stored.convert("RGB")
        for width, height, shorter in [(203, 151, 0), (64, 48, 0), (224, 224, 0), (1, 1, 0), (96, 96, 128), (31, 77, 99)]:
            result = middle(colours, width, height, shorter) if shorter else stretched(colours, width, height)
            pixels = numpy.asarray(result)
            cases.append({"file": name, "width": width, "height": height, "shorter_side": shorter,
                          "hash": xxhash.xxh3_64_hexdigest(pixels.tobytes()), "mean": round(float(pixels.mean()), 6)})
        assert math.isclose(colours.width / colours.height, 203 / 151)
    (FOLDER / "expected.json").write_text(json.dumps(cases, indent=0) + "\n")


main()

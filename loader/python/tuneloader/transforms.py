"""What becomes of a column on its way into a batch: `Image` decodes images, `Pad` makes rows of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Image", "Pad"]


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    height, width = size
    return int(height), int(width)


@dataclass(frozen=True)
class Image:
    """Stored images as pixels of one size: an array [samples, height, width, channels], or [samples, channels, height, width].

    Stored may be JPEG and PNG files, mosaicml-streaming's pil, and uint8 arrays [height, width, channels]. Pixels are those of
    Pillow's BILINEAR resize; random parts depend on seed, epoch, sample and column alone.
    """

    size: int | tuple[int, int]
    """Of the result: one side, or (height, width)."""
    fit: Literal["stretch", "center_crop", "random_crop", "random_resized_crop"] = "stretch"
    """The whole image; its middle, as torchvision's Resize and CenterCrop; a random place of it; a random part, as
    RandomResizedCrop."""
    shorter_side: int = 0
    """center_crop, random_crop: the shorter side is resized to this first. 0: to `size`; for random_crop: not at all."""
    border: int = 0
    """random_crop: black pixels all around, as RandomCrop's padding."""
    scale: tuple[float, float] = (0.08, 1.0)
    """random_resized_crop: least and largest part of the area."""
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    """random_resized_crop: least and largest width / height."""
    flip: float = 0.0
    """Probability of a mirror image, left for right."""
    channels: Literal[1, 3] = 3
    """3: red, green, blue; 1: grey."""
    dtype: Literal["uint8", "float32", "float16"] = "uint8"
    """As a float, x / 255, less `mean`, divided by `std`."""
    mean: Sequence[float] = ()
    std: Sequence[float] = ()
    layout: Literal["hwc", "chw"] = "hwc"
    scaled_decode: bool = True
    """Decode a JPEG at 1/2, 1/4 or 1/8 where that is still larger than the result: faster, very slightly other pixels."""

    def options(self) -> dict[str, Any]:
        """As the C++ loader names them."""
        height, width = _pair(self.size)
        given = asdict(self)
        given.pop("size")
        (area_min, area_max), (ratio_min, ratio_max) = given.pop("scale"), given.pop("ratio")
        parts = {"area_min": area_min, "area_max": area_max, "ratio_min": ratio_min, "ratio_max": ratio_max}
        given["mean"], given["std"] = [float(x) for x in self.mean], [float(x) for x in self.std]
        return {"height": height, "width": width, **parts, **given}


@dataclass(frozen=True)
class Pad:
    """Values of varying length as rows of one: an array [samples, length], and a uint8 array "NAME_mask" of the same shape that
    is 1 where something was stored. For lists of a table, arrays of varying shape, bytes and texts (as uint8)."""

    length: int
    value: float = 0
    """What fills up."""
    side: Literal["end", "start"] = "end"
    """Where it fills up, and cuts off."""
    cut: bool = True
    """Cut off what is longer; False: that is an error which names the sample."""
    bytes_as: str | None = None
    """Bytes are elements of this type, e.g. "uint16" for tokens."""

    def options(self) -> dict[str, Any]:
        """As the C++ loader names them."""
        return asdict(self)

"""Codecs of Petastorm: how values that Parquet has no type for are stored in its columns."""

from __future__ import annotations

import abc
import functools
import zipfile
from io import BytesIO
from typing import Any

import numpy as np

from .unischema import UnischemaField

__all__ = ["CompressedImageCodec", "CompressedNdarrayCodec", "DataframeColumnCodec", "NdarrayCodec", "ScalarCodec"]


class DataframeColumnCodec(abc.ABC):
    """Turns a value into what is stored, and back."""

    @abc.abstractmethod
    def encode(self, unischema_field: UnischemaField, value: Any) -> Any:
        """What is stored. ValueError when the value does not fit the field."""

    @abc.abstractmethod
    def decode(self, unischema_field: UnischemaField, value: Any) -> Any:
        """The value that was encoded."""

    def spark_dtype(self) -> Any:
        """The type of pyspark.sql.types that is stored."""
        from pyspark.sql.types import BinaryType

        return BinaryType()

    def __str__(self) -> str:
        return f"{type(self).__name__}()"


class ScalarCodec(DataframeColumnCodec):
    """A number, text or truth value in a type of Spark.

    Args:
        spark_type: An object or class of pyspark.sql.types, or its name ("IntegerType").
    """

    def __init__(self, spark_type: Any) -> None:
        self._spark_type = spark_type

    @property
    def type_text(self) -> str:
        """As in "IntegerType()" or "DecimalType(10,2)"."""
        if isinstance(self._spark_type, type):
            return f"{self._spark_type.__name__}()"
        text = self._spark_type if isinstance(self._spark_type, str) else repr(self._spark_type)
        return text if "(" in text else f"{text}()"

    @property
    def _type_name(self) -> str:
        return self.type_text.partition("(")[0]

    def encode(self, unischema_field: UnischemaField, value: Any) -> Any:
        is_scalar_array = isinstance(value, np.ndarray) and value.shape == ()
        if hasattr(value, "__len__") and not isinstance(value, str) and not is_scalar_array:
            raise TypeError(f"the field '{unischema_field.name}' takes a scalar, not {type(value).__name__}")
        if unischema_field.shape:
            raise ValueError(f"the field '{unischema_field.name}' has a ScalarCodec; its shape must be (), not {unischema_field.shape}")
        name = self._type_name
        if name in ("ByteType", "ShortType", "IntegerType", "LongType"):
            return int(value)
        if name in ("FloatType", "DoubleType"):
            return float(value)
        if name == "BooleanType":
            return bool(value)
        if name == "StringType":
            if not isinstance(value, str):
                raise ValueError(f"the field '{unischema_field.name}' takes text, not {type(value).__name__}")
            return str(value)
        return value

    def decode(self, unischema_field: UnischemaField, value: Any) -> Any:
        return unischema_field.numpy_dtype(value)

    def spark_dtype(self) -> Any:
        if not isinstance(self._spark_type, str):
            return self._spark_type() if isinstance(self._spark_type, type) else self._spark_type
        from pyspark.sql import types

        name, _, arguments = self.type_text.partition("(")
        return getattr(types, name)(*(int(number) for number in arguments.rstrip(")").split(",") if number.strip()))

    def __str__(self) -> str:
        return f"ScalarCodec({self.type_text})"


class NdarrayCodec(DataframeColumnCodec):
    """An array as a .npy file."""

    def encode(self, unischema_field: UnischemaField, value: Any) -> bytearray:
        _check_array(unischema_field, value)
        file = BytesIO()
        np.save(file, value, allow_pickle=False)
        return bytearray(file.getvalue())

    def decode(self, unischema_field: UnischemaField, value: Any) -> Any:
        return _load_npy(value)


class CompressedNdarrayCodec(DataframeColumnCodec):
    """An array as a .npz file."""

    def encode(self, unischema_field: UnischemaField, value: Any) -> bytearray:
        _check_array(unischema_field, value)
        file = BytesIO()
        np.savez_compressed(file, arr=value)
        return bytearray(file.getvalue())

    def decode(self, unischema_field: UnischemaField, value: Any) -> Any:
        with zipfile.ZipFile(BytesIO(value)) as archive:
            return _load_npy(archive.read("arr.npy"))


class CompressedImageCodec(DataframeColumnCodec):
    """An image, grey [height, width] or RGB [height, width, 3], as a PNG or JPEG file. OpenCV is used where it is
    installed, else Pillow, which knows no colours of 16 bits.

    Args:
        image_codec: "png" or "jpeg".
        quality: Of JPEG, 0 to 100.
    """

    def __init__(self, image_codec: str = "png", quality: int = 80) -> None:
        self._image_codec = "." + image_codec
        self._quality = quality

    @property
    def image_codec(self) -> str:
        """"png" or "jpeg"."""
        return self._image_codec[1:]

    def encode(self, unischema_field: UnischemaField, value: Any) -> bytearray:
        _check_array(unischema_field, value)
        if value.ndim != 2 and not (value.ndim == 3 and value.shape[2] == 3):
            raise ValueError(f"an image has the shape (H, W) or (H, W, 3); '{unischema_field.name}' has {value.shape}")
        cv2 = _opencv()
        if cv2 is not None:
            image = value if value.ndim == 2 else value[:, :, ::-1]
            done, contents = cv2.imencode(self._image_codec, image, [int(cv2.IMWRITE_JPEG_QUALITY), self._quality])
            if not done:
                raise ValueError(f"OpenCV cannot write '{unischema_field.name}' as {self.image_codec}")
            return bytearray(contents)
        file = BytesIO()
        options = {"quality": self._quality} if self.image_codec in ("jpeg", "jpg") else {}
        _pillow().fromarray(value).save(file, format={"jpg": "JPEG"}.get(self.image_codec, self.image_codec), **options)
        return bytearray(file.getvalue())

    def decode(self, unischema_field: UnischemaField, value: Any) -> Any:
        cv2 = _opencv()
        if cv2 is not None:
            image = cv2.imdecode(np.frombuffer(value, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
            if image is None:
                raise ValueError(f"'{unischema_field.name}' holds {len(value)} bytes that are no image")
            if image.ndim == 3 and image.shape[2] == 3:
                image = np.ascontiguousarray(image[:, :, ::-1])
        else:
            image = _decode_with_pillow(unischema_field, value)
        if image.ndim != 2 and not (image.ndim == 3 and image.shape[2] == 3):
            raise ValueError(f"an image has the shape (H, W) or (H, W, 3); '{unischema_field.name}' has {image.shape}")
        return image

    def __str__(self) -> str:
        return f"CompressedImageCodec('{self.image_codec}', {self._quality})"


def _decode_with_pillow(field: UnischemaField, value: Any) -> Any:
    # IHDR of a PNG: bits of a channel at 24, kind of colour at 25. Pillow would cut 16 bits of colours to 8.
    if bytes(value[1:4]) == b"PNG" and value[24] == 16 and value[25] & 2:
        raise ImportError(f"'{field.name}' holds colours of 16 bits, which OpenCV reads: pip install opencv-python-headless")
    with _pillow().open(BytesIO(value)) as image:
        decoded = np.array(image)
    is_deep_grey = decoded.dtype == np.int32 and np.dtype(field.numpy_dtype) == np.uint16
    return decoded.astype(np.uint16) if is_deep_grey else decoded


@functools.cache
def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        return None
    return cv2


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("images need OpenCV or Pillow: pip install opencv-python-headless") from error
    return Image


@functools.lru_cache(maxsize=256)
def _npy_header(header: bytes) -> tuple[Any, bool, tuple[int, ...]]:
    """(dtype, whether Fortran order, shape); the headers of a column are few."""
    file = BytesIO(header)
    npy: Any = np.lib.format
    read = npy.read_array_header_1_0 if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0
    shape, is_fortran, dtype = read(file)
    return dtype, is_fortran, shape


def _load_npy(data: Any) -> Any:
    """The array of a .npy file, writable. ValueError for one that holds objects (pickles) or is damaged."""
    view = memoryview(data)
    if len(view) < 12 or bytes(view[:6]) != b"\x93NUMPY":
        raise ValueError(f"{len(view)} bytes are no .npy file")
    end = 10 + int.from_bytes(view[8:10], "little") if view[6] == 1 else 12 + int.from_bytes(view[8:12], "little")
    dtype, is_fortran, shape = _npy_header(bytes(view[:end]))
    if dtype.hasobject:
        raise ValueError("a .npy file that holds pickled objects is not opened")
    array = np.frombuffer(view[end:], dtype=dtype, count=int(np.prod(shape, dtype=np.int64)))
    return array.reshape(shape, order="F" if is_fortran else "C").copy(order="K")


def _check_array(field: UnischemaField, value: Any) -> None:
    if not isinstance(value, np.ndarray):
        raise ValueError(f"the field '{field.name}' takes an array of {field.numpy_dtype}, not {type(value).__name__}")
    if np.dtype(field.numpy_dtype).type != value.dtype.type:
        raise ValueError(f"the field '{field.name}' takes an array of {field.numpy_dtype}, not of {value.dtype}")
    fits = len(value.shape) == len(field.shape) and all(
        not wanted or not size or wanted == size for size, wanted in zip(value.shape, field.shape)
    )
    if not fits:
        raise ValueError(f"the field '{field.name}' takes an array of the shape {field.shape}, not {value.shape}")

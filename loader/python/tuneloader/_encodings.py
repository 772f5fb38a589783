"""Encodings of columns that need Python: images, JSON, decimals, pickles. The others are encoded and decoded in C++."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable
from decimal import Decimal
from io import BytesIO
from typing import Any

Decode = Callable[[bytes], Any]
Encode = Callable[[Any], bytes]


def decoder_of(encoding: str) -> Decode | None:
    """How a payload of this encoding becomes a value; None when the reader has done it already."""
    return _DECODERS.get(encoding)


def encoder_of(encoding: str) -> Encode | None:
    """How a value becomes a payload of this encoding; None when the writer does it."""
    return _ENCODERS.get(encoding)


def _image() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("columns of images need Pillow: pip install pillow") from error
    return Image


def _decode_pil(data: bytes) -> Any:
    width, height, mode_size = struct.unpack_from("<III", data)
    mode = data[12 : 12 + mode_size].decode()
    return _image().frombytes(mode, (width, height), data[12 + mode_size :])


def _decode_file(data: bytes) -> Any:
    return _image().open(BytesIO(data))


def _split(data: bytes, sizes_at: int, count: int) -> list[bytes]:
    sizes = struct.unpack_from(f"<{count}I", data, sizes_at)
    parts = []
    at = sizes_at + 4 * count
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return parts


def _list_decoder(decode: Decode) -> Decode:
    def decode_list(data: bytes) -> list[Any]:
        (count,) = struct.unpack_from("<I", data, 4)
        return [decode(part) for part in _split(data, 8, count)]

    return decode_list


def _decode_jpeg_array(data: bytes) -> list[Any]:
    (count,) = struct.unpack_from("<I", data)
    return [_decode_file(part) for part in _split(data, 4, count)]


def _encode_pil(image: Any) -> bytes:
    mode: bytes = image.mode.encode()
    width, height = image.size
    return struct.pack("<III", width, height, len(mode)) + mode + bytes(image.tobytes())


def _encode_jpeg(image: Any) -> bytes:
    # An image that was opened from a JPEG file is stored as that file, without loss.
    path = getattr(image, "filename", "")
    if image.format == "JPEG" and path and os.path.isfile(path):
        with open(path, "rb") as file:
            return bytes(file.read())
    out = BytesIO()
    image.save(out, format="JPEG")
    return out.getvalue()


def _encode_png(image: Any) -> bytes:
    out = BytesIO()
    image.save(out, format="PNG")
    return out.getvalue()


def _list_encoder(encode: Encode) -> Encode:
    def encode_list(values: list[Any]) -> bytes:
        parts = [encode(value) for value in values]
        return struct.pack(f"<{len(parts) + 2}I", 0, len(parts), *map(len, parts)) + b"".join(parts)

    return encode_list


def _encode_jpeg_array(values: list[bytes]) -> bytes:
    return struct.pack(f"<{len(values) + 1}I", len(values), *map(len, values)) + b"".join(values)


def _encode_json(value: Any) -> bytes:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return json.dumps(value).encode()


def _encode_decimal(value: Decimal) -> bytes:
    return str(value).encode()


_DECODERS: dict[str, Decode] = {
    "pil": _decode_pil,
    "jpeg": _decode_file,
    "png": _decode_file,
    "jpegarray": _decode_jpeg_array,
    "jpeg_array": _decode_jpeg_array,
    "list[pil]": _list_decoder(_decode_pil),
    "list[jpeg]": _list_decoder(_decode_file),
    "list[png]": _list_decoder(_decode_file),
    "json": json.loads,
    "str_decimal": lambda data: Decimal(data.decode()),
    "pkl": pickle.loads,
}

_ENCODERS: dict[str, Encode] = {
    "pil": _encode_pil,
    "jpeg": _encode_jpeg,
    "png": _encode_png,
    "jpegarray": _encode_jpeg_array,
    "jpeg_array": _encode_jpeg_array,
    "list[pil]": _list_encoder(_encode_pil),
    "list[jpeg]": _list_encoder(_encode_jpeg),
    "list[png]": _list_encoder(_encode_png),
    "json": _encode_json,
    "str_decimal": _encode_decimal,
    "pkl": pickle.dumps,
}

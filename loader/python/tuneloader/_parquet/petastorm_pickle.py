"""A Unischema as the pickle that Petastorm reads, written without Petastorm's classes being there."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import numpy as np

from ..unischema import Unischema, UnischemaField

# Opcodes of protocol 2.
_MARK, _TUPLE, _EMPTY_TUPLE, _EMPTY_DICT, _SETITEMS = b"(", b"t", b")", b"}", b"u"
_REDUCE, _NEWOBJ, _BUILD, _NONE = b"R", b"\x81", b"b", b"N"


def pickled_unischema(schema: Unischema) -> bytes:
    """For the key dataset-toolkit.unischema.v1."""
    fields = list(schema.fields.values())
    ordered = _global("collections", "OrderedDict") + _EMPTY_TUPLE + _REDUCE
    ordered += _MARK + b"".join(_text(field.name) + _field(field) for field in fields) + _SETITEMS
    attributes = b"".join(_text(field.name) + _field(field) for field in fields)
    state = _EMPTY_DICT + _MARK + _text("_name") + _text(schema._name) + _text("_fields") + ordered + attributes + _SETITEMS
    made = _global("petastorm.unischema", "Unischema") + _EMPTY_TUPLE + _NEWOBJ
    return b"\x80\x02" + made + state + _BUILD + b"."


def _field(field: UnischemaField) -> bytes:
    values = [_text(field.name), _type(field), _shape(field.shape), _codec(field.codec), _bool(bool(field.nullable))]
    return _global("petastorm.unischema", "UnischemaField") + _tuple(values) + _NEWOBJ


def _type(field: UnischemaField) -> bytes:
    if field.numpy_dtype is Decimal:
        return _global("decimal", "Decimal")
    return _global("numpy", np.dtype(field.numpy_dtype).type.__name__.replace("bool", "bool_").replace("bool__", "bool_"))


def _shape(shape: tuple[int | None, ...]) -> bytes:
    return _tuple([_NONE if size is None else _int(size) for size in shape])


def _codec(codec: Any) -> bytes:
    if codec is None:
        return _NONE
    state: list[tuple[str, bytes]] = []
    if type(codec).__name__ == "ScalarCodec":
        name, _, arguments = codec.type_text.partition("(")
        numbers = [_int(int(number)) for number in arguments.rstrip(")").split(",") if number.strip().isdigit()]
        state.append(("_spark_type", _global("pyspark.sql.types", name) + _tuple(numbers) + _REDUCE))
    if type(codec).__name__ == "CompressedImageCodec":
        state += [("_image_codec", _text("." + codec.image_codec)), ("_quality", _int(codec._quality))]
    made = _global("petastorm.codecs", type(codec).__name__) + _EMPTY_TUPLE + _NEWOBJ
    if not state:
        return made
    return made + _EMPTY_DICT + _MARK + b"".join(_text(key) + value for key, value in state) + _SETITEMS + _BUILD


def _global(module: str, name: str) -> bytes:
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def _text(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _int(number: int) -> bytes:
    return b"J" + struct.pack("<i", number)


def _bool(value: bool) -> bytes:
    return b"\x88" if value else b"\x89"


def _tuple(values: list[bytes]) -> bytes:
    return _MARK + b"".join(values) + _TUPLE if values else _EMPTY_TUPLE

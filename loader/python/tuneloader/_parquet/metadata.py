"""Petastorm's own metadata. It is stored as pickles, which can run any code when they are opened by Python's pickle: here
every class and function that they name is replaced by a stand-in made for this one reading, and only what the stand-ins
recorded is looked at."""

from __future__ import annotations

import builtins
import collections
import io
import json
import pickle
import posixpath
from decimal import Decimal
from typing import Any

import numpy as np

from .. import codecs
from ..errors import PetastormMetadataError
from ..unischema import Unischema, UnischemaField
from .arrow import arrow

UNISCHEMA_KEY = b"dataset-toolkit.unischema.v1"
ROW_GROUPS_KEY = b"dataset-toolkit.num_row_groups_per_file.v1"
ROW_GROUP_INDEX_KEY = b"dataset-toolkit.rowgroups_index.v1"
OWN_UNISCHEMA_KEY = b"tuneloader.unischema.v1"

# Of C, so that no pickle can change them; all that they do is hold what they are given.
_PLAIN = {
    "builtins": {"set", "frozenset", "list", "dict", "tuple", "object"},
    "collections": {"OrderedDict"},
}
_PYTHON_TYPES = {"int": np.int64, "float": np.float64, "bool": np.bool_, "str": np.str_, "unicode": np.str_, "bytes": np.bytes_}
_CODECS = ("ScalarCodec", "NdarrayCodec", "CompressedNdarrayCodec", "CompressedImageCodec")


class _Recorded:
    """Stands for an object of a class that a pickle names: what it was made with and given."""

    module = ""
    name = ""

    def __new__(cls, *args: Any, **_: Any) -> _Recorded:
        recorded = object.__new__(cls)
        recorded.args = args
        recorded.state = {}
        recorded.items = {}
        return recorded

    args: tuple[Any, ...]
    state: Any
    items: dict[Any, Any]

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[key] = value


class _Unpickler(pickle.Unpickler):
    """Makes stand-ins; a new class for each name and each reading, so nothing that a pickle does to it stays."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self._made: dict[tuple[str, str], Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)
        if name in _PLAIN.get(module, ()):
            return getattr(builtins if module == "builtins" else collections, name)
        key = (module, name)
        if key not in self._made:
            made = type(name, (_Recorded,), {"module": module, "name": name})
            if key == ("copyreg", "_reconstructor"):
                made.__new__ = lambda _, cls, *__: _Recorded.__new__(cls)  # type: ignore[method-assign, assignment]
            self._made[key] = made
        return self._made[key]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("persistent objects are not read")


def unpickled(data: bytes, what: str) -> Any:
    """The content with stand-ins. PetastormMetadataError when it is no pickle."""
    try:
        return _Unpickler(data).load()
    except Exception as error:  # a damaged pickle fails in many ways
        raise PetastormMetadataError(f"{what} cannot be read: {error}") from error


def common_metadata(filesystem: Any, root: str) -> dict[bytes, bytes]:
    """Keys and values of _common_metadata, else of _metadata; empty when there is neither."""
    for name in ("_common_metadata", "_metadata"):
        path = posixpath.join(root, name)
        if filesystem.get_file_info(path).type == arrow().fs.FileType.File:
            with filesystem.open_input_file(path) as file:
                return dict(arrow().parquet.read_schema(file).metadata or {})
    return {}


def stored_unischema(metadata: dict[bytes, bytes], place: str) -> Unischema:
    """The schema that was stored with the data set. PetastormMetadataError when there is none."""
    if UNISCHEMA_KEY not in metadata:
        raise PetastormMetadataError(
            f"'{place}' has no Unischema in _common_metadata: it was not written by materialize_dataset(). "
            "make_batch_reader reads plain Parquet"
        )
    what = f"the Unischema of '{place}'"
    schema = unpickled(metadata[UNISCHEMA_KEY], what)
    state: Any = getattr(schema, "state", None)
    fields = state.get("_fields") if isinstance(state, dict) else None
    if not isinstance(schema, _Recorded) or schema.name != "Unischema" or not isinstance(fields, dict):
        raise PetastormMetadataError(f"{what} is something else")
    return Unischema(str(state["_name"]), [_field(field, what) for field in fields.values()])


def _field(recorded: Any, what: str) -> UnischemaField:
    """A field, whichever of the ways of pickling a named tuple was used."""
    if not isinstance(recorded, _Recorded):
        raise PetastormMetadataError(f"{what} holds a field that is none")
    values = recorded.args
    if recorded.name == "_restore":  # pyspark's way: (name of the class, names, values)
        values = tuple(recorded.args[2])
    if len(values) < 3:
        raise PetastormMetadataError(f"{what} holds a field without name, type and shape")
    name, dtype, shape, codec, nullable = (*values, None, False)[:5] if len(values) < 5 else values[:5]
    return UnischemaField(str(name), _numpy_type(dtype, what), tuple(shape), _codec(codec, what), bool(nullable))


def _numpy_type(recorded: Any, what: str) -> Any:
    if isinstance(recorded, type) and issubclass(recorded, _Recorded):
        if (recorded.module, recorded.name) == ("decimal", "Decimal"):
            return Decimal
        if recorded.module == "builtins" and recorded.name in _PYTHON_TYPES:
            return _PYTHON_TYPES[recorded.name]
        if recorded.module.split(".")[0] == "numpy":
            name = {"string_": "bytes_", "unicode_": "str_", "str": "str_", "bool": "bool_", "float_": "float64"}.get(
                recorded.name, recorded.name
            )
            found = getattr(np, name, None)
            if isinstance(found, type) and issubclass(found, np.generic):
                return found
    if isinstance(recorded, _Recorded) and recorded.name == "dtype":
        return np.dtype(str(recorded.args[0])).type
    raise PetastormMetadataError(f"{what} holds the type {getattr(recorded, 'name', recorded)!r}, which is not known")


def _codec(recorded: Any, what: str) -> Any:
    if recorded is None:
        return None
    if not isinstance(recorded, _Recorded) or recorded.name not in _CODECS:
        raise PetastormMetadataError(
            f"{what} holds the codec {getattr(recorded, 'name', recorded)!r}; known are {', '.join(_CODECS)}"
        )
    state = recorded.state if isinstance(recorded.state, dict) else {}
    if recorded.name == "ScalarCodec":
        return codecs.ScalarCodec(_spark_type_name(state.get("_spark_type")))
    if recorded.name == "CompressedImageCodec":
        return codecs.CompressedImageCodec(str(state.get("_image_codec", ".png")).lstrip("."), int(state.get("_quality", 80)))
    return getattr(codecs, recorded.name)()


def _spark_type_name(recorded: Any) -> str:
    """As in "IntegerType" or "DecimalType(10,0)"."""
    if isinstance(recorded, type):
        return str(getattr(recorded, "name", "StringType"))
    name = str(getattr(recorded, "name", "StringType"))
    state = getattr(recorded, "state", {})
    if name == "DecimalType" and isinstance(state, dict):
        return f"DecimalType({int(state.get('precision', 10))},{int(state.get('scale', 0))})"
    return name


class StoredIndex:
    """An index of row groups: by value, or those that hold any value at all."""

    def __init__(self, groups: Any) -> None:
        self._groups = groups

    def get_row_group_indexes(self, value_key: Any = None) -> set[int]:
        """Numbers of the row groups that hold the value."""
        found = self._groups if isinstance(self._groups, set) else self._groups.get(value_key, ())
        return {int(number) for number in found}


def stored_row_group_indexes(metadata: dict[bytes, bytes], place: str) -> dict[str, StoredIndex]:
    """The indexes of row groups that build_rowgroup_index() of Petastorm has stored. ValueError when there are none."""
    if ROW_GROUP_INDEX_KEY not in metadata:
        raise ValueError(f"'{place}' has no index of row groups, which rowgroup_selector needs")
    indexes = {}
    for name, recorded in unpickled(metadata[ROW_GROUP_INDEX_KEY], f"the row group index of '{place}'").items():
        groups = recorded.state["_index_data"]
        indexes[str(name)] = StoredIndex(set(groups) if isinstance(groups, set) else _by_value(groups))
    return indexes


def _by_value(recorded: Any) -> dict[Any, set[int]]:
    """A defaultdict(set) of the pickle; keys that are numpy scalars become Python's."""
    pairs = recorded.items if isinstance(recorded, _Recorded) else recorded
    return {_key(key): set(groups) for key, groups in pairs.items()}


def _key(key: Any) -> Any:
    """A key; of a numpy scalar (dtype, bytes) its number or text."""
    if not isinstance(key, _Recorded):
        return key
    dtype, data = key.args[:2]
    data = data.encode("latin1") if isinstance(data, str) else data
    if isinstance(data, _Recorded):  # _codecs.encode(text, "latin1")
        data = str(data.args[0]).encode("latin1")
    return np.frombuffer(data, dtype=np.dtype(str(dtype.args[0])))[0].item()


def row_groups_per_file(metadata: dict[bytes, bytes]) -> dict[str, int]:
    """Numbers of row groups by the file's name from the data set's folder; empty when they are not stored."""
    counts = json.loads(metadata.get(ROW_GROUPS_KEY, b"{}"))
    return {str(name): int(count) for name, count in counts.items()}

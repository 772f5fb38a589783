"""Unischema: the fields of a data set, as Petastorm names them, and rows encoded for Spark."""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Unischema", "UnischemaField", "dict_to_spark_row", "insert_explicit_nulls", "match_unischema_fields"]


class UnischemaField(NamedTuple):
    """One field. Fields are equal when all but their codecs are."""

    name: str
    """Its key in a row."""
    numpy_dtype: Any
    """A numpy type such as numpy.int32, or Decimal."""
    shape: tuple[int | None, ...]
    """Of a value: () for a scalar; None for a dimension that varies."""
    codec: Any = None
    """How it is stored, e.g. NdarrayCodec(); None: as Parquet's own type."""
    nullable: bool | None = False
    """Whether a value may be None."""

    def _key(self) -> tuple[Any, ...]:
        return (self.name, self.numpy_dtype, self.shape, self.nullable)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnischemaField) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())


_row_types: dict[tuple[str, ...], Any] = {}


class Unischema:
    """Named fields in their order; each is also an attribute: `schema.image`.

    Args:
        name: Of the schema; it names the type of the rows.
        fields: UnischemaField objects.
    """

    def __init__(self, name: str, fields: Iterable[UnischemaField]) -> None:
        self._name = name
        self._fields = OrderedDict((field.name, field) for field in fields)
        for field in self._fields.values():
            if hasattr(self, field.name):
                warnings.warn(
                    f"the field '{field.name}' has the name of a member of Unischema; reach it as fields['{field.name}']",
                    stacklevel=2,
                )
            else:
                setattr(self, field.name, field)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the schema has no field '{name}'")

    @property
    def fields(self) -> OrderedDict[str, UnischemaField]:
        """The fields by name."""
        return self._fields

    def create_schema_view(self, fields: Iterable[UnischemaField | str]) -> Unischema:
        """A schema of some of the fields: fields of this schema, and names or regular expressions of whole names."""
        wanted = list(fields)
        names = [field.name for field in wanted if isinstance(field, tuple)]
        patterns = [field for field in wanted if isinstance(field, str)]
        if len(names) + len(patterns) != len(wanted):
            raise ValueError("fields are given as UnischemaField or as regular expressions (str)")
        unknown = sorted(set(names) - set(self._fields))
        if unknown:
            raise ValueError(f"field {', '.join(unknown)} does not belong to the schema {self}")
        view = OrderedDict((name, self._fields[name]) for name in names)
        view.update((field.name, field) for field in match_unischema_fields(self, patterns))
        return Unischema(f"{self._name}_view", view.values())

    def _get_namedtuple(self) -> Any:
        # The same type for the same fields: tf.data compares types.
        key = (self._name, *self._fields)
        if key not in _row_types:
            _row_types[key] = namedtuple(f"{self._name}_view", list(self._fields))
        return _row_types[key]

    def make_namedtuple(self, **values: Any) -> Any:
        """A row with these values."""
        return self._get_namedtuple()(**values)

    def make_namedtuple_tf(self, *args: Any, **kwargs: Any) -> Any:
        """A row of tensors."""
        return self._get_namedtuple()(*args, **kwargs)

    def as_spark_schema(self) -> Any:
        """The pyspark StructType of encoded rows."""
        from pyspark.sql.types import StructField, StructType

        return StructType([StructField(f.name, _spark_type(f), bool(f.nullable)) for f in self._fields.values()])

    def __str__(self) -> str:
        lines = "".join(
            f"  {type(f).__name__}('{f.name}', {getattr(f.numpy_dtype, '__name__', f.numpy_dtype)}, {f.shape}, {f.codec}, {f.nullable}),\n"
            for f in self._fields.values()
        )
        return f"{type(self).__name__}({self._name}, [\n{lines}])"

    def __getstate__(self) -> dict[str, Any]:
        return {"_name": self._name, "_fields": list(self._fields.values())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_name"], state["_fields"])  # type: ignore[misc]

    @classmethod
    def from_arrow_schema(cls, schema: Any, partitions: Mapping[str, Any] | None = None) -> Unischema:
        """The schema of plain Parquet: partitions first, then the columns of a pyarrow Schema. Columns of types that have
        no array (structs, maps, lists of lists) are left out with a warning.

        Args:
            schema: A pyarrow.Schema.
            partitions: numpy types of the columns that the folders' names hold.
        """
        fields = [UnischemaField(name, dtype, (), None, False) for name, dtype in (partitions or {}).items()]
        for column in schema:
            if partitions and column.name in partitions:
                continue
            dtype, shape = _numpy_of_arrow(column.type)
            if dtype is None:
                warnings.warn(f"column '{column.name}' has the unsupported type {column.type} and is left out", stacklevel=3)
                continue
            fields.append(UnischemaField(column.name, dtype, shape, None, column.nullable))
        return cls("inferred_schema", fields)


def match_unischema_fields(schema: Unischema, field_regex: Sequence[str]) -> list[UnischemaField]:
    """The fields whose whole names match at least one of the regular expressions, in the schema's order."""
    return [f for name, f in schema.fields.items() if any(re.fullmatch(pattern, name) for pattern in field_regex)]


def insert_explicit_nulls(unischema: Unischema, row_dict: dict[str, Any]) -> None:
    """Adds None for each nullable field that the row lacks; ValueError for another one."""
    for name, field in unischema.fields.items():
        if name not in row_dict:
            if not field.nullable:
                raise ValueError(f"the row lacks the field '{name}', which is not nullable")
            row_dict[name] = None


def dict_to_spark_row(unischema: Unischema, row_dict: Mapping[str, Any]) -> Any:
    """A pyspark Row of the row, encoded by the fields' codecs. ValueError for a value that does not fit its field."""
    from pyspark.sql import Row

    encoded = encode_row(unischema, row_dict)
    row = Row(*encoded.values())
    row.__fields__ = list(encoded)
    return row


def encode_row(unischema: Unischema, row_dict: Mapping[str, Any]) -> dict[str, Any]:
    """The row as it is stored, in the schema's order. ValueError for a value that does not fit its field."""
    row = dict(row_dict)
    insert_explicit_nulls(unischema, row)
    unknown = sorted(set(row) - set(unischema.fields))
    if unknown:
        raise ValueError(f"the row has fields that the schema has not: {', '.join(unknown)}")
    encoded: dict[str, Any] = {}
    for name, field in unischema.fields.items():
        value = row[name]
        if value is None:
            if not field.nullable:
                raise ValueError(f"the field '{name}' is not nullable, but the row holds None")
            encoded[name] = None
        elif field.codec is not None:
            encoded[name] = field.codec.encode(field, value)
        else:
            encoded[name] = value.tolist() if isinstance(value, np.generic) else value
    return encoded


def _spark_type(field: UnischemaField) -> Any:
    if field.codec is not None:
        return field.codec.spark_dtype()
    if field.shape != ():
        raise ValueError(f"the field '{field.name}' is an array without a codec; give it one, e.g. NdarrayCodec()")
    from pyspark.sql import types

    names = {
        "int8": "ByteType", "uint8": "ShortType", "int16": "ShortType", "uint16": "IntegerType", "int32": "IntegerType",
        "int64": "LongType", "float32": "FloatType", "float64": "DoubleType", "str": "StringType", "bytes": "StringType",
        "bool": "BooleanType",
    }  # fmt: skip
    name = re.sub(r"[0-9]*_$|_$", "", np.dtype(field.numpy_dtype).type.__name__) if field.numpy_dtype is not Decimal else ""
    if name not in names:
        raise ValueError(f"the field '{field.name}' of type {field.numpy_dtype} has no type of Spark; give it a codec")
    return getattr(types, names[name])()


def _numpy_of_arrow(type_: Any) -> tuple[Any, tuple[int | None, ...]]:
    """(numpy type, shape of a value) of an Arrow type; (None, ()) where there is none."""
    from pyarrow import types

    if types.is_dictionary(type_):
        return _numpy_of_arrow(type_.value_type)
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        element, shape = _numpy_of_arrow(type_.value_type)
        if element is None or shape:
            return None, ()
        return element, (type_.list_size if types.is_fixed_size_list(type_) else None,)
    if types.is_integer(type_) or types.is_floating(type_):
        return np.dtype(type_.to_pandas_dtype()).type, ()
    tests = [
        (types.is_boolean, np.bool_),
        (types.is_string, np.str_),
        (types.is_large_string, np.str_),
        (types.is_decimal, Decimal),
        (types.is_binary, np.bytes_),
        (types.is_large_binary, np.bytes_),
        (types.is_fixed_size_binary, np.bytes_),
        (types.is_date, np.datetime64),
        (types.is_timestamp, np.datetime64),
    ]
    return next((found for test, found in tests if test(type_)), None), ()

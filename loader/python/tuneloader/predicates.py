"""Predicates that choose rows, with the names and results of Petastorm's.

make_reader asks them row by row. make_batch_reader asks once for a row group, with a pandas DataFrame: `in_lambda` and
classes of the user then return a Series of booleans, as in Petastorm; the others work there too.
"""

from __future__ import annotations

import abc
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = [
    "PredicateBase",
    "in_intersection",
    "in_lambda",
    "in_negate",
    "in_pseudorandom_split",
    "in_reduce",
    "in_set",
]


class PredicateBase(abc.ABC):
    """Chooses rows. Subclasses say which fields they look at, and whether a row is read."""

    @abc.abstractmethod
    def get_fields(self) -> set[str]:
        """Names of the fields that do_include() is given."""

    @abc.abstractmethod
    def do_include(self, values: Any) -> Any:
        """`values`: a dict by field of one row, or of make_batch_reader a DataFrame of a row group."""

    def mask(self, frame: Any) -> Any:
        """bool [rows] for a DataFrame of a row group."""
        return np.asarray(self.do_include(frame), dtype=bool)


class _RowPredicate(PredicateBase):
    """Looks at one row after another, also in a DataFrame."""

    def mask(self, frame: Any) -> Any:
        names = list(self.get_fields())
        rows = zip(*(frame[name] for name in names))
        included = (self.do_include(dict(zip(names, row))) for row in rows)
        return np.fromiter(included, dtype=bool, count=len(frame))


class in_set(_RowPredicate):
    """Rows whose field is one of `inclusion_values`."""

    def __init__(self, inclusion_values: Iterable[Any], predicate_field: str) -> None:
        self._inclusion_values = set(inclusion_values)
        self._predicate_field = predicate_field

    def get_fields(self) -> set[str]:
        return {self._predicate_field}

    def do_include(self, values: Mapping[str, Any]) -> bool:
        return values[self._predicate_field] in self._inclusion_values


class in_intersection(_RowPredicate):
    """Rows whose list holds at least one of `inclusion_values`."""

    def __init__(self, inclusion_values: Iterable[Any], _predicate_field: str) -> None:
        self._inclusion_values = list(inclusion_values)
        self._predicate_field = _predicate_field

    def get_fields(self) -> set[str]:
        return {self._predicate_field}

    def do_include(self, values: Mapping[str, Any]) -> bool:
        value = values[self._predicate_field]
        if not isinstance(value, Iterable):
            raise ValueError(f"in_intersection needs a field that holds lists; '{self._predicate_field}' does not")
        return bool(np.isin(np.asarray(value), self._inclusion_values).any())


class in_lambda(PredicateBase):
    """Rows for which `predicate_func(field, field, ..., [state_arg])` is true."""

    def __init__(self, predicate_fields: list[str], predicate_func: Callable[..., Any], state_arg: Any = None) -> None:
        if not isinstance(predicate_fields, list):
            raise ValueError("predicate_fields must be a list of names")
        self._predicate_fields = predicate_fields
        self._predicate_func = predicate_func
        self._state_arg = state_arg

    def get_fields(self) -> set[str]:
        return set(self._predicate_fields)

    def do_include(self, values: Any) -> Any:
        arguments = [values[name] for name in self._predicate_fields]
        if self._state_arg is not None:
            arguments.append(self._state_arg)
        return self._predicate_func(*arguments)


class in_negate(PredicateBase):
    """Rows that another predicate leaves out."""

    def __init__(self, predicate: PredicateBase) -> None:
        _check_predicates([predicate])
        self._predicate = predicate

    def get_fields(self) -> set[str]:
        return self._predicate.get_fields()

    def do_include(self, values: Any) -> Any:
        return not self._predicate.do_include(values)

    def mask(self, frame: Any) -> Any:
        return ~self._predicate.mask(frame)


class in_reduce(PredicateBase):
    """Rows for which `reduce_func` of what several predicates say, a list of bool, is true: `all`, `any`, ..."""

    def __init__(self, predicate_list: Sequence[PredicateBase], reduce_func: Callable[[list[Any]], Any]) -> None:
        _check_predicates(predicate_list)
        self._predicate_list = list(predicate_list)
        self._reduce_func = reduce_func

    def get_fields(self) -> set[str]:
        return set().union(*(predicate.get_fields() for predicate in self._predicate_list))

    def do_include(self, values: Any) -> Any:
        return self._reduce_func([predicate.do_include(values) for predicate in self._predicate_list])

    def mask(self, frame: Any) -> Any:
        masks = [predicate.mask(frame) for predicate in self._predicate_list]
        return np.array([bool(self._reduce_func(list(row))) for row in zip(*masks)], dtype=bool)


class in_pseudorandom_split(_RowPredicate):
    """Rows of one part of a split by the hash of a field: the same rows in every run.

    Args:
        fraction_list: Parts of the whole, e.g. [0.8, 0.2]; the parts hold about so many rows, not exactly.
        subset_index: The part that is read.
        predicate_field: A row belongs where md5(str(field)) puts it.
    """

    def __init__(self, fraction_list: Sequence[float], subset_index: int, predicate_field: str) -> None:
        if subset_index >= len(fraction_list):
            raise ValueError(f"subset_index {subset_index} is out of range: there are {len(fraction_list)} parts")
        self._predicate_field = predicate_field
        borders = [sum(fraction_list[: i + 1]) for i in range(len(fraction_list))]
        low = borders[subset_index - 1] if subset_index else 0
        self._bucket_low = low * (sys.maxsize - 1)
        self._bucket_high = borders[subset_index] * (sys.maxsize - 1)

    def get_fields(self) -> set[str]:
        return {self._predicate_field}

    def do_include(self, values: Mapping[str, Any]) -> bool:
        if self._predicate_field not in values:
            raise ValueError(f"the row has no field '{self._predicate_field}' to split by")
        digest = hashlib.md5(str(values[self._predicate_field]).encode(), usedforsecurity=False).hexdigest()
        return self._bucket_low <= int(digest, 16) % sys.maxsize < self._bucket_high


def _check_predicates(predicates: Iterable[Any]) -> None:
    for predicate in predicates:
        if not isinstance(predicate, PredicateBase):
            raise ValueError(f"{predicate!r} is no predicate: it is not derived from PredicateBase")

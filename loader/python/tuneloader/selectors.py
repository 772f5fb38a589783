"""Selectors of row groups by an index that Petastorm stored with the data set."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

IndexDict = Mapping[str, Any]


class RowGroupSelectorBase(abc.ABC):
    """Says which row groups are read."""

    @abc.abstractmethod
    def get_index_names(self) -> list[str]:
        """Names of the indexes that it needs."""

    @abc.abstractmethod
    def select_row_groups(self, index_dict: IndexDict) -> set[int]:
        """Numbers of row groups, given the indexes by name."""


class SingleIndexSelector(RowGroupSelectorBase):
    """Row groups that hold at least one of the values."""

    def __init__(self, index_name: str, values_list: Iterable[Any]) -> None:
        self._index_name = index_name
        self._values_to_select = list(values_list)

    def get_index_names(self) -> list[str]:
        return [self._index_name]

    def select_row_groups(self, index_dict: IndexDict) -> set[int]:
        index = index_dict[self._index_name]
        return set().union(*(index.get_row_group_indexes(value) for value in self._values_to_select))


class _CombinedSelector(RowGroupSelectorBase):
    def __init__(self, single_index_selectors: Sequence[RowGroupSelectorBase]) -> None:
        if not single_index_selectors:
            raise ValueError("a combined selector needs at least one selector")
        self._selectors = list(single_index_selectors)

    def get_index_names(self) -> list[str]:
        return [name for selector in self._selectors for name in selector.get_index_names()]

    def _selections(self, index_dict: IndexDict) -> list[set[int]]:
        return [selector.select_row_groups(index_dict) for selector in self._selectors]


class IntersectIndexSelector(_CombinedSelector):
    """Row groups that all selectors choose."""

    def select_row_groups(self, index_dict: IndexDict) -> set[int]:
        return set.intersection(*self._selections(index_dict))


class UnionIndexSelector(_CombinedSelector):
    """Row groups that some selector chooses."""

    def select_row_groups(self, index_dict: IndexDict) -> set[int]:
        return set().union(*self._selections(index_dict))

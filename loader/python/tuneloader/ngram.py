"""NGram: windows of rows that follow one another in time, with the arguments and results of Petastorm's."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from .unischema import Unischema, UnischemaField, match_unischema_fields

Row = dict[str, Any]


class NGram:
    """Windows of consecutive rows of a row group, for make_reader(schema_fields=NGram(...)).

    A window is a dict by time step of named tuples. Windows do not reach over the border of a row group.

    Args:
        fields: By time step (consecutive integers) the fields that are given there: UnischemaField, or regular expressions.
        delta_threshold: Two neighbouring rows of a window are at most so far apart in time.
        timestamp_field: The field by which the rows are sorted.
        timestamp_overlap: Whether a row may be in several windows.
    """

    def __init__(
        self,
        fields: dict[int, list[Any]],
        delta_threshold: Any,
        timestamp_field: UnischemaField | str,
        timestamp_overlap: bool = True,
    ) -> None:
        if not isinstance(fields, dict) or not fields:
            raise ValueError("fields must be a dict from time steps to lists of fields")
        for at_step in fields.values():
            if not isinstance(at_step, list) or not all(isinstance(f, (UnischemaField, str)) for f in at_step):
                raise ValueError("the fields of a time step are a list of UnischemaField or regular expressions")
        if not isinstance(delta_threshold, numbers.Number):
            raise ValueError("delta_threshold must be a number")
        if not isinstance(timestamp_field, (UnischemaField, str)):
            raise ValueError("timestamp_field must be a UnischemaField or a regular expression")
        if not isinstance(timestamp_overlap, bool):
            raise ValueError("timestamp_overlap must be True or False")
        self._fields = fields
        self._delta_threshold: Any = delta_threshold
        self._timestamp_field: Any = timestamp_field
        self.timestamp_overlap = timestamp_overlap

    @property
    def length(self) -> int:
        """Rows of a window."""
        return max(self._fields) - min(self._fields) + 1

    @property
    def fields(self) -> dict[int, list[Any]]:
        """Fields by time step."""
        return self._fields

    @property
    def delta_threshold(self) -> Any:
        """How far apart neighbouring rows may be."""
        return self._delta_threshold

    def resolve_regex_field_names(self, schema: Unischema) -> None:
        """Replaces regular expressions by the fields of the schema that they match."""
        self._fields = {step: self.convert_fields(schema, fields) for step, fields in self._fields.items()}
        found = self.convert_fields(schema, [self._timestamp_field])
        if len(found) != 1:
            raise ValueError(f"timestamp_field must be one field of the data set; {self._timestamp_field!r} matches {len(found)}")
        self._timestamp_field = found[0]

    def convert_fields(self, unischema: Unischema, field_list: Sequence[Any]) -> list[UnischemaField]:
        """The fields that the list names."""
        named: list[UnischemaField] = [field for field in field_list if isinstance(field, UnischemaField)]
        return named + match_unischema_fields(unischema, [field for field in field_list if isinstance(field, str)])

    def get_field_names_at_timestep(self, timestep: int) -> list[str]:
        """Names of the fields at a time step."""
        return [field.name for field in self._fields.get(timestep, [])]

    def get_field_names_at_all_timesteps(self) -> list[UnischemaField]:
        """The fields of all time steps."""
        return list(dict.fromkeys(field for fields in self._fields.values() for field in fields))

    def all_fields(self) -> list[UnischemaField]:
        """What has to be read: the fields of all time steps, and the timestamp."""
        return list(dict.fromkeys([*self.get_field_names_at_all_timesteps(), self._timestamp_field]))

    def get_schema_at_timestep(self, schema: Unischema, timestep: int) -> Unischema:
        """The schema of the rows at a time step."""
        names = set(self.get_field_names_at_timestep(timestep))
        return schema.create_schema_view([field for name, field in schema.fields.items() if name in names])

    def form_ngram(self, data: Sequence[Row], schema: Unischema) -> list[dict[int, Row]]:
        """The windows of rows that are sorted by time. NotImplementedError when they are not."""
        time, first = self._timestamp_field.name, min(self._fields)
        names = [(first + i, self.get_field_names_at_timestep(first + i)) for i in range(self.length)]
        windows = []
        end_of_last: Any = None
        for begin in range(len(data) - self.length + 1):
            rows = data[begin : begin + self.length]
            gaps = [after[time] - before[time] for before, after in zip(rows, rows[1:])]
            if any(gap < type(gap)(0) for gap in gaps):
                raise NotImplementedError(f"the rows of a row group must be sorted by '{time}' for an NGram; they are not")
            if not self.timestamp_overlap and end_of_last is not None and rows[0][time] <= end_of_last:
                continue
            if any(gap > self._delta_threshold for gap in gaps):
                continue
            windows.append({step: {name: row[name] for name in at_step if name in row} for (step, at_step), row in zip(names, rows)})
            end_of_last = rows[-1][time]
        return windows

    def make_namedtuple(self, schema: Unischema, ngram_as_dicts: dict[int, Row]) -> dict[int, Any]:
        """The window with named tuples in place of dicts."""
        return {
            step: self.get_schema_at_timestep(schema, step).make_namedtuple(**row) for step, row in ngram_as_dicts.items()
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NGram) or set(self._fields) != set(other._fields):
            return False
        return all(set(fields) == set(other._fields[step]) for step, fields in self._fields.items())

    __hash__ = object.__hash__

"""TransformSpec: what is done to rows on the reader's threads, with the arguments of Petastorm's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .unischema import Unischema, UnischemaField

Edit = tuple[str, Any, tuple[int | None, ...], bool]


def edit_field(name: str, numpy_dtype: Any, shape: tuple[int | None, ...], nullable: bool = False) -> Edit:
    """What a field is after the transformation."""
    return name, numpy_dtype, shape, nullable


class TransformSpec:
    """A function over rows, and what it does to the fields.

    Args:
        func: Of make_reader: takes and returns a row as a dict. Of make_batch_reader: takes and returns a pandas DataFrame
            of a row group. It may change what it is given. None: fields are only left out.
        edit_fields: (name, dtype, shape, nullable) of each field that it adds or changes.
        removed_fields: Names of fields that are not in the result.
        selected_fields: Names of all fields of the result, in their order; not together with removed_fields.
    """

    def __init__(
        self,
        func: Callable[[Any], Any] | None = None,
        edit_fields: Sequence[Any] | None = None,
        removed_fields: Sequence[str] | None = None,
        selected_fields: Sequence[str] | None = None,
    ) -> None:
        if removed_fields is not None and selected_fields is not None:
            raise ValueError("a TransformSpec takes removed_fields or selected_fields, not both")
        self.func = func
        self.edit_fields = list(edit_fields or [])
        self.removed_fields = list(removed_fields or [])
        self.selected_fields = None if selected_fields is None else list(selected_fields)


def transform_schema(schema: Unischema, transform_spec: TransformSpec) -> Unischema:
    """The schema of what comes out of the transformation."""
    _warn_of_unknown("removed_fields", transform_spec.removed_fields, schema.fields)
    edited = {edit[0] for edit in transform_spec.edit_fields}
    left_out = edited | set(transform_spec.removed_fields)
    fields = [field for name, field in schema.fields.items() if name not in left_out]
    fields += [UnischemaField(edit[0], edit[1], tuple(edit[2]), None, bool(edit[3])) for edit in transform_spec.edit_fields]
    if transform_spec.selected_fields is not None:
        known = {field.name: field for field in fields}
        _warn_of_unknown("selected_fields", transform_spec.selected_fields, known)
        fields = [known[name] for name in transform_spec.selected_fields if name in known]
    return Unischema(schema._name + "_transformed", fields)


def _warn_of_unknown(argument: str, names: Sequence[str], known: Any) -> None:
    unknown = sorted(set(names) - set(known))
    if unknown:
        warnings.warn(f"{argument} names fields that are not there and are ignored: {', '.join(unknown)}", stacklevel=3)

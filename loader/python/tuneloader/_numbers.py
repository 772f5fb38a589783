"""Numbers with units, as mosaicml-streaming takes them."""

from __future__ import annotations

import re

from ._core import parse_bytes

_THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


def bytes_of(value: int | str) -> int:
    """"64mb" (powers of 1024), "123b" or a number."""
    return parse_bytes(value) if isinstance(value, str) else int(value)


def count_of(value: int | str) -> int:
    """"100k", "64M", "7b", "1t" (powers of 1000), "1,000" or a number."""
    if not isinstance(value, str):
        number = int(value)
        if number < 0:
            raise ValueError(f"a number of samples must not be negative: {value}")
        return number
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kmbt]?)", value.strip().lower().replace(",", ""))
    if found is None:
        raise ValueError(f"{value!r} is not a number of samples such as 1000, '100k', '64M' or '7b'")
    return int(float(found[1]) * _THOUSANDS[found[2]])

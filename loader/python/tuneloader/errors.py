"""Exceptions with the names of Petastorm's."""

from __future__ import annotations


class NoDataAvailableError(Exception):
    """There are fewer row groups than shards, so that some shard would have no data."""


class PetastormMetadataError(Exception):
    """The data set has no metadata of Petastorm, or metadata that cannot be read."""


class PetastormMetadataGenerationError(Exception):
    """The metadata of a data set that was just written could not be read back."""


class DecodeFieldError(RuntimeError):
    """A stored value is not what the field's codec writes."""

"""What this package raises, and what it says on stderr."""

from __future__ import annotations

import sys


class TuneError(Exception):
    """The server's error: `status` (0: it could not be reached), `code` such as RESOURCE_DOES_NOT_EXIST."""

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Lost(TuneError):
    """The attempt is no longer this client's: its lease ended and another has the trial, or somebody else ended it."""


class Pruned(Exception):
    """The trial should stop; `optimize` and `with trial:` then end it as pruned. Optuna's name is TrialPruned."""


def say(text: str) -> None:
    """A line for people."""
    print(f"tune_client: {text}", file=sys.stderr, flush=True)

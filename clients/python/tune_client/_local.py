"""The token of a server of this user on this machine, found by the server's address.

Each server leaves a file with its data folder in a folder that only this user can enter: TUNE_RUNTIME_DIR, else
/tmp/tune-<user id>. A token goes only to the process that announced itself, while it lives.
"""

from __future__ import annotations

import json
import os
import pathlib
import stat
import urllib.parse
from collections.abc import Callable


def token_of_local_server(url: str) -> str | None:
    """The content of the file `token` in the server's data folder; None if no server of this user is at `url`."""
    wanted = urllib.parse.urlsplit(url)
    folder = pathlib.Path(os.environ.get("TUNE_RUNTIME_DIR") or f"/tmp/tune-{os.geteuid()}")
    try:
        port = wanted.port or (443 if wanted.scheme == "https" else 80)
        if not _is_private(folder, stat.S_ISDIR):
            return None
        announced = json.loads((folder / f"server-{port}.json").read_text())
        os.kill(announced["pid"], 0)
        known = urllib.parse.urlsplit(announced["url"])
        token = pathlib.Path(announced["data"]) / "token"
        if known.scheme != wanted.scheme or not _is_same_host(known.hostname, wanted.hostname):
            return None
        attempt = _own_attempt()
        if attempt and announced.get("attempt") != attempt:
            return None
        return token.read_text().strip() if _is_private(token, stat.S_ISREG) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _own_attempt() -> str | None:
    """The trial's attempt that this process belongs to. Its credential says what it may do, but at servers of its own."""
    attempt, run_id = os.environ.get("TUNE_ATTEMPT"), os.environ.get("MLFLOW_RUN_ID")
    return f"{run_id}.{attempt}" if attempt and run_id else None


def _is_private(path: pathlib.Path, is_kind: Callable[[int], bool]) -> bool:
    status = path.lstat()
    return is_kind(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _is_same_host(one: str | None, other: str | None) -> bool:
    def is_here(host: str | None) -> bool:  # a server that listens on all addresses says 0.0.0.0 or ::
        return host is not None and (host in ("localhost", "::1", "::", "0.0.0.0") or host.startswith("127."))
    return one == other or (is_here(one) and is_here(other))

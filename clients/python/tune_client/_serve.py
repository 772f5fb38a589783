"""A server for programs that were written without one: the one that is configured, or one for as long as it is needed."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
from typing import Iterator

from tune_client._errors import TuneError, say
from tune_client._server import Server

_CONTACT_S = 2.0


def program(name: str = "tune") -> str:
    """The path of one of our programs: in TUNE_BIN_DIR, beside this Python (where the wheel puts it), on the PATH. TuneError."""
    folders = [os.environ.get("TUNE_BIN_DIR"), sysconfig.get_path("scripts"), str(pathlib.Path(sys.executable).parent),
               *os.environ.get("PATH", "").split(os.pathsep)]
    for folder in folders:
        if folder and _is_program(os.path.join(folder, name)):
            return os.path.join(folder, name)
    raise TuneError(f"the program {name!r} is neither beside {sys.executable} nor on the PATH: install the wheel, or say with "
                    "TUNE_BIN_DIR in which folder it lies")


def _is_program(path: str) -> bool:
    """Whether it is an executable of this machine, and no script: Ray installs one that is called `tune`, too."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF" and os.access(path, os.X_OK)
    except OSError:
        return False


@contextlib.contextmanager
def serving(server: str | None, data: str = "tune-data") -> Iterator[str]:
    """The address of a server: `server`, else TUNE_SERVER or MLFLOW_TRACKING_URI, else what listens on this machine's port 5000.

    Where there is none of these, `tune server` runs on the folder `data` until the block ends. Raises TuneError.
    """
    url = server or os.environ.get("TUNE_SERVER") or os.environ.get("MLFLOW_TRACKING_URI")
    if url and url.lower().startswith(("http://", "https://")):
        yield url
        return
    if server:
        raise TuneError(f"{server!r} is no address of a server, as http://host:5000 is")
    with contextlib.suppress(TuneError):
        known = Server("http://127.0.0.1:5000")
        known.call("/studies", retry_for_s=0, timeout_s=_CONTACT_S)
        yield known.url
        return
    with _started(data) as url:
        yield url


@contextlib.contextmanager
def _started(data: str) -> Iterator[str]:
    process = subprocess.Popen([program(), "server", "--port", "0", "--data", data], stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        found = re.search(r"https?://\S+", process.stdout.readline())
        if found is None:
            raise TuneError(f"`tune server --data {data}` did not start; its output is above")
        say(f"no server is configured, so one runs at {found.group(0)} on the folder {data} meanwhile")
        yield found.group(0)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()

"""The Python client's tests import it from where it lies, and study_support from the folder above."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
CLIENT = HERE.parents[2] / "clients" / "python"
sys.path[:0] = [str(CLIENT), str(HERE.parent)]

from study_support import server  # noqa: E402


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with server(tmp_path_factory.mktemp("server")) as (_, address):
        yield address

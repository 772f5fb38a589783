"""Both servers, started once for all differential tests."""

import pytest
from replay import Replay
from scene import Side
from servers import mlflow_server, our_server


@pytest.fixture(scope="session")
def replay():
    with our_server() as ours, mlflow_server() as theirs:
        yield Replay(Side("MLflow", theirs), Side("ours", ours))

"""The studies that the verbs of this folder look into."""

import pytest

from study_support import ask, create_study, report, server, tell


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """A server with a study of 24 trials that decide by n alone, an empty one and one of a single trial."""
    folder = tmp_path_factory.mktemp("look")
    with server(folder) as (_, url):
        create_study(url, "full", budget={"trials": 24})
        for trial in ask(url, "full", 24):
            value = trial["params"]["n"]
            for step in range(4):
                report(url, "full", trial, step, value + 4 - step)
            tell(url, "full", trial, value)
        create_study(url, "empty")
        create_study(url, "one")
        tell(url, "one", ask(url, "one", 1)[0], 0.5)
        yield url, folder

"""Each row of docs/differences_from_mlflow.md is shown by a test: a row of tests/differential/known_differences.py, which random sequences of
requests to both servers run into, or one that is named here."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "differential"))
from known_differences import ROWS  # noqa: E402

LISTED = "differential/test_known_differences.py test_differences_that_are_listed_and_that_no_sequence_shows"
# How the row begins, and the test.
SHOWN_BY = {
    "restoring an experiment": "tracker/store/experiments_test.cc TheNameOfADeletedOneIsFree",
    "`mlflow gc` removes at once": "tracker/maintenance/garbage_collector_test.cc TheUndeleteWindowIsKept",
    "`metrics.loss.min` is a metric": "tracker/store/metrics/metric_aggregates_test.cc WhatWasLoggedUnderTheWholeNameWins",
    "model-versions/create with a run": "tracker/store/registry/registry_test.cc ARefusedVersionChangesNothing",
    "sets in sentences": "tracker/search/filter_test.cc RefusesWithMlflowsSentence",
    "basic-auth: 401 and 403": "contract/users/test_users.py test_accounts",
    "basic-auth: a password is hashed": "tracker/auth/users_test.cc ARememberedPasswordEndsWithItsChange",
    "basic-auth 3.17 has no": "tracker/auth/users_test.cc ClientsBefore317GrantBySingleResources",
    "basic-auth: any user may choose": "tracker/auth/users_test.cc NobodyReachesOthersFilesThroughAnExperimentOfTheirOwn",
    "basic-auth: the last admin": "tracker/auth/users_test.cc AccountsAreTheAdmins",
    "basic-auth: grants on scorers": "contract/users/test_grants.py test_every_kind_can_be_granted",
    "basic-auth: the response to a change": "tracker/auth/kinds_test.cc WhoMayChangeAVersionIsToldAllOfIt",
    "basic-auth: what a user may do with one prompt": "tracker/auth/kinds_test.cc WhoManagesAPromptGivesRightsOnIt",
    "basic-auth: a tag of one version": "tracker/auth/kinds_test.cc ItsModelSaysWhetherAVersionIsAPrompts",
    "the Host `10.evil.com`": "contract/hostile/test_hostile_http.py test_hosts_that_only_look_like_ours",
    "a logged model's tag with a slash": "tracker/api/routes_test.cc KeepLoggedModels",
    "a dataset without a digest": LISTED,
    "order_by `last_updated_time`": LISTED,
    "order_by with spaces": LISTED,
    "datasets without a name": LISTED,
    "a key or an alias may end": LISTED,
    "-0.0 as a metric": LISTED,
    "ids of experiments that Python's int()": LISTED,
    "a run of an experiment that lies in a local path": "tracker/api/routes_test.cc RefuseWhatTheArtifactStoreCannotDo",
    "a local artifact store has no multipart": "contract/tracking/test_multipart.py test_the_stock_client_sends_large_files_in_parts",
    "errors of a full disk": "contract/hostile/test_hostile_http.py test_a_disk_that_is_full",
    "a webhook's secret": "contract/webhooks/test_webhooks.py test_secrets_are_never_returned_and_the_database_is_private",
    "webhook deliveries die": "contract/webhooks/test_webhooks.py test_kill_9_loses_no_delivery",
    "the URL of a webhook": "tracker/webhooks/target_url_test.cc RefusesWhatParsersReadInTwoWays",
    "webhooks/{id}/test tries again": "tracker/webhooks/webhook_routes_test.cc ATestReportsWhatTheReceiverAnswered",
    "deleting a tag or alias": "tracker/store/registry/registry_test.cc EventsSayWhatHooksTell",
    "any number of webhooks": "tracker/webhooks/webhook_routes_test.cc ThereAreAtMostAThousand",
    "registered-models/search and": "contract/registry/test_registry_recorded.py test_every_answer_is_mlflows",
    "model-versions/create from `models:/`": "contract/registry/test_registry_recorded.py test_every_answer_is_mlflows",
    "a deleted version keeps": "tracker/store/registry/registry_test.cc ADeletedVersionIsRedacted",
    "`registrations` of a logged model": "tracker/store/registry/registry_test.cc ALoggedModelLearnsItsVersions",
}


def listed():
    lines = (ROOT / "docs" / "differences_from_mlflow.md").read_text().splitlines()
    return [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", listed())
def test_each_row_is_shown(row):
    by_sequences = any(known.title in row for known in ROWS)
    named = [test for begin, test in SHOWN_BY.items() if row.startswith(begin)]
    assert by_sequences or len(named) == 1, f"name the test that shows it: {row}"


@pytest.mark.parametrize("begin, test", SHOWN_BY.items())
def test_what_is_named_is_there(begin, test):
    assert sum(row.startswith(begin) for row in listed()) == 1
    path, name = test.split(" ")
    text = (ROOT / "tests" / path).read_text()
    assert re.search(rf"^def {name}\(" if path.endswith(".py") else rf"^TEST(_F|_P)?\(\w+, {name}\)", text, re.MULTILINE), test


def test_what_is_most_asked_for_is_listed():
    text = (ROOT / "docs" / "differences_from_mlflow.md").read_text()
    for words in ("OR, NOT and parentheses in filters", "the name of a deleted experiment cannot be used again"):
        assert words in text

"""The model registry answers as MLflow 3.17.2 did: a few hundred requests, field by field.

registry_answers.json is what a real server answered to registry_script.py.
"""

import json
import pathlib
import re

import pytest

import registry_script
from conftest import Server
from registry_player import shorten

RECORDED = json.loads((pathlib.Path(__file__).parent / "registry_answers.json").read_text())

# Requests with another answer of ours, and why.
NO_OFFSETS = "tokens are keysets"
OR_GRAMMAR = "filters know OR and parentheses, and say what they miss"
OWN_SENTENCE = {
    '"filter": "(name = \'a\')x"': OR_GRAMMAR,
    '"filter": "\' OR 1=1 --"': OR_GRAMMAR,
    '"filter": "nothing = ': "a keyword of SQL is an attribute that does not exist",
    '"filter": "version = 1"': "a keyword of SQL is an attribute that does not exist",
    '"filter": "name IN (1)"': "Python prints a tuple",
    '"filter": "name = (\'a\')"': "the message was one of SQLAlchemy, with the statement",
    '"filter": "name IN \'a\'"': "the message was one of SQLAlchemy, with the statement",
    '"page_token": "???"': NO_OFFSETS,
    '"version": "99999999999999999999"': "SQLite's integers end at 64 bits",
}
# Refused there, fine here; or the other way round.
OTHER_STATUS = {
    'registered-models/search {"filter": "name = \'a\'", "max_results": "-5"': "nonsense",
}


def reason(table, request):
    return next((table[each] for each in table if each in request), None)


def comparable(body):
    """Without the order of Python's sets and a hint at an environment variable."""
    message = body.get("message")
    if message is None:
        return body
    ordered = re.sub(
        r"\{([^{}]*)\}",
        lambda found: "{" + ", ".join(sorted(found.group(1).split(", "))) + "}",
        message,
    )
    hint = ordered.find(" Set the MLFLOW_ALLOWED_HOST_ADDRESSED_ARTIFACT_SCHEMES")
    return {**body, "message": ordered if hint < 0 else ordered[:hint]}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """On a server of its own: the recorded one was new, too."""
    alone = Server(tmp_path_factory.mktemp("recorded") / "data")
    lines = [json.dumps(each, ensure_ascii=False) for each in registry_script.record(alone.url)]
    alone.stop()
    return [json.loads(shorten(line)) for line in lines]


def test_every_answer_is_mlflows(played):
    assert [each["request"] for each in played] == [each["request"] for each in RECORDED]
    wrong = []
    for ours, theirs in zip(played, RECORDED):
        request = theirs["request"]
        if reason(OTHER_STATUS, request):
            assert ours["status"] != theirs["status"], f"no longer different: {request}"
            continue
        # Mistakes of a client are never 500 here: it would send them again for minutes.
        status_fits = ours["status"] == theirs["status"] or (
            theirs["status"] == 500 and ours["status"] in (400, 404)
        )
        body = comparable(ours["body"])
        # An empty body was HTML.
        expected = comparable(theirs["body"]) or body
        if theirs["status"] == 500:
            body, expected = body["message"], expected.get("message", body["message"])
        if not status_fits or (body != expected and not reason(OWN_SENTENCE, request)):
            wrong.append(
                f"{request}\n  MLflow {theirs['status']} {expected}\n"
                f"  ours   {ours['status']} {body}"
            )
    assert not wrong, f"{len(wrong)} of {len(RECORDED)} differ:\n" + "\n".join(wrong[:20])


def test_nothing_was_a_server_error(played):
    assert [each["request"] for each in played if each["status"] >= 500] == []

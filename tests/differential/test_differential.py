"""The same random requests to MLflow 3.17.2 and to ours: the answers must be the same but for the known differences.

TUNE_SEQUENCES (default 20 a test) says how many, TUNE_DIFFERENTIAL_SEED (default 0) where to begin: the default is the same on
every machine. tests/differential/explore.py runs thousands.
"""

import os
import pathlib
import re

import known_differences
import pytest
from generator import make_sequence
from compare import shape
from replay import report, shrink
from scene import Request

SEQUENCES = int(os.environ.get("TUNE_SEQUENCES", 20))
SEED = int(os.environ.get("TUNE_DIFFERENTIAL_SEED", 0))
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "differences_from_mlflow.md"


def sequences_agree(replay, areas, bad_share, length=20):
    for seed in range(SEED, SEED + SEQUENCES):
        sequence = make_sequence(seed, length, bad_share, areas)
        finding = replay.run(sequence)
        if finding is not None:
            pytest.fail(report(seed, *shrink(replay, sequence, finding)), pytrace=False)


def test_good_requests(replay):
    sequences_agree(replay, ("tracking",), bad_share=0)


def test_requests_to_the_registry(replay):
    sequences_agree(replay, ("registry", "tracking"), bad_share=0)


def test_requests_for_artifacts(replay):
    sequences_agree(replay, ("artifacts", "tracking"), bad_share=0)


def test_requests_for_webhooks(replay):
    sequences_agree(replay, ("webhooks", "tracking"), bad_share=0.2)


def test_damaged_requests(replay):
    sequences_agree(replay, ("tracking", "artifacts"), bad_share=0.5)


def test_damaged_requests_to_the_registry(replay):
    sequences_agree(replay, ("registry",), bad_share=0.4)


def test_the_page_lists_the_known_differences():
    rows = re.findall(r"^\| (.+?) \| ", PAGE.read_text(), re.MULTILINE)
    listed = {row for row in rows if row not in ("MLflow", "---")}
    known = {row.title for row in known_differences.ROWS} | set(known_differences.NOT_COMPARED)
    assert known <= listed, f"not in the table of docs/differences_from_mlflow.md: {sorted(known - listed)}"


# One fault each: here the sentence must be MLflow's word for word, which random requests cannot tell from several faults.
FAULTS = {
    "runs/search": [
        {"filter": "foo.bar = 'x'"}, {"filter": "bogus = 'x'"}, {"filter": "metrics.loss = 'x'"}, {"filter": "params.lr = 5"},
        {"filter": "params.lr > 'a'"}, {"filter": "tags.t >= 'a'"}, {"filter": "metrics.loss LIKE 'x'"},
        {"filter": "status > 'RUNNING'"}, {"filter": "start_time = 'x'"}, {"filter": "start_time LIKE 5"},
        {"filter": "metrics.x IS NULL"}, {"filter": "status IN ('RUNNING')"}, 
        {"filter": "dataset.name > 'x'"}, {"filter": "dataset.bogus = 'x'"}, {"filter": "params.lr = Val1"},
        {"filter": "attributes.status = RUNNING"}, {"order_by": ["bogus"]}, {"order_by": ["metrics.loss desc desc"]},
        {"order_by": ["foo.bar"]}, {"order_by": ["dataset.name"]}, {"order_by": ["start_time ascending"]},
        {"max_results": 0}, {"max_results": -1}, {"max_results": 50001}, {"experiment_ids": ["abc"]},
    ],
    "experiments/search": [
        {"filter": "bogus = 'x'"}, {"filter": "name > 'x'"}, {"filter": "creation_time = 'x'"}, {"filter": "tags.t > 'x'"},
        {"filter": "experiment_id > '5'"}, {"filter": "name = 5"}, {"filter": "params.x = '1'"}, {"order_by": ["bogus"]},
        {"order_by": ["tags.x"]}, {"max_results": 0}, {"max_results": 50001}, {"filter": "creation_time = 1.5"},
    ],
    "logged-models/search": [
        {"filter": "params.lr > 'x'"}, {"filter": "foo.bar = 'x'"}, {"filter": "name > 'x'"},
        {"order_by": [{"field_name": "params.a"}]}, {"order_by": [{"field_name": "bogus"}]},
        {"datasets": [{"dataset_digest": "d"}]},
    ],
}


def fault_requests():
    for path, faults in FAULTS.items():
        for fault in faults:
            fields = {"max_results": 10, **fault}
            if not path.startswith("experiments"):
                fields.setdefault("experiment_ids", ["0"])
            yield Request("POST", f"/api/2.0/mlflow/{path}", json=fields)


def test_one_error_has_the_same_message(replay):
    found = []
    for request in fault_requests():
        answers = [side.send(request) for side in replay.sides]
        theirs, ours = (shape(side, request, answer) for side, answer in zip(replay.sides, answers))
        if theirs["status"] == 500:
            theirs = {**theirs, "status": 400}
        if (theirs["status"], known_differences.message(theirs)) != (ours["status"], known_differences.message(ours)):
            found.append(f"{request.describe()}\n  MLflow: {theirs['status']} {known_differences.message(theirs)}\n"
                         f"  ours:   {ours['status']} {known_differences.message(ours)}")
    assert not found, "\n".join(found)

"""The rows of known differences explain what they say and nothing beside it; and rows that no sequence shows."""

import pytest
from known_differences import explain
from scene import Request

RUNS = "/api/2.0/mlflow/runs/search"
MODELS = "/api/2.0/mlflow/logged-models/search"


def refusal(message, code="INVALID_PARAMETER_VALUE"):
    return {"status": 400, "body": {"error_code": code, "message": message}}


def title(request, theirs, ours):
    row = explain(request, theirs, ours)
    return row and row.title


WRONG_TYPES = '`"value": true`, `"timestamp": 1.5`, unknown enum names are stored as 0 or ignored'
SEVERAL_FAULTS = "a query with several errors gets another of them"
FINE = {"status": 200, "body": {}}


@pytest.mark.parametrize("mutation, said, expected", [
    ("wrong metrics.0.value=True", "Invalid value true for parameter 'metrics[0].value' supplied:  Hint: ...", WRONG_TYPES),
    ("wrong metrics.0.value=True", "Invalid value \"x\" for parameter 'run_id' supplied:  Hint: ...", None),
    ("wrong params.0.key=''", "Invalid value \"\" for parameter 'tags[0].key' supplied:  Hint: ...", None),
    ("wrong experiment_id='abc'", "Invalid experiment ID 'abc'. Experiment ID must be a valid integer.", WRONG_TYPES),
    ("wrong run_name=5", "Invalid experiment ID 'abc'. Experiment ID must be a valid integer.", None),
    ("query wrong max_results='NaN'", "Invalid value \"NaN\" for parameter 'max_results' supplied:  Hint: ...", WRONG_TYPES),
    ("query wrong max_results='NaN'", "Invalid value \"5\" for parameter 'path' supplied:  Hint: ...", None),
    ("", "Invalid value true for parameter 'metrics[0].value' supplied:  Hint: ...", None),
])
def test_only_the_damaged_field_may_be_refused(mutation, said, expected):
    request = Request("POST", "/api/2.0/mlflow/runs/log-batch", json={}, mutation=mutation)
    assert title(request, FINE, refusal(said)) == expected


@pytest.mark.parametrize("fields, theirs, ours, expected", [
    ({"filter": "bogus > 'x' AND foo.a = 1"}, "Invalid attribute key 'bogus' specified. Valid keys are '{'a', 'b'}'",
     "Invalid entity type 'foo'. Valid values are ['metric', 'tag']", SEVERAL_FAULTS),
    ({"filter": "bogus > 'x'"}, "Invalid attribute key 'bogus' specified. Valid keys are '{'a'}'",
     "Invalid comparator '>' not one of '{'='}'", SEVERAL_FAULTS),
    ({"filter": "bogus > 'x' AND foo.a = 1"}, "Invalid attribute key 'bogus' specified.", "No attribute 'bogus'.", None),
    ({"order_by": ["bogus"]}, "Invalid attribute key 'bogus' specified.", "Invalid value for parameter 'order_by'", None),
    ({}, "Invalid value 'x'", "Something else", None),
])
def test_one_error_does_not_excuse_another_message(fields, theirs, ours, expected):
    assert title(Request("POST", RUNS, json=fields), refusal(theirs), refusal(ours)) == expected


def model(name, *values):
    return {"info": {"name": name}, "data": {"metrics": [
        {"key": f"m{i}", "value": value, "timestamp": 1} for i, value in enumerate(values)]}}


def test_a_nan_explains_its_own_place_only():
    def of(theirs, ours, fields):
        return title(Request("POST", MODELS, json=fields), {"status": 200, "body": {"models": theirs}},
                     {"status": 200, "body": {"models": ours}})

    known = "NaN as a logged model's metric reads back as 0"
    assert of([model("a", 0.0, 2.0)], [model("a", "NaN", 2.0)], {}) == known
    assert of([model("a", 0.0, 2.0)], [model("a", "NaN", 3.0)], {}) is None
    assert of([model("a", 0.0)], [model("b", "NaN")], {}) is None
    assert of([model("a", 0.0), model("b", 1.0)], [model("b", 1.0), model("a", "NaN")], {}) is None
    order = {"order_by": [{"field_name": "metrics.m0"}]}
    assert of([model("a", 0.0), model("b", 1.0)], [model("b", 1.0), model("a", "NaN")], order) == known


def test_a_nan_of_a_model_on_both_servers(replay):
    base = "/api/2.0/mlflow/"
    sequence = [
        Request("POST", base + "experiments/create", json={"name": "<<p:p>>-nan"}, makes="exp"),
        Request("POST", base + "runs/create", json={"experiment_id": "<<exp:0>>", "start_time": 5, "run_name": "r"}, makes="run"),
        Request("POST", base + "logged-models", json={"experiment_id": "<<exp:0>>", "name": "net"}, makes="model"),
        Request("POST", base + "runs/log-batch", json={"run_id": "<<run:1>>", "metrics": [
            {"key": key, "value": value, "timestamp": 1, "step": 0, "model_id": "<<model:2>>"}
            for key, value in (("loss", "NaN"), ("acc", 0.5))]}),
        Request("GET", base + "logged-models/<<model:2>>"),
        Request("POST", MODELS, json={"experiment_ids": ["<<exp:0>>"]}),
        Request("POST", MODELS, json={"experiment_ids": ["<<exp:0>>"], "order_by": [{"field_name": "metrics.loss"}]}),
    ]
    for serial, request in enumerate(sequence):
        request.serial = serial
    known = "NaN as a logged model's metric reads back as 0"
    before = replay.explained.get(known, 0)
    finding = replay.run(sequence)
    assert finding is None, finding.describe()
    assert replay.explained[known] > before


BASE = "/api/2.0/mlflow/"
RUN, EXPERIMENT, MODEL = "<<run:1>>", "<<exp:0>>", "<<model:2>>"
DATASET = {"name": "d", "digest": "1", "source_type": "t", "source": "s"}
SCENE = [
    Request("POST", BASE + "experiments/create", json={"name": "<<p:p>>-listed"}, makes="exp"),
    Request("POST", BASE + "runs/create", json={"experiment_id": EXPERIMENT, "start_time": 5, "run_name": "r"}, makes="run"),
    Request("POST", BASE + "logged-models", json={"experiment_id": EXPERIMENT, "name": "net"}, makes="model"),
    Request("POST", BASE + "registered-models/create", json={"name": "<<p:p>>-reg"}),
    Request("POST", BASE + "model-versions/create", json={"name": "<<p:p>>-reg", "source": "s3://b/a"}),
    Request("POST", BASE + "runs/log-inputs", json={"run_id": RUN, "datasets": [{"dataset": DATASET}]}),
    Request("POST", BASE + "runs/log-batch", json={"run_id": RUN, "metrics": [
        {"key": "acc", "value": 1, "timestamp": 1, "model_id": MODEL, "dataset_name": "d", "dataset_digest": "1"}]}),
]
# path, fields, MLflow's status, ours.
LISTED = [
    ("logged-models/search", {"experiment_ids": [EXPERIMENT], "order_by": [{"field_name": "last_updated_time"}]}, 400, 200),
    ("runs/search", {"experiment_ids": [EXPERIMENT], "order_by": ["params.lr ASC "]}, 400, 200),
    ("runs/search", {"experiment_ids": [EXPERIMENT], "order_by": [" params.lr"]}, 400, 200),
    ("runs/search", {"experiment_ids": [EXPERIMENT], "order_by": ["params.lr  ASC"]}, 200, 200),
    ("runs/search", {"experiment_ids": [" 0"], "max_results": 1}, 200, 400),
    ("runs/search", {"experiment_ids": ["+0"], "max_results": 1}, 200, 400),
    ("runs/log-inputs", {"run_id": RUN, "datasets": [{"dataset": {**DATASET, "name": ""}}]}, 200, 400),
    ("runs/log-inputs", {"run_id": RUN, "datasets": [{}]}, 200, 400),
    ("runs/log-inputs", {"run_id": RUN, "models": [{}]}, 200, 400),
    ("runs/outputs", {"run_id": RUN, "models": [{"step": 1}]}, 200, 400),
    ("runs/log-parameter", {"run_id": RUN, "key": "k\n", "value": "v"}, 200, 400),
    ("runs/set-tag", {"run_id": RUN, "key": "k\n", "value": "v"}, 200, 400),
    ("runs/log-metric", {"run_id": RUN, "key": "k\n", "value": 1, "timestamp": 1}, 200, 400),
    ("runs/set-tag", {"run_id": RUN, "key": "k\n\n", "value": "v"}, 400, 400),
    ("registered-models/alias", {"name": "<<p:p>>-reg", "alias": "best\n", "version": "1"}, 200, 400),
    ("model-versions/transition-stage", {"name": "<<p:p>>-reg", "version": "1", "stage": "Staging",
                                         "archive_existing_versions": "true"}, 400, 400),
]


def test_differences_that_are_listed_and_that_no_sequence_shows(replay):
    for side in replay.sides:
        side.forget("listed")
    for serial, request in enumerate(SCENE):
        request.serial = serial
        assert [side.send(request).status for side in replay.sides] == [200, 200], request.describe()
    for path, fields, theirs, ours in LISTED:
        request = Request("POST", BASE + path, json=fields, serial=99)
        assert [side.send(request).status for side in replay.sides] == [theirs, ours], request.describe()

    def found(dataset):
        request = Request("POST", MODELS, json={"experiment_ids": [EXPERIMENT], "datasets": [dataset], "filter": "metrics.acc > 0"})
        return [len(side.send(request).json().get("models", [])) for side in replay.sides]

    assert found({"dataset_name": "d", "dataset_digest": "1"}) == [1, 1]
    assert found({"dataset_name": "d"}) == [0, 1]
    zero = Request("POST", BASE + "runs/log-batch", json={"run_id": RUN, "metrics": [{"key": "zero", "value": -0.0, "timestamp": 1}]})
    read = Request("GET", BASE + "metrics/get-history", query=[("run_id", RUN), ("metric_key", "zero")])
    assert [side.send(zero).status for side in replay.sides] == [200, 200]
    assert [str(side.send(read).json()["metrics"][0]["value"]) for side in replay.sides] == ["0.0", "-0.0"]

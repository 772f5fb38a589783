"""SQL in every string field of every route, by the route table itself; what looks like a regular expression or a glob in LIKE."""

import json
import os
import re
import sqlite3
import urllib.parse
import uuid

import pytest
import requests

INJECTIONS = ["'; DROP TABLE runs; --", "x') OR ('1'='1", 'x" UNION SELECT sql FROM sqlite_master --', "\\'; DELETE FROM experiments; --",
              "1; ATTACH DATABASE '/tmp/x' AS x", "%' ESCAPE '%", "?1 :a @b $c", "`x`]; --", "/*", "\0' OR 1=1 --"]
# What a database reports of a statement that a text has broken.
OF_SQL = re.compile(r"sqlite|syntax error|near \"|no such (table|column)|unrecognized token|incomplete input|SQL logic", re.IGNORECASE)
# In every field of every route; TUNE_HOSTILE_LONG=1 sends all of them (a minute).
EVERYWHERE = INJECTIONS if os.environ.get("TUNE_HOSTILE_LONG") else INJECTIONS[:2]
# These wait, write files or remove for good, and take no text that reaches the database beside that of others.
LEFT_OUT = ("/tune/gc", "/tune/backups", "/tune/job", "/lease", "/ui/events", "/openapi.json", "/api/docs", "/metrics")


class Table:
    """The route table of a server, as OpenAPI describes it."""

    def __init__(self, server):
        self.document = requests.get(f"{server.url}/api/openapi.json", timeout=30).json()

    def operations(self):
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                if isinstance(operation, dict) and "responses" in operation and not path.endswith(LEFT_OUT):
                    yield method.upper(), path, operation

    def resolved(self, schema):
        while "$ref" in schema:
            found = self.document
            for part in schema["$ref"].split("/")[1:]:
                found = found[part]
            schema = found
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return self.resolved(schema[several][0])
        return schema

    def example(self, schema, name, known):
        """A value that the schema allows, with the ids of `known` where a field has that name."""
        schema = self.resolved(schema)
        kinds = schema.get("type", "string")
        kind = kinds if isinstance(kinds, str) else kinds[0]
        if kind == "object":
            return {each: self.example(inner, each, known) for each, inner in schema.get("properties", {}).items()}
        if kind == "array":
            return [self.example(schema.get("items", {}), name, known)]
        if name in known:
            return known[name]
        if "enum" in schema:
            return schema["enum"][0]
        return {"integer": 1, "number": 0.5, "boolean": False}.get(kind, "x")


def texts_of(value, path=()):
    """The paths of all texts in a JSON value."""
    if isinstance(value, str):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for name, item in items for found in texts_of(item, path + (name,))]


def replaced(value, path, text):
    if not path:
        return text
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], text)
    return copy


def victims(server):
    """Fresh entities, which the requests may hurt."""
    unique = uuid.uuid4().hex

    def make(path, fields):
        answer = requests.post(f"{server.url}/api/2.0/mlflow/{path}", json=fields, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    experiment = make("experiments/create", {"name": f"e-{unique}"})["experiment_id"]
    run = make("runs/create", {"experiment_id": experiment})["run"]["info"]["run_id"]
    model = make("logged-models", {"experiment_id": experiment, "name": "m"})["model"]["info"]["model_id"]
    make("registered-models/create", {"name": unique})
    make("model-versions/create", {"name": unique, "source": "s3://b/p"})
    return {"experiment_id": experiment, "experiment_ids": experiment, "run_id": run, "run_uuid": run, "run_ids": run, "model_id": model,
            "name": unique, "version": "1", "key": "k", "metric_key": "k", "url": "https://8.8.8.8/x", "path": "x", "filter": "",
            "page_token": "", "new_name": f"new-{unique}"}


def requests_of(table, method, path, operation, known, text):
    """(target, body) for each place of this operation that takes a text, with `text` in that place alone."""
    parameters = [each for each in map(table.resolved, operation.get("parameters", []))]
    values = {each["name"]: table.example(each.get("schema", {}), each["name"], known) for each in parameters}
    in_path = [each["name"] for each in parameters if each["in"] == "path"]
    in_query = [each["name"] for each in parameters if each["in"] == "query"]
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    body = table.example(content["schema"], "", known) if content else None

    def target(changed):
        filled = path
        for name in in_path:
            filled = filled.replace("{" + name + "}", urllib.parse.quote(str(changed[name]), safe=""))
        query = [(name, each) for name in in_query for each in (changed[name] if isinstance(changed[name], list) else [changed[name]])]
        return filled + ("?" + urllib.parse.urlencode(query) if query else "")

    for name in in_path + in_query:
        yield target({**values, name: [text] if isinstance(values[name], list) else text}), body
    if isinstance(body, dict):
        for place in texts_of(body):
            yield target(values), replaced(body, place, text)
        yield target(values), {**body, text: text}


def without(text, sentence):
    """A sentence without the text that was sent, which may stand in it as it is, as JSON, or in parts."""
    for form in (text, json.dumps(text)[1:-1], repr(text)[1:-1]):
        sentence = sentence.replace(form, "")
    return re.sub(r"sqlite_master", "", sentence)


def schema_of(server):
    """The tables as they are in the file, and whether it is whole."""
    connection = sqlite3.connect(f"file:{server.data}/tune.db?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return sorted(connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())
    finally:
        connection.close()


def test_sql_is_text_in_every_field_of_every_route(own_server):
    server = own_server()
    table = Table(server)
    witness = victims(server)
    about_witness = f"{server.url}/api/2.0/mlflow/runs/get?run_id={witness['run_id']}"
    requests.post(f"{server.url}/api/2.0/mlflow/runs/set-tag", json={"run_id": witness["run_id"], "key": "t", "value": "v"}, timeout=30)
    before, schema = requests.get(about_witness, timeout=30).json(), schema_of(server)
    sent, written = 0, 0
    with requests.Session() as session:
        for method, path, operation in table.operations():
            for text in EVERYWHERE:
                known = victims(server) if text == EVERYWHERE[0] or method != "GET" else known
                for target, body in requests_of(table, method, path, operation, known, text):
                    answer = session.request(method, server.url + target, json=body, headers=server.credentials, timeout=30)
                    sent += 1
                    written += answer.status_code == 200 and method != "GET"
                    where = f"{method} {target} {json.dumps(body)}: {answer.status_code} {answer.text[:300]}"
                    assert answer.status_code < 500 or answer.status_code == 501, where
                    if answer.status_code != 200:
                        assert not OF_SQL.search(without(text, answer.json()["message"])), where
    assert sent > 500 and written > 100, (sent, written)
    assert requests.get(about_witness, timeout=30).json() == before
    assert schema_of(server) == schema


def test_sql_comes_back_as_it_was_written(server, client, experiment, run):
    for i, text in enumerate(INJECTIONS):
        client.set_tag(run, f"t{i}", text)
        client.log_param(run, f"p{i}", text)
        client.set_experiment_tag(experiment, f"e{i}", text)
    read = client.get_run(run).data
    assert [read.tags[f"t{i}"] for i in range(len(INJECTIONS))] == INJECTIONS
    assert [read.params[f"p{i}"] for i in range(len(INJECTIONS))] == INJECTIONS
    assert [client.get_experiment(experiment).tags[f"e{i}"] for i in range(len(INJECTIONS))] == INJECTIONS
    name = f"n-{uuid.uuid4().hex}' OR '1'='1"
    made = client.create_experiment(name)
    assert client.get_experiment_by_name(name).experiment_id == made
    assert [each.experiment_id for each in client.search_experiments(filter_string=f'name = "{name}"')] == [made]


# Patterns of other languages; in LIKE only % and _ mean more than themselves.
FOREIGN = [".*", "^.*$", "[a-z]+", "a|b", "(a+)+$", "\\w+", "a{1,9}", "*", "a*", "?", "[!x]*", "\\%", "\\", "[", "(?i)A", "(?=a)", "$"]


@pytest.fixture
def tagged(client, experiment):
    """A run with `abc` in each of the places that LIKE reads, and one with a foreign pattern."""
    def make(text):
        run = client.create_run(experiment, tags={"t": text}, run_name="r" + text)
        client.log_param(run.info.run_id, "p", text)
        return run.info.run_id

    return make


@pytest.mark.parametrize("word", ["LIKE", "ILIKE"])
def test_no_other_pattern_language_is_understood(client, experiment, tagged, word):
    plain = tagged("abc")
    for foreign in FOREIGN:
        own = tagged(foreign)
        for field in ("tags.t", "params.p"):
            found = {run.info.run_id for run in client.search_runs([experiment], f"{field} {word} '{foreign}'")}
            # A pattern with % may match more; `abc` must not be among it.
            assert plain not in found, (field, foreign)
            assert "%" in foreign or own in found, (field, foreign)
        found = {run.info.run_id for run in client.search_runs([experiment], f"attributes.run_name {word} 'r{foreign}'")}
        assert plain not in found, foreign


EXPENSIVE = ["%a" * 500 + "%b", "_%" * 500 + "b", "%" * 4000 + "b", "%" + "a" * 3000 + "%b", ("%" + "ab" * 20) * 100]


def test_expensive_patterns_are_cheap_everywhere(server, client, experiment, tagged):
    run = tagged("ab" * 2900 + "c")
    client.set_experiment_tag(experiment, "t", "a" * 5000)
    model = requests.post(f"{server.url}/api/2.0/mlflow/logged-models",
                          json={"experiment_id": experiment, "name": "m", "tags": [{"key": "t", "value": "a" * 5000}]}, timeout=30)
    assert model.status_code == 200
    name = f"n{uuid.uuid4().hex}"
    client.create_registered_model(name, tags={"t": "a" * 4000})
    client.create_model_version(name, "s3://b/p", tags={"t": "a" * 4000})
    for pattern in EXPENSIVE:
        for word in ("LIKE", "ILIKE"):
            text = f"tags.t {word} '{pattern}'"
            began = server.cpu_seconds()
            assert run not in [each.info.run_id for each in client.search_runs([experiment], text)]
            client.search_experiments(filter_string=text)
            client.search_logged_models([experiment], text)
            client.search_registered_models(text)
            client.search_model_versions(text)
            assert server.cpu_seconds() - began < 10, "a page of a few rows: seconds mean that the pattern explodes"

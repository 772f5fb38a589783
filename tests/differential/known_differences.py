"""Where we answer otherwise than MLflow 3.17.2 on purpose. Each row is a row of the table in docs/differences_from_mlflow.md.

A row tells itself from a defect by the request (what was damaged in it) and by both answers. `diverges`: the two
servers hold different things from then on, so the sequence ends there.
"""

import contextlib
import dataclasses
import json
import re
import typing

from compare import differences


@dataclasses.dataclass
class Row:
    title: str
    matches: typing.Callable
    diverges: bool = False


ROWS = []


def row(title, diverges=False):
    """Makes a row of a function (request, theirs, ours) -> whether the row explains the difference."""

    def add(matches):
        ROWS.append(Row(title, matches, diverges))
        return matches

    return add


def explain(request, theirs, ours):
    """The row that explains a difference, or None."""
    for each in ROWS:
        if each.matches(request, theirs, ours):
            return each
    return None


def message(shape):
    body = shape.get("body")
    return body.get("message", "") if isinstance(body, dict) else str(body)


def field(request, name):
    """A field of the request, from its body or its query."""
    body = request.json
    if request.body and request.mutation.startswith("body"):
        with contextlib.suppress(ValueError):
            body = json.loads(request.body)
    if isinstance(body, dict):
        return body.get(name)
    return dict(request.query).get(name)


def both(theirs, ours, status=400):
    return theirs["status"] == status and ours["status"] == status


def is_refused(shape):
    return shape["status"] == 400 and shape["body"].get("error_code") == "INVALID_PARAMETER_VALUE"


# Writes --------------------------------------------------------------------------------------------------------------


@row("the name of a deleted experiment cannot be used again", diverges=True)
def names_of_deleted_experiments(request, theirs, ours):
    is_naming = request.path.endswith(("experiments/create", "experiments/update"))
    is_taken = "already exists" in message(theirs) or "UNIQUE constraint failed: experiments" in message(theirs)
    return is_naming and theirs["status"] == 400 and is_taken and ours["status"] == 200


def names_no_model(theirs, ours):
    return "FOREIGN KEY" in message(theirs) and ours["status"] == 404 and message(ours).startswith("Logged model with ID")


@row("log-batch writes params, metrics and tags in separate transactions", diverges=True)
def half_batches(request, theirs, ours):
    return "log-batch" in request.path and names_no_model(theirs, ours)


@row("a metric with an unknown `model_id`: an integrity error", diverges=True)
def unknown_model_of_a_metric(request, theirs, ours):
    return "log-metric" in request.path and names_no_model(theirs, ours)


@row("runs/create without an experiment_id: an integrity error")
def run_of_no_experiment(request, theirs, ours):
    return "runs/create" in request.path and "FOREIGN KEY" in message(theirs) and is_refused(ours)


@row("finalizing a logged model needs its id in the body too", diverges=True)
def id_in_the_body(request, theirs, ours):
    return "logged-models/" in request.path and ("path names the model" in message(ours) and "model_id" in request.mutation
                                                 or "Missing value" in message(theirs) and "'model_id'" in message(theirs))


@row("a repeated `runs/outputs` edge, or a repeated param of a logged model, is 400", diverges=True)
def repeated_edges(request, theirs, ours):
    constraint = "UNIQUE constraint failed: " in message(theirs)
    return constraint and ours["status"] == 200 and ("runs/outputs" in request.path or "logged-models" in request.path)


@row("a tag key twice in one create request: an integrity error, or \"already exists\"", diverges=True)
def repeated_tags(request, theirs, ours):
    tags = field(request, "tags")
    keys = [tag.get("key") for tag in (tags if isinstance(tags, list) else []) if isinstance(tag, dict)]
    is_twice = len(keys) > len(set(map(str, keys))) or "UNIQUE constraint failed: input_tags" in message(theirs)
    return is_twice and theirs["status"] == 400 and ours["status"] == 200


@row("tags at runs/create are not checked", diverges=True)
def long_tags_at_create(request, theirs, ours):
    if both(theirs, ours, 200):
        return all(is_cut(left, right) for _, left, right in differences(theirs, ours))
    is_refused = theirs["status"] == 200 and message(ours) == "'key' exceeds the maximum length of 250 characters"
    return is_refused and "runs" in request.path


@row("runs/search of an SQL store returns no `model_inputs` (runs/get and the file store do)")
def model_inputs_of_a_search(request, theirs, ours):
    if not both(theirs, ours, 200) or "runs/search" not in request.path:
        return False
    return all(
        is_cut(left, right) or left == "<absent>" and (path.endswith(".model_inputs") or list(right) == ["model_inputs"])
        for path, left, right in differences(theirs, ours)
    )


def is_cut(theirs, ours):
    return isinstance(theirs, str) and isinstance(ours, str) and len(theirs) > len(ours) >= 8000 and theirs.startswith(ours)


# Damaged requests ----------------------------------------------------------------------------------------------------


def damage(request):
    return request.mutation.split(" ")[0] if request.mutation else ""


def damaged_field(request):
    """The names on the way to the damaged field: ["metrics", "value"] of "wrong metrics.0.value=true"."""
    words = request.mutation.split("=")[0].split(" ")
    return [part for part in words[-1].split(".") if not part.isdigit()]


def refuses_the_damaged_field(request, shape):
    """Whether the answer refuses just the field that was damaged (or what it became: a key below it)."""
    if not is_refused(shape):
        return False
    names = damaged_field(request)
    found = re.search(r"parameter '([^']*)'", message(shape))
    if found:
        said = [re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in re.findall(r"[A-Za-z_]+", found.group(1))]
        if len(said) > 1:  # "metrics[0].value": the way from the top
            return names[:1] == said[:1]
        # MLflow's sentences call the key of a metric its name.
        return bool(names) and (said[0] in names or said == ["name"] and names[-1] == "key")
    if "Invalid experiment ID" in message(shape):
        return names[:1] in (["experiment_id"], ["experiment_ids"])
    return "must be an integer, got" in message(shape) and bool(names) and names[-1] in ("version", "webhook_id", "max_results")


@row("a body that is not JSON, or no object, is taken for an empty one", diverges=True)
def not_json(request, theirs, ours):
    return request.mutation.startswith("body ") and ours["status"] == 400 and \
        re.search(r"invalid JSON|must be a JSON object", message(ours))


@row("`\"value\": true`, `\"timestamp\": 1.5`, unknown enum names are stored as 0 or ignored", diverges=True)
def wrong_types(request, theirs, ours):
    return damage(request) in ("wrong", "odd", "long", "query") and refuses_the_damaged_field(request, ours)


@row("a missing field beside one of a wrong type: \"Invalid value null\"")
def missing_beside_wrong(request, theirs, ours):
    named = re.search(r"Invalid value null for parameter '(\w+)'", message(theirs))
    return both(theirs, ours) and named and f"Missing value for required parameter '{named.group(1)}'" in message(ours)


@row("a null in a body: 500, or an error")
def nulls(request, theirs, ours):
    return "None" in request.mutation and theirs["status"] in (400, 500) and ours["status"] == 200


@row("a tag, param or metric without a key in a list is stored under the empty key", diverges=True)
def missing_keys(request, theirs, ours):
    return is_refused(ours) and re.search(r"Missing value for required parameter '\w+\[\d+\]", message(ours))


@row("required fields spelled in camelCase (`runId`): 400, missing", diverges=True)
def camel_case(request, theirs, ours):
    return request.mutation.startswith("camel") and theirs["status"] == 400 and "Missing value" in message(theirs)


# Artifacts -----------------------------------------------------------------------------------------------------------


def is_of_artifacts(request):
    return "artifact" in request.path


@row("an empty file is listed without its size")
def empty_files(request, theirs, ours):
    return is_of_artifacts(request) and both(theirs, ours, 200) and "'file_size': 0" in str(ours)


@row("upload-artifact returns its empty body as application/json")
def kind_of_nothing(request, theirs, ours):
    return "upload-artifact" in request.path and both(theirs, ours, 200) and not ours["body"]


@row("a malformed Range header is 400, or 416 of a HEAD")
def ranges(request, theirs, ours):
    return "Range" in request.headers and theirs["status"] in (400, 416) and ours["status"] in (200, 416)


@row("GET of a folder, reserved names: `{\"detail\": ...}`")
def details(request, theirs, ours):
    return is_of_artifacts(request) and both(theirs, ours) and (
        "detail" in str(theirs["body"]) or "refers to a directory" in message(theirs))


@row("artifact paths `//x`, with a NUL or a control character, `..` between backslashes", diverges=True)
def odd_paths(request, theirs, ours):
    return is_of_artifacts(request) and ours["status"] == 400 and message(ours) == "Invalid path"


@row("artifact paths with `.`, an empty part or a slash at the end: 404 or 500", diverges=True)
def untidy_paths(request, theirs, ours):
    path = request.path + str(field(request, "path") or "/")
    return is_of_artifacts(request) and theirs["status"] in (404, 500) and ours["status"] in (200, 400) and \
        re.search(r"/\.|//|/$|/?\s+$", path)


@row("a name of more than 255 bytes in an artifact path: 500")
def long_names(request, theirs, ours):
    return is_of_artifacts(request) and theirs["status"] == 500 and ours["status"] == 200 and "n" * 256 in request.path + str(request.query)


@row("files of logged models: a missing path is BAD_REQUEST, an invalid path comes before a missing model")
def files_of_models(request, theirs, ours):
    return "artifacts/files" in request.path and theirs["status"] == 400 and ours["status"] in (400, 404)


@row("presigned downloads are refused in other words")
def presigned_words(request, theirs, ours):
    return "presigned" in request.path and both(theirs, ours)


# Errors --------------------------------------------------------------------------------------------------------------


@row("renaming an experiment to a taken name: BAD_REQUEST with the text of SQLite's error")
def renaming_to_a_taken_name(request, theirs, ours):
    return "experiments/update" in request.path and both(theirs, ours) and "UNIQUE constraint failed: experiments" in str(theirs) \
        or "experiments/update" in request.path and both(theirs, ours) and ours["body"]["error_code"] == "RESOURCE_ALREADY_EXISTS"


@row("renaming to a taken name quotes the SQL statement")
def renaming_a_model_to_a_taken_name(request, theirs, ours):
    is_told = message(ours).endswith(" already exists.") and message(theirs).startswith(message(ours) + " Error: ")
    return "registered-models/rename" in request.path and both(theirs, ours) and is_told and "UNIQUE constraint failed: registered_models" in message(theirs)


@row("renaming a deleted experiment: 500 INVALID_STATE")
def renaming(request, theirs, ours):
    return "experiments/update" in request.path and theirs["status"] == 500 and message(theirs) == message(ours)


@row("an unknown attribute in a logged-models filter, duplicate order_by keys, a list that is not one: 500")
def mistakes_in_searches(request, theirs, ours):
    is_of_sqlite = theirs["status"] == 400 and message(theirs).startswith("(sqlite3.ProgrammingError)")
    return request.path.endswith("/search") and (theirs["status"] == 500 or is_of_sqlite) and is_refused(ours)


@row("other mistakes of a client for which MLflow returns 500")
def mistakes(request, theirs, ours):
    return theirs["status"] == 500 and ours["status"] in (400, 404)


@row("messages name an environment variable that allows what is refused")
def without_the_variable(request, theirs, ours):
    return both(theirs, ours) and "environment variable" in message(theirs) and message(theirs).startswith(message(ours))


@row("an unknown entity, action or status of a webhook: 500, or ignored", diverges=True)
def words_of_webhooks(request, theirs, ours):
    return "/webhooks" in request.path and is_refused(ours) and re.search(r"parameter '[\w\[\].]*(status|entity|action)'", message(ours))


@row("`::ffff:127.0.0.1` is printed as Python does: `::ffff:7f00:1` before 3.13")
def mapped_addresses(request, theirs, ours):
    shown = re.sub(r"::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})", lambda found: "::ffff:" + ".".join(
        str(byte) for half in found.groups() for byte in divmod(int(half, 16), 256)), message(theirs))
    return "/webhooks" in request.path and both(theirs, ours) and shown == message(ours)


@row("the same event twice in a webhook: 400 with the text of SQLite's error", diverges=True)
def repeated_events(request, theirs, ours):
    return "/webhooks" in request.path and "UNIQUE constraint failed: webhook_events" in message(theirs) and ours["status"] == 200


@row("a source is as long as a body")
def long_sources(request, theirs, ours):
    return "model-versions/create" in request.path and "'source' exceeds the maximum length" in message(ours)


@row("a local source is resolved in the server's file system, links and all")
def local_sources(request, theirs, ours):
    return "model-versions/create" in request.path and both(theirs, ours) and \
        "model version source: '<cwd>" in message(theirs) and message(theirs).replace("<cwd>/", "") == message(ours)


# Searches ------------------------------------------------------------------------------------------------------------


@row("clauses are quoted in sqlparse's groups (\"Invalid clause(s) in filter string: ...\")")
def invalid_clauses(request, theirs, ours):
    return both(theirs, ours) and is_refused(ours) and "Invalid clause(s)" in message(theirs)


@row("page tokens: what base64 or JSON did not like")
def page_tokens(request, theirs, ours):
    is_fault_there = "nvalid page token" in message(theirs) or "only ASCII characters" in message(theirs)
    if request.path.endswith("/search") and is_fault_there and not field(request, "experiment_ids"):
        return ours["status"] == 200  # a page of nothing: no token is looked at
    is_refused_here = ours["status"] == 400 and "nvalid page token" in message(ours)
    # MLflow's tokens say how many rows to pass over, so that anybody can write one; ours hold the last row.
    is_home_made = "token" in str(field(request, "page_token")) or "<<" not in str(field(request, "page_token"))
    return is_refused_here and ("nvalid page token" in message(theirs) or theirs["status"] == 200 and is_home_made)


@row("lower-case `like`, `ilike`, `in` are refused in searches of experiments")
def lower_case(request, theirs, ours):
    words = re.search(r"\b(like|ilike|in|not in)\b", str(field(request, "filter")))
    return words and theirs["status"] == 400 and ours["status"] == 200 and "omparator" in message(theirs)


@row("`params.a = 'x' params.b IS NULL` without AND asks for the name `a = 'x' params.b`")
def null_without_and(request, theirs, ours):
    return re.search(r"\bIS\s+(NOT\s+)?NULL", str(field(request, "filter")), re.I) and is_refused(ours) and \
        "Invalid clause(s)" in message(ours) and theirs["status"] in (200, 400)


@row("numbers such as `1e+5` are refused in filters")
def signed_exponents(request, theirs, ours):
    return "e+" in str(field(request, "filter")) and theirs["status"] == 400 and "e+" in message(theirs)


@row("the times of logged models in a filter: 500, or only some comparators")
def times_of_models(request, theirs, ours):
    return theirs["status"] in (400, 500) and ours["status"] == 200 and \
        re.search(r"has no attribute|comparison operator for attributes.(last_updated|creation)", message(theirs))


@row("`status = 'READY'` never matches logged models (a number is compared with a text)")
def status_of_models(request, theirs, ours):
    return "logged-models/search" in request.path and both(theirs, ours, 200) and "status" in str(field(request, "filter"))


@row("`name = \"a\"` in a logged-models filter keeps the quotes")
def double_quotes(request, theirs, ours):
    return "logged-models/search" in request.path and both(theirs, ours, 200) and '"' in str(field(request, "filter"))


@row("unknown route, wrong method: HTML")
def pages(request, theirs, ours):
    return theirs.get("kind") == "text/html" and theirs["status"] == ours["status"]


@row("texts are quoted as Python prints them: what Unicode has not assigned as `\\ud7ff`")
def escaped_letters(request, theirs, ours):
    shown = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found.group(1), 16)), message(theirs))
    return both(theirs, ours) and shown != message(theirs) and shown == message(ours)


@row("an order_by of a keyword, a number or an odd letter: \"Could not be parsed\"")
def odd_orders(request, theirs, ours):
    text = re.match(r"Invalid order_by clause '(.*)'. Could not be parsed.$", message(theirs), re.DOTALL)
    return both(theirs, ours) and text and re.match(rf"Invalid (attribute|order by) key '{re.escape(text.group(1))}' specified", message(ours))


@row("messages quote keys and values of any length")
def long_quotes(request, theirs, ours):
    same = next((i for i, pair in enumerate(zip(message(theirs), message(ours))) if pair[0] != pair[1]), 0)
    return both(theirs, ours) and len(message(theirs).encode()) > 500 and same > 100 and message(ours)[same:].startswith("...")


@row("a query with several errors gets another of them")
def several_faults(request, theirs, ours):
    is_refused_twice = both(theirs, ours) and is_refused(theirs) and is_refused(ours)
    return is_refused_twice and request.path.endswith("search") and places_for_faults(request) > 1 and \
        not quoted(message(theirs)) & quoted(message(ours))


def places_for_faults(request):
    """Comparisons, orders and the damaged field: a request with one of them has no second fault to tell."""
    orders = [value for name, value in request.query if name == "order_by"] or field(request, "order_by") or []
    comparisons = len(re.findall(r"[<>!=]+|\b(?:I?LIKE|IN|IS)\b", str(field(request, "filter") or ""), re.I))
    # What follows the sign is a place of its own: `bogus > 'x'` has an unknown key and a wrong comparator.
    return 2 * comparisons + (len(orders) if isinstance(orders, list) else 1) + bool(request.mutation)


def quoted(sentence):
    """What a sentence points to, without the lists of what would be valid."""
    return set(re.findall(r"'([^']*)'", re.sub(r"\{.*?\}|\[.*?\]", "", sentence))) - {""}


@row("a number without quotes for a tag or param in a logged-models filter, what follows a comparison there, and spaces around a dot are let through")
def loose_filters_of_models(request, theirs, ours):
    is_of_models = "logged-models/search" in request.path and re.search(r"not quoted|Invalid filter string|Invalid clause", message(ours))
    has_lone_dot = request.path.endswith("/search") and re.search(r"\s\.\s", str(field(request, "filter")))
    return theirs["status"] == 200 and is_refused(ours) and (is_of_models or has_lone_dot)


@row("an unknown field in a logged-models order_by: error_class ATTRIBUTE_NOT_FOUND")
def class_of_an_order(request, theirs, ours):
    return both(theirs, ours) and theirs["body"].get("error_class") == "ATTRIBUTE_NOT_FOUND" and message(theirs) == message(ours)


@row("OR, NOT and parentheses in filters: 400 \"Invalid clause(s) in filter string\"")
def richer_filters(request, theirs, ours):
    return theirs["status"] == 400 and ours["status"] == 200 and re.search(r"\b(OR|NOT)\b|[()]", str(field(request, "filter")), re.I)


@row("a negative max_results of logged-models/search: an empty page")
def negative_pages(request, theirs, ours):
    return "logged-models/search" in request.path and theirs["status"] == 200 and "max_results" in message(ours)


@row("a run named twice in get-history-bulk-interval is returned twice")
def repeated_runs(request, theirs, ours):
    runs = [value for name, value in request.query if name == "run_ids"]
    return "bulk-interval" in request.path and both(theirs, ours, 200) and len(runs) > len(set(runs))


@row("get-history-bulk returns NaN without quotes, which is not JSON")
def bare_nan(request, theirs, ours):
    return request.path.endswith("get-history-bulk") and both(theirs, ours, 200) and "'NaN'" in str(ours)


@row("models of an experiment at `s3:///x` lie under `s3:/x`")
def no_host(request, theirs, ours):
    return both(theirs, ours, 200) and "s3:///x" in str(ours) and "s3:/x" in str(theirs)


@row("NaN as a logged model's metric reads back as 0")
def nan_of_models(request, theirs, ours):
    is_there = "logged-models" in request.path and both(theirs, ours, 200) and "'NaN'" in str(ours)
    if is_there and is_ordered_by_a_metric(request):  # NaN and 0 have other places in the order
        return sorted(map(repr, without_nan(theirs["body"].get("models", [])))) == sorted(
            map(repr, without_nan(ours["body"].get("models", []))))
    return is_there and without_nan(theirs["body"]) == without_nan(ours["body"])


def is_ordered_by_a_metric(request):
    return "metrics." in str(field(request, "order_by") or "")


def without_nan(value):
    """An answer with 0 for each metric that is NaN, or 0, whose lists of metrics are in order again."""
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    if not isinstance(value, dict):
        return value
    value = {name: without_nan(item) for name, item in value.items()}
    if "timestamp" in value and value.get("value", 0) in (0, "NaN"):
        value["value"] = 0.0
    if isinstance(value.get("metrics"), list):
        value["metrics"].sort(key=repr)
    return value


# Rows of the table that no sequence can show, each with the test that does.
NOT_COMPARED = {
    "sets in sentences (\"Valid keys are {...}\") in random order": "the comparison sorts them",
    "errors of a full disk": "tests/contract/operations/test_durability.py",
    "model-versions/create with a run and an unknown `model_id`: 404, and the version is there": "sequences end there (replay.leaves_a_half)",
    "a logged model's tag with a slash in its key cannot be deleted": "tests/contract/tracking/test_models.py",
}

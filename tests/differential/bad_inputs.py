"""Damages a good request in one place: fields that are missing, of a wrong type, too long, spelled twice ..."""

import copy
import json

from scene import ABSENT

WRONG = [None, True, False, 0, 5, -1, 1.5, "", "5", "abc", [], {}, ["x"], {"a": 1}, 2**31, 2**63 - 1, 2**63, "NaN", "1.5",
         "-3", [None], [5], " ", "true", 1e30, "BOGUS", [[]], [{}], "1e3", " 7", "0x10", "+5", "٣"]
LONG_TEXTS = ["k" * 251, "k" * 501, "v" * 6001, "v" * 8001, "v" * 70000, "日" * 260, "🙂" * 130]
ODD_TEXTS = ["a//b", "../x", "/x", "a/./b", ".", "..", "a\tb", "a\u0000b", "x;y", "a,b", "ünï 日本 🙂", "'", '"', "%", "a'; DROP TABLE runs; --",
             "\u202e", "\ud7ff", "a\\b", "${x}", "a:b", "x" * 250, "a/", "-", "0", "None", "null"]


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def places(value, path=()):
    """The paths of all fields and items of a JSON value."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        found.append(path + (name,))
        found += places(item, path + (name,))
    return found


def reach(value, path):
    for part in path[:-1]:
        value = value[part]
    return value


def mutated(rng, request):
    request = copy.copy(request)
    if request.json is not ABSENT:
        return mutated_json(rng, request) if rng.random() < 0.85 else mutated_body(rng, request)
    if request.query:
        return mutated_query(rng, request)
    request.mutation = "none"
    return request


def mutated_json(rng, request):
    request.json = copy.deepcopy(request.json)
    paths = [path for path in places(request.json) if not is_scope(request, path[0])]
    if not paths:
        return mutated_body(rng, request)
    path = rng.choice(paths)
    holder, name = reach(request.json, path), path[-1]
    where = ".".join(map(str, path))
    kind = rng.choice(["missing", "wrong", "wrong", "wrong", "long", "odd", "odd", "camel", "both", "extra"])
    if kind in ("camel", "both") and not (isinstance(name, str) and "_" in name):
        kind = "wrong"
    if kind == "missing":
        del holder[name]
    elif kind == "wrong":
        holder[name] = rng.choice(WRONG)
        where += f"={holder[name]!r}"
    elif kind == "long":
        holder[name] = rng.choice(LONG_TEXTS)
    elif kind == "odd":
        holder[name] = rng.choice(ODD_TEXTS)
    elif kind == "camel":
        holder[camel(name)] = holder.pop(name)
    elif kind == "both":
        holder[camel(name)] = holder[name]
    elif isinstance(holder, dict):
        holder["unknown_field"] = rng.choice(WRONG)
    request.mutation = f"{kind} {where}"
    return request


def mutated_body(rng, request):
    text = json.dumps(request.json)
    if "<<p:p>>" in text and request.path.endswith("/search"):
        return request
    kind = rng.choice(["no body", "array", "twice encoded", "not json", "no type", "wrong type", "null", "number", "charset",
                       "NaN literal", "truncated", "query too"])
    request.headers = {**request.headers, "Content-Type": "application/json"}
    body = {"no body": b"", "array": f"[{text}]".encode(), "twice encoded": json.dumps(text).encode(), "not json": b"{,}",
            "null": b"null", "number": b"5", "truncated": text[:-1].encode(),
            "NaN literal": text.replace("1", "NaN", 1).encode()}.get(kind, text.encode())
    if kind == "no type":
        del request.headers["Content-Type"]
    if kind == "wrong type":
        request.headers["Content-Type"] = rng.choice(["text/plain", "application/x-www-form-urlencoded", "application/JSON"])
    if kind == "charset":
        request.headers["Content-Type"] = "application/json; charset=utf-8"
    if kind == "query too":
        request.query = [("run_id", "other")]
    request.json, request.body, request.mutation = ABSENT, body, f"body {kind}"
    return request


def is_scope(request, name):
    """The filter that keeps a search to this sequence's own experiments and models must stay, and so must the listed folder."""
    if name == "path" and request.method == "GET" and request.path.endswith("mlflow-artifacts/artifacts"):
        return True
    return name == "filter" and request.path.endswith("/search") and "<<p:p>>" in str(request.json) + str(request.query)


def mutated_query(rng, request):
    request.query = list(request.query)
    choices = [i for i, (name, _) in enumerate(request.query) if not is_scope(request, name)]
    if not choices:
        return request
    place = rng.choice(choices)
    name, value = request.query[place]
    kind = rng.choice(["missing", "wrong", "wrong", "long", "odd", "camel", "repeated", "extra", "empty"])
    if kind == "missing":
        del request.query[place]
    elif kind == "wrong":
        request.query[place] = (name, str(rng.choice([each for each in WRONG if isinstance(each, (str, int, float))])))
    elif kind == "long":
        request.query[place] = (name, "k" * rng.choice([251, 501, 2000]))
    elif kind == "odd":
        request.query[place] = (name, rng.choice(ODD_TEXTS))
    elif kind == "camel":
        request.query[place] = (camel(name), value)
    elif kind == "repeated":
        request.query.append((name, rng.choice([value, "other"])))
    elif kind == "empty":
        request.query[place] = (name, "")
    else:
        request.query.append(("unknown", "x"))
    request.mutation = f"query {kind} {name}" + (f"={request.query[place][1]!r}" if kind in ("wrong", "odd") else "")
    return request

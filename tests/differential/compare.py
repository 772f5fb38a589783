"""Compares two answers field by field, with ids, times and generated names taken out."""

import json
import re

from scene import ABSENT

GENERATED_NAME = re.compile(r"\b[a-z]+-[a-z]+-\d{1,4}\b")
FILLER = re.compile(r"filler-\w+-\d+")  # what Replay.align makes: more of them on one side
ADDRESS = re.compile(r"http://(127\.0\.0\.1|localhost):\d+")
SQL_OF_AN_ERROR = re.compile(r" Error: \(sqlite3\..*", re.DOTALL)
FOLDER = re.compile(r"/(dev/shm|tmp)/differential-\w+")
BRACES = re.compile(r"\{('[^{}']*'(?:, '[^{}']*')+)\}")
# What the clocks of the two servers say in a test; sequences give small times themselves.
TIMES_MS = (1_600_000_000_000, 9_000_000_000_000)
# Lists that stand for maps or sets: MLflow gives them in the order of its tables.
UNORDERED = {"params": "key", "tags": "key", "metrics": "key", "dataset_inputs": None, "model_inputs": None,
             "model_outputs": None, "dataset_summaries": None, "aliases": None, "events": None}


class Norm:
    """Puts symbols in place of one server's own ids and of times of day."""

    def __init__(self, side):
        self.symbols = sorted(
            ((actual, f"<{kind}:{serial}>") for (kind, serial), actual in side.ids.items() if kind in ("run", "model", "webhook")),
            key=lambda pair: -len(pair[0]),
        )
        self.prefix = side.prefix

    def text(self, text):
        for actual, symbol in self.symbols:
            if actual in text:
                text = text.replace(actual, symbol)
        text = SQL_OF_AN_ERROR.sub("", text)
        text = FOLDER.sub("<cwd>", text)
        text = ADDRESS.sub("<server>", text.replace(self.prefix, "<p>"))
        text = BRACES.sub(lambda found: "{" + ", ".join(sorted(found.group(1).split(", "))) + "}", text)
        return text

    def value(self, value, name=""):
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return "<now>" if TIMES_MS[0] < value < TIMES_MS[1] else value
        if isinstance(value, float):
            return value
        if isinstance(value, str):
            return self.string(value, name)
        if isinstance(value, list):
            items = [self.value(item) for item in value]
            if name in UNORDERED:
                items.sort(key=sort_key)
            return items
        return {self.text(key): self.value(item, key) for key, item in value.items()}

    def string(self, value, name):
        if name == "next_page_token":
            return "<token>"
        if value[:1] in ("[", "{"):
            try:
                return self.value(json.loads(value))
            except ValueError:
                pass
        return GENERATED_NAME.sub("<generated>", FILLER.sub("<filler>", self.text(value)))


def sort_key(item):
    return repr(sorted(item.items(), key=lambda pair: pair[0])) if isinstance(item, dict) else repr(item)


def metric_order_matters(request):
    return "get-history" in request.path


def shape(side, request, answer):
    """What of an answer must be the same on both sides."""
    norm = Norm(side)
    body = answer.json()
    if body is ABSENT:
        is_page = answer.kind == "text/html"
        body = "<html>" if is_page else norm.text(answer.content.decode("utf-8", "replace"))
        return {"status": answer.status, "kind": answer.kind, "body": body}
    if metric_order_matters(request) and isinstance(body, dict):
        metrics = [norm.value(point) for point in body.get("metrics", [])]
        body = norm.value({name: value for name, value in body.items() if name != "metrics"})
        return {"status": answer.status, "body": {**body, "points": metrics}}
    return {"status": answer.status, "body": norm.value(body)}


def differences(theirs, ours, path=""):
    """The places at which two shapes differ: [(path, theirs, ours)]."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        found = []
        for name in sorted(set(theirs) | set(ours)):
            found += differences(theirs.get(name, "<absent>"), ours.get(name, "<absent>"), f"{path}.{name}")
        return found
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        found = []
        for index, (left, right) in enumerate(zip(theirs, ours)):
            found += differences(left, right, f"{path}[{index}]")
        return found
    is_same = theirs == ours and isinstance(theirs, bool) == isinstance(ours, bool)
    return [] if is_same else [(path, theirs, ours)]

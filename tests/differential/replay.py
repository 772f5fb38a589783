"""Sends a sequence to both servers and finds the first unexplained difference; makes failing sequences small."""

import copy
import dataclasses
import itertools
import json
import time

import known_differences
from bad_inputs import places, reach
from compare import differences, shape
from scene import ABSENT, shorten

_serial = itertools.count()
_run = format(int(time.time()) % 46656, "x")


@dataclasses.dataclass
class Finding:
    request: object
    theirs: object
    ours: object
    places: list

    def describe(self):
        lines = [f"  {self.request.describe()}"]
        for path, theirs, ours in self.places[:12]:
            lines.append(f"    at {path or 'the answer'}:")
            lines.append(f"      MLflow: {shorten(json.dumps(theirs, ensure_ascii=False, default=str), 900)}")
            lines.append(f"      ours:   {shorten(json.dumps(ours, ensure_ascii=False, default=str), 900)}")
        for name, answer in (("MLflow's whole answer", self.theirs), ("our whole answer", self.ours)):
            text = answer.content.decode("utf-8", "replace") if answer.json() is ABSENT else json.dumps(answer.json())
            lines.append(f"    {name}: {answer.status} {shorten(text, 400)}")
        return "\n".join(lines)


class Replay:
    """Both servers and what was counted so far."""

    def __init__(self, theirs, ours):
        self.sides = (theirs, ours)
        self.requests = 0
        self.sequences = 0
        self.explained = {}

    def align(self):
        """Makes both give the next experiment the same id: their numbers stand in texts and URIs."""
        while True:
            ids = [int(self.new_experiment(side)) for side in self.sides]
            if ids[0] == ids[1]:
                return
            behind = self.sides[ids[0] > ids[1]]
            for _ in range(abs(ids[0] - ids[1])):
                self.new_experiment(behind)

    @staticmethod
    def new_experiment(side):
        body = json.dumps({"name": f"filler-{_run}-{next(_serial)}"})
        answer = side.exchange("POST", "/api/2.0/mlflow/experiments/create", body, {"Content-Type": "application/json"})
        return answer.json()["experiment_id"]

    def run(self, sequence, found_all=None):
        """The first unexplained difference, or None. With a list `found_all` it continues, and adds to the list."""
        prefix = f"q{_run}x{next(_serial)}"
        for side in self.sides:
            side.forget(prefix)
        self.align()
        if any("/webhooks" in request.path for request in sequence):
            for side in self.sides:
                side.remove_webhooks()
        self.sequences += 1
        for request in sequence:
            self.requests += 1
            theirs, ours = (side.send(request) for side in self.sides)
            shapes = [shape(side, request, answer) for side, answer in zip(self.sides, (theirs, ours))]
            found = differences(*shapes)
            if not found and leaves_a_half(request) and theirs.status != 200:
                return None  # both refused it, but MLflow may have written what came before the fault
            if not found:
                continue
            row = known_differences.explain(request, *shapes)
            if row is None and found_all is not None:
                found_all.append(Finding(request, theirs, ours, found))
                continue
            if row is None:
                return Finding(request, theirs, ours, found)
            self.explained[row.title] = self.explained.get(row.title, 0) + 1
            is_half_written = "log-batch" in request.path
            is_one_sided = (theirs.status == 200) != (ours.status == 200)
            if row.diverges and changes_something(request) and (is_one_sided or is_half_written):
                return None
        return None


def leaves_a_half(request):
    """MLflow writes a batch in three transactions, and a version before it looks at its logged model."""
    is_version = request.path.endswith("model-versions/create") and "model_id" in str(request.json)
    return "log-batch" in request.path or is_version


def changes_something(request):
    return request.method not in ("GET", "HEAD") and not request.path.endswith("/search")


def same_place(left, right):
    """Whether two findings are most likely the same defect."""
    return (left is not None and right is not None and left.request.serial == right.request.serial
            and left.theirs.status == right.theirs.status and left.ours.status == right.ours.status
            and [place[0] for place in left.places] == [place[0] for place in right.places])


def shrink(replay, sequence, finding, tries=150):
    """The smallest sequence found whose last request still shows a difference, and that difference."""
    end = next(i for i, request in enumerate(sequence) if request.serial == finding.request.serial)
    best, last = sequence[: end + 1], finding
    width = max(1, len(best) // 2)
    while width >= 1 and tries > 0:
        place = len(best) - 1 - width
        while place >= -width + 1 and tries > 0:
            begin = max(place, 0)
            shorter = best[:begin] + best[max(place, 0) + width:] if begin + width <= len(best) - 1 else best[:begin] + best[-1:]
            tries -= 1
            found = replay.run(shorter) if len(shorter) < len(best) else None
            if same_place(found, last):
                best, last = shorter, found
            place -= width
        width //= 2
    return simplify(replay, best, last, tries)


def simplify(replay, sequence, finding, tries):
    """Takes fields out of the remaining requests."""
    best, last = sequence, finding
    for index in range(len(best) - 1, -1, -1):
        if best[index].json is ABSENT:
            continue
        for path in sorted(places(best[index].json), key=len):
            if tries <= 0:
                return best, last
            try:
                request = copy.copy(best[index])
                request.json = copy.deepcopy(request.json)
                del reach(request.json, path)[path[-1]]
            except (KeyError, IndexError, TypeError):
                continue
            tries -= 1
            shorter = best[:index] + [request] + best[index + 1:]
            found = replay.run(shorter)
            if same_place(found, last):
                best, last = shorter, found
    return best, last


def report(seed, sequence, finding):
    lines = [f"seed {seed}: MLflow and ours differ after {len(sequence)} requests:"]
    lines += [f"  {request.describe()}" for request in sequence[:-1]]
    return "\n".join(lines) + "\n  ----\n" + finding.describe()

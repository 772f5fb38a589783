"""Random sequences of requests, the same for the same seed."""

import random

import artifacts
import registry
import tracking
import webhooks
from bad_inputs import mutated
from scene import Request

AREAS = {"tracking": tracking.WEIGHTS, "artifacts": artifacts.WEIGHTS, "registry": registry.WEIGHTS,
         "webhooks": webhooks.WEIGHTS}
# How much of a mixed sequence is of each area.
SHARES = {"tracking": 1.0, "artifacts": 0.25, "registry": 0.5, "webhooks": 0.5}


class Scene:
    """What the sequence has asked for so far. It does not know the answers: sequences must not depend on them."""

    def __init__(self):
        self.serial = 0
        self.made = {"exp": [], "run": [], "model": [], "webhook": []}
        self.registered = []
        self.walks = []

    def note(self, request):
        request.serial = self.serial
        if request.makes in self.made:
            self.made[request.makes].append(self.serial)
        self.serial += 1

    def pick(self, rng, kind):
        serials = self.made[kind]
        if not serials or rng.random() < 0.02:
            return f"<<{kind}:999>>"
        return f"<<{kind}:{rng.choice(serials[:4] + serials[-2:])}>>"

    def experiment(self, rng):
        return self.pick(rng, "exp")

    def run(self, rng):
        return self.pick(rng, "run")

    def model(self, rng):
        return self.pick(rng, "model")

    def run_texts(self):
        return [f"<<run:{serial}>>" for serial in self.made["run"][:4]] or ["none"]

    def experiment_names(self):
        return ["<<p:p>>-first", "<<p:p>>-second", "<<p:p>>-Ünï%x"]

    def registered_names(self):
        return ["<<p:p>>-net", "<<p:p>>-Tree", "<<p:p>>-日本"]


def beginning():
    return [
        Request("POST", "/api/2.0/mlflow/experiments/create", json={"name": "<<p:p>>-first"}, makes="exp"),
        Request("POST", "/api/2.0/mlflow/runs/create",
                json={"experiment_id": "<<exp:0>>", "start_time": 5, "run_name": "run-1"}, makes="run"),
    ]


def ending(scene):
    """Reads of all that there is, so that a difference of states is seen."""
    requests = []
    base = "/api/2.0/mlflow/"
    for serial in scene.made["run"][:6]:
        requests.append(Request("GET", base + "runs/get", query=[("run_id", f"<<run:{serial}>>")]))
        for key in ("loss", "acc"):
            query = [("run_id", f"<<run:{serial}>>"), ("metric_key", key)]
            requests.append(Request("GET", base + "metrics/get-history", query=query))
    for serial in scene.made["model"][:4]:
        requests.append(Request("GET", base + f"logged-models/<<model:{serial}>>"))
    ids = [f"<<exp:{serial}>>" for serial in scene.made["exp"]]
    requests.append(Request("POST", base + "runs/search", json={"experiment_ids": ids, "run_view_type": "ALL"}))
    requests.append(Request("POST", base + "experiments/search",
                            json={"max_results": 100, "view_type": "ALL", "filter": "name LIKE '<<p:p>>%'"}))
    if scene.registered:
        for what in ("registered-models", "model-versions"):
            query = [("filter", "name LIKE '<<p:p>>%'"), ("max_results", "100")]
            requests.append(Request("GET", base + what + "/search", query=query))
    if scene.made["webhook"]:
        requests.append(Request("GET", base + "webhooks", query=[("max_results", "1000")]))
    for request in requests:
        scene.note(request)
    return requests


def make_sequence(seed, length, bad_share=0.15, areas=("tracking", "artifacts")):
    """`length` random requests, of which about `bad_share` are damaged, between a beginning and an ending."""
    rng = random.Random(seed)
    scene = Scene()
    sequence = beginning()
    for request in sequence:
        scene.note(request)
    choices = [(make, weight * SHARES[area]) for area in areas for make, weight in AREAS[area]]
    makers, weights = zip(*choices)
    for _ in range(length):
        request = rng.choices(makers, weights)[0](rng, scene)
        if rng.random() < bad_share:
            request = mutated(rng, request)
        scene.note(request)
        sequence.append(request)
    return sequence + ending(scene)

"""Requests to MLflow's webhooks. No sequence with these changes the registry, so that nothing is ever sent to their addresses."""

from scene import Request
from tracking import api, get, post, text_value, walk

EVENTS = [("REGISTERED_MODEL", "CREATED"), ("MODEL_VERSION", "CREATED"), ("MODEL_VERSION_TAG", "SET"), ("MODEL_VERSION_TAG", "DELETED"),
          ("MODEL_VERSION_ALIAS", "CREATED"), ("MODEL_VERSION_ALIAS", "DELETED"), ("PROMPT", "CREATED"), ("PROMPT_VERSION", "CREATED"),
          ("PROMPT_TAG", "SET"), ("PROMPT_ALIAS", "DELETED"), ("BUDGET_POLICY", "EXCEEDED")]
WRONG_EVENTS = [("REGISTERED_MODEL", "SET"), ("MODEL_VERSION_TAG", "CREATED"), ("PROMPT", "DELETED"), ("BOGUS", "CREATED"), ("PROMPT", "BOGUS"),
                ("ENTITY_UNSPECIFIED", "CREATED"), ("registered_model", "created")]
# Addresses, because names would be looked up. 8.8.8.8 and 1.1.1.1 stand for public ones.
URLS = ["https://8.8.8.8/hook", "https://1.1.1.1:8443/a/b?c=d", "https://[2606:4700:4700::1111]/x", "HTTPS://8.8.8.8", "https://8.8.8.8/%C3%BC#part"]
WRONG_URLS = ["http://8.8.8.8/x", "https://127.0.0.1/x", "https://10.0.0.1/x", "https://[::1]/x", "https://169.254.169.254/latest", "ftp://8.8.8.8/x",
              "https:///x", "https://", "8.8.8.8/x", "", " ", "javascript:alert(1)", "https://0.0.0.0/x", "https://192.168.1.1/x", "https://[fe80::1]/x",
              "https://100.64.0.1/x", "https://198.18.0.1/", "https://[::ffff:127.0.0.1]/x", "file:///etc/passwd", "//8.8.8.8/x", "https:8.8.8.8"]
NAMES = ["hook", "hook-2", "a", "A.b_c-d", "9", "x" * 63]
WRONG_NAMES = ["", " ", "-a", "a-", "x" * 64, "a b", "ünï", "a/b", "a\nb", "a\n", "_", "a.."]


def mostly(rng, good, bad):
    return rng.choice(good if rng.random() < 0.85 else bad)


def events(rng):
    picked = rng.sample(EVENTS, rng.choice([1, 1, 2, 3]))
    if rng.random() < 0.08:
        picked.append(rng.choice(WRONG_EVENTS))
    return [{"entity": entity, "action": action} for entity, action in picked]


def fields_of(rng, share):
    fields = {"name": mostly(rng, NAMES, WRONG_NAMES), "url": mostly(rng, URLS, WRONG_URLS), "events": events(rng)}
    fields = {name: value for name, value in fields.items() if rng.random() < share}
    if rng.random() < 0.3:
        fields["description"] = text_value(rng)
    if rng.random() < 0.3:
        fields["secret"] = rng.choice(["s3cret", "", "日本"])
    if rng.random() < 0.4:
        fields["status"] = rng.choice(["ACTIVE", "DISABLED", "ACTIVE", "DISABLED", "active", "BOGUS", "STATUS_UNSPECIFIED"])
    return fields


def create_webhook(rng, scene):
    return post(rng, "webhooks", makes="webhook", **fields_of(rng, 0.98))


def change_webhook(rng, scene):
    hook = scene.pick(rng, "webhook")
    if rng.random() < 0.3:
        return Request("DELETE", api(rng, f"webhooks/{hook}"))
    return Request("PATCH", api(rng, f"webhooks/{hook}"), json=fields_of(rng, 0.4))


def get_webhook(rng, scene):
    return get(rng, f"webhooks/{scene.pick(rng, 'webhook')}")


def test_of_nothing(rng, scene):
    """A test sends a request, so only of what is not there."""
    body = {"event": {"entity": "REGISTERED_MODEL", "action": "CREATED"}} if rng.random() < 0.5 else {}
    return Request("POST", api(rng, "webhooks/<<webhook:999>>/test"), json=body)


def list_webhooks(rng, scene):
    fields = {"max_results": rng.choice([1, 2, 3, 100, 1000, 1001, 0, -1])} if rng.random() < 0.7 else {}
    return walk(scene, get(rng, "webhooks", **fields))


WEIGHTS = [(create_webhook, 8), (change_webhook, 8), (get_webhook, 4), (list_webhooks, 6), (test_of_nothing, 1)]

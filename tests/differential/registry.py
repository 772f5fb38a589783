"""Requests to the model registry."""

from filters import TAGS, random_filter, random_order
from scene import Request
from tracking import api, get, pairs, post, text_value, walk

STAGES = ["None", "Staging", "Production", "Archived", "staging", "PRODUCTION", "bogus", ""]
ALIASES = ["best", "challenger", "Latest", "latest", "v1", "V2", "a b", "ünï", "x-1_y", "", "a" * 256]
SOURCES = ["s3://bucket/a", "s3://bucket/b", "s3://bucket/../c", "models:/<<p:p>>-net/1", "models:/<<p:p>>-net/99", "models:/<<p:p>>-net@best",
           "relative", "/etc", "file:///etc", "http://host/x", "ftp://h/x", "dbfs:/x", "", "models:/<<p:p>>-none/1",
           "models://host/x/1", "s3://b/a#f", "s3://b/%2e%2e/x", "gs://b/x"]


def name(rng, scene):
    scene.registered.append(1)
    return rng.choice(scene.registered_names() * 6 + ["<<p:p>>-none"])


def version(rng):
    return rng.choice(["1", "1", "1", "2", "2", "3", "9", "0", "-1", "abc", 1])


def create_registered(rng, scene):
    fields = {"name": rng.choice([name(rng, scene)] * 12 + ["", " ", "a/b", "a:b", "<<p:p>>x" * 50, "<<p:p>>..", "./<<p:p>>"])}
    if rng.random() < 0.4:
        fields["tags"] = pairs(rng, TAGS, rng.randint(0, 3))
    if rng.random() < 0.1:
        fields["tags"] = fields.get("tags", []) + [{"key": "mlflow.prompt.is_prompt", "value": rng.choice(["true", "false"])}]
    if rng.random() < 0.4:
        fields["description"] = text_value(rng)
    if rng.random() < 0.1:
        fields["deployment_job_id"] = "j1"
    return post(rng, "registered-models/create", **fields)


def change_registered(rng, scene):
    action = rng.randrange(8)
    if action == 0:
        return post(rng, "registered-models/rename", name=name(rng, scene), new_name=name(rng, scene))
    if action == 1:
        return Request("DELETE", api(rng, "registered-models/delete"), json={"name": name(rng, scene)})
    if action == 2:
        return Request("PATCH", api(rng, "registered-models/update"),
                       json={"name": name(rng, scene), "description": text_value(rng)})
    if action in (3, 4):
        return post(rng, "registered-models/set-tag", name=name(rng, scene), key=rng.choice(TAGS), value=text_value(rng))
    if action == 5:
        return Request("DELETE", api(rng, "registered-models/delete-tag"), json={"name": name(rng, scene), "key": rng.choice(TAGS)})
    return get(rng, "registered-models/get", name=name(rng, scene))


def alias(rng, scene):
    fields = {"name": name(rng, scene), "alias": rng.choice(ALIASES[:3] * 4 + ALIASES)}
    action = rng.randrange(4)
    if action <= 1:
        return post(rng, "registered-models/alias", **fields, version=version(rng))
    if action == 2:
        return Request("DELETE", api(rng, "registered-models/alias"), json=fields)
    return get(rng, "registered-models/alias", **fields)


def create_version(rng, scene):
    source = rng.choice(["s3://bucket/a"] * 8 + SOURCES + [f"runs:/{scene.run(rng)}/m", f"models:/{scene.model(rng)}"])
    fields = {"name": name(rng, scene), "source": source}
    if rng.random() < 0.4:
        fields["run_id"] = scene.run(rng)
    if rng.random() < 0.25:
        fields["model_id"] = scene.model(rng)
    if rng.random() < 0.3:
        fields["tags"] = pairs(rng, TAGS, rng.randint(0, 3))
    if rng.random() < 0.3:
        fields["description"] = text_value(rng)
    if rng.random() < 0.2:
        fields["run_link"] = "http://link"
    return post(rng, "model-versions/create", **fields)


def change_version(rng, scene):
    fields = {"name": name(rng, scene), "version": version(rng)}
    action = rng.randrange(9)
    if action == 0:
        return Request("DELETE", api(rng, "model-versions/delete"), json=fields)
    if action <= 2:
        return post(rng, "model-versions/transition-stage", **fields, stage=rng.choice(STAGES[:4] * 3 + STAGES),
                    archive_existing_versions=rng.random() < 0.4)
    if action == 3:
        return Request("PATCH", api(rng, "model-versions/update"), json={**fields, "description": text_value(rng)})
    if action <= 5:
        return post(rng, "model-versions/set-tag", **fields, key=rng.choice(TAGS), value=text_value(rng))
    if action == 6:
        return Request("DELETE", api(rng, "model-versions/delete-tag"), json={**fields, "key": rng.choice(TAGS)})
    return get(rng, rng.choice(["model-versions/get", "model-versions/get", "model-versions/get-download-uri"]), **fields)


def latest_versions(rng, scene):
    fields = {"name": name(rng, scene)}
    if rng.random() < 0.5:
        fields["stages"] = rng.sample(STAGES, rng.randint(0, 2))
    return (get if rng.random() < 0.4 else post)(rng, "registered-models/get-latest-versions", **fields)


def search_registry(rng, scene):
    what = rng.choice(["registered-models", "model-versions"])
    text = random_filter(rng, scene, what)
    own = "name LIKE '<<p:p>>%'"
    fields = {"filter": f"{own} AND {text}" if text else own}
    if rng.random() < 0.7:
        fields["max_results"] = rng.choice([1, 2, 3, 100, 1000])
    order = random_order(rng, what)
    if order:
        fields["order_by"] = order
    return walk(scene, get(rng, what + "/search", **fields))


WEIGHTS = [(create_registered, 6), (change_registered, 8), (alias, 6), (create_version, 10), (change_version, 12),
           (latest_versions, 3), (search_registry, 8)]

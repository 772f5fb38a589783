"""Requests to the tracking routes: experiments, runs, metrics, params, tags, datasets, outputs, logged models."""

from filters import METRICS, PARAMS, TAGS, TEXTS, random_filter, random_model_order, random_order
from scene import Request

LONG = {"key": [250, 251], "param": [6000, 6001], "tag": [8000, 8001], "experiment_tag": [5001, 20000, 20001]}


def api(rng, path):
    prefix = "/api/2.0/mlflow/" if rng.random() < 0.9 else "/ajax-api/2.0/mlflow/"
    return prefix + path


def get(rng, path, **fields):
    query = []
    for name, value in fields.items():
        for each in value if isinstance(value, list) else [value]:
            query.append((name, str(each)))
    return Request("GET", api(rng, path), query=query)


def post(rng, path, makes="", **fields):
    return Request("POST", api(rng, path), json=fields, makes=makes)


def text_value(rng, lengths=()):
    if lengths and rng.random() < 0.06:
        return rng.choice(["x", "ü", "日"]) * rng.choice(list(lengths))
    return rng.choice(TEXTS)


def metric_value(rng):
    return rng.choice([0, 1, -1, 0.5, 0.25, 1e300, -1e-300, 3, "NaN", "Infinity", "-Infinity", 0.1, 2.5, 1e16, -0.0])


def pairs(rng, names, count, lengths=()):
    """Keys and values; a key twice is rare, because MLflow and ours part there."""
    keys = rng.sample(names, min(count, len(names)))
    if keys and rng.random() < 0.03:
        keys.append(keys[0])
    return [{"key": key, "value": text_value(rng, lengths)} for key in keys]


def run_name_of(rng):
    return rng.choice(["first run", "run-1", "ünï", "", "A", "b"])


# Experiments ---------------------------------------------------------------------------------------------------------


def create_experiment(rng, scene):
    name = rng.choice(scene.experiment_names() + [f"<<p:p>>-e{scene.serial}"] * 6)
    request = post(rng, "experiments/create", makes="exp", name=name)
    if rng.random() < 0.3:
        request.json["tags"] = pairs(rng, TAGS, rng.randint(0, 3), LONG["experiment_tag"])
    if rng.random() < 0.25:
        request.json["artifact_location"] = rng.choice([
            "s3://bucket/path", "file:///tmp/x", "/tmp/elsewhere", "relative/place", "mlflow-artifacts:/own", "", "http://x/y",
            "runs:/a/b", "s3://b/p#frag", "s3://b/p?a=..", "s3://b/../p", "ftp://host/x", "mlflow-artifacts://host/p",
            "hdfs://h/p", "s3://b/p?x=1", "gs://b/p;v=1", "dbfs:/x", "s3://b/" + "a" * 2100, "file:relative", "s3:///x"])
    return request


def get_experiment(rng, scene):
    return get(rng, "experiments/get", experiment_id=scene.experiment(rng))


def get_experiment_by_name(rng, scene):
    return get(rng, "experiments/get-by-name", experiment_name=rng.choice(scene.experiment_names() + ["<<p:p>>-none"]))


def change_experiment(rng, scene):
    action = rng.choice(["delete", "restore", "restore", "update"])
    if action == "update":
        return post(rng, "experiments/update", experiment_id=scene.experiment(rng),
                    new_name=rng.choice(scene.experiment_names() + [f"<<p:p>>-n{scene.serial}"] * 3 + ["", "n" * 501]))
    return post(rng, f"experiments/{action}", experiment_id=scene.experiment(rng))


def tag_experiment(rng, scene):
    if rng.random() < 0.3:
        return post(rng, "experiments/delete-experiment-tag", experiment_id=scene.experiment(rng), key=rng.choice(TAGS))
    return post(rng, "experiments/set-experiment-tag", experiment_id=scene.experiment(rng), key=rng.choice(TAGS),
                value=text_value(rng, LONG["experiment_tag"]))


def search_experiments(rng, scene):
    text = random_filter(rng, scene, "experiments")
    # Other sequences' experiments are on the servers too.
    own = "name LIKE '<<p:p>>%'"
    fields = {"filter": f"{own} AND {text}" if text else own, "max_results": rng.choice([1, 2, 3, 100, 1000, 50000])}
    if rng.random() < 0.5:
        fields["view_type"] = rng.choice(["ACTIVE_ONLY", "DELETED_ONLY", "ALL"])
    order = random_order(rng, "experiments")
    if order:
        fields["order_by"] = order
    request = (get if rng.random() < 0.3 else post)(rng, "experiments/search", **fields)
    return walk(scene, request)


def walk(scene, request):
    """Marks a search as one whose next page may be asked for."""
    request.makes = "token"
    scene.walks.append(request)
    return request


def next_page(rng, scene):
    if not scene.walks:
        return get_experiment(rng, scene)
    earlier = rng.choice(scene.walks[-3:])
    token = f"<<token:{earlier.serial}>>"
    request = Request(earlier.method, earlier.path, makes="token")
    if earlier.method == "GET":
        request.query = [pair for pair in earlier.query if pair[0] != "page_token"] + [("page_token", token)]
    else:
        request.json = {**earlier.json, "page_token": token}
        if rng.random() < 0.05:
            request.json["page_token"] = rng.choice(["x", "eyJvZmZzZXQiOiAxfQ==", "", "{}", "!!!"])
    scene.walks.append(request)
    return request


def search_datasets(rng, scene):
    ids = [scene.experiment(rng) for _ in range(rng.randint(0, 2))]
    if rng.random() < 0.03:
        ids = [str(i) for i in range(21)]
    return Request("POST", "/ajax-api/2.0/mlflow/experiments/search-datasets", json={"experiment_ids": ids})


# Runs ----------------------------------------------------------------------------------------------------------------


def create_run(rng, scene):
    # Each time once (101 is prime, and the first run of all has 5): runs of one time are in the order of their random ids.
    fields = {"experiment_id": scene.experiment(rng), "start_time": (37 * scene.serial + 11) % 101}
    if rng.random() < 0.5:
        fields["run_name"] = run_name_of(rng)
    if rng.random() < 0.3:
        fields["user_id"] = rng.choice(["ann", "", "日本"])
    if rng.random() < 0.5:
        fields["tags"] = pairs(rng, TAGS, rng.randint(0, 3), LONG["tag"])
        if rng.random() < 0.3:
            fields["tags"].append({"key": "mlflow.runName", "value": rng.choice(["A", "first run"])})
    return post(rng, "runs/create", makes="run", **fields)


def get_run(rng, scene):
    run = scene.run(rng)
    return get(rng, "runs/get", **rng.choice([{"run_id": run}, {"run_uuid": run}, {"run_id": run, "run_uuid": run}]))


def change_run(rng, scene):
    action = rng.choice(["update", "update", "update", "delete", "restore", "restore"])
    if action != "update":
        return post(rng, f"runs/{action}", run_id=scene.run(rng))
    fields = {"run_id": scene.run(rng)}
    if rng.random() < 0.7:
        fields["status"] = rng.choice(["RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED", 1, 3, 5])
    if rng.random() < 0.6:
        fields["end_time"] = rng.randint(0, 90)
    if rng.random() < 0.4:
        fields["run_name"] = run_name_of(rng)
    return post(rng, "runs/update", **fields)


def metric(rng, scene):
    point = {"key": rng.choice(METRICS[:-1]), "value": metric_value(rng), "timestamp": rng.randint(0, 5)}
    if rng.random() < 0.8:
        point["step"] = rng.choice([0, 1, 2, 3, 10, -1, 9007199254740993])
    if scene.made["model"] and rng.random() < 0.12:
        point["model_id"] = scene.model(rng)
    if rng.random() < 0.12:
        point["dataset_name"] = rng.choice(["iris", "mnist"])
        point["dataset_digest"] = rng.choice(["d1", "d2"])
    return point


def log_metric(rng, scene):
    run = scene.run(rng)
    fields = {"run_id": run, **metric(rng, scene)}
    if rng.random() < 0.5:
        fields["run_uuid"] = run
    return post(rng, "runs/log-metric", **fields)


def log_batch(rng, scene):
    fields = {"run_id": scene.run(rng)}
    if rng.random() < 0.8:
        fields["metrics"] = [metric(rng, scene) for _ in range(rng.randint(0, 8))]
    if rng.random() < 0.4:
        names = rng.sample(PARAMS[:-1], rng.randint(0, 3)) if rng.random() < 0.9 else ["lr", "lr"]
        fields["params"] = [{"key": name, "value": text_value(rng, LONG["param"])} for name in names]
    if rng.random() < 0.4:
        fields["tags"] = pairs(rng, TAGS[:-1], rng.randint(0, 3), LONG["tag"])
    if rng.random() < 0.02:
        fields["metrics"] = [{"key": "m", "value": i, "timestamp": i} for i in range(rng.choice([1000, 1001]))]
    if rng.random() < 0.02:
        fields["tags"] = [{"key": f"t{i}", "value": "x"} for i in range(rng.choice([100, 101]))]
    if rng.random() < 0.02:
        fields["params"] = [{"key": f"p{i}", "value": "x"} for i in range(rng.choice([100, 101]))]
    return post(rng, "runs/log-batch", **fields)


def log_param(rng, scene):
    key = "k" * rng.choice(LONG["key"]) if rng.random() < 0.03 else rng.choice(PARAMS[:-1])
    return post(rng, "runs/log-parameter", run_id=scene.run(rng), key=key, value=text_value(rng, LONG["param"]))


def tag_run(rng, scene):
    keys = TAGS + ["mlflow.runName", "a//b", "/a", "..", "a/../b", "a\nb", "k" * 250, "k" * 251]
    if rng.random() < 0.3:
        return post(rng, "runs/delete-tag", run_id=scene.run(rng), key=rng.choice(TAGS + ["mlflow.runName"]))
    return post(rng, "runs/set-tag", run_id=scene.run(rng), key=rng.choice(TAGS * 3 + keys),
                value=text_value(rng, LONG["tag"]))


def log_inputs(rng, scene):
    datasets = []
    for _ in range(rng.randint(0, 2)):
        dataset = {"name": rng.choice(["iris", "mnist"]), "digest": rng.choice(["d1", "d2"]),
                   "source_type": rng.choice(["local", "code"]), "source": rng.choice(["{}", '{"u": 1}'])}
        if rng.random() < 0.4:
            dataset["schema"] = '{"c": 1}'
        if rng.random() < 0.4:
            dataset["profile"] = '{"n": 2}'
        tags = [{"key": "mlflow.data.context", "value": rng.choice(["train", "eval"])}] if rng.random() < 0.7 else []
        datasets.append({"dataset": dataset, "tags": tags + pairs(rng, TAGS[:2], rng.randint(0, 1))})
    fields = {"run_id": scene.run(rng), "datasets": datasets}
    if rng.random() < 0.3:
        fields["models"] = [{"model_id": scene.model(rng)}]
    return post(rng, "runs/log-inputs", **fields)


def log_outputs(rng, scene):
    # The same edge twice parts the two servers, so most ids are names that nobody gave.
    ids = [scene.model(rng) if rng.random() < 0.3 else f"m-of-{scene.serial}-{i}" for i in range(rng.randint(0, 2))]
    return post(rng, "runs/outputs", run_id=scene.run(rng),
                models=[{"model_id": each, "step": rng.choice([0, 1, 5])} for each in ids])


def log_old_model(rng, scene):
    text = rng.choice(['{"artifact_path": "m", "flavors": {"f": {}}, "utc_time_created": "t", "run_id": "%s"}' % scene.run(rng),
                       "{}", "not json", "[]", '{"artifact_path": "m"}', '"text"', ""])
    return post(rng, "runs/log-model", run_id=scene.run(rng), model_json=text)


def search_runs(rng, scene):
    ids = [scene.experiment(rng) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))]
    fields = {"experiment_ids": ids, "filter": random_filter(rng, scene, "runs")}
    if rng.random() < 0.6:
        fields["max_results"] = rng.choice([1, 2, 3, 10, 1000, 50000])
    if rng.random() < 0.4:
        fields["run_view_type"] = rng.choice(["ACTIVE_ONLY", "DELETED_ONLY", "ALL", 1, 2, 3])
    order = random_order(rng, "runs")
    if order:
        fields["order_by"] = order
    return walk(scene, post(rng, "runs/search", **fields))


def get_history(rng, scene):
    fields = {rng.choice(["run_id", "run_uuid"]): scene.run(rng), "metric_key": rng.choice(METRICS)}
    if rng.random() < 0.5:
        fields["max_results"] = rng.choice([1, 2, 3, 25000])
    return walk(scene, get(rng, "metrics/get-history", **fields))


def get_bulk_history(rng, scene):
    runs = [scene.run(rng) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.4:
        request = get(rng, "metrics/get-history-bulk", run_id=runs, metric_key=rng.choice(METRICS))
        request.path = "/ajax-api/2.0/mlflow/metrics/get-history-bulk"
        if rng.random() < 0.5:
            request.query.append(("max_results", rng.choice(["1", "3", "100", "25000"])))
        return request
    fields = {"run_ids": runs, "metric_key": rng.choice(METRICS)}
    if rng.random() < 0.7:
        fields["max_results"] = rng.choice([1, 2, 3, 5, 2500])
    if rng.random() < 0.4:
        fields["start_step"] = rng.choice([0, 1, -5])
    if rng.random() < 0.4:
        fields["end_step"] = rng.choice([0, 2, 10])
    return get(rng, "metrics/get-history-bulk-interval", **fields)


# Logged models -------------------------------------------------------------------------------------------------------


def create_model(rng, scene):
    fields = {"experiment_id": scene.experiment(rng)}
    if rng.random() < 0.8:
        fields["name"] = rng.choice(["net", "tree", "forest", "net", "a/b", "a:b", "x.y", "日本", "", "%", "'q'"])
    if rng.random() < 0.5:
        fields["model_type"] = rng.choice(["classifier", "agent", ""])
    if rng.random() < 0.6:
        fields["source_run_id"] = scene.run(rng)
    if rng.random() < 0.5:
        fields["params"] = pairs(rng, PARAMS, rng.randint(0, 3), LONG["param"])
    if rng.random() < 0.5:
        fields["tags"] = pairs(rng, TAGS, rng.randint(0, 3), LONG["tag"])
    return post(rng, "logged-models", makes="model", **fields)


def get_model(rng, scene):
    return get(rng, f"logged-models/{scene.model(rng)}")


def change_model(rng, scene):
    model = scene.model(rng)
    action = rng.randrange(6)
    if action <= 1:
        status = rng.choice(["LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED", "LOGGED_MODEL_PENDING", 2])
        return Request("PATCH", api(rng, f"logged-models/{model}"), json={"model_id": model, "status": status})
    if action == 2:
        return Request("PATCH", api(rng, f"logged-models/{model}/tags"),
                       json={"model_id": model, "tags": pairs(rng, TAGS, rng.randint(0, 3), LONG["tag"])})
    if action == 3:
        key = rng.choice(["team", "t.x", "never"])
        return Request("DELETE", api(rng, f"logged-models/{model}/tags/{key}"), json={"model_id": model, "tag_key": key})
    if action == 4:
        return post(rng, f"logged-models/{model}/params", model_id=model,
                    params=[{"key": f"p{scene.serial}", "value": text_value(rng, LONG["param"])}])
    return Request("DELETE", api(rng, f"logged-models/{model}"), json={"model_id": model})


def search_models(rng, scene):
    fields = {"experiment_ids": [scene.experiment(rng) for _ in range(rng.choice([0, 1, 1, 2]))],
              "filter": random_filter(rng, scene, "logged-models")}
    if rng.random() < 0.5:
        fields["max_results"] = rng.choice([1, 2, 3, 50, 0])
    if rng.random() < 0.5:
        fields["order_by"] = random_model_order(rng)
    if rng.random() < 0.2:
        fields["datasets"] = [{"dataset_name": rng.choice(["iris", "mnist"])}]
        if rng.random() < 0.6:
            fields["datasets"][0]["dataset_digest"] = rng.choice(["d1", "d2"])
    return walk(scene, post(rng, "logged-models/search", **fields))


WEIGHTS = [
    (create_experiment, 5), (get_experiment, 2), (get_experiment_by_name, 1), (change_experiment, 3), (tag_experiment, 3),
    (search_experiments, 5), (next_page, 5), (search_datasets, 1),
    (create_run, 8), (get_run, 5), (change_run, 6), (log_metric, 8), (log_batch, 8), (log_param, 4), (tag_run, 5),
    (log_inputs, 3), (log_outputs, 2), (log_old_model, 1), (search_runs, 12), (get_history, 4), (get_bulk_history, 4),
    (create_model, 5), (get_model, 3), (change_model, 6), (search_models, 6),
]

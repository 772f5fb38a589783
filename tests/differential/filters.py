"""Random filters and order_by texts of MLflow's searches: most are valid, some are broken on purpose."""

METRICS = ["loss", "acc", "val/loss", "a b", "ü", "x.y", "never"]
PARAMS = ["lr", "opt", "n layers", "Δ", "never"]
TAGS = ["team", "mlflow.note.content", "t.x", "emoji 🙂", "never"]
TEXTS = ["adam", "sgd", "red", "Red", "", "1", "0.1", "日本", "a%b", "it''s", "x_y"]
NUMBERS = ["0", "1", "-1", "0.5", "1e3", "-0.25", "100", "1.7976931348623157e+308", ".5", "5.", "+1"]
NUMERIC = ["=", "!=", ">", "<", ">=", "<="]
TEXTUAL = ["=", "!=", "LIKE", "ILIKE", "like", "ilike"]
STATUSES = ["RUNNING", "FINISHED", "FAILED", "KILLED", "SCHEDULED", "running", "bogus"]


def quoted(rng, text):
    return f"'{text}'" if rng.random() < 0.85 else f'"{text}"'


def key(rng, name):
    if all(c.isalnum() and c.isascii() or c in "._" for c in name) and rng.random() < 0.7:
        return name
    return f"`{name}`" if rng.random() < 0.6 else f'"{name}"'


def pattern(rng, text):
    return rng.choice([text, f"%{text}%", f"{text[:1]}%", f"%{text[-1:]}", "%", text.replace("a", "_")])


def text_comparison(rng, subject, texts):
    word = rng.choice(TEXTUAL)
    text = rng.choice(texts)
    if word.lower().endswith("like"):
        text = pattern(rng, text)
    return f"{subject}{rng.choice([' ', ' ', ' ', '  '])}{word} {quoted(rng, text)}"


def list_comparison(rng, subject, texts):
    picked = ", ".join(quoted(rng, text) for text in rng.sample(texts, rng.randint(1, min(3, len(texts)))))
    return f"{subject} {rng.choice(['IN', 'NOT IN', 'in', 'not in'])} ({picked})"


def run_clause(rng, scene):
    kind = rng.randrange(9)
    if kind <= 1:
        entity = rng.choice(["metrics", "metric"])
        return f"{entity}.{key(rng, rng.choice(METRICS))} {rng.choice(NUMERIC)} {rng.choice(NUMBERS)}"
    if kind == 2:
        entity = rng.choice(["params", "param", "parameters", "parameter"])
        return text_comparison(rng, f"{entity}.{key(rng, rng.choice(PARAMS))}", TEXTS)
    if kind == 3:
        return text_comparison(rng, f"{rng.choice(['tags', 'tag'])}.{key(rng, rng.choice(TAGS))}", TEXTS)
    if kind == 4:
        subject = rng.choice([f"tags.{key(rng, rng.choice(TAGS))}", f"params.{key(rng, rng.choice(PARAMS))}"])
        return f"{subject} {rng.choice(['IS NULL', 'IS NOT NULL', 'is null'])}"
    prefix = rng.choice(["", "attributes.", "attribute.", "attr.", "run."])
    if kind == 5:
        name = rng.choice(["start_time", "end_time", "created"])
        return f"{prefix}{name} {rng.choice(NUMERIC)} {rng.randint(0, 60)}"
    if kind == 6:
        return text_comparison(rng, f"{prefix}status", STATUSES)
    if kind == 7:
        name = rng.choice(["run_name", "user_id", "artifact_uri", "`run name`", "run_id"])
        return text_comparison(rng, f"{prefix}{name}", TEXTS + ["first run", "run-1"] + scene.run_texts())
    if rng.random() < 0.5:
        return list_comparison(rng, f"{prefix}run_id", scene.run_texts() + ["none"])
    subject = rng.choice(["datasets", "dataset"]) + "." + rng.choice(["name", "digest", "context"])
    texts = ["iris", "mnist", "d1", "d2", "train", "eval", "nothing"]
    return (list_comparison if rng.random() < 0.4 else text_comparison)(rng, subject, texts)


def experiment_clause(rng, scene):
    kind = rng.randrange(5)
    if kind == 0:
        return text_comparison(rng, rng.choice(["name", "attribute.name", "attr.name"]), scene.experiment_names())
    if kind == 1:
        name = rng.choice(["creation_time", "last_update_time"])
        return f"{name} {rng.choice(NUMERIC)} {rng.choice(['0', '1', '99999999999999', '5.5'])}"
    if kind == 2:
        ids = [f"<<exp:{serial}>>" for serial in scene.made["exp"]] or ["1"]
        if rng.random() < 0.5:
            return f"experiment_id {rng.choice(['=', '!='])} '{rng.choice(ids)}'"
        return list_comparison(rng, "experiment_id", ids)
    subject = f"{rng.choice(['tags', 'tag'])}.{key(rng, rng.choice(TAGS))}"
    if kind == 3:
        return f"{subject} {rng.choice(['IS NULL', 'IS NOT NULL'])}"
    return text_comparison(rng, subject, TEXTS)


def model_clause(rng, scene):
    kind = rng.randrange(7)
    prefix = rng.choice(["", "attributes."])
    if kind == 0:
        return text_comparison(rng, f"{prefix}name", ["net", "tree", "forest"])
    if kind == 1:
        return f"{rng.choice(['metrics', 'metric'])}.{key(rng, rng.choice(METRICS))} {rng.choice(NUMERIC)} {rng.choice(NUMBERS)}"
    if kind == 2:
        return text_comparison(rng, f"params.{key(rng, rng.choice(PARAMS))}", TEXTS)
    if kind == 3:
        return text_comparison(rng, f"tags.{key(rng, rng.choice(TAGS))}", TEXTS)
    if kind == 4:
        return text_comparison(rng, f"{prefix}{rng.choice(['model_type', 'source_run_id', 'model_id'])}",
                               ["classifier", "agent", ""] + scene.run_texts())
    if kind == 5:
        name = rng.choice(["creation_timestamp", "creation_time", "last_updated_timestamp", "last_updated_time"])
        return f"{prefix}{name} {rng.choice(NUMERIC)} {rng.choice(['0', '1', '99999999999999'])}"
    subject = rng.choice([f"{prefix}name", f"params.{rng.choice(PARAMS[:2])}", f"tags.{TAGS[0]}"])
    return list_comparison(rng, subject, ["net", "tree", "adam", "red", "1"])


def registered_clause(rng, scene):
    if rng.random() < 0.5:
        make = list_comparison if rng.random() < 0.3 else text_comparison
        return make(rng, rng.choice(["name", "attribute.name"]), scene.registered_names())
    return text_comparison(rng, f"{rng.choice(['tags', 'tag'])}.{key(rng, rng.choice(TAGS))}", TEXTS)


def version_clause(rng, scene):
    kind = rng.randrange(5)
    if kind == 0:
        make = list_comparison if rng.random() < 0.3 else text_comparison
        return make(rng, "name", scene.registered_names())
    if kind == 1:
        return f"version_number {rng.choice(NUMERIC)} {rng.choice(['1', '2', '0', '3', '1.5'])}"
    if kind == 2:
        make = list_comparison if rng.random() < 0.4 else text_comparison
        return make(rng, "run_id", scene.run_texts() + ["none"])
    if kind == 3:
        return text_comparison(rng, "source_path", ["s3://bucket/a", "s3://bucket/b", "models:/x"])
    return text_comparison(rng, f"{rng.choice(['tags', 'tag'])}.{key(rng, rng.choice(TAGS))}", TEXTS)


CLAUSES = {"runs": run_clause, "experiments": experiment_clause, "logged-models": model_clause,
           "registered-models": registered_clause, "model-versions": version_clause}

BROKEN = ["(", ")", "OR", "AND", "=", "'", '"', "`", ";", "--", ".", ",", "5", "NaN", "NULL", "IS", "NOT", "foo.bar",
          "metrics.", "== 'x'", "<>", "~", "bogus = 'x'", "metrics.loss = 'x'", "params.lr > 1", "tags.team = 1",
          "status IN ('RUNNING')", "metrics.loss IS NULL", "attributes.nothing = 'x'", "start_time = 'x'"]


def broken(rng, text):
    words = text.split(" ")
    place = rng.randrange(len(words) + 1)
    action = rng.randrange(4)
    if action == 0:
        words.insert(place, rng.choice(BROKEN))
    elif action == 1:
        words[place % len(words)] = rng.choice(BROKEN)
    elif action == 2 and len(words) > 1:
        del words[place % len(words)]
    else:
        return text[: rng.randrange(len(text) + 1)]
    return " ".join(words)


def random_filter(rng, scene, of):
    if rng.random() < 0.2:
        return ""
    count = rng.choice([1, 1, 1, 2, 2, 3])
    text = rng.choice([" AND ", " and ", " And "]).join(CLAUSES[of](rng, scene) for _ in range(count))
    return broken(rng, text) if rng.random() < 0.15 else text


ORDERS = {
    "runs": ["metrics.loss", "metrics.acc", "metrics.`a b`", "metrics.never", "params.lr", "params.opt", "tags.team",
             "attributes.start_time", "start_time", "end_time", "status", "run_name", "attribute.run_id", "run_id",
             "created", "metrics.\"val/loss\"", "user_id", "artifact_uri", "tag.`t.x`", "parameter.lr"],
    "experiments": ["name", "experiment_id", "creation_time", "last_update_time", "attribute.name"],
    "registered-models": ["name", "last_updated_timestamp", "creation_timestamp", "timestamp"],
    "model-versions": ["name", "version_number", "creation_timestamp", "last_updated_timestamp"],
}
BAD_ORDERS = ["bogus", "metrics.loss desc desc", "", " ", "loss", "tag.team", "metrics.", "dataset.name", "name foo",
              "metrics.loss,metrics.acc", "'name'", "params.a.b ASC", "ASC", "start_time; DROP", "metric.x ascending"]


def random_order(rng, of):
    order = []
    for field in rng.sample(ORDERS[of], rng.choice([0, 1, 1, 1, 2])):
        order.append(field + rng.choice(["", " ASC", " DESC", " asc", " desc", "  DESC"]))
    if any("run_id" in field for field in order):
        order.insert(0, "start_time")  # which no two runs share, for their ids are random
    if rng.random() < 0.06:
        order.append(rng.choice(BAD_ORDERS))
    return order


def random_model_order(rng):
    order = []
    for name in rng.sample(["metrics.loss", "metrics.acc", "metrics.never", "creation_timestamp", "last_updated_timestamp",
                            "name", "model_type", "creation_time"], rng.choice([0, 1, 1, 2])):
        entry = {"field_name": name}
        if rng.random() < 0.6:
            entry["ascending"] = rng.random() < 0.5
        if name.startswith("metrics.") and rng.random() < 0.3:
            entry["dataset_name"] = rng.choice(["iris", "mnist"])
            if rng.random() < 0.6:
                entry["dataset_digest"] = rng.choice(["d1", "d2"])
        order.append(entry)
    if rng.random() < 0.06:
        order.append({"field_name": rng.choice(["params.a", "bogus", "", "status", "attributes.name"])})
    return order

"""Requests to the artifact routes: the proxy, the artifacts of runs and of logged models."""

from scene import Request

NAMES = ["a.txt", "d/b.json", "d/e/c.bin", "with space.txt", "ünï-日本.txt", "a+b~c.txt", "(x) [y].txt", "MLmodel", "d", "x.html",
         "none/at.all", "semi;colon&amp.txt", "é.bin", "comma,equals=.txt", "plain"]
BODIES = [b"", b"hello", b'{"a": 1}', b"\x00\x01\xff" * 10, b"<script>alert(1)</script>", b"x" * 5000]
FAULTY = ["n" * 300, "../up", "a/../b", "/etc/passwd", "a//b", "./a", "..", ".", "a/", "%2e%2e/x", "..%2fx", "%252e%252e/x", "a%23b", "a%00b", "C:%5cx"]


def root(rng, scene):
    return rng.choice([f"{scene.experiment(rng)}/{scene.run(rng)}/artifacts"] * 4
                      + [f"{scene.experiment(rng)}/models/{scene.model(rng)}/artifacts", "<<p:p>>/own"])


def proxied(rng, scene, method, name, **more):
    prefix = rng.choice(["/api", "/api", "/ajax-api"])
    return Request(method, f"{prefix}/2.0/mlflow-artifacts/artifacts/{root(rng, scene)}/{name}", **more)


def put_file(rng, scene):
    headers = {"Content-Type": rng.choice(["text/plain", "application/json", "application/octet-stream"])}
    return proxied(rng, scene, "PUT", rng.choice(NAMES), body=rng.choice(BODIES), headers=headers)


def get_file(rng, scene):
    request = proxied(rng, scene, rng.choice(["GET", "GET", "GET", "HEAD"]), rng.choice(NAMES))
    if rng.random() < 0.3:
        request.headers["Range"] = rng.choice(["bytes=0-2", "bytes=1-", "bytes=-3", "bytes=99999-", "bytes=2-1", "lines=1-2", "bytes=0-0"])
    return request


def delete_file(rng, scene):
    return proxied(rng, scene, "DELETE", rng.choice(NAMES))


def list_proxy(rng, scene):
    path = root(rng, scene) + rng.choice(["", "", "/d", "/d/e", "/none", "/a.txt", "/"])
    query = [("path", path)] if rng.random() < 0.95 else []
    if not query:
        query = [("path", path + "/none")]
    return Request("GET", "/api/2.0/mlflow-artifacts/artifacts", query=query)


def list_of_run(rng, scene):
    query = [(rng.choice(["run_id", "run_uuid"]), scene.run(rng))]
    if rng.random() < 0.6:
        query.append(("path", rng.choice(["d", "d/e", "a.txt", "none", "", "d/", "../x", "/etc", "with space.txt"])))
    return Request("GET", "/api/2.0/mlflow/artifacts/list", query=query)


def get_of_run(rng, scene):
    path = rng.choice(NAMES * 3 + ["../x", "/etc/passwd", "", "d/../a.txt"])
    return Request("GET", "/get-artifact", query=[(rng.choice(["run_id", "run_uuid"]), scene.run(rng)), ("path", path)])


def upload_to_run(rng, scene):
    path = rng.choice(NAMES[:8] + ["../x", "/x", ""])
    query = [("run_uuid", scene.run(rng)), ("path", path)]
    if rng.random() < 0.1:
        del query[rng.randrange(2)]
    return Request("POST", "/ajax-api/2.0/mlflow/upload-artifact", query=query, body=rng.choice(BODIES))


def of_model(rng, scene):
    model = scene.model(rng)
    if rng.random() < 0.5:
        query = [("artifact_directory_path", rng.choice(["d", "", "none", "../x"]))] if rng.random() < 0.6 else []
        return Request("GET", f"/api/2.0/mlflow/logged-models/{model}/artifacts/directories", query=query)
    return Request("GET", f"/ajax-api/2.0/mlflow/logged-models/{model}/artifacts/files",
                   query=[("artifact_file_path", rng.choice(NAMES + ["../x", "/etc/passwd", ""]))])


def faulty_path(rng, scene):
    method = rng.choice(["GET", "PUT", "DELETE", "LIST"])
    path = rng.choice(FAULTY)
    if method == "LIST":
        return Request("GET", "/api/2.0/mlflow-artifacts/artifacts", query=[("path", f"{root(rng, scene)}/{path}")])
    body = b"x" if method == "PUT" else None
    return proxied(rng, scene, method, path, body=body)


def presigned(rng, scene):
    which = rng.choice(["upload", "download"])
    fields = {"run_id": scene.run(rng), "path": rng.choice(["a.txt", "../x", "d/b.json"])}
    if rng.random() < 0.3:
        fields["expiration"] = rng.choice([0, 1, 900, 604800, 604801, -1])
    if rng.random() < 0.2:
        fields["model_id"] = scene.model(rng)
    return Request("POST", f"/api/2.0/mlflow/artifacts/presigned-{which}-url", json=fields)


WEIGHTS = [(put_file, 10), (get_file, 8), (delete_file, 2), (list_proxy, 6), (list_of_run, 4), (get_of_run, 4),
           (upload_to_run, 3), (of_model, 3), (faulty_path, 4), (presigned, 1)]

"""A small Kubernetes API server, with a kubelet that runs each pod's command as a process of this machine.

It speaks what the API documents of the calls that `tune` makes: JSON over TLS, bearer tokens, label selectors, 409 for a
name that is there, dry runs, resource versions, watches as lines of events, deletion in the foreground. Objects are
checked against the published schemas of `version` (kubernetes-validate) before they are taken. It is no cluster: there
is no scheduler, no admission but that of Kueue's kind that the test gives (`admit`), and images are names.
"""

import contextlib
import copy
import http.server
import json
import os
import pathlib
import re
import ssl
import subprocess
import threading
import time
import urllib.parse
import uuid

import kubernetes_validate

TOKEN = "token-of-ann"


class Refused(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code = code
        self.body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason,
                     "code": code}


class Cluster:
    def __init__(self, folder, version="1.31", nodes=("node-a", "node-b"), room=100, jobset=True, images=("tune:1",)):
        self.folder = pathlib.Path(folder)
        self.token = TOKEN
        self.version = version
        self.nodes = nodes
        self.room = room  # pods that run at a time
        self.has_jobset = jobset
        self.images = images
        self.lock = threading.Condition()
        self.clock = 100
        self.objects = {"jobs": {}, "jobsets": {}, "pods": {}, "secrets": {}}
        self.events = []  # (resource version, type, pod)
        self.calls = []   # (method, path)
        self.processes = {}
        self.ends = False

    # --- objects ---

    def touch(self, pod, kind):
        """REQUIRES: the lock."""
        self.clock += 1
        pod["metadata"]["resourceVersion"] = str(self.clock)
        self.events.append((self.clock, kind, copy.deepcopy(pod)))
        self.lock.notify_all()

    def create(self, kind, body, is_dry, is_strict):
        """`is_strict`: the query has fieldValidation=Strict; without it unknown fields are dropped with a warning."""
        if kind == "jobs":
            self.check(body, is_strict)
        if kind == "jobsets":
            for job in body["spec"]["replicatedJobs"]:
                self.check({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "of-a-set"},
                            "spec": job["template"]["spec"]}, is_strict)
        if kind == "secrets":
            self.check(body, is_strict)
        name = body["metadata"]["name"]
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) and len(name) < 64, name
        with self.lock:
            if name in self.objects[kind]:
                raise Refused(409, "AlreadyExists", f'{kind} "{name}" already exists')
            if is_dry:
                return body
            self.objects[kind][name] = body
            body.setdefault("status", {})
            body["metadata"]["uid"] = str(uuid.uuid4())
            if kind in ("jobs", "jobsets") and not body["spec"].get("suspend"):
                self.make_pods(kind, body)
            return body

    def check(self, body, is_strict):
        try:
            kubernetes_validate.validate(body, self.version, strict=is_strict)
        except kubernetes_validate.ValidationError as error:
            raise Refused(400, "BadRequest", f"strict decoding error: {error.message} at {list(error.path)}") from error

    def admit(self):
        """As Kueue admits what waits."""
        with self.lock:
            for kind in ("jobs", "jobsets"):
                for body in self.objects[kind].values():
                    if body["spec"].pop("suspend", False):
                        self.make_pods(kind, body)

    def make_pods(self, kind, body, indexes=None):
        spec = body["spec"] if kind == "jobs" else body["spec"]["replicatedJobs"][0]["template"]["spec"]
        for index in range(spec["completions"]) if indexes is None else indexes:
            name = f"{body['metadata']['name']}-{index}-{uuid.uuid4().hex[:5]}"
            assert len(name) < 64
            pod = {"kind": "Pod", "apiVersion": "v1",
                   "metadata": {"name": name, **copy.deepcopy(spec["template"].get("metadata", {}))},
                   "spec": copy.deepcopy(spec["template"]["spec"]), "status": {"phase": "Pending"}}
            pod["metadata"].setdefault("labels", {})
            self.objects["pods"][name] = pod
            self.touch(pod, "ADDED")
        self.schedule()

    def schedule(self):
        """REQUIRES: the lock."""
        for name, pod in self.objects["pods"].items():
            if pod["status"]["phase"] != "Pending":
                continue
            image = pod["spec"]["containers"][0]["image"]
            if image not in self.images:
                waiting = {"reason": "ErrImagePull", "message": f"pull access denied for {image}"}
                if "containerStatuses" not in pod["status"]:
                    pod["status"]["containerStatuses"] = [{"name": "agent", "image": image, "state": {"waiting": waiting}}]
                    self.touch(pod, "MODIFIED")
            elif len(self.processes) >= self.room:
                message = f"0/{len(self.nodes)} nodes are available: {len(self.nodes)} Insufficient nvidia.com/gpu."
                condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
                if pod["status"].get("conditions") != [condition]:
                    pod["status"]["conditions"] = [condition]
                    self.touch(pod, "MODIFIED")
            else:
                self.run(name, pod)

    def run(self, name, pod):
        container = pod["spec"]["containers"][0]
        mounts = self.folder / name
        mounts.mkdir()
        for volume in pod["spec"].get("volumes", []):
            for key, text in self.objects["secrets"][volume["secret"]["secretName"]]["stringData"].items():
                (mounts / key).write_text(text)
                (mounts / key).chmod(volume["secret"]["defaultMode"])
        node = self.nodes[len(self.processes) % len(self.nodes)]
        command = [word.replace("/var/run/secrets/tune", str(mounts)) for word in container["command"]]
        with open(mounts / "log", "wb") as log:
            self.processes[name] = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                env={"PATH": os.environ["POD_PATH"], "HOME": str(mounts), "HOSTNAME": name, "TUNE_NODE_NAME": node,
                     "KUBERNETES_SERVICE_HOST": "10.0.0.1"})
        pod["spec"]["nodeName"] = node
        pod["status"] = {"phase": "Running"}
        self.touch(pod, "MODIFIED")
        threading.Thread(target=self.wait, args=(name, pod), daemon=True).start()

    def wait(self, name, pod):
        code = self.processes[name].wait()
        with self.lock:
            del self.processes[name]
            pod["status"]["phase"] = "Succeeded" if code == 0 else "Failed"
            self.touch(pod, "MODIFIED")
            self.end_units(pod)
            self.schedule()

    def end_units(self, pod):
        """The conditions of the Job that the pod is of, and the removal of what was deleted."""
        for kind in ("jobs", "jobsets"):
            for name, body in list(self.objects[kind].items()):
                pods = [one for one in self.objects["pods"].values()
                        if one["metadata"]["labels"].get("tune.dev/unit") == name]
                phases = {one["status"]["phase"] for one in pods}
                if phases & {"Running", "Pending"}:
                    continue
                if "deletionTimestamp" in body["metadata"]:
                    del self.objects[kind][name]
                    for one in pods:
                        del self.objects["pods"][one["metadata"]["name"]]
                        self.touch(one, "DELETED")
                elif pods:
                    done = "Complete" if kind == "jobs" else "Completed"
                    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
                              "message": "Job has reached the specified backoff limit"}
                    body["status"]["conditions"] = [failed if "Failed" in phases else {"type": done, "status": "True"}]

    def evict(self, name):
        """As a node that is drained: the pod ends and its Job makes another."""
        with self.lock:
            self.processes[name].terminate()
            self.replace(name)

    def kill(self, name):
        """As a node that is lost: all processes of the pod are gone at once, and its Job makes another."""
        with self.lock:
            for pid in self.pids_of(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            self.replace(name)

    def pids_of(self, name):
        """The processes of a pod, those in sessions of their own too: all have its host name."""
        mark = f"HOSTNAME={name}".encode()
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found

    def replace(self, name):
        """REQUIRES: the lock, and that the pod's process ends."""
        self.lock.wait_for(lambda: name not in self.processes, 60)
        pod = self.objects["pods"].pop(name)
        self.touch(pod, "DELETED")
        unit = pod["metadata"]["labels"]["tune.dev/unit"]
        kind = "jobs" if unit in self.objects["jobs"] else "jobsets"
        self.objects[kind][unit]["status"] = {}
        self.make_pods(kind, self.objects[kind][unit], [int(name.removeprefix(unit).split("-")[1])])

    def delete(self, kind, name, body):
        with self.lock:
            if name not in self.objects[kind]:
                raise Refused(404, "NotFound", f'{kind} "{name}" not found')
            if kind == "secrets":
                return self.objects[kind].pop(name)
            assert kind == "pods" or body.get("propagationPolicy") == "Foreground", body
            found = self.objects[kind][name]
            found["metadata"]["deletionTimestamp"] = "now"
            pods = [pod for pod in self.objects["pods"].values()
                    if name in (pod["metadata"]["name"], pod["metadata"]["labels"].get("tune.dev/unit"))]
            for pod in pods:
                process = self.processes.get(pod["metadata"]["name"])
                if process and body.get("gracePeriodSeconds") == 0:
                    process.kill()
                elif process:
                    process.terminate()
                elif pod["status"]["phase"] == "Pending":
                    pod["status"]["phase"] = "Failed"
            self.end_units(None)
            return found

    def stop(self):
        with self.lock:
            self.ends = True
            processes = list(self.processes.values())
            self.lock.notify_all()
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, code=200):
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def serve(self):
        cluster = self.server.cluster
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"null") if length else {}
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        cluster.calls.append((self.command, self.path))
        try:
            if self.headers.get("Authorization") != f"Bearer {cluster.token}":
                raise Refused(401, "Unauthorized", "Unauthorized")
            self.route(cluster, url.path, query, body)
        except Refused as refused:
            self.answer(refused.body, refused.code)

    do_GET = do_POST = do_DELETE = serve

    def route(self, cluster, path, query, body):
        if path == "/version":
            major, minor = cluster.version.split(".")[:2]
            return self.answer({"major": major, "minor": minor, "gitVersion": f"v{cluster.version}.0"})
        if path == "/apis/jobset.x-k8s.io/v1alpha2" and cluster.has_jobset:
            return self.answer({"kind": "APIResourceList"})
        match = re.fullmatch(r"/(?:api/v1|apis/batch/v1|apis/jobset\.x-k8s\.io/v1alpha2)/namespaces/([^/]+)/"
                             r"(jobs|jobsets|pods|secrets)(?:/([^/]+)(/log)?)?", path)
        if not match or (match[2] == "jobsets" and not cluster.has_jobset):
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        namespace, kind, name, log = match.groups()
        if namespace != "ml":
            raise Refused(403, "Forbidden", f'{kind} is forbidden: User "ann" cannot use the namespace "{namespace}"')
        if log:
            return self.send_log(cluster, name)
        if self.command == "POST":
            return self.answer(cluster.create(kind, body, query.get("dryRun") == "All",
                                               query.get("fieldValidation") == "Strict"), 201)
        if self.command == "DELETE":
            return self.answer(cluster.delete(kind, name, body))
        if query.get("watch"):
            return self.watch(cluster, query)
        with cluster.lock:
            items = [copy.deepcopy(item) for item in cluster.objects[kind].values() if self.is_selected(item, query)]
            return self.answer({"items": items, "metadata": {"resourceVersion": str(cluster.clock)}})

    @staticmethod
    def is_selected(item, query):
        wanted = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
        labels = item["metadata"].get("labels", {})
        return all(labels.get(name) == value for name, value in wanted.items())

    def send_log(self, cluster, name):
        text = (cluster.folder / name / "log").read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def watch(self, cluster, query):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen = int(query["resourceVersion"])
        deadline = time.monotonic() + min(float(query.get("timeoutSeconds", 5)), cluster.watch_s)
        with contextlib.suppress(OSError):
            while not cluster.ends and (left := deadline - time.monotonic()) > 0:
                with cluster.lock:
                    cluster.lock.wait_for(lambda: cluster.ends or cluster.clock > seen, left)
                    fresh = [event for event in cluster.events if event[0] > seen and self.is_selected(event[2], query)]
                    seen = cluster.clock
                for _, kind, pod in fresh:
                    line = json.dumps({"type": kind, "object": pod}).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, cluster, certificate, key):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cluster = cluster
        cluster.watch_s = 3600
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

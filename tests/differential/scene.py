"""Requests with placeholders, the two servers they go to, and what each placeholder means to each of them.

A request that makes something (a run, a model, a page token) names it by its own serial number: `<<run:7>>` is the run
that request 7 made. So a sequence stays meaningful when the shrinker takes requests out of it; a placeholder whose
maker is gone stands for an id that no server knows.
"""

import dataclasses
import http.client
import json
import re
import urllib.parse

ABSENT = object()
PLACEHOLDER = re.compile(r"<<(\w+):(\w+)>>")


@dataclasses.dataclass
class Request:
    method: str
    path: str
    json: object = ABSENT
    query: list = dataclasses.field(default_factory=list)
    body: bytes | None = None
    headers: dict = dataclasses.field(default_factory=dict)
    makes: str = ""
    mutation: str = ""
    serial: int = 0

    def describe(self):
        text = f"#{self.serial} {self.method} {self.path}"
        if self.query:
            text += "?" + "&".join(f"{name}={value!r}" for name, value in self.query)
        if self.json is not ABSENT:
            text += " " + shorten(json.dumps(self.json, ensure_ascii=False, default=str))
        if self.body is not None:
            text += f" body={shorten(repr(self.body))}"
        if self.headers:
            text += f" headers={self.headers}"
        return text + (f"   [{self.mutation}]" if self.mutation else "")


def shorten(text, length=1500):
    return text if len(text) <= length else f"{text[:length]}... ({len(text)} characters)"


@dataclasses.dataclass
class Answer:
    status: int
    kind: str
    content: bytes
    headers: dict = dataclasses.field(default_factory=dict)

    def json(self):
        """The body as JSON, or ABSENT."""
        if self.kind != "application/json":
            return ABSENT
        try:
            return json.loads(self.content)
        except ValueError:
            return ABSENT


def unknown_id(kind, serial):
    if kind == "run":
        return f"{abs(hash_of(serial)):032x}"
    if kind == "model":
        return f"m-{abs(hash_of(serial)):032x}"
    return {"token": "", "version": "77"}.get(kind, f"no-{kind}")


def hash_of(serial):
    return int(serial) * 2654435761 + 12345 if str(serial).isdigit() else 4242


class Side:
    """One of the two servers: a kept-alive connection, and the ids that it gave."""

    def __init__(self, name, url):
        self.name = name
        self.url = url
        self.address = urllib.parse.urlsplit(url)
        self.connection = None
        self.ids = {}
        self.prefix = ""

    def forget(self, prefix):
        self.ids = {}
        self.prefix = prefix

    def fill(self, text):
        if "<<" not in text:
            return text
        return PLACEHOLDER.sub(self.meaning, text)

    def meaning(self, match):
        kind, serial = match.groups()
        if kind == "p":
            return self.prefix
        if kind == "exp" and (kind, serial) not in self.ids:
            # One a sequence: what an earlier one put into an empty folder stays there.
            return str(9_999_000_000 + int(self.prefix.rsplit("x", 1)[-1]))
        return self.ids.get((kind, serial)) or unknown_id(kind, serial)

    def fill_all(self, value):
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_all(item) for item in value]
        if isinstance(value, dict):
            return {self.fill(name): self.fill_all(item) for name, item in value.items()}
        return value

    def send(self, request):
        target = urllib.parse.quote(self.fill(request.path), safe="/%:@!$&'()*+,;=~-._")
        if request.query:
            target += "?" + urllib.parse.urlencode([(n, self.fill(v)) for n, v in request.query])
        headers = {"Accept": "*/*", "Connection": "keep-alive"}
        body = request.body
        if isinstance(body, bytes) and b"<<" in body:
            body = self.fill(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if request.json is not ABSENT:
            body = json.dumps(self.fill_all(request.json)).encode()
            headers["Content-Type"] = "application/json"
        headers.update(request.headers)
        answer = self.exchange(request.method, target, body, headers)
        self.learn(request, answer)
        return answer

    def exchange(self, method, target, body, headers):
        for attempt in (0, 1):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=60)
            try:
                self.connection.request(method, target, body, headers)
                got = self.connection.getresponse()
                content = got.read()
                kind = got.headers.get("Content-Type", "").split(";")[0]
                return Answer(got.status, kind, content, dict(got.headers))
            except (http.client.RemoteDisconnected, ConnectionError):
                # A kept-alive connection may have ended between two requests; a second time is an error.
                self.connection.close()
                self.connection = None
                if attempt:
                    raise
        raise AssertionError("not reached")

    def remove_webhooks(self):
        """A list of webhooks shows all of them: those of earlier sequences, of which one side may have kept another one."""
        listed = self.exchange("GET", "/api/2.0/mlflow/webhooks?max_results=1000", None, {}).json()
        for hook in listed.get("webhooks", []):
            self.exchange("DELETE", f"/api/2.0/mlflow/webhooks/{hook['webhook_id']}", None, {})

    def learn(self, request, answer):
        """Keeps what the answer gave a name to."""
        if not request.makes:
            return
        found = answer.json()
        if answer.status != 200 or not isinstance(found, dict):
            return
        for part in WHERE[request.makes]:
            found = found.get(part) if isinstance(found, dict) else None
        if found:
            self.ids[(request.makes, str(request.serial))] = str(found)


WHERE = {
    "exp": ["experiment_id"],
    "run": ["run", "info", "run_id"],
    "model": ["model", "info", "model_id"],
    "token": ["next_page_token"],
    "version": ["model_version", "version"],
    "webhook": ["webhook", "webhook_id"],
}

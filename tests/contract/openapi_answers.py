"""Holds every answer that a contract test gets against the OpenAPI description of its route.

`watch()` is used by conftest.py: while it is on, each JSON answer of our servers to `requests` (which the MLflow client
uses) is validated; what deviates is collected and fails the test that caused it.
"""

import contextlib
import json
import re

import jsonschema_rs
import requests

# A path that is described under /api/N.0 is served under /ajax-api/N.0 too.
AJAX = re.compile(r"^/ajax-api/(\d\.0)/")


def path_pattern(path):
    """'/a/{x}/b' as a regular expression; a last part may hold slashes."""
    parts = re.split(r"\{[^}]+\}", path)
    inner = "[^/]+".join(re.escape(part) for part in parts[:-1])
    last = "(?:.*)" if not parts[-1] else "[^/]+" + re.escape(parts[-1])
    return re.compile("^" + (inner + last if len(parts) > 1 else re.escape(path)) + "$")


class Description:
    """One OpenAPI document, ready to check answers."""

    def __init__(self, document):
        self.document = document
        self.patterns = [
            (path_pattern(path), path)
            for path in sorted(document["paths"], key=lambda p: (p.endswith("}"), p.count("{"), -len(p)))
        ]
        self.validators = {}

    def find(self, method, path):
        """The operation of a request, or None."""
        for candidate in (path, AJAX.sub(r"/api/\1/", path)):
            for pattern, described in self.patterns:
                operation = self.document["paths"][described].get(method.lower())
                if operation and pattern.match(candidate):
                    return described, operation
        return None

    def resolve(self, response):
        reference = response.get("$ref")
        return self.document["components"]["responses"][reference.rsplit("/", 1)[1]] if reference else response

    def validator(self, schema):
        key = json.dumps(schema, sort_keys=True)
        if key not in self.validators:
            whole = {**schema, "components": self.document["components"]}
            self.validators[key] = jsonschema_rs.Draft202012Validator(whole)
        return self.validators[key]

    def fault_of(self, method, path, status, content_type, text):
        """What is wrong with an answer, or None. `text()` gives its body."""
        if method not in ("GET", "POST", "PUT", "PATCH", "DELETE") or status == 405:
            return None
        found = self.find(method, path)
        where = f"{method} {path} -> {status}"
        if found is None:
            return None if status in (403, 404, 405) else f"{where}: no operation describes this"
        described, operation = found
        if str(status) not in operation["responses"]:
            # Refused before a route was looked at: the line, the headers, too many connections. 503: the disk is at fault.
            return None if status in (408, 415, 431, 503) else f"{where}: {described} does not name this status"
        content = self.resolve(operation["responses"][str(status)]).get("content")
        if content is None:
            return f"{where}: has a body of {content_type}" if content_type and text() else None
        media_type = content_type.split(";")[0]
        if "*/*" not in content and media_type not in content:
            return f"{where}: is {content_type}, described as {', '.join(content)}"
        if media_type != "application/json" or "application/json" not in content:
            return None
        try:
            self.validator(content["application/json"]["schema"]).validate(json.loads(text()))
        except (jsonschema_rs.ValidationError, ValueError) as fault:
            return f"{where}: {str(fault)[:1500]}"
        return None


@contextlib.contextmanager
def watch(urls):
    """Checks all answers to requests.Session.send from one of `urls` (a set that may grow). Gives the list of faults."""
    faults = []
    descriptions = {}
    send = requests.Session.send

    def description_of(base, trusted):
        if base not in descriptions:
            descriptions[base] = None  # the request for the document itself is not watched
            answer = requests.get(base + "/api/openapi.json", timeout=30, **trusted)
            descriptions[base] = Description(answer.json()) if answer.ok else None
        return descriptions[base]

    def watched(self, request, **options):
        response = send(self, request, **options)
        # A copy: other threads start and stop servers meanwhile.
        base = next((url for url in tuple(urls) if request.url.startswith(url + "/")), None)
        if base is None or response.history:
            return response
        description = description_of(base, {name: options.get(name) for name in ("verify", "cert")})
        if description is not None:
            path = requests.utils.unquote(request.url[len(base):].split("?")[0].split("#")[0])
            fault = description.fault_of(
                request.method,
                path,
                response.status_code,
                response.headers.get("Content-Type", ""),
                lambda: response.content,
            )
            if fault:
                faults.append(fault)
        return response

    requests.Session.send = watched
    try:
        yield faults
    finally:
        requests.Session.send = send

"""Plays a script of requests to the model registry against one server, and hides what differs from server to server."""

import json
import re

import requests

API = "/api/2.0/mlflow/"
PROMPT = "mlflow.prompt.is_prompt"


class Player:
    """Sends the script to one server; ids of its answers become $names in what it hands out."""

    def __init__(self, url):
        self.url = url.rstrip("/")
        self.session = requests.Session()
        self.variables = {}

    def fill(self, value):
        if isinstance(value, str):
            for name in sorted(self.variables, key=len, reverse=True):
                value = value.replace("$" + name, self.variables[name])
            return value
        if isinstance(value, list):
            return [self.fill(each) for each in value]
        if isinstance(value, dict):
            return {key: self.fill(each) for key, each in value.items()}
        return value

    def hide(self, value, key=""):
        """Ids, times and tokens by their names; the longest first, since roots hold ids."""
        if isinstance(value, dict):
            return {name: self.hide(each, name) for name, each in value.items()}
        if isinstance(value, list):
            hidden = [self.hide(each) for each in value]
            return sorted(hidden, key=lambda each: each["key"]) if key == "tags" else hidden
        if "time" in key and isinstance(value, int):
            return "<time>"
        if key == "next_page_token":
            return "<token>"
        if isinstance(value, str):
            for name, known in sorted(self.variables.items(), key=lambda each: -len(each[1])):
                if len(known) > 8:
                    value = value.replace(known, "$" + name)
        return value

    @staticmethod
    def listed(content, fields):
        """The names that a search finds, in order where the order does not hang on times."""
        by_name = str(fields.get("order_by", "")).startswith("['name")
        for key in ["registered_models", "model_versions"]:
            found = [each["name"] + "/" + each.get("version", "") for each in content.get(key, [])]
            if found:
                content[key] = found if by_name else sorted(found)
        return content

    def play(self, method, path, fields, keep=None):
        url = self.url + API + self.fill(path)
        body = self.fill(fields)
        sent = {"params": body} if method == "GET" else {"json": body}
        answer = self.session.request(method, url, timeout=60, **sent)
        try:
            content = answer.json()
        except ValueError:
            content = {}
        if path.endswith("/search") and answer.status_code == 200:
            content = self.listed(content, fields)
        for name, where in (keep or {}).items():
            value = content
            for step in where.split("."):
                value = value[step]
            self.variables[name] = value
        return {"status": answer.status_code, "body": self.hide(content)}


def shown(step):
    text = json.dumps(step[2], sort_keys=True)
    return f"{step[0]} {step[1]} {text if len(text) < 400 else text[:200] + '...'}"


def shorten(text):
    return re.sub(r"(.)\1{200,}", r"\1...\1", text)

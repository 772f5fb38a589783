"""REST calls that are tried again, with the credentials and certificates of MLflow's client."""

from __future__ import annotations

import base64
import configparser
import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

from tune_client._errors import TuneError, say
from tune_client._local import token_of_local_server

RETRY_FOR_S = 60.0
_FIRST_CONTACT_S = 10.0  # where nothing listens: a server that starts takes much less
_SILENT_FOR_S = 2.0
_TIMEOUT_S = 90.0


class Server:
    """A server's address with the login to it. Safe to use from several threads."""

    def __init__(self, url: str | None) -> None:
        url = url or os.environ.get("TUNE_SERVER") or os.environ.get("MLFLOW_TRACKING_URI") or "http://127.0.0.1:5000"
        if not url.lower().startswith(("http://", "https://")):
            raise TuneError(f"{url!r} is no address of a server, as http://host:5000 is; give server= or TUNE_SERVER")
        self.url = url.rstrip("/")
        self.headers = {"Content-Type": "application/json", **_authorization(self.url)}
        self.tls = _tls() if self.url.startswith("https:") else None
        self._has_answered = False

    def call(self, path: str, body: dict[str, Any] | None = None, retry_for_s: float = RETRY_FOR_S,
             timeout_s: float = _TIMEOUT_S, method: str | None = None) -> Any:
        """One REST call; the JSON of the answer. `path`: within /api/2.0/tune, or whole. `method`: POST with a body, else GET.

        What is tried again is carried out once: all tries of a call that changes something have the same Idempotency-Key. Raises TuneError.
        """
        data = None if body is None else json.dumps(body, default=_plain).encode()
        request = urllib.request.Request(self.url + _whole(path), data=data, headers=self.headers,
                                         method=method)
        if request.get_method() != "GET":
            request.add_header("Idempotency-Key", str(uuid.uuid4()))
        begin = time.monotonic()
        pause_s = 0.1
        is_silent = True
        while True:
            reason: object
            try:
                with urllib.request.urlopen(request, timeout=timeout_s, context=self.tls) as answer:
                    self._has_answered = True
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                self._has_answered = True
                if error.code == 401 and self._finds_other_login():
                    request.add_header("Authorization", self.headers["Authorization"])
                    continue
                failure = _error_of(error)
                reason = f"HTTP {error.code}"
                if error.code not in (429, 500, 502, 503, 504):
                    raise failure from None
            except (OSError, ValueError, http.client.HTTPException) as error:  # refused, reset, timed out, half an answer
                reason = getattr(error, "reason", error)
                failure = TuneError(f"no answer from {self.url}: {reason}; is `tune server` running there? (another address: "
                                  "server=, TUNE_SERVER or MLFLOW_TRACKING_URI)")
                if isinstance(reason, ssl.SSLCertVerificationError):
                    raise failure from None
                if isinstance(reason, ConnectionRefusedError) and not self._has_answered:
                    retry_for_s = min(retry_for_s, _FIRST_CONTACT_S)
            waited_s = time.monotonic() - begin
            if waited_s >= retry_for_s:
                raise failure
            if is_silent and waited_s >= _SILENT_FOR_S:
                is_silent = False
                say(f"waiting for the server at {self.url}, {retry_for_s:.0f} s at most ({reason})")
            until_s = min(retry_for_s, _SILENT_FOR_S) if is_silent else retry_for_s
            time.sleep(min(pause_s, until_s - waited_s))
            pause_s = min(2 * pause_s, 5.0)


    def _finds_other_login(self) -> bool:
        """Whether there is a login now that was not sent yet: the server started after this client."""
        before = self.headers.get("Authorization")
        self.headers.update(_authorization(self.url))
        return self.headers.get("Authorization") != before


def _whole(path: str) -> str:
    return path if path.startswith("/api/") else "/api/2.0/tune" + path


def _authorization(url: str) -> dict[str, str]:
    """The server's own token where it is known, else the credentials of MLflow's own client: user and password, or a token."""
    own = os.environ.get("TUNE_TOKEN") or token_of_local_server(url)
    if own:
        return {"Authorization": "Bearer " + own}
    stored = configparser.ConfigParser()
    stored.read(os.path.expanduser("~/.mlflow/credentials"))
    user, password = (os.environ.get(f"MLFLOW_TRACKING_{name.upper()}") or
                      stored.get("mlflow", f"mlflow_tracking_{name}", fallback=None) for name in ("username", "password"))
    if user and password:
        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    return {"Authorization": "Bearer " + token} if token else {}


def _tls() -> ssl.SSLContext:
    """Our own certificates, else those of MLflow's own client."""
    names = ("TUNE_CA_FILE", "MLFLOW_TRACKING_SERVER_CERT_PATH", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    trusted = next(filter(None, map(os.environ.get, names)), None)
    is_folder = trusted is not None and os.path.isdir(trusted)
    context = ssl.create_default_context(cafile=None if is_folder else trusted, capath=trusted if is_folder else None)
    if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    shown = os.environ.get("TUNE_CLIENT_CERT") or os.environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH")
    if shown:
        context.load_cert_chain(shown)
    return context


def _error_of(error: urllib.error.HTTPError) -> TuneError:
    text = b""
    try:
        text = error.read()
        body = json.loads(text)
        return TuneError(body["message"], error.code, body.get("error_code", ""))
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return TuneError(f"HTTP {error.code}: {text[:200]!r}", error.code)


def _plain(value: Any) -> Any:
    """numpy's numbers and the like as Python's."""
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON has no form for")


def to_json_number(value: Any) -> float | str:
    """JSON has no NaN and no infinities; the server reads their names."""
    number = float(value)
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    return number

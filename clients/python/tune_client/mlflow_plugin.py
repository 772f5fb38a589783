"""What MLflow's client finds of us once the wheel is installed: the entry point `mlflow.request_header_provider`.

A client whose tracking server is the one that TUNE_SERVER and TUNE_TOKEN name, or that this user runs on this machine, sends the token by
itself, which saves setting MLFLOW_TRACKING_TOKEN. Each call has an Idempotency-Key, so that what the client tries again happens once.
"""

from __future__ import annotations

import os
import uuid

from mlflow.tracking.request_header.abstract_request_header_provider import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
    RequestHeaderProvider,
)

from tune_client._local import token_of_local_server


class TuneHeaderProvider(RequestHeaderProvider):  # type: ignore[misc,unused-ignore]
    """Headers for each request of MLflow's client. It is not told to which server: the token is sent where all go to one of ours."""

    def in_context(self) -> bool:
        """Whether the client's server is one of ours, as far as can be known without asking it."""
        return _token() is not None

    def request_headers(self) -> dict[str, str]:
        """The key of this call, and the login where the client has none of its own."""
        token = _token()
        has_own = any(os.environ.get(f"MLFLOW_TRACKING_{name}") for name in ("TOKEN", "USERNAME", "AUTH"))
        login = {} if token is None or has_own else {"Authorization": f"Bearer {token}"}
        return {"Idempotency-Key": str(uuid.uuid4()), **login}


def _token() -> str | None:
    import mlflow  # type: ignore[import-untyped,import-not-found,unused-ignore]

    url = str(mlflow.get_tracking_uri()).rstrip("/")
    if not url.lower().startswith(("http://", "https://")) or str(mlflow.get_registry_uri()).rstrip("/") != url:
        return None
    if os.environ.get("TUNE_TOKEN") and os.environ.get("TUNE_SERVER", "").rstrip("/") == url:
        return os.environ["TUNE_TOKEN"]
    return token_of_local_server(url)

"""What a file or the platform says about who we are, as google-auth's credentials. In a thread: files are read."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from google.auth import aws, compute_engine, identity_pool, impersonated_credentials
from google.oauth2 import credentials as user
from google.oauth2 import service_account

from adapter.errors import BackendUnauthorized

_SCOPES: Final = ("https://www.googleapis.com/auth/monitoring.read",)
_SECRET: Final = frozenset({"private_key", "client_secret", "refresh_token"})


def path(setting: str) -> str:
    """Say which file holds the credentials; empty: none, the metadata server knows."""
    if named := setting or os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", ""):
        return named
    folder = Path(os.environ.get("CLOUDSDK_CONFIG", "") or "~/.config/gcloud").expanduser()
    left = folder / "application_default_credentials.json"
    return str(left) if left.is_file() else ""


def content(file: str) -> bytes:
    """Read the file as it is now."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise BackendUnauthorized("credentialsFile cannot be read", detail=type(error).__name__) from None


def of_platform() -> Any:  # noqa: ANN401 - google-auth's classes are not typed
    """Log in as the metadata server says: the machine's service account, or in GKE the pod's."""
    return compute_engine.Credentials(scopes=_SCOPES)


def of_content(said: bytes) -> Any:  # noqa: ANN401
    """Log in as a file says; raise ValueError if it makes no sense."""
    info = decoded(said)
    match info.get("type"):
        case "service_account":
            return service_account.Credentials.from_service_account_info(info, scopes=_SCOPES)
        case "external_account":
            return _external(info)
        case "impersonated_service_account":
            made = impersonated_credentials.Credentials
            return made.from_impersonated_service_account_info(info, scopes=_SCOPES)
        case "authorized_user":
            return user.Credentials.from_authorized_user_info(info, scopes=_SCOPES)
        case _:
            raise ValueError("the type must be service_account, external_account, impersonated_service_account or so")


def decoded(said: bytes) -> dict[str, Any]:
    """Read the file's JSON."""
    try:
        return msgspec.json.decode(said, type=dict[str, Any])
    except msgspec.DecodeError:
        raise ValueError("it is no JSON object") from None


def secrets(info: dict[str, Any]) -> Iterator[str]:
    """Name what must not be told."""
    for key, value in info.items():
        if key in _SECRET and isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from secrets(value)


def _external(info: dict[str, Any]) -> Any:  # noqa: ANN401
    source = info.get("credential_source")
    if not isinstance(source, dict) or "executable" in source:
        raise ValueError("credential_source must be a file, a URL or AWS: no program is run")
    kind = aws if str(source.get("environment_id", "")).startswith("aws") else identity_pool
    return kind.Credentials.from_info(info, scopes=_SCOPES)

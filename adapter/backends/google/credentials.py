"""Loading of google-auth credentials from a file or the platform. Blocking: files are read."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from google.auth import aws, compute_engine, identity_pool, impersonated_credentials
from google.oauth2 import credentials as user
from google.oauth2 import service_account

from adapter.errors import BackendUnauthorized

_SCOPES: Final = ("https://www.googleapis.com/auth/monitoring.read",)
_SECRET_KEYS: Final = frozenset({"private_key", "client_secret", "refresh_token"})


def credentials_path(setting: str) -> str:
    """Return the path of the credentials file; empty if the metadata server is to be used."""
    if path := setting or os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", ""):
        return path
    folder = Path(os.environ.get("CLOUDSDK_CONFIG", "") or "~/.config/gcloud").expanduser()
    default = folder / "application_default_credentials.json"
    return str(default) if default.is_file() else ""


def read_file(path: str) -> bytes:
    """Return the content of the credentials file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BackendUnauthorized("credentialsFile cannot be read", detail=type(error).__name__) from None


def from_metadata_server() -> Any:  # noqa: ANN401 - google-auth has no types
    """Return the credentials of the node's service account, or in GKE of the pod's."""
    return compute_engine.Credentials(scopes=_SCOPES)


def from_info(info: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the credentials of a file's content; raise ValueError if it is invalid."""
    create = _BY_TYPE.get(str(info.get("type")))
    if create is None:
        raise ValueError(f"unsupported type {info.get('type')!r}, supported are {', '.join(_BY_TYPE)}")
    return create(info, scopes=_SCOPES)


def decode(content: bytes) -> dict[str, Any]:
    """Decode the content of a credentials file; raise ValueError if it is not a JSON object."""
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("not a JSON object") from None


def secrets(info: dict[str, Any]) -> Iterator[str]:
    """Yield the secrets of a credentials file."""
    for key, value in info.items():
        if key in _SECRET_KEYS and isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from secrets(value)


def _external_account(info: dict[str, Any], scopes: Sequence[str]) -> Any:  # noqa: ANN401
    source = info.get("credential_source")
    if not isinstance(source, dict) or "executable" in source:
        raise ValueError("credential_source must be a file, a URL or AWS; executables are not supported")
    module = aws if str(source.get("environment_id", "")).startswith("aws") else identity_pool
    return module.Credentials.from_info(info, scopes=scopes)


_BY_TYPE: Final[dict[str, Callable[..., Any]]] = {
    "service_account": service_account.Credentials.from_service_account_info,
    "external_account": _external_account,
    "impersonated_service_account": impersonated_credentials.Credentials.from_impersonated_service_account_info,
    "authorized_user": user.Credentials.from_authorized_user_info,
}

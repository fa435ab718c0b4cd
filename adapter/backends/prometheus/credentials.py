"""What we show a server: tokens and passwords, read again whenever they may have changed."""

from pathlib import Path

from requests import PreparedRequest
from requests.auth import AuthBase, _basic_auth_str

from adapter.backends.prometheus.settings import Prometheus
from adapter.errors import BackendUnauthorized

_SECRET = 4
"""Shorter texts are no secrets worth the name, and taking them out would make nonsense of what was said."""


class Credentials(AuthBase):
    """Puts headers and the current secret on a request."""

    def __init__(self, settings: Prometheus) -> None:
        self._settings = settings
        self._shown: tuple[str, ...] = ()

    def scrubbed(self, text: str) -> str:
        """Take what we showed out of what a server said: some repeat it."""
        for secret in (*self._shown, *self._settings.headers.values()):
            if len(secret) >= _SECRET:
                text = text.replace(secret, "***")
        return text

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Put them on."""
        request.headers.update(self._settings.headers)
        secrets = {key: _secret(path, f"headerFiles.{key}") for key, path in self._settings.header_files.items()}
        request.headers.update(secrets)
        shown = tuple(secrets.values())
        basic = self._settings.basic
        if self._settings.bearer_token_file:
            token = _secret(self._settings.bearer_token_file, "bearerTokenFile")
            shown += (token,)
            request.headers["Authorization"] = f"Bearer {token}"
        elif basic is not None:
            password = _secret(basic.password_file, "basic.passwordFile")
            written = _basic_auth_str(basic.username, password)
            shown += (password, written.removeprefix("Basic "))
            request.headers["Authorization"] = written
        self._shown = shown  # at once: another thread may be taking them out of something
        return request


def _secret(path: str, setting: str) -> str:
    try:
        found = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BackendUnauthorized(f"{setting} cannot be read", detail=type(error).__name__) from None
    if not found or not found.isprintable():
        raise BackendUnauthorized(f"{setting} holds nothing that can be sent")
    return found

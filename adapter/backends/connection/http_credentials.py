"""The headers that authenticate HTTP requests, read from files at every request so that secrets can be rotated."""

import base64

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.connection.secret_file import Redactor, SecretFile


class HttpCredentials:
    """The credentials and fixed headers of one server."""

    def __init__(self, settings: HttpSettings) -> None:
        self._headers = settings.headers
        self._header_files = {
            key: SecretFile(path, f"headerFiles.{key}") for key, path in settings.header_files.items()
        }
        self._token = SecretFile(settings.bearer_token_file, "bearerTokenFile") if settings.bearer_token_file else None
        basic = settings.basic_auth
        self._username = basic.username if basic else ""
        self._password = SecretFile(basic.password_file, "basicAuth.passwordFile") if basic else None
        files = (self._token, self._password, *self._header_files.values())
        self.secrets: tuple[Redactor, ...] = (
            *(file for file in files if file is not None),
            Redactor(*settings.headers.values()),
        )
        """Removed from the messages of errors."""

    def headers(self) -> dict[str, str]:
        """Return the headers of one request; blocks, so call it in a thread."""
        headers = {**self._headers, **{key: file.read_sync() for key, file in self._header_files.items()}}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.read_sync()}"
        elif self._password is not None:
            pair = f"{self._username}:{self._password.read_sync()}"
            encoded = base64.b64encode(pair.encode()).decode()
            self._password.add(encoded)
            headers["Authorization"] = f"Basic {encoded}"
        return headers

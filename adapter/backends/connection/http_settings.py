"""How a server that speaks HTTP is reached, whatever it then says."""

from collections.abc import Iterator, Mapping

from adapter.backends.connection.urls import parsed, url_problems
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, Tls, at_least_one, tls_problems
from autoscaler.types.record import Record


class Basic(Record, frozen=True):
    """HTTP basic authentication."""

    username: str
    """Whom to say we are."""

    password_file: str
    """Read at every request, so that the password can be changed."""


class HttpSettings(BackendSettings, frozen=True):
    """One server."""

    url: str
    """Where it is."""

    bearer_token_file: str = ""
    """A token to show, read at every request: tokens rotate."""

    basic: Basic | None = None
    headers: Mapping[str, str] = {}
    """Sent with every request. No secrets: what is here can be read in the configuration."""

    header_files: Mapping[str, str] = {}
    """Headers whose values are secrets, such as ``X-Api-Key``: by name the file, read at every request."""

    tls: Tls = Tls()
    proxy_url: str = ""
    """An HTTP proxy on the way. The environment's are not used: they would be a hop nobody sees here."""

    connections: int = 4
    """Requests in flight at once."""

    max_response_bytes: int = 16 * 1024 * 1024
    """In bytes. More is refused before it fills our memory."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from _url_problems(self, at)
        if self.basic is not None and self.bearer_token_file:
            yield f"{at}.basic: excludes bearerTokenFile"
        yield from tls_problems(self.tls, f"{at}.tls")
        yield from at_least_one({"connections": self.connections, "breaker.failures": self.breaker.failures}, at)
        yield from _header_problems(self.headers, f"{at}.headers")
        yield from _header_problems(dict.fromkeys(self.header_files, ""), f"{at}.headerFiles")


def _header_problems(headers: Mapping[str, str], at: str) -> Iterator[str]:
    for key, value in headers.items():
        if not (key.isascii() and key.isprintable() and value.isprintable()) or ":" in key or " " in key:
            yield f"{at}.{key}: cannot be sent as a header"
        elif key.lower() == "authorization":
            yield f"{at}.{key}: use bearerTokenFile or basic, so that the secret is in a file of its own"


def _url_problems(settings: HttpSettings, at: str) -> Iterator[str]:
    parts = parsed(settings.url)
    if parts is None:
        yield f"{at}.url: not an http or https URL with a host"
    elif "@" in parts.netloc:
        yield f"{at}.url: holds a password; use basic, so that it is in a file of its own"
    elif parts.query or parts.fragment:
        yield f"{at}.url: holds a query or a fragment; use parameters"
    yield from url_problems(settings.proxy_url, f"{at}.proxyUrl")

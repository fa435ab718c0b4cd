"""The settings of backends that are HTTP servers."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from adapter.backends.connection.urls import url_problems
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, Tls, count_problems, tls_problems
from adapter.decoding.problem import Problem
from autoscaler.types.record import Record


class BasicAuth(Record, frozen=True):
    """HTTP basic authentication."""

    username: str
    """User name."""

    password_file: str
    """Read at every request, so that the password can be rotated."""


class HttpSettings(BackendSettings, frozen=True):
    """One HTTP server."""

    url: str
    """Base URL of the server, with http or https."""

    bearer_token_file: str = ""
    """File of a bearer token, read at every request, so that the token can be rotated."""

    basic_auth: BasicAuth | None = None
    headers: Mapping[str, str] = {}
    """Sent with every request. Not for secrets: the configuration is readable by others."""

    header_files: Mapping[str, str] = {}
    """Files of secret header values by header name, such as ``X-Api-Key``; read at every request."""

    tls: Tls = Tls()
    proxy_url: str = ""
    """An HTTP proxy. Proxy environment variables are ignored."""

    max_connections: int = 4
    """How many requests can be in flight."""

    max_response_bytes: int = 16 * 1024 * 1024
    """Larger responses are rejected, which bounds memory."""

    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, path: str) -> Iterator[Problem]:
        """Return the problems that decoding does not find, each with its path."""
        yield from url_problems(self.url, f"{path}.url", is_required=True)
        yield from url_problems(self.proxy_url, f"{path}.proxyUrl")
        if self.basic_auth is not None and self.bearer_token_file:
            yield Problem(f"{path}.basicAuth", "cannot be combined with bearerTokenFile")
        yield from tls_problems(self.tls, f"{path}.tls")
        counts = {"maxConnections": self.max_connections}
        yield from count_problems(
            {**counts, "circuitBreaker.failureThreshold": self.circuit_breaker.failure_threshold}, path
        )
        yield from _header_problems(self.headers, f"{path}.headers")
        yield from _header_problems(dict.fromkeys(self.header_files, ""), f"{path}.headerFiles")


class HttpApiSettings(BackendSettings, frozen=True, kw_only=True):
    """The HTTP API of a provider, which has its own authentication."""

    url: str = ""
    """The URL of the API instead of the provider's own, such as a gateway."""

    tls: Tls = Tls()
    proxy_url: str = ""
    """An HTTP proxy. Proxy environment variables are ignored."""

    max_connections: int = 4
    """How many requests can be in flight."""

    max_response_bytes: int = 16 * 1024 * 1024
    """Larger responses are rejected, which bounds memory."""

    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    @property
    def provider_url(self) -> str:
        """URL of the provider that is used if ``url`` is empty."""
        raise NotImplementedError

    @property
    def http(self) -> HttpSettings:
        """The settings of the HTTP client."""
        return HttpSettings(
            url=self.url or self.provider_url,
            tls=self.tls,
            proxy_url=self.proxy_url,
            max_connections=self.max_connections,
            max_response_bytes=self.max_response_bytes,
            circuit_breaker=self.circuit_breaker,
        )

    def problems(self, path: str) -> Iterator[Problem]:
        yield from self.http.problems(path)


class BatchedHttpSettings(HttpApiSettings, frozen=True, kw_only=True):
    """An HTTP API that accepts several queries in one request."""

    max_queries_per_request: int
    min_request_interval: timedelta = timedelta(milliseconds=200)
    """The minimum time between the starts of two requests."""

    def problems(self, path: str) -> Iterator[Problem]:
        yield from super().problems(path)
        yield from count_problems({"maxQueriesPerRequest": self.max_queries_per_request}, path)


def _header_problems(headers: Mapping[str, str], path: str) -> Iterator[Problem]:
    for key, value in headers.items():
        if not (key.isascii() and key.isprintable() and value.isprintable()) or ":" in key or " " in key:
            yield Problem(f"{path}.{key}", "not a valid HTTP header")
        elif key.lower() == "authorization":
            yield Problem(f"{path}.{key}", "must not contain credentials", hint="use bearerTokenFile or basicAuth")

"""How to reach one Prometheus, and what to make of its answers."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Literal
from urllib.parse import urlsplit

from autoscaler.types.record import Record


class Basic(Record, frozen=True):
    """HTTP basic authentication."""

    username: str
    """Whom to say we are."""

    password_file: str
    """Read at every request, so that the password can be changed."""


class Tls(Record, frozen=True):
    """How the server is verified and how we show who we are; files are read again when they change."""

    ca_file: str = ""
    """PEM; who may have signed the server's certificate. Left out: whom the system trusts."""

    cert_file: str = ""
    """PEM; our own certificate, for servers that ask for one."""

    key_file: str = ""
    """PEM; its private key."""

    server_name: str = ""
    """The name the certificate must be for, if it is not the URL's."""

    insecure_skip_verify: bool = False
    """Believe any certificate. Whoever is in between can then make workloads grow and shrink."""


class BreakerSettings(Record, frozen=True):
    """When to stop asking a server that does not answer."""

    failures: int = 5
    """How many different queries must fail in a row; one bad rule alone never keeps the others waiting."""

    rest: timedelta = timedelta(seconds=1)
    """How long nobody asks at first; twice as long after each trial that fails."""

    longest: timedelta = timedelta(seconds=10)
    """How long nobody asks at most: the longest that a recovery can go unnoticed."""


class Prometheus(Record, frozen=True):
    """One server that answers Prometheus' HTTP API."""

    url: str
    """Where its API is, without ``/api/v1``: ``http://prometheus.monitoring:9090``, or Mimir's with ``/prometheus``."""

    bearer_token_file: str = ""
    """A token to show, read at every request: tokens of service accounts rotate."""

    basic: Basic | None = None
    headers: Mapping[str, str] = {}
    """Sent with every request: ``X-Scope-OrgID`` names the tenant to Mimir and Cortex, ``THANOS-TENANT`` to Thanos."""

    parameters: Mapping[str, str] = {}
    """Added to every query: ``dedup: "true"`` for Thanos, ``extra_label`` for VictoriaMetrics."""

    method: Literal["GET", "POST"] = "GET"
    """POST for queries that are longer than a URL may be."""

    tls: Tls = Tls()
    proxy_url: str = ""
    """An HTTP proxy on the way. The environment's are not used: they would be a hop nobody sees here."""

    connections: int = 4
    """Queries in flight at once, and threads to wait for them; a server that hangs holds up no other backend."""

    largest_answer: int = 64 * 1024 * 1024
    """In bytes; a hundred thousand series with a dozen labels fit. More is refused before it fills our memory."""

    sample_times: bool = True
    """Ask for the samples' own times, in the same query. Without, every number counts as of the time of asking, and
    one that Prometheus has not heard of for minutes passes for new."""

    warnings: Literal["refuse", "accept"] = "refuse"
    """What to do with an answer that says it may be partial, as Thanos' may. A part of a sum is a smaller number."""

    breaker: BreakerSettings = BreakerSettings()


def problems(settings: Prometheus, at: str) -> Iterator[str]:
    """Say everything that is wrong with these settings, each problem with its path."""
    yield from _url_problems(settings, at)
    if settings.basic is not None and settings.bearer_token_file:
        yield f"{at}.basic: excludes bearerTokenFile"
    if settings.tls.key_file and not settings.tls.cert_file:
        yield f"{at}.tls.certFile: is needed with keyFile"
    for key, count in (("connections", settings.connections), ("breaker.failures", settings.breaker.failures)):
        if count < 1:
            yield f"{at}.{key}: must be at least 1, is {count}"
    for key, value in settings.headers.items():
        if not (key.isascii() and key.isprintable() and value.isprintable()) or ":" in key or " " in key:
            yield f"{at}.headers.{key}: cannot be sent as a header"
        elif key.lower() == "authorization":
            yield f"{at}.headers.{key}: use bearerTokenFile or basic, so that the secret is in a file of its own"


def _url_problems(settings: Prometheus, at: str) -> Iterator[str]:
    for key, url in (("url", settings.url), ("proxyUrl", settings.proxy_url)):
        if key == "proxyUrl" and not url:
            continue
        try:
            parts = urlsplit(url)
            port_is_valid = parts.port is None or parts.port > 0
        except ValueError:
            parts, port_is_valid = urlsplit(""), False
        if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_valid:
            yield f"{at}.{key}: not an http or https URL with a host"
        elif key == "url" and (parts.username or parts.password):
            yield f"{at}.url: holds a password; use basic, so that it is in a file of its own"
        elif key == "url" and (parts.query or parts.fragment):
            yield f"{at}.url: holds a query or a fragment; use parameters"

"""How to reach one Prometheus, and what to make of its answers."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import PROMQL


class Prometheus(HttpSettings, frozen=True, kw_only=True):
    """A server that answers Prometheus' HTTP API."""

    opened_by: ClassVar[str] = "adapter.backends.prometheus.backend:PrometheusBackend"
    language: ClassVar[str] = PROMQL

    url: str
    """Where its API is, without ``/api/v1``: ``http://prometheus.monitoring:9090``, or Mimir's with ``/prometheus``."""

    headers: Mapping[str, str] = {}
    """Sent with every request: ``X-Scope-OrgID`` names the tenant to Mimir and Cortex, ``THANOS-TENANT`` to Thanos."""

    connections: int = 4
    """Queries in flight at once, and threads to wait for them; a server that hangs holds up no other backend."""

    max_response_bytes: int = 64 * 1024 * 1024
    """In bytes; a hundred thousand series with a dozen labels fit. More is refused before it fills our memory."""

    parameters: Mapping[str, str] = {}
    """Added to every query: ``dedup: "true"`` for Thanos, ``extra_label`` for VictoriaMetrics."""

    method: Literal["GET", "POST"] = "GET"
    """POST for queries that are longer than a URL may be."""

    sample_times: bool = True
    """Ask for the samples' own times, in the same query. Without, every number counts as of the time of asking, and
    one that Prometheus has not heard of for minutes passes for new."""

    warnings: Literal["refuse", "accept"] = "refuse"
    """What to do with an answer that says it may be partial, as Thanos' may. A part of a sum is a smaller number."""

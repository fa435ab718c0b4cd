"""The settings of a Prometheus server."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import PROMQL
from adapter.rules.tenancy import Dialect


class Prometheus(HttpSettings, frozen=True, kw_only=True):
    """A server with Prometheus' HTTP API."""

    backend_class: ClassVar[str] = "adapter.backends.prometheus.backend:PrometheusBackend"
    query_language: ClassVar[str] = PROMQL
    has_adaptive_interval: ClassVar[bool] = True

    url: str
    """The URL without ``/api/v1``: ``http://prometheus.monitoring:9090``, or Mimir's with ``/prometheus``."""

    headers: Mapping[str, str] = {}
    """Sent with every request: ``X-Scope-OrgID`` is the tenant of Mimir and Cortex, ``THANOS-TENANT`` of Thanos."""

    max_response_bytes: int = 64 * 1024 * 1024
    """Larger responses are rejected. The default is enough for 100,000 series with 12 labels; a query needs up to four
    times the size of its response as memory."""

    parameters: Mapping[str, str] = {}
    """Added to every request: ``dedup: "true"`` for Thanos, ``extra_label`` for VictoriaMetrics."""

    method: Literal["GET", "POST"] = "GET"
    """POST allows queries that are longer than the maximum length of a URL."""

    sample_times: bool = True
    """Query the samples' timestamps together with their values. Without, all values count as current, and a value
    that Prometheus last scraped minutes ago is not detected as too old."""

    dialect: Dialect = "PromQL"
    """The server's query language: ``MetricsQL`` for VictoriaMetrics. Then queries of ExternalMetrics may only use the
    part of PromQL that both languages read in the same way. Other rules may use all of the server's language."""

    warnings: Literal["refuse", "accept"] = "refuse"
    """What to do with a result that may be partial, as Thanos' may be. A partial sum is too small a value."""

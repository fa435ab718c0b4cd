"""The adapter's own metrics, served at ``/metrics``."""

from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

P = ParamSpec("P")
R = TypeVar("R")
disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the number of series

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Telemetry:
    """All metrics of the adapter, in one registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("requests", "Number of requests served.", "endpoint", "code")
        self.request_duration = self._histogram("request_duration_seconds", "Duration of requests.", "endpoint")
        self.in_flight = self._gauge(
            "requests_in_flight", "Number of requests in flight that count against maxConcurrentRequests."
        )
        self.connections_dropped = self._counter(
            "connections_dropped", "Number of connections closed by the server.", "reason"
        )
        self.backend_queries = self._counter(
            "backend_queries", "Number of queries sent to backends, by result.", "backend", "result"
        )
        self.backend_query_duration = self._histogram(
            "backend_query_duration_seconds", "Duration of backend queries.", "backend"
        )
        self.tenant_queries_refused = self._counter(
            "tenant_queries_refused", "Number of queries refused because of a limit of tenantLimits.", "limit"
        )
        self.cache_reads = self._counter(
            "cache_reads", "Number of reads of snapshots and cached queries, by hit or miss.", "cache", "result"
        )
        self.comparisons = self._counter(
            "comparisons", "Number of comparisons with another external metrics server, by result.", "result"
        )
        self.rejected_objects = self._counter(
            "external_metrics_rejected", "Number of rejections of ExternalMetric objects, by reason.", "reason"
        )
        self.metric_failures = self._counter(
            "metric_failures", "Number of failed metric requests, by reason.", "reason"
        )
        self.authentications = self._counter(
            "authentications", "Number of authentication attempts, by result.", "result"
        )
        self.authorizations = self._counter("authorizations", "Number of authorization decisions, by result.", "result")
        self.reviews = self._counter(
            "reviews", "Number of TokenReviews and SubjectAccessReviews sent to the API server.", "kind"
        )

        self.clock_jumps = self._counter("clock_jumps", "Number of jumps of the machine's wall clock by 2 s or more.")
        self.clock_offset = self._gauge(
            "clock_offset_seconds", "How far the machine's wall clock is ahead of the clock of the process."
        )

    def count_reviews(self, kind: str, review: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """Wrap ``review`` to count its calls."""

        async def counted(*args: P.args, **kwargs: P.kwargs) -> R:
            self.reviews.labels(kind).inc()
            return await review(*args, **kwargs)

        return counted

    def record_query(self, backend: str, result: str, seconds: float) -> None:
        self.backend_queries.labels(backend, result).inc()
        self.backend_query_duration.labels(backend).observe(seconds)

    def record_refused_query(self, limit: str) -> None:
        self.tenant_queries_refused.labels(limit).inc()

    def cache_read_counter(self, cache: str) -> Callable[[bool], None]:
        """Return a function that counts a read of this cache as hit or miss."""
        hits, misses = self.cache_reads.labels(cache, "hit"), self.cache_reads.labels(cache, "miss")
        return lambda is_hit: (hits if is_hit else misses).inc()

    def count_rejection(self, reason: str) -> None:
        self.rejected_objects.labels(reason).inc()

    def record_comparison(self, result: str) -> None:
        self.comparisons.labels(result).inc()

    def render(self) -> tuple[bytes, str]:
        """Return all metrics in the Prometheus text format, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4

    def _gauge(self, name: str, documentation: str) -> Gauge:
        return Gauge(f"steadyscale_{name}", documentation, registry=self.registry)

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        return Counter(f"steadyscale_{name}", documentation, labels, registry=self.registry)

    def _histogram(self, name: str, documentation: str, label: str) -> Histogram:
        return Histogram(f"steadyscale_{name}", documentation, [label], buckets=_BUCKETS, registry=self.registry)

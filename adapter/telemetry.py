"""Our own figures: their names and what they mean. One object in a process, handed to who counts."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

T = TypeVar("T", Counter, Histogram)
P = ParamSpec("P")
R = TypeVar("R")
_LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Telemetry:
    """Every counter of the adapter."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "steadyscale_requests", "Requests answered.", ["endpoint", "code"], registry=self.registry
        )
        self.latency = Histogram(
            "steadyscale_request_duration_seconds",
            "Time from a request's arrival to its answer.",
            ["endpoint"],
            buckets=_LATENCY,
            registry=self.registry,
        )
        self.in_flight = Gauge("steadyscale_requests_in_flight", "Requests being answered.", registry=self.registry)
        self.dropped = Counter(
            "steadyscale_connections_dropped", "Connections closed by us.", ["why"], registry=self.registry
        )
        self.failures = Counter(
            "steadyscale_metric_failures", "Metrics that could not be read.", ["failure"], registry=self.registry
        )
        self.authentications = Counter(
            "steadyscale_authentications",
            "Callers told apart, by result.",
            ["result"],
            registry=self.registry,
        )
        self.authorizations = Counter(
            "steadyscale_authorizations", "Leave asked for, by result.", ["result"], registry=self.registry
        )
        self.reviews = Counter(
            "steadyscale_reviews",
            "Reviews sent to the API server, by kind; every other caller was remembered.",
            ["kind"],
            registry=self.registry,
        )

    def answered(self, endpoint: str, code: int, seconds: float) -> None:
        """Count an answer."""
        _one(self.requests, endpoint, str(code)).inc()
        _one(self.latency, endpoint).observe(seconds)

    def authenticated(self, result: str) -> None:
        """Count how finding out who it is ended."""
        _one(self.authentications, result).inc()

    def authorized(self, result: str) -> None:
        """Count how asking whether they may ended."""
        _one(self.authorizations, result).inc()

    def counting(self, kind: str, review: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """Count each time that this kind of review is really sent; a remembered one is not."""

        async def counted(*args: P.args, **kwargs: P.kwargs) -> R:
            _one(self.reviews, kind).inc()
            return await review(*args, **kwargs)

        return counted

    def render(self) -> tuple[bytes, str]:
        """Write all figures in the text format; return them with their content type."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4


@lru_cache(maxsize=4096)
def _one(metric: T, *labels: str) -> T:
    """Find the figure with these labels; the library's own way costs more than the rest of the counting."""
    return metric.labels(*labels)

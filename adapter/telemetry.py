"""Our own figures: their names and what they mean. One object in a process, handed to who counts.

What is counted on every request is counted in plain dictionaries and made into figures when someone looks: the
library's own counters would cost more than the rest of an answer's accounting.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from typing import ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

P = ParamSpec("P")
R = TypeVar("R")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Tally(Collector):
    """Counts by label."""

    def __init__(self, name: str, says: str, labels: tuple[str, ...], registry: CollectorRegistry) -> None:
        self._name, self._says, self._labels = name, says, labels
        self._counts: Counter[tuple[str, ...]] = Counter()
        registry.register(self)

    def add(self, *labels: str) -> None:
        """Count one more."""
        self._counts[labels] += 1

    def collect(self) -> Iterator[Metric]:
        """Make figures of the counts."""
        family = CounterMetricFamily(self._name, self._says, labels=self._labels)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        yield family


class Durations(Collector):
    """Counts durations by label and size."""

    def __init__(self, name: str, says: str, label: str, registry: CollectorRegistry) -> None:
        self._name, self._says, self._label = name, says, label
        self._counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(_BUCKETS) + 1))
        self._sums: defaultdict[str, float] = defaultdict(float)
        registry.register(self)

    def add(self, label: str, seconds: float) -> None:
        """Count one more."""
        self._counts[label][bisect_left(_BUCKETS, seconds)] += 1
        self._sums[label] += seconds

    def collect(self) -> Iterator[Metric]:
        """Make a histogram of the counts."""
        family = HistogramMetricFamily(self._name, self._says, labels=[self._label])
        for label, counts in self._counts.items():
            edges = [*map(str, _BUCKETS), "+Inf"]
            upto = [(edge, float(sum(counts[: number + 1]))) for number, edge in enumerate(edges)]
            family.add_metric([label], upto, self._sums[label])
        yield family


class Telemetry:
    """Every figure of the adapter."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._tally("requests", "Requests answered.", "endpoint", "code")
        self.latency = Durations(
            "steadyscale_request_duration_seconds",
            "Time from a request's arrival to its answer.",
            "endpoint",
            self.registry,
        )
        self.in_flight = Gauge("steadyscale_requests_in_flight", "Requests being answered.", registry=self.registry)
        self.dropped = self._tally("connections_dropped", "Connections closed by us.", "why")
        self.fetches = self._tally(
            "backend_queries", "Queries sent to metric systems, by what came.", "backend", "result"
        )
        self.fetching = Durations(
            "steadyscale_backend_query_duration_seconds",
            "Time that a metric system took over a query.",
            "backend",
            self.registry,
        )
        self.reads = self._tally(
            "cache_reads",
            "Metrics read from a cache, by whether they were there or had to be waited for.",
            "cache",
            "result",
        )
        self.comparisons = self._tally(
            "comparisons", "Answers laid beside another server's, by what came of it.", "verdict"
        )
        self.failures = self._tally("metric_failures", "Metrics that could not be read.", "failure")
        self.authentications = self._tally("authentications", "Callers told apart, by result.", "result")
        self.authorizations = self._tally("authorizations", "Leave asked for, by result.", "result")
        self.reviews = self._tally(
            "reviews", "Reviews sent to the API server, by kind; every other caller was remembered.", "kind"
        )

    def counting(self, kind: str, review: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """Count each time that this kind of review is really sent; a remembered one is not."""

        async def counted(*args: P.args, **kwargs: P.kwargs) -> R:
            self.reviews.add(kind)
            return await review(*args, **kwargs)

        return counted

    def fetched(self, backend: str, result: str, seconds: float) -> None:
        """Count a query that was sent to a metric system."""
        self.fetches.add(backend, result)
        self.fetching.add(backend, seconds)

    def reading(self, cache: str) -> Callable[[bool], None]:
        """Count the reads from one cache."""
        return lambda is_known: self.reads.add(cache, "hit" if is_known else "miss")

    def compared(self, verdict: str) -> None:
        """Count a comparison with another server's answer."""
        self.comparisons.add(str(verdict))

    def render(self) -> tuple[bytes, str]:
        """Write all figures in the text format; return them with their content type."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4

    def _tally(self, name: str, says: str, *labels: str) -> Tally:
        return Tally(f"steadyscale_{name}", says, labels, self.registry)

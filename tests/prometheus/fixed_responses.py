"""The data of the Prometheus with fixed data, and a backend that queries it at the time of that data."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.settings import CircuitBreakerSettings
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.process import clock
from adapter.rules.rule import Rule
from adapter.rules.rule_registry import RuleRegistry
from tests.prometheus.server import line
from tests.waiting import GIVE_UP

NOW: Final = 1_700_000_000
"""The evaluation time of queries to the Prometheus with fixed data."""

HOSTILE: Final = (
    'quote " quote',
    "back\\slash",
    "new\nline",
    "brace } or up{",
    '"} or vector(1) or x{a="',
    "regex .*|(x)[y]{2}^$+?",
    "größe 🐢 日本",
    "tab\tbell\a",
    "#comment",
    "`raw`",
    "'single'",
    "a" * 2000,
)
MANY: Final = 10_000
_QUEUES: Final = (
    ({"queue": "a", "namespace": "shop", "tier": "gold"}, "3", 10),
    ({"queue": "b", "namespace": "shop"}, "4.5", 100),
    ({"queue": "c", "namespace": "bank", "tier": "gold"}, "100", 0),
    ({"queue": "a.b", "namespace": "bank", "tier": "7"}, "1", 0),
    ({"queue": "axb", "namespace": "bank", "tier": "12"}, "2", 0),
    ({"namespace": "shop", "tier": "-3"}, "8", 0),
    ({"queue": "A"}, "16", 0),
)


def _samples() -> str:
    lines = ["# TYPE depth gauge\n", *(line("depth", labels, value, NOW - age) for labels, value, age in _QUEUES)]
    lines += ["# TYPE odd gauge\n"]
    lines += [line("odd", {"kind": kind}, kind, NOW) for kind in ("NaN", "+Inf", "-Inf", "-5", "1e300", "0.1")]
    lines += ["# TYPE hostile gauge\n"]
    lines += [line("hostile", {"text": text}, str(number), NOW) for number, text in enumerate(HOSTILE)]
    lines += ["# TYPE gone gauge\n", line("gone", {}, "1", NOW - 400)]
    lines += ["# TYPE many gauge\n"]
    lines += [line("many", {"queue": f"q{n}", "namespace": f"n{n % 10}"}, str(n), NOW) for n in range(MANY)]
    return "".join(lines)


SAMPLES: Final = _samples()


@asynccontextmanager
async def backend(url: str, **settings: Any) -> AsyncIterator[PrometheusBackend]:
    """Create a backend for the block."""
    defaults: dict[str, Any] = {
        "parameters": {"time": str(NOW)},
        "circuit_breaker": CircuitBreakerSettings(failure_threshold=1000),
    }
    created = PrometheusBackend("prometheus", Prometheus(url=url, **{**defaults, **settings}), clock)
    try:
        yield created
    finally:
        await created.aclose()


def reader(prometheus: PrometheusBackend, *rules: Rule) -> MetricReader:
    """Create a reader of these rules."""
    return MetricReader(RuleRegistry(rules), Sources(Fetcher({"prometheus": prometheus}, clock)), clock)


def rule(query: str, **parts: Any) -> Rule:
    """Create a rule for the metric ``m`` with a short interval."""
    options = {"interval": timedelta(milliseconds=50), "deadline": timedelta(seconds=2), **parts}
    return Rule("m", backend="prometheus", query=query, **options)


def as_of(age: float) -> datetime:
    """Return the time so many seconds ago."""
    return datetime.now(UTC) - timedelta(seconds=age)  # noqa: TID251 - compared with the real clock


async def until(condition: Callable[[], bool | Awaitable[bool]], within: float = GIVE_UP) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(within):
        while True:
            result = condition()
            if result if isinstance(result, bool) else await result:
                return
            await asyncio.sleep(0.01)

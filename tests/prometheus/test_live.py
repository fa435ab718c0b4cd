"""A Prometheus that scrapes a target: changing values, disappearing series, and a restart of Prometheus."""

import asyncio
from collections.abc import Iterator

import pytest

from adapter.backends.settings import CircuitBreakerSettings
from adapter.metrics.read_history import ReadKey
from adapter.metrics.reader import MetricReader
from adapter.rules.rule import Namespacing
from autoscaler.types.observation import FailureClass
from autoscaler.values.selector import parse
from tests.prometheus.fixed_responses import backend, reader, rule, until
from tests.prometheus.server import Server, prometheus, require
from tests.prometheus.target import Target, target

pytestmark = [pytest.mark.prometheus, pytest.mark.usefixtures("no_resource_leaks")]
EVERYTHING = parse("")


@pytest.fixture(scope="module")
def scraped() -> Iterator[Target]:
    with target() as live:
        yield live


@pytest.fixture(scope="module")
def live(scraped: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require()
    scraped.set(jobs=1)
    with prometheus(tmp_path_factory.mktemp("live"), target=scraped.address) as running:
        yield running


async def reads(read: MetricReader, wanted: int | FailureClass) -> bool:
    """Return whether a read has this value in thousandths, or this failure."""
    trace = await read.read("shop", "m", EVERYTHING)
    if trace.error is not None:
        return trace.error.failure is wanted
    return [sample.milli for sample in trace.samples] == [wanted]


async def reads_as(read: MetricReader, message: str) -> bool:
    """Return whether a read fails with this message."""
    error = (await read.read("shop", "m", EVERYTHING)).error
    return error is not None and error.message == message


async def test_changing_value_is_read(live: Server, scraped: Target) -> None:
    async with backend(live.url, parameters={}) as prometheus_backend:
        read = reader(prometheus_backend, rule("jobs", namespace=Namespacing()))
        for jobs in (5, 0, 7):
            scraped.set(jobs=jobs)
            await until(lambda jobs=jobs: reads(read, jobs * 1000))  # type: ignore[misc]
        await read.sources.aclose()


async def test_series_that_disappears_is_no_series_until_it_returns(live: Server, scraped: Target) -> None:
    async with backend(live.url, parameters={}) as prometheus_backend:
        read = reader(prometheus_backend, rule("jobs", namespace=Namespacing()))
        scraped.set(jobs=3)
        await until(lambda: reads(read, 3000))
        scraped.set(other=1)
        await until(lambda: reads(read, FailureClass.NO_SERIES))
        scraped.set(jobs=4)
        await until(lambda: reads(read, 4000))
        await read.sources.aclose()


async def test_killed_prometheus_is_unreachable_until_it_is_started(live: Server, scraped: Target) -> None:
    scraped.set(jobs=2)
    async with backend(live.url, parameters={}, circuit_breaker=CircuitBreakerSettings()) as prometheus_backend:
        read = reader(prometheus_backend, rule("jobs", namespace=Namespacing()))
        key = ReadKey("shop", "m", EVERYTHING)
        record = read.history.record(key)
        await until(lambda: reads(read, 2000))
        good = record.last_good_time
        await asyncio.to_thread(live.program.kill)
        await until(lambda: reads(read, FailureClass.UNREACHABLE))
        first = record.first_failure_time
        # A request in flight loses its connection; later requests are refused.
        refused = "metric 'm': prometheus: unreachable: connection refused"
        await until(lambda: reads_as(read, refused))
        assert good is not None
        assert first is not None
        assert first > good
        assert await reads(read, FailureClass.UNREACHABLE)
        assert record.first_failure_time == first
        await asyncio.to_thread(live.program.start)
        await until(lambda: reads(read, 2000))
        record = read.history.record(key)
        assert (record.failures, record.first_failure_time) == (0, None)
        await read.sources.aclose()

"""A Prometheus that scrapes: numbers that move, a target that dies, and Prometheus itself killed and started again."""

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

pytestmark = [pytest.mark.prometheus, pytest.mark.usefixtures("nothing_is_left")]
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
    """Say whether a read finds this number, in thousandths, or fails in this way."""
    look = await read.read("shop", "m", EVERYTHING)
    if look.error is not None:
        return look.error.failure is wanted
    return [sample.milli for sample in look.samples] == [wanted]


async def reads_as(read: MetricReader, message: str) -> bool:
    """Say whether a read fails in these words."""
    error = (await read.read("shop", "m", EVERYTHING)).error
    return error is not None and error.message == message


async def test_a_number_that_moves_is_read_as_it_moves(live: Server, scraped: Target) -> None:
    async with backend(live.url, parameters={}) as made:
        read = reader(made, rule("jobs", namespace=Namespacing()))
        for jobs in (5, 0, 7):
            scraped.set(jobs=jobs)
            await until(lambda jobs=jobs: reads(read, jobs * 1000))  # type: ignore[misc]
        await read.sources.aclose()


async def test_a_series_that_is_gone_is_no_series_at_once_and_back_at_once(live: Server, scraped: Target) -> None:
    async with backend(live.url, parameters={}) as made:
        read = reader(made, rule("jobs", namespace=Namespacing()))
        scraped.set(jobs=3)
        await until(lambda: reads(read, 3000))
        scraped.set(other=1)
        await until(lambda: reads(read, FailureClass.NO_SERIES))
        scraped.set(jobs=4)
        await until(lambda: reads(read, 4000))
        await read.sources.aclose()


async def test_prometheus_killed_is_unreachable_since_then_and_well_when_it_is_back(
    live: Server, scraped: Target
) -> None:
    scraped.set(jobs=2)
    async with backend(live.url, parameters={}, circuit_breaker=CircuitBreakerSettings()) as made:
        read = reader(made, rule("jobs", namespace=Namespacing()))
        remembered = read.history.record(ReadKey("shop", "m", EVERYTHING))
        await until(lambda: reads(read, 2000))
        good = remembered.good_at
        await asyncio.to_thread(live.program.kill)
        await until(lambda: reads(read, FailureClass.UNREACHABLE))
        first = remembered.first_failure_time
        # A question that was under way sees its connection break; from the next one on there is nobody to connect to.
        refused = "metric 'm': prometheus: unreachable: connection refused"
        await until(lambda: reads_as(read, refused))
        assert good is not None
        assert first is not None
        assert first > good
        assert await reads(read, FailureClass.UNREACHABLE)
        assert remembered.first_failure_time == first
        await asyncio.to_thread(live.program.start)
        await until(lambda: reads(read, 2000))
        assert (remembered.failures, remembered.first_failure_time) == (0, None)
        await read.sources.aclose()

"""What tenants can learn about each other, and how they can affect each other, through equal queries and statuses."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from adapter.backends.configuration import BackendEntry, ExternalMetricAccess
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.rabbitmq.settings import RabbitMq
from adapter.rules.query_builder import Query, snapshot_query
from adapter.rules.rule import Namespacing, Rule, TenantRule
from adapter.sample import RawSample
from autoscaler.values.selector import parse
from tests.fakes.backend import loop_clock, raw
from tests.unit.adapter.custom_resources.test_watcher import running

RABBITS = {
    "rabbits": BackendEntry(
        external_metrics=ExternalMetricAccess(namespace_label="vhost"), rabbitmq=RabbitMq(url="http://r")
    ),
    "secret": BackendEntry(prometheus=Prometheus(url="http://p")),
}
PARAMETERS = {"queues": "pay.*", "vhost": "*"}
QUERY = '{"queues":"pay.*","vhost":"*"}'


async def status_with(*samples: RawSample) -> dict[str, Any]:
    """Return the status of an object in namespace shop whose query returns these series."""
    async with running(backends=RABBITS) as here:
        here.backend.results[QUERY] = samples
        here.apply("queue", backend="rabbits", parameters=PARAMETERS)
        await here.until(lambda: here.watcher.rules)
        await here.status_writer.write_changes()
        return here.status()


def without_times(status: dict[str, Any]) -> dict[str, Any]:
    condition = {key: value for key, value in status["conditions"][0].items() if key != "lastTransitionTime"}
    rest = {key: value for key, value in status.items() if key not in {"lastReadTime", "lastErrorTime", "conditions"}}
    return {**rest, "condition": condition}


@pytest.mark.parametrize("own", [(), (3.0,), (3.0, 4.0)])
async def test_status_is_the_same_whatever_series_other_namespaces_have(own: tuple[float, ...]):
    mine = [raw(value, loop_clock(), vhost="shop", queue=f"pay{value}") for value in own]
    alone = await status_with(*mine)
    others = [raw(n, loop_clock(), vhost="bank", queue=f"payroll{n}") for n in range(20)]
    beside = await status_with(*mine, *others, raw(1, loop_clock(), queue="pay"))

    assert without_times(beside) == without_times(alone)
    assert alone["series"] == len(own)


async def test_backends_that_are_closed_to_a_namespace_are_not_named_in_its_statuses():
    async with running(backends=RABBITS) as here:
        here.apply("a", backend="secret", query="x")
        here.apply("b", backend="absent", query="x")
        await here.until(lambda: len(here.watcher.rejections) == 2)
        await here.status_writer.write_changes()

        assert here.ready("a")[2].replace("secret", "absent") == here.ready("b")[2]


def tenant_rule(namespace: str, interval: float = 15.0) -> TenantRule:
    return TenantRule(
        "queue",
        namespaces=(namespace,),
        backend="rabbits",
        parameters=PARAMETERS,
        namespace=Namespacing(label="vhost"),
        interval=timedelta(seconds=interval),
    )


def test_equal_queries_of_two_tenants_and_of_the_operator_have_different_keys():
    operator = Rule("queue", backend="rabbits", parameters=PARAMETERS)
    rules = [operator, tenant_rule("shop"), tenant_rule("bank")]

    assert len({snapshot_query(rule).key for rule in rules}) == 3
    assert [snapshot_query(rule).tenant for rule in rules] == ["", "shop", "bank"]


async def test_change_of_one_tenant_does_not_drop_the_snapshot_of_another():
    async with running(backends=RABBITS) as here:
        here.backend.results[QUERY] = (raw(3, loop_clock(), vhost="bank"), raw(4, loop_clock(), vhost="shop"))
        here.reader.registry.set_object_rule("bank/queue", tenant_rule("bank"))
        here.reader.registry.set_object_rule("shop/queue", tenant_rule("shop"))
        assert await here.value("bank") == 3000
        assert await here.value("shop") == 4000
        here.reader.registry.set_object_rule("shop/queue", tenant_rule("shop", interval=60))
        here.reader.registry.set_object_rule("shop/queue", None)

        assert here.reader.peek("bank", "queue", parse("")).result is not None
        assert await here.value("bank") == 3000
        assert here.backend.fetches[QUERY] == 2


async def test_slow_queries_of_one_tenant_do_not_delay_the_status_of_another():
    async with running() as here:
        here.backend.results['x{namespace="shop"}'] = (raw(3, loop_clock()),)
        respond = here.backend.fetch

        async def fetch(query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
            if query.tenant == "bank":
                await asyncio.sleep(3600)
            return await respond(query, deadline)

        here.backend.fetch = fetch  # type: ignore[method-assign]
        for number in range(3):
            here.apply(f"slow{number}", "bank", backend="main", query=f"slow{number}", deadline="60s")
        await here.until(lambda: len(here.watcher.rules) == 3)
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: len(here.watcher.rules) == 4)
        writing = asyncio.create_task(here.status_writer.write_changes())
        await here.until(here.status)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

        assert here.ready()[:2] == ("True", "Readable")

"""Tests of the RabbitMQ backend beyond the contract of all backends."""

import asyncio
import math
from collections.abc import Iterator

import pytest

from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError, BadQuery
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.peers.rabbitmq import Peer

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="rabbitmq")], indirect=True, scope="session"),
]
SHOP = "shop / größe"
SPECIAL_NAMES = ("a/b", "with space", "per%cent", "q?x=1&y=2", "größe", "dots.and-dashes_", "a+b", "[x](y)")


@pytest.fixture
def vhost(peer: Peer) -> Iterator[str]:
    """A second vhost whose name requires percent-encoding."""
    peer.server.add_vhost(SHOP)
    peer.server.add_user("reader", peer._good, "/", SHOP)
    peer.server.api("PUT", "/permissions/shop%20%2F%20gr%C3%B6%C3%9Fe/admin", dict.fromkeys(_PERMISSIONS, ".*"))
    yield SHOP
    peer.server.api("DELETE", "/vhosts/shop%20%2F%20gr%C3%B6%C3%9Fe")


_PERMISSIONS = ("configure", "write", "read")


async def values(opened: OpenBackend, **parameters: str) -> dict[tuple[str, str], float]:
    samples = await opened.fetch(dict(parameters))
    return {(sample.labels["vhost"], sample.labels["queue"]): sample.value for sample in samples}


async def eventually(opened: OpenBackend, expected: object, **parameters: str) -> None:
    """Wait for the expected values, because RabbitMQ updates its statistics with a delay."""
    for _ in range(300):
        if (now := await values(opened, **parameters)) == expected:
            return
        await asyncio.sleep(0.05)
    assert now == expected


async def test_special_characters_in_queue_names(peer: Peer) -> None:
    peer.server.set_values({name: number for number, name in enumerate(SPECIAL_NAMES)})
    async with open_backend(peer) as opened:
        for number, name in enumerate(SPECIAL_NAMES):
            assert await values(opened, queue=name) == {("/", name): number}
        assert await values(opened, queues=".*") == {("/", name): number for number, name in enumerate(SPECIAL_NAMES)}


async def test_regular_expression_must_match_the_whole_name(peer: Peer) -> None:
    peer.server.set_values({"orders": 1, "orders-dead": 2, "reorders": 4})
    async with open_backend(peer) as opened:
        assert await values(opened, queues="orders") == {("/", "orders"): 1}
        assert await values(opened, queues="orders|reorders") == {("/", "orders"): 1, ("/", "reorders"): 4}
        assert await values(opened, queues="(?!.*-dead$).*") == {("/", "orders"): 1, ("/", "reorders"): 4}
        with pytest.raises(BadQuery):
            await opened.fetch({"queues": "("})


async def test_queues_of_one_or_all_vhosts(peer: Peer, vhost: str) -> None:
    peer.server.set_values({"orders": 1})
    peer.server.set_values({"orders": 7, "mails": 2}, vhost)
    async with open_backend(peer) as opened:
        assert await values(opened, queue="orders") == {("/", "orders"): 1}
        assert await values(opened, queue="orders", vhost=vhost) == {(vhost, "orders"): 7}
        assert await values(opened, queues=".*", vhost=vhost) == {(vhost, "orders"): 7, (vhost, "mails"): 2}
        assert await values(opened, queues="o.*", vhost="*") == {("/", "orders"): 1, (vhost, "orders"): 7}
        assert await values(opened, queues=".*", vhost="no such vhost") == {}


async def test_all_pages_are_read(peer: Peer) -> None:
    numbers = {f"q{number}": number for number in range(7)}
    peer.server.set_values(numbers)
    async with open_backend(peer, pageSize=2) as opened:
        assert await values(opened, queues=".*") == {("/", name): number for name, number in numbers.items()}
        assert await values(opened, queues="missing") == {}


async def test_ready_and_unacknowledged_messages(peer: Peer) -> None:
    peer.server.set_values({"orders": 5})
    async with open_backend(peer) as opened:
        with peer.server.channel() as channel:
            for _ in range(2):
                channel.basic_get("orders")
            for parameters in ({"queue": "orders"}, {"queues": "orders"}):
                await eventually(opened, {("/", "orders"): 2}, **parameters, measure="unacknowledged")
                await eventually(opened, {("/", "orders"): 3}, **parameters, measure="ready")
                await eventually(opened, {("/", "orders"): 5}, **parameters, measure="messages")
        await eventually(opened, {("/", "orders"): 5}, queue="orders", measure="ready")


async def test_publish_and_deliver_rates(peer: Peer) -> None:
    peer.server.set_values({"idle": 0, "orders": 0})
    async with open_backend(peer) as opened:
        assert await values(opened, queue="idle", measure="publishRate") == {("/", "idle"): 0}
        rates = dict.fromkeys(("publishRate", "deliverRate"), 0.0)
        for _ in range(100):  # until RabbitMQ has enough samples for a rate
            with peer.server.channel() as channel:
                for _ in range(20):
                    channel.basic_publish("", "orders", b"work")
                for _ in range(20):
                    channel.basic_get("orders", auto_ack=True)
            for measure in rates:
                rates[measure] = max(
                    rates[measure], (await values(opened, queues="orders", measure=measure))["/", "orders"]
                )
            if all(rates.values()):
                break
            await asyncio.sleep(0.1)
        assert all(rates.values()), rates


async def test_unknown_queue_length_is_nan(peer: Peer) -> None:
    peer.server.set_values({})
    peer.proxy.respond_http(200, b'{"name":"new","vhost":"/","state":"down"}')
    async with open_backend(peer) as opened:
        (sample,) = await opened.fetch({"queue": "new"})
        assert math.isnan(sample.value)


@pytest.mark.parametrize("parameters", [{"queue": "orders"}, {"queues": "orders"}])
async def test_404_from_a_proxy_is_an_error_and_not_a_missing_queue(peer: Peer, parameters: Json) -> None:
    peer.proxy.respond_http(404, b"<h1>no such page</h1>")
    async with open_backend(peer) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch(parameters)
    assert (caught.value.failure, caught.value.message) == (FailureClass.REFUSED, "HTTP 404 Not Found")


async def test_backend_recovers_after_the_node_restarts(peer: Peer) -> None:
    peer.server.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        await opened.fetch({"queue": "orders"})
        await asyncio.to_thread(peer.server.program.kill)
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"queue": "orders"})
        assert caught.value.failure is FailureClass.UNREACHABLE
        await asyncio.to_thread(peer.server.program.start, within=120)
        await asyncio.to_thread(peer.server.set_values, {"orders": 4})
        await eventually(opened, {("/", "orders"): 4}, queue="orders")


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"vhost": "/"}, "queue: exactly one of queue and queues is required"),
        ({"queue": "a", "queues": "b"}, "queue: exactly one of queue and queues is required"),
        ({"queue": "a", "vhost": ""}, "vhost: must not be empty; the default virtual host is /"),
        ({"queue": "a", "vhost": "*"}, "vhost: * requires queues"),
    ],
)
def test_invalid_parameters_are_reported(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, parameters)
    assert caught.value.messages == (f"rules[0].parameters.{problem}",)


def test_page_size_is_limited(peer: Peer) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, pageSize=501)
    assert caught.value.messages == ("backends.it.rabbitmq.pageSize: must be at most 500, is 501",)

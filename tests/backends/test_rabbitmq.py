"""What is RabbitMQ's own: vhosts, names of every kind, pages, what is under way, rates, and a node that dies."""

import asyncio
import math
from collections.abc import Iterator

import pytest

from adapter.errors import BackendError, BadQuery, ConfigInvalid
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.peers.rabbitmq import Peer

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="rabbitmq")], indirect=True, scope="session"),
]
SHOP = "shop / größe"
HOSTILE = ("a/b", "with space", "per%cent", "q?x=1&y=2", "größe", "dots.and-dashes_", "a+b", "[x](y)")


@pytest.fixture
def vhost(peer: Peer) -> Iterator[str]:
    """A second vhost whose name needs encoding."""
    peer.server.add_vhost(SHOP)
    peer.server.add_user("reader", peer._good, "/", SHOP)
    peer.server.api("PUT", "/permissions/shop%20%2F%20gr%C3%B6%C3%9Fe/root-of-tests", dict.fromkeys(_RIGHTS, ".*"))
    yield SHOP
    peer.server.api("DELETE", "/vhosts/shop%20%2F%20gr%C3%B6%C3%9Fe")


_RIGHTS = ("configure", "write", "read")


async def found(opened: Opened, **asked: str) -> dict[tuple[str, str], float]:
    samples = await opened.ask(dict(asked))
    return {(sample.labels["vhost"], sample.labels["queue"]): sample.value for sample in samples}


async def soon(opened: Opened, expected: object, **asked: str) -> None:
    """See that an answer comes about: RabbitMQ's figures are a moment old."""
    for _ in range(300):
        if (now := await found(opened, **asked)) == expected:
            return
        await asyncio.sleep(0.05)
    assert now == expected


async def test_names_of_every_kind_are_found_one_by_one_and_all_at_once(peer: Peer) -> None:
    peer.server.hold({name: number for number, name in enumerate(HOSTILE)})
    async with backend_of(peer) as opened:
        for number, name in enumerate(HOSTILE):
            assert await found(opened, queue=name) == {("/", name): number}
        assert await found(opened, queues=".*") == {("/", name): number for number, name in enumerate(HOSTILE)}


async def test_an_expression_must_match_the_whole_name(peer: Peer) -> None:
    peer.server.hold({"orders": 1, "orders-dead": 2, "reorders": 4})
    async with backend_of(peer) as opened:
        assert await found(opened, queues="orders") == {("/", "orders"): 1}
        assert await found(opened, queues="orders|reorders") == {("/", "orders"): 1, ("/", "reorders"): 4}
        assert await found(opened, queues="(?!.*-dead$).*") == {("/", "orders"): 1, ("/", "reorders"): 4}
        with pytest.raises(BadQuery):
            await opened.ask({"queues": "("})


async def test_a_queue_is_in_one_vhost_and_an_expression_may_be_for_any(peer: Peer, vhost: str) -> None:
    peer.server.hold({"orders": 1})
    peer.server.hold({"orders": 7, "mails": 2}, vhost)
    async with backend_of(peer) as opened:
        assert await found(opened, queue="orders") == {("/", "orders"): 1}
        assert await found(opened, queue="orders", vhost=vhost) == {(vhost, "orders"): 7}
        assert await found(opened, queues=".*", vhost=vhost) == {(vhost, "orders"): 7, (vhost, "mails"): 2}
        assert await found(opened, queues="o.*", vhost="*") == {("/", "orders"): 1, (vhost, "orders"): 7}
        assert await found(opened, queues=".*", vhost="no such vhost") == {}


async def test_all_pages_are_read(peer: Peer) -> None:
    numbers = {f"q{number}": number for number in range(7)}
    peer.server.hold(numbers)
    async with backend_of(peer, pageSize=2) as opened:
        assert await found(opened, queues=".*") == {("/", name): number for name, number in numbers.items()}
        assert await found(opened, queues="nobody") == {}


async def test_what_is_delivered_and_not_acknowledged_is_told_apart(peer: Peer) -> None:
    peer.server.hold({"orders": 5})
    async with backend_of(peer) as opened:
        with peer.server.channel() as channel:
            for _ in range(2):
                channel.basic_get("orders")
            for asked in ({"queue": "orders"}, {"queues": "orders"}):
                await soon(opened, {("/", "orders"): 2}, **asked, reads="unacknowledged")
                await soon(opened, {("/", "orders"): 3}, **asked, reads="ready")
                await soon(opened, {("/", "orders"): 5}, **asked, reads="messages")
        await soon(opened, {("/", "orders"): 5}, queue="orders", reads="ready")


async def test_rates_are_of_messages_that_come_and_go(peer: Peer) -> None:
    peer.server.hold({"idle": 0, "orders": 0})
    async with backend_of(peer) as opened:
        assert await found(opened, queue="idle", reads="publishRate") == {("/", "idle"): 0}
        rates = dict.fromkeys(("publishRate", "deliverRate"), 0.0)
        for _ in range(100):  # until RabbitMQ has seen enough of it to tell a rate
            with peer.server.channel() as channel:
                for _ in range(20):
                    channel.basic_publish("", "orders", b"work")
                for _ in range(20):
                    channel.basic_get("orders", auto_ack=True)
            for reads in rates:
                rates[reads] = max(rates[reads], (await found(opened, queues="orders", reads=reads))["/", "orders"])
            if all(rates.values()):
                break
            await asyncio.sleep(0.1)
        assert all(rates.values()), rates


async def test_a_length_that_is_not_known_is_no_number_and_not_zero(peer: Peer) -> None:
    peer.server.hold({})
    peer.hop.answer_http(200, b'{"name":"new","vhost":"/","state":"down"}')
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask({"queue": "new"})
        assert math.isnan(sample.value)


@pytest.mark.parametrize("asked", [{"queue": "orders"}, {"queues": "orders"}])
async def test_a_404_that_is_not_rabbitmqs_own_is_a_failure_and_not_a_missing_queue(peer: Peer, asked: Json) -> None:
    peer.hop.answer_http(404, b"<h1>no such page</h1>")
    async with backend_of(peer) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask(asked)
    assert (caught.value.failure, caught.value.message) == (FailureClass.REFUSED, "HTTP 404 Not Found")


async def test_a_node_that_is_killed_is_unreachable_and_comes_back(peer: Peer) -> None:
    peer.server.hold({"orders": 3})
    async with backend_of(peer) as opened:
        await opened.ask({"queue": "orders"})
        await asyncio.to_thread(peer.server.program.kill)
        with pytest.raises(BackendError) as caught:
            await opened.ask({"queue": "orders"})
        assert caught.value.failure is FailureClass.UNREACHABLE
        await asyncio.to_thread(peer.server.program.start, within=120)
        await asyncio.to_thread(peer.server.hold, {"orders": 4})
        await soon(opened, {("/", "orders"): 4}, queue="orders")


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"vhost": "/"}, "queue: either this or queues is needed"),
        ({"queue": "a", "queues": "b"}, "queue: either this or queues is needed"),
        ({"queue": "a", "vhost": ""}, "vhost: must not be empty; the one that is always there is /"),
        ({"queue": "a", "vhost": "*"}, "vhost: * is for queues; a queue is in one"),
        ({"queue": "a", "reads": "length"}, "reads: invalid enum value 'length'"),
    ],
)
def test_parameters_that_exclude_each_other(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, parameters)
    assert caught.value.problems == (f"rules[0].parameters.{problem}",)


def test_a_page_has_as_many_queues_as_rabbitmq_gives(peer: Peer) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, pageSize=501)
    assert caught.value.problems == ("backends.it.rabbitmq.pageSize: must be at most 500, is 501",)

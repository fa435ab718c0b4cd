"""Behaviour of the SQS backend: message counts, names, URLs and prefixes, pages, queues that are deleted."""

import json
import math

import pytest

from adapter.backends.configuration import price_per_day
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.faulty_proxy import FaultyProxy
from tests.backends.moto_server import ACCOUNT
from tests.backends.peers.sqs import Peer

pytestmark = [
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="sqs")], indirect=True, scope="session"),
]
JSON = "Content-Type: application/x-amz-json-1.0"


async def values_by_queue(opened: OpenBackend, **parameters: object) -> dict[str, float]:
    return {sample.labels["queue"]: sample.value for sample in await opened.fetch(dict(parameters))}


def respond_with(hop: FaultyProxy, body: Json) -> None:
    hop.respond_http(200, json.dumps(body).encode(), JSON)


async def test_visible_in_flight_and_delayed_messages_are_added_up_as_measure_says(peer: Peer) -> None:
    peer.set_values({"orders": 5})
    sqs = peer.server.client("sqs")
    url = sqs.get_queue_url(QueueName="shop-orders")["QueueUrl"]
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=2, VisibilityTimeout=600)
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=600)
    numbers = {("visible",): 3, ("inFlight",): 2, ("delayed",): 1, ("visible", "inFlight", "delayed"): 6}
    async with open_backend(peer) as opened:
        for measure, number in numbers.items():
            assert await values_by_queue(opened, queue="shop-orders", measure=list(measure)) == {"shop-orders": number}
        assert await values_by_queue(opened, queue="shop-orders") == {"shop-orders": 5}, "the default of KEDA"
        assert await values_by_queue(opened, prefix="shop-", measure=["delayed"]) == {"shop-orders": 1}


async def test_a_queue_can_be_given_by_url_and_by_account(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        url = f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/shop-orders"
        assert await values_by_queue(opened, queue=url) == {"shop-orders": 3}
        assert await values_by_queue(opened, queue="shop-orders", accountId=ACCOUNT) == {"shop-orders": 3}
        elsewhere = url.replace("eu-west-1", "eu-north-1")
        assert await values_by_queue(opened, queue=elsewhere) == {}, "the URL contains the region"
        assert await values_by_queue(opened, queue=url.replace("shop-orders", "shop-nothing")) == {}


async def test_fifo_queues_are_found_by_name_and_prefix(peer: Peer) -> None:
    peer.set_values({})
    sqs = peer.server.client("sqs")
    url = sqs.create_queue(QueueName="shop-orders.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="work", MessageGroupId="a", MessageDeduplicationId="1")
    async with open_backend(peer) as opened:
        assert await values_by_queue(opened, queue="shop-orders.fifo") == {"shop-orders.fifo": 1}
        assert await values_by_queue(opened, prefix="shop-") == {"shop-orders.fifo": 1}


async def test_a_deleted_queue_has_no_series_until_it_is_created_again(peer: Peer) -> None:
    peer.set_values({"orders": 3, "mails": 1})
    async with open_backend(peer) as opened:
        assert await values_by_queue(opened, queue="shop-orders") == {"shop-orders": 3}
        peer.set_values({"mails": 1})
        assert await values_by_queue(opened, queue="shop-orders") == {}
        assert await values_by_queue(opened, prefix="shop-") == {"shop-mails": 1}
        peer.set_values({"orders": 4})
        assert await values_by_queue(opened, queue="shop-orders") == {"shop-orders": 4}


async def test_more_queues_than_connections_are_all_read(peer: Peer) -> None:
    numbers = {f"q{number:02}": number % 3 for number in range(30)}
    peer.set_values(numbers)
    async with open_backend(peer, maxConnections=3) as opened:
        before = peer.proxy.connections
        assert await values_by_queue(opened, prefix="shop-q") == {
            f"shop-{name}": number for name, number in numbers.items()
        }
        assert peer.proxy.connections - before <= 3 * 31  # moto closes the connection after each response


async def test_all_pages_are_read_and_too_many_are_rejected(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {f"q{number}": number for number in range(5)}
    peer.set_values(numbers)
    monkeypatch.setattr("adapter.backends.sqs.backend._PAGE_SIZE", 2)
    async with open_backend(peer) as opened:
        assert await values_by_queue(opened, prefix="shop-") == {
            f"shop-{name}": number for name, number in numbers.items()
        }
        respond_with(peer.proxy, {"QueueUrls": [], "NextToken": "again"})
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"prefix": "shop-"})
        assert caught.value.message == "the result has more than 100 pages"


async def test_a_queue_that_cannot_be_read_fails_the_query_of_its_prefix(peer: Peer) -> None:
    peer.set_values({"orders": 3, "mails": 1})
    policy = {"Effect": "Deny", "Action": "sqs:GetQueueAttributes", "Resource": "*"}
    iam = peer.server.client("iam")
    document = json.dumps({"Version": "2012-10-17", "Statement": [policy]})
    iam.put_user_policy(UserName=peer.user, PolicyName="deny", PolicyDocument=document)
    try:
        async with open_backend(peer) as opened:
            with pytest.raises(BackendError) as caught:
                await opened.fetch({"prefix": "shop-"})
            assert caught.value.failure is FailureClass.UNAUTHORIZED
            await opened.backend.ping()
    finally:
        iam.delete_user_policy(UserName=peer.user, PolicyName="deny")


async def test_ping_succeeds_without_the_permission_to_list_queues(peer: Peer) -> None:
    peer.refuse_with(403, "AccessDeniedException", "no")
    async with open_backend(peer) as opened:
        await opened.backend.ping()
        peer.refuse_with(403, "InvalidClientTokenId", "unknown key")
        with pytest.raises(BackendError) as caught:
            await opened.backend.ping()
        assert caught.value.message == "AWS error InvalidClientTokenId"


async def test_a_missing_attribute_makes_the_sum_nan(peer: Peer) -> None:
    respond_with(peer.proxy, {"QueueUrl": "http://x/1/shop-orders", "Attributes": {"ApproximateNumberOfMessages": "3"}})
    async with open_backend(peer) as opened:
        assert await values_by_queue(opened, queue="shop-orders", measure=["visible"]) == {"shop-orders": 3}
        (sample,) = await opened.fetch({"queue": "shop-orders"})
        assert math.isnan(sample.value)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>please log in</html>",
        b"{}",
        b"[]",
        b'{"QueueUrl": 3, "QueueUrls": "all", "Attributes": []}',
        b'{"QueueUrl": "x", "QueueUrls": [1], "Attributes": {"ApproximateNumberOfMessages": "many"}}',
        b'{"QueueUrls": null}',
        b"\xff\xfe",
    ],
)
@pytest.mark.parametrize("parameters", [{"queue": "shop-orders"}, {"prefix": "shop-"}])
async def test_an_invalid_response_is_rejected(peer: Peer, body: bytes, parameters: Json) -> None:
    peer.proxy.respond_http(200, body)
    async with open_backend(peer) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch(parameters)
    assert caught.value.failure is FailureClass.REFUSED


async def test_sqs_may_omit_an_empty_list_of_queues(peer: Peer) -> None:
    respond_with(peer.proxy, {})
    async with open_backend(peer) as opened:
        assert await values_by_queue(opened, prefix="shop-") == {}


async def test_failed_requests_are_not_retried(peer: Peer) -> None:
    async with open_backend(peer) as opened:
        peer.proxy.cut()
        before = peer.proxy.connections
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"queue": "shop-orders"})
        assert caught.value.failure is FailureClass.UNREACHABLE
        assert peer.proxy.connections == before + 1
        peer.refuse_with(500, "InternalFailure", "try again")
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"queue": "shop-orders"})
        assert caught.value.message == "AWS error InternalFailure"


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"measure": ["visible"]}, "queue: exactly one of queue and prefix is required"),
        ({"queue": "a", "prefix": "b"}, "queue: exactly one of queue and prefix is required"),
        (
            {"queue": "https://elsewhere/x"},
            "queue: must be a name, or a URL such as https://sqs.eu-west-1.amazonaws.com/123456789012/NAME",
        ),
        ({"queue": "a", "measure": []}, "measure: must contain visible, inFlight or delayed, each at most once"),
        (
            {"queue": "a", "measure": ["visible", "visible"]},
            "measure: must contain visible, inFlight or delayed, each at most once",
        ),
        ({"prefix": "a*"}, "prefix: must be the start of a queue name: letters, digits, - and _"),
        ({"queue": "a", "accountId": "12"}, "accountId: must be a string of twelve digits; quote it in YAML"),
        ({"prefix": "a", "accountId": ACCOUNT}, "accountId: only valid if queue is a name"),
        ({"queue": "a", "region": "x.evil.example/"}, "region: must be the name of a region, such as eu-west-1"),
    ],
)
def test_invalid_parameters_are_reported(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, parameters)
    assert caught.value.messages == (f"rules[0].parameters.{problem}",)


def test_the_price_per_day_is_calculated(peer: Peer) -> None:
    config = configuration_for(peer, {"queue": "a"})
    price = price_per_day(config.rules[0], config.backends["it"])
    assert price is not None
    assert round(price.dollars, 6) == 0.002304
    assert price.calculation == "5,760 requests at $0.40 per 1,000,000"

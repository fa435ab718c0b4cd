"""What is SQS's own: what waits, is worked on or put off; names, URLs and prefixes; pages; queues that come and go."""

import json
import math

import pytest

from adapter.backends.configuration import price_per_day
from adapter.errors import BackendError, ConfigInvalid
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.faulty_proxy import Hop
from tests.backends.moto_server import ACCOUNT
from tests.backends.peers.sqs import Peer

pytestmark = [
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="sqs")], indirect=True, scope="session"),
]
JSON = "Content-Type: application/x-amz-json-1.0"


async def found(opened: Opened, **asked: object) -> dict[str, float]:
    return {sample.labels["queue"]: sample.value for sample in await opened.ask(dict(asked))}


def says(hop: Hop, body: Json) -> None:
    hop.answer_http(200, json.dumps(body).encode(), JSON)


async def test_what_waits_is_worked_on_and_is_put_off_are_told_apart_and_added_up(peer: Peer) -> None:
    peer.hold({"orders": 5})
    sqs = peer.server.client("sqs")
    url = sqs.get_queue_url(QueueName="shop-orders")["QueueUrl"]
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=2, VisibilityTimeout=600)
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=600)
    numbers = {("visible",): 3, ("inFlight",): 2, ("delayed",): 1, ("visible", "inFlight", "delayed"): 6}
    async with backend_of(peer) as opened:
        for reads, number in numbers.items():
            assert await found(opened, queue="shop-orders", reads=list(reads)) == {"shop-orders": number}
        assert await found(opened, queue="shop-orders") == {"shop-orders": 5}, "as KEDA: what waits and is worked on"
        assert await found(opened, prefix="shop-", reads=["delayed"]) == {"shop-orders": 1}


async def test_a_queue_is_named_by_its_url_too_and_may_be_anothers(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        url = f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/shop-orders"
        assert await found(opened, queue=url) == {"shop-orders": 3}
        assert await found(opened, queue="shop-orders", accountId=ACCOUNT) == {"shop-orders": 3}
        elsewhere = url.replace("eu-west-1", "eu-north-1")
        assert await found(opened, queue=elsewhere) == {}, "a URL says in which region"
        assert await found(opened, queue=url.replace("shop-orders", "shop-nothing")) == {}


async def test_fifo_queues_have_a_dot(peer: Peer) -> None:
    peer.hold({})
    sqs = peer.server.client("sqs")
    url = sqs.create_queue(QueueName="shop-orders.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="work", MessageGroupId="a", MessageDeduplicationId="1")
    async with backend_of(peer) as opened:
        assert await found(opened, queue="shop-orders.fifo") == {"shop-orders.fifo": 1}
        assert await found(opened, prefix="shop-") == {"shop-orders.fifo": 1}


async def test_a_queue_that_goes_and_comes_back_is_no_series_meanwhile(peer: Peer) -> None:
    peer.hold({"orders": 3, "mails": 1})
    async with backend_of(peer) as opened:
        assert await found(opened, queue="shop-orders") == {"shop-orders": 3}
        peer.hold({"mails": 1})
        assert await found(opened, queue="shop-orders") == {}
        assert await found(opened, prefix="shop-") == {"shop-mails": 1}
        peer.hold({"orders": 4})
        assert await found(opened, queue="shop-orders") == {"shop-orders": 4}


async def test_more_queues_than_connections_are_all_read(peer: Peer) -> None:
    numbers = {f"q{number:02}": number % 3 for number in range(30)}
    peer.hold(numbers)
    async with backend_of(peer, connections=3) as opened:
        before = peer.hop.connections
        assert await found(opened, prefix="shop-q") == {f"shop-{name}": number for name, number in numbers.items()}
        assert peer.hop.connections - before <= 3 * 31  # moto ends each connection with its answer


async def test_all_pages_are_read_and_pages_without_end_are_refused(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = {f"q{number}": number for number in range(5)}
    peer.hold(numbers)
    monkeypatch.setattr("adapter.backends.sqs.backend._ON_A_PAGE", 2)
    async with backend_of(peer) as opened:
        assert await found(opened, prefix="shop-") == {f"shop-{name}": number for name, number in numbers.items()}
        says(peer.hop, {"QueueUrls": [], "NextToken": "again"})
        with pytest.raises(BackendError) as caught:
            await opened.ask({"prefix": "shop-"})
        assert caught.value.message == "it answers with pages without end"


async def test_one_queue_that_cannot_be_read_fails_all_that_were_asked_for_with_it(peer: Peer) -> None:
    peer.hold({"orders": 3, "mails": 1})
    policy = {"Effect": "Deny", "Action": "sqs:GetQueueAttributes", "Resource": "*"}
    iam = peer.server.client("iam")
    document = json.dumps({"Version": "2012-10-17", "Statement": [policy]})
    iam.put_user_policy(UserName=peer.user, PolicyName="not", PolicyDocument=document)
    try:
        async with backend_of(peer) as opened:
            with pytest.raises(BackendError) as caught:
                await opened.ask({"prefix": "shop-"})
            assert caught.value.failure is FailureClass.UNAUTHORIZED
            await opened.backend.ping()  # it may still be asked for its queues
    finally:
        iam.delete_user_policy(UserName=peer.user, PolicyName="not")


async def test_a_ping_is_answered_also_to_who_may_not_list_queues(peer: Peer) -> None:
    peer.refuse_with(403, "AccessDeniedException", "no")
    async with backend_of(peer) as opened:
        await opened.backend.ping()
        peer.refuse_with(403, "InvalidClientTokenId", "who?")
        with pytest.raises(BackendError) as caught:
            await opened.backend.ping()
        assert caught.value.message == "AWS says InvalidClientTokenId"


async def test_a_number_that_is_not_told_is_not_known_and_the_sum_neither(peer: Peer) -> None:
    says(peer.hop, {"QueueUrl": "http://x/1/shop-orders", "Attributes": {"ApproximateNumberOfMessages": "3"}})
    async with backend_of(peer) as opened:
        assert await found(opened, queue="shop-orders", reads=["visible"]) == {"shop-orders": 3}
        (sample,) = await opened.ask({"queue": "shop-orders"})
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
@pytest.mark.parametrize("asked", [{"queue": "shop-orders"}, {"prefix": "shop-"}])
async def test_an_answer_that_is_none_of_sqs_is_refused_and_never_no_queue(
    peer: Peer, body: bytes, asked: Json
) -> None:
    peer.hop.answer_http(200, body)
    async with backend_of(peer) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask(asked)
    assert caught.value.failure is FailureClass.REFUSED


async def test_an_empty_list_may_be_left_out_by_sqs_itself(peer: Peer) -> None:
    says(peer.hop, {})
    async with backend_of(peer) as opened:
        assert await found(opened, prefix="shop-") == {}


async def test_nothing_is_retried(peer: Peer) -> None:
    async with backend_of(peer) as opened:
        peer.hop.cut()
        before = peer.hop.connections
        with pytest.raises(BackendError) as caught:
            await opened.ask({"queue": "shop-orders"})
        assert caught.value.failure is FailureClass.UNREACHABLE
        assert peer.hop.connections == before + 1
        peer.refuse_with(500, "InternalFailure", "try again")
        with pytest.raises(BackendError) as caught:
            await opened.ask({"queue": "shop-orders"})
        assert caught.value.message == "AWS says InternalFailure"


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"reads": ["visible"]}, "queue: either this or prefix is needed"),
        ({"queue": "a", "prefix": "b"}, "queue: either this or prefix is needed"),
        (
            {"queue": "https://elsewhere/x"},
            "queue: must be a name, or a URL as https://sqs.eu-west-1.amazonaws.com/123456789012/NAME",
        ),
        ({"queue": "a", "reads": []}, "reads: must name some of visible, inFlight, delayed, each once"),
        (
            {"queue": "a", "reads": ["visible", "visible"]},
            "reads: must name some of visible, inFlight, delayed, each once",
        ),
        ({"prefix": "a*"}, "prefix: must be the beginning of a queue's name: letters, digits, - and _"),
        ({"queue": "a", "accountId": "12"}, "accountId: must be twelve digits, in quotes"),
        ({"prefix": "a", "accountId": ACCOUNT}, "accountId: is for a queue by its name"),
        ({"queue": "a", "region": "x.evil.example/"}, "region: must be the name of a region, such as eu-west-1"),
    ],
)
def test_parameters_that_make_no_sense(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, parameters)
    assert caught.value.problems == (f"rules[0].parameters.{problem}",)


def test_asking_has_its_price(peer: Peer) -> None:
    config = configured(peer, {"queue": "a"})
    price = price_per_day(config.rules[0], config.backends["it"])
    assert price is not None
    assert round(price.dollars, 6) == 0.002304
    assert price.because == "5,760 requests at $0.40 per 1,000,000"

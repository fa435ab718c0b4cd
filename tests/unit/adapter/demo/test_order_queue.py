"""The queue's model: orders arrive, are taken, are finished, and come back when who had them goes away."""

from random import Random

from adapter.demo.fake_prometheus import answer, parse
from adapter.demo.order_queue import AT_ONCE, Queue, exposition, step


def after(queue: Queue, *, seconds: int, consumers: int, rate: float = 0.0) -> Queue:
    chance = Random(7)  # noqa: S311 - orders, not secrets
    for _ in range(seconds):
        queue = step(queue, consumers=consumers, rate=rate, seconds=1, chance=chance)
    return queue


def test_orders_arrive_as_often_as_the_rate_says():
    queue = after(Queue(), seconds=1000, consumers=0, rate=3)

    assert 2800 < queue.arrived < 3200
    assert queue == Queue(waiting=queue.arrived, in_hand=0, arrived=queue.arrived)


def test_without_consumers_nothing_is_finished():
    assert after(Queue(waiting=5), seconds=100, consumers=0).messages == 5


def test_a_consumer_finishes_about_one_order_a_second():
    done = 1000 - after(Queue(waiting=1000), seconds=100, consumers=1).messages

    assert 80 < done < 120


def test_nobody_has_more_in_hand_than_he_can():
    queue = after(Queue(waiting=1000), seconds=5, consumers=3)

    assert queue.in_hand == 3 * AT_ONCE


def test_what_a_consumer_had_in_hand_waits_again_when_he_goes():
    queue = step(Queue(in_hand=20), consumers=0, rate=0, seconds=1, chance=Random(1))  # noqa: S311 - likewise

    assert queue == Queue(waiting=20, in_hand=0)


def test_a_quiet_queue_becomes_empty_and_stays_so():
    assert after(Queue(waiting=3), seconds=200, consumers=1) == Queue()


def test_the_backend_reads_what_the_exporter_writes():
    text = exposition(Queue(waiting=3, in_hand=4), 'namespace="shop",queue="checkout"')

    status, body = answer("checkout_queue_messages", parse(text), now=12.0)

    assert status == 200
    assert body["data"]["result"] == [
        {
            "metric": {"__name__": "checkout_queue_messages", "namespace": "shop", "queue": "checkout"},
            "value": [12.0, "7"],
        }
    ]


def test_a_query_that_the_backend_does_not_understand_is_refused_as_prometheus_would():
    status, body = answer("sum(x)", iter(()), now=0)

    assert (status, body["status"], body["errorType"]) == (400, "error", "bad_data")

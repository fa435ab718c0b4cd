"""The model of the queue, and the fake Prometheus that serves its metrics."""

from random import Random

from adapter.demo.fake_prometheus import query_response
from adapter.demo.order_queue import ORDERS_PER_CONSUMER, QueueState, exposition, simulate


def after(state: QueueState, *, seconds: int, consumers: int, rate: float = 0.0) -> QueueState:
    random = Random(7)  # noqa: S311 - a simulation
    for _ in range(seconds):
        state = simulate(state, consumers=consumers, rate=rate, seconds=1, random=random)
    return state


def test_orders_arrive_at_the_given_rate():
    state = after(QueueState(), seconds=1000, consumers=0, rate=3)

    assert 2800 < state.received < 3200
    assert state == QueueState(waiting=state.received, in_progress=0, received=state.received)


def test_without_consumers_no_order_is_finished():
    assert after(QueueState(waiting=5), seconds=100, consumers=0).messages == 5


def test_consumer_finishes_about_one_order_per_second():
    finished = 1000 - after(QueueState(waiting=1000), seconds=100, consumers=1).messages

    assert 80 < finished < 120


def test_orders_in_progress_are_limited_per_consumer():
    state = after(QueueState(waiting=1000), seconds=5, consumers=3)

    assert state.in_progress == 3 * ORDERS_PER_CONSUMER


def test_orders_of_a_removed_consumer_return_to_the_queue():
    state = simulate(QueueState(in_progress=20), consumers=0, rate=0, seconds=1, random=Random(1))  # noqa: S311 - likewise

    assert state == QueueState(waiting=20, in_progress=0)


def test_queue_without_arrivals_becomes_empty():
    assert after(QueueState(waiting=3), seconds=200, consumers=1) == QueueState()


def test_metrics_are_exposed_in_the_text_format():
    text = exposition(QueueState(waiting=3, in_progress=4, received=9).metrics)

    assert text.splitlines() == [
        'checkout_queue_messages{namespace="shop",queue="checkout"} 7',
        'checkout_orders_total{namespace="shop",queue="checkout"} 9',
    ]


def test_fake_prometheus_serves_a_metric_by_name():
    status, body = query_response("checkout_queue_messages", QueueState(waiting=3, in_progress=4).metrics, now=12.0)

    assert status == 200
    assert body["data"]["result"] == [
        {
            "metric": {"__name__": "checkout_queue_messages", "namespace": "shop", "queue": "checkout"},
            "value": [12.0, "7"],
        }
    ]


def test_fake_prometheus_has_no_series_for_an_unknown_metric():
    assert query_response("other", {}, now=0)[1]["data"]["result"] == []


def test_fake_prometheus_rejects_expressions():
    status, body = query_response("sum(x)", {}, now=0)

    assert (status, body["status"], body["errorType"]) == (400, "error", "bad_data")

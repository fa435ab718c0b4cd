"""Event correlation as in client-go: deduplication, aggregation, spam filter."""

from datetime import UTC, datetime, timedelta

from autoscaler.kube.event_correlation import EventCorrelator, InvolvedObject
from autoscaler.types.decision import Event

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WEB = InvolvedObject("steadyscale.dev/v1beta1", "PodAutoscaler", "shop", "web", "uid")


def warning(message: str) -> Event:
    return Event("Warning", "FailedGetScale", message)


def test_repeated_event_increments_the_count() -> None:
    correlator = EventCorrelator()
    first = correlator.correlate(WEB, warning("gone"), NOW)
    second = correlator.correlate(WEB, warning("gone"), NOW + timedelta(seconds=15))
    assert first is second
    assert second is not None
    assert (second.count, second.first, second.last) == (2, NOW, NOW + timedelta(seconds=15))


def test_other_message_object_or_type_is_a_new_event() -> None:
    correlator = EventCorrelator()
    events = [
        correlator.correlate(WEB, warning("gone"), NOW),
        correlator.correlate(WEB, warning("lost"), NOW),
        correlator.correlate(InvolvedObject("v", "PodAutoscaler", "shop", "api", "uid2"), warning("gone"), NOW),
        correlator.correlate(WEB, Event("Normal", "FailedGetScale", "gone"), NOW),
    ]
    assert [event.count for event in events if event is not None] == [1, 1, 1, 1]


def test_ten_similar_events_are_aggregated_into_one() -> None:
    correlator = EventCorrelator()
    events = [correlator.correlate(WEB, warning(f"after {number} s"), NOW) for number in range(12)]
    messages = [event.event.message for event in events if event is not None]
    assert messages[8] == "after 8 s"
    assert messages[11] == "(combined from similar events): after 11 s"
    assert events[9] is events[11]
    assert events[11] is not None
    assert events[11].count == 3


def test_aggregation_ends_after_ten_minutes_without_events() -> None:
    correlator = EventCorrelator()
    for number in range(12):
        correlator.correlate(WEB, warning(f"after {number} s"), NOW)
    later = correlator.correlate(WEB, warning("after a while"), NOW + timedelta(minutes=11))
    assert later is not None
    assert later.event.message == "after a while"


def test_spam_filter_allows_25_events_and_then_one_every_five_minutes() -> None:
    correlator = EventCorrelator()
    sent = [correlator.correlate(WEB, warning("gone"), NOW) for _ in range(1000)]
    assert sum(event is not None for event in sent) == 25
    assert correlator.correlate(WEB, warning("gone"), NOW + timedelta(minutes=4)) is None
    after = correlator.correlate(WEB, warning("gone"), NOW + timedelta(minutes=9))
    assert after is not None
    assert after.count == 1002


def test_caches_are_bounded() -> None:
    correlator = EventCorrelator()
    for number in range(5000):
        correlator.correlate(InvolvedObject("v", "PodAutoscaler", "shop", f"a{number}", ""), warning("gone"), NOW)
    assert len(correlator._recorded) == len(correlator._similar) == len(correlator._buckets) == 4096

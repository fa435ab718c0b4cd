"""Which events are sent: counted, combined, held back, as client-go does it."""

from datetime import UTC, datetime, timedelta

from autoscaler.kube.event_correlation import Correlator, Involved
from autoscaler.types.decision import Event

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WEB = Involved("steadyscale.dev/v1beta1", "PodAutoscaler", "shop", "web", "uid")


def warning(message: str) -> Event:
    return Event("Warning", "FailedGetScale", message)


def test_the_same_again_is_the_same_with_a_higher_count() -> None:
    correlator = Correlator()
    first = correlator.hear(WEB, warning("gone"), NOW)
    second = correlator.hear(WEB, warning("gone"), NOW + timedelta(seconds=15))
    assert first is second
    assert second is not None
    assert (second.count, second.first, second.last) == (2, NOW, NOW + timedelta(seconds=15))


def test_other_words_other_objects_and_other_types_are_other_events() -> None:
    correlator = Correlator()
    heard = [
        correlator.hear(WEB, warning("gone"), NOW),
        correlator.hear(WEB, warning("lost"), NOW),
        correlator.hear(Involved("v", "PodAutoscaler", "shop", "api", "uid2"), warning("gone"), NOW),
        correlator.hear(WEB, Event("Normal", "FailedGetScale", "gone"), NOW),
    ]
    assert [one.count for one in heard if one is not None] == [1, 1, 1, 1]


def test_the_tenth_that_differs_only_in_words_stands_for_all_that_follow() -> None:
    correlator = Correlator()
    heard = [correlator.hear(WEB, warning(f"after {number} s"), NOW) for number in range(12)]
    told = [one.event.message for one in heard if one is not None]
    assert told[8] == "after 8 s"
    assert told[11] == "(combined from similar events): after 11 s"
    assert heard[9] is heard[11]
    assert heard[11] is not None
    assert heard[11].count == 3


def test_after_ten_quiet_minutes_words_count_again() -> None:
    correlator = Correlator()
    for number in range(12):
        correlator.hear(WEB, warning(f"after {number} s"), NOW)
    later = correlator.hear(WEB, warning("after a while"), NOW + timedelta(minutes=11))
    assert later is not None
    assert later.event.message == "after a while"


def test_a_flood_is_held_back_to_25_and_then_one_in_five_minutes() -> None:
    correlator = Correlator()
    sent = [correlator.hear(WEB, warning("gone"), NOW) for _ in range(1000)]
    assert sum(one is not None for one in sent) == 25
    assert correlator.hear(WEB, warning("gone"), NOW + timedelta(minutes=4)) is None
    after = correlator.hear(WEB, warning("gone"), NOW + timedelta(minutes=9))
    assert after is not None
    assert after.count == 1002


def test_memory_is_bounded() -> None:
    correlator = Correlator()
    for number in range(5000):
        correlator.hear(Involved("v", "PodAutoscaler", "shop", f"a{number}", ""), warning("gone"), NOW)
    assert len(correlator._known) == len(correlator._similar) == len(correlator._buckets) == 4096

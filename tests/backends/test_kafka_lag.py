"""How lag is counted, of partitions of every kind; and what Kafka may parse."""

import math
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from adapter.backends.connection.address import Address
from adapter.backends.kafka import parse
from adapter.backends.kafka.lag import Offsets, Progress, lag, samples, wanted
from adapter.backends.kafka.parse import Place
from adapter.backends.kafka.settings import KafkaParameters, ranges
from adapter.errors import BackendError
from autoscaler.types.observation import FailureClass

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PLACE = Place("orders", 0)


def asked(**more: Any) -> KafkaParameters:
    return KafkaParameters(group="g", **more)


@pytest.mark.parametrize(
    ("known", "latest", "earliest", "zero"),
    [
        (Offsets(3, 10), 7, 7, 7),
        (Offsets(10, 10), 0, 0, 0),
        (Offsets(0, 0), 0, 0, 0),
        (Offsets(None, 10, 4), 1, 6, 0),  # nothing was committed
        (Offsets(None, 0, 0), 0, 0, 0),  # nothing was ever written
        (Offsets(12, 10, 4), 1, 6, 0),  # the topic was made anew: what was committed is not there
        (Offsets(3, None), math.nan, math.nan, math.nan),  # nobody leads it
        (Offsets(None, 10, None), 1, math.nan, 0),
    ],
)
def test_a_partition_counts_for_what_is_to_do_in_it(
    known: Offsets, latest: float, earliest: float, zero: float
) -> None:
    same = pytest.approx
    assert lag(asked(), known) == same(latest, nan_ok=True)
    assert lag(asked(offset_reset="earliest"), known) == same(earliest, nan_ok=True)
    for reset in ("latest", "earliest"):
        assert lag(asked(zero_without_offset=True, offset_reset=reset), known) == same(zero, nan_ok=True)


def total(lags: list[float], **more: Any) -> float:
    places = {Place("orders", number): each for number, each in enumerate(lags)}
    (sample,) = samples(asked(series="group", **more), places, NOW)
    return sample.value


def test_consumers_share_no_more_than_there_are_partitions() -> None:
    assert total([1000, 0, 0]) == 1000
    assert total([1000, 0, 0], lag_per_consumer=10) == 30
    assert total([1000, 0, 0], lag_per_consumer=10, limit_to_partitions_with_lag=True) == 10
    assert total([4, 3, 0], lag_per_consumer=10) == 7
    assert total([0, 0], lag_per_consumer=10, limit_to_partitions_with_lag=True) == 0


def test_what_is_not_known_of_one_partition_is_not_known_of_all() -> None:
    assert math.isnan(total([5, math.nan]))
    assert math.isnan(total([5, math.nan], lag_per_consumer=1))
    assert math.isnan(total([math.nan, 5], lag_per_consumer=1, limit_to_partitions_with_lag=True))


def test_a_partition_of_its_own_has_one_consumer() -> None:
    lags = {Place("orders", 0): 1000.0, Place("orders", 1): 4.0}
    made = {
        each.labels["partition"]: each.value
        for each in samples(asked(series="partition", lag_per_consumer=10), lags, NOW)
    }
    assert made == {"0": 10, "1": 4}


def test_partitions_are_chosen_by_numbers_and_ranges() -> None:
    places = dict.fromkeys(Place("orders", number) for number in range(12))
    assert [place.partition for place in wanted(asked(partitions="0-2, 7,10-99"), places)] == [0, 1, 2, 7, 10, 11]
    assert ranges("") is None
    assert ranges("1,,2") is None
    assert ranges("1-999999999") == (range(1, 1_000_000_000),)


def test_who_does_not_move_though_there_is_something_to_do_stands() -> None:
    progress, minute = Progress(), timedelta(minutes=1)
    assert progress.standing("g", PLACE, Offsets(5, 9), NOW) == timedelta()
    assert progress.standing("g", PLACE, Offsets(5, 20), NOW + minute) == minute
    assert progress.standing("g", PLACE, Offsets(6, 20), NOW + 2 * minute) == timedelta()
    assert progress.standing("other", PLACE, Offsets(6, 20), NOW + 3 * minute) == timedelta()
    assert progress.standing("g", PLACE, Offsets(6, 20), NOW + 4 * minute) == 2 * minute


def test_who_has_nothing_to_do_does_not_stand() -> None:
    progress, minute = Progress(), timedelta(minutes=1)
    for passed in range(5):
        assert progress.standing("g", PLACE, Offsets(9, 9), NOW + passed * minute) == timedelta()
    assert progress.standing("g", PLACE, Offsets(9, 12), NOW + 5 * minute) == minute  # since it was last seen with none


def test_a_group_that_never_committed_can_stand_too() -> None:
    progress, minute = Progress(), timedelta(minutes=1)
    assert progress.standing("g", PLACE, Offsets(None, 9), NOW) == timedelta()
    assert progress.standing("g", PLACE, Offsets(None, 9), NOW + minute) == minute


# ---- answers


def metadata(*topics: tuple[Any, ...]) -> SimpleNamespace:
    return SimpleNamespace(brokers=[(1, "a", 9092, None), (2, "b", 9093, None)], topics=topics)


def test_who_leads_is_read_and_who_is_not_known_is_nobody() -> None:
    said = metadata(
        (0, "orders", False, [(0, 0, 1, [1], [1]), (5, 1, -1, [2], []), (0, 2, 7, [7], [7])]),
        (3, "gone", False, []),
        (0, "nobody asked", False, [(0, 0, 1, [1], [1])]),
    )
    leaders = parse.layout(said, ("orders", "gone")).leaders
    assert leaders == {Place("orders", 0): Address("a", 9092), Place("orders", 1): None, Place("orders", 2): None}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (29, FailureClass.UNAUTHORIZED),
        (17, FailureClass.BAD_QUERY),
        (5, FailureClass.REFUSED),
        (9999, FailureClass.REFUSED),
    ],
)
def test_errors_of_topics_are_told_by_their_class(code: int, kind: FailureClass) -> None:
    with pytest.raises(BackendError) as caught:
        parse.layout(metadata((code, "orders", False, [])), ("orders",))
    assert caught.value.failure is kind


def test_offsets_are_what_was_committed() -> None:
    said = SimpleNamespace(error_code=0, topics=[("orders", [(0, 5, "", 0), (1, -1, "", 0), (2, -1, "", 3)])])
    assert parse.offsets(said) == {PLACE: 5}
    for code, partition_code in ((30, 0), (0, 88)):
        with pytest.raises(BackendError):
            parse.offsets(SimpleNamespace(error_code=code, topics=[("orders", [(0, 5, "", partition_code)])]))


def test_an_end_that_moves_to_another_leader_is_not_known() -> None:
    said = SimpleNamespace(topics=[("orders", [(0, 0, -1, 9, 0), (1, 6, -1, -1, 0), (2, 5, -1, -1, 0)])])
    assert parse.ends(said) == {PLACE: 9}
    for code, offset in ((29, -1), (0, -1)):
        with pytest.raises(BackendError):
            parse.ends(SimpleNamespace(topics=[("orders", [(0, code, -1, offset, 0)])]))


def test_a_coordinator_that_is_not_there_is_refused() -> None:
    with pytest.raises(BackendError) as caught:
        parse.coordinator(SimpleNamespace(error_code=15, host="", port=-1))
    assert caught.value.message == "the group's coordinator is not available"

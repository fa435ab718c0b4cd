import math
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from adapter.backends.connection.address import Address
from adapter.backends.kafka import parse
from adapter.backends.kafka.lag import CommitProgress, PartitionOffsets, lag, samples, select_partitions
from adapter.backends.kafka.parse import Partition
from adapter.backends.kafka.settings import KafkaParameters, parse_ranges
from adapter.errors import BackendError
from autoscaler.types.observation import FailureClass

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PARTITION = Partition("orders", 0)


def parameters(**more: Any) -> KafkaParameters:
    return KafkaParameters(group="g", **more)


@pytest.mark.parametrize(
    ("offsets", "latest", "earliest", "zero"),
    [
        (PartitionOffsets(3, 10), 7, 7, 7),
        (PartitionOffsets(10, 10), 0, 0, 0),
        (PartitionOffsets(0, 0), 0, 0, 0),
        (PartitionOffsets(None, 10, 4), 1, 6, 0),  # no commit
        (PartitionOffsets(None, 0, 0), 0, 0, 0),  # no commit, no message
        (PartitionOffsets(12, 10, 4), 1, 6, 0),  # the topic was created again, so the commit is after its end
        (PartitionOffsets(3, None), math.nan, math.nan, math.nan),  # no leader
        (PartitionOffsets(None, 10, None), 1, math.nan, 0),
    ],
)
def test_lag_of_a_partition(offsets: PartitionOffsets, latest: float, earliest: float, zero: float) -> None:
    assert lag(parameters(), offsets) == pytest.approx(latest, nan_ok=True)
    assert lag(parameters(offset_reset="earliest"), offsets) == pytest.approx(earliest, nan_ok=True)
    for reset in ("latest", "earliest"):
        assert lag(parameters(zero_without_offset=True, offset_reset=reset), offsets) == pytest.approx(
            zero, nan_ok=True
        )


def total(lags: list[float], **more: Any) -> float:
    by_partition = {Partition("orders", number): each for number, each in enumerate(lags)}
    (sample,) = samples(parameters(series="group", **more), by_partition, NOW)
    return sample.value


def test_lag_is_limited_by_the_number_of_partitions() -> None:
    assert total([1000, 0, 0]) == 1000
    assert total([1000, 0, 0], lag_per_consumer=10) == 30
    assert total([1000, 0, 0], lag_per_consumer=10, limit_to_partitions_with_lag=True) == 10
    assert total([4, 3, 0], lag_per_consumer=10) == 7
    assert total([0, 0], lag_per_consumer=10, limit_to_partitions_with_lag=True) == 0


def test_unknown_lag_of_one_partition_makes_the_sum_unknown() -> None:
    assert math.isnan(total([5, math.nan]))
    assert math.isnan(total([5, math.nan], lag_per_consumer=1))
    assert math.isnan(total([math.nan, 5], lag_per_consumer=1, limit_to_partitions_with_lag=True))


def test_lag_per_partition_is_limited_to_one_consumer() -> None:
    lags = {Partition("orders", 0): 1000.0, Partition("orders", 1): 4.0}
    by_partition = {
        each.labels["partition"]: each.value
        for each in samples(parameters(series="partition", lag_per_consumer=10), lags, NOW)
    }
    assert by_partition == {"0": 10, "1": 4}


def test_partitions_are_selected_by_numbers_and_ranges() -> None:
    partitions = dict.fromkeys(Partition("orders", number) for number in range(12))
    selected = select_partitions(parameters(partitions="0-2, 7,10-99"), partitions)
    assert [partition.number for partition in selected] == [0, 1, 2, 7, 10, 11]
    assert parse_ranges("") is None
    assert parse_ranges("1,,2") is None
    assert parse_ranges("1-999999999") == (range(1, 1_000_000_000),)


def test_time_since_commit_is_measured_per_group_while_there_is_lag() -> None:
    progress, minute = CommitProgress(), timedelta(minutes=1)
    assert progress.time_since_commit("g", PARTITION, PartitionOffsets(5, 9), NOW) == timedelta()
    assert progress.time_since_commit("g", PARTITION, PartitionOffsets(5, 20), NOW + minute) == minute
    assert progress.time_since_commit("g", PARTITION, PartitionOffsets(6, 20), NOW + 2 * minute) == timedelta()
    assert progress.time_since_commit("other", PARTITION, PartitionOffsets(6, 20), NOW + 3 * minute) == timedelta()
    assert progress.time_since_commit("g", PARTITION, PartitionOffsets(6, 20), NOW + 4 * minute) == 2 * minute


def test_time_since_commit_is_zero_without_lag() -> None:
    progress, minute = CommitProgress(), timedelta(minutes=1)
    for passed in range(5):
        assert progress.time_since_commit("g", PARTITION, PartitionOffsets(9, 9), NOW + passed * minute) == timedelta()
    assert (
        progress.time_since_commit("g", PARTITION, PartitionOffsets(9, 12), NOW + 5 * minute) == minute
    )  # since the lag was last seen to be 0


def test_time_since_commit_is_measured_without_any_commit() -> None:
    progress, minute = CommitProgress(), timedelta(minutes=1)
    assert progress.time_since_commit("g", PARTITION, PartitionOffsets(None, 9), NOW) == timedelta()
    assert progress.time_since_commit("g", PARTITION, PartitionOffsets(None, 9), NOW + minute) == minute


# ---- responses


def metadata(*topics: tuple[Any, ...]) -> SimpleNamespace:
    return SimpleNamespace(brokers=[(1, "a", 9092, None), (2, "b", 9093, None)], topics=topics)


def test_leaders_are_read_and_unknown_leaders_are_none() -> None:
    response = metadata(
        (0, "orders", False, [(0, 0, 1, [1], [1]), (5, 1, -1, [2], []), (0, 2, 7, [7], [7])]),
        (3, "gone", False, []),
        (0, "other", False, [(0, 0, 1, [1], [1])]),
    )
    leaders = parse.parse_leaders(response, ("orders", "gone"))
    assert leaders == {
        Partition("orders", 0): Address("a", 9092),
        Partition("orders", 1): None,
        Partition("orders", 2): None,
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (29, FailureClass.UNAUTHORIZED),
        (17, FailureClass.BAD_QUERY),
        (5, FailureClass.REFUSED),
        (9999, FailureClass.REFUSED),
    ],
)
def test_error_codes_of_topics_are_classified(code: int, expected: FailureClass) -> None:
    with pytest.raises(BackendError) as caught:
        parse.parse_leaders(metadata((code, "orders", False, [])), ("orders",))
    assert caught.value.failure is expected


def test_committed_offsets_are_read() -> None:
    response = SimpleNamespace(error_code=0, topics=[("orders", [(0, 5, "", 0), (1, -1, "", 0), (2, -1, "", 3)])])
    assert parse.parse_committed_offsets(response) == {PARTITION: 5}
    for code, partition_code in ((30, 0), (0, 88)):
        with pytest.raises(BackendError):
            parse.parse_committed_offsets(
                SimpleNamespace(error_code=code, topics=[("orders", [(0, 5, "", partition_code)])])
            )


def test_offset_of_a_partition_without_leader_is_unknown() -> None:
    response = SimpleNamespace(topics=[("orders", [(0, 0, -1, 9, 0), (1, 6, -1, -1, 0), (2, 5, -1, -1, 0)])])
    assert parse.parse_log_offsets(response) == {PARTITION: 9}
    for code, offset in ((29, -1), (0, -1)):
        with pytest.raises(BackendError):
            parse.parse_log_offsets(SimpleNamespace(topics=[("orders", [(0, code, -1, offset, 0)])]))


def test_unavailable_coordinator_is_rejected() -> None:
    with pytest.raises(BackendError) as caught:
        parse.raise_error_code(SimpleNamespace(error_code=15, host="", port=-1))
    assert caught.value.message == "the coordinator of the group is not available"

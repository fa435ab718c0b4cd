"""Formatting and arithmetic of timestamps."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from autoscaler.values.timestamps import add_seconds, format_rfc3339


@pytest.mark.parametrize(
    ("timespec", "expected"),
    [
        ("seconds", "2000-01-01T02:00:00Z"),
        ("milliseconds", "2000-01-01T02:00:00.999Z"),
        ("microseconds", "2000-01-01T02:00:00.999999Z"),
    ],
)
def test_timestamp_is_converted_to_utc_and_truncated(timespec, expected):
    moment = datetime(2000, 1, 1, 4, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))

    assert format_rfc3339(moment, timespec) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59Z"),
    ],
)
def test_time_that_utc_cannot_represent_becomes_the_nearest_one(text, expected):
    assert format_rfc3339(datetime.fromisoformat(text)) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (180, "2000-01-01T00:03:00Z"),
        (250_000_000_000, "9922-03-09T12:26:40Z"),
        (260_000_000_000, "9999-12-31T23:59:59Z"),
        (2**63 - 1, "9999-12-31T23:59:59Z"),
    ],
)
def test_sum_of_time_and_duration_ends_with_the_year_9999(seconds, expected):
    assert format_rfc3339(add_seconds(datetime(2000, 1, 1, tzinfo=UTC), seconds)) == expected

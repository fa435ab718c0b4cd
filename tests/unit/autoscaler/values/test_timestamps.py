"""Formatting of RFC 3339 timestamps."""

from datetime import datetime, timedelta, timezone

import pytest

from autoscaler.values.timestamps import format_rfc3339


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

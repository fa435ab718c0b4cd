"""When the changed value of an ExternalMetric is written to its status."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapter.custom_resources.status_writer import ExternalMetricStatusWriter
from autoscaler.values.timestamps import format_rfc3339

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
UNUSED: Any = None


@pytest.mark.parametrize(
    ("age", "is_due"),
    [
        pytest.param(timedelta(seconds=59), False, id="within the interval"),
        pytest.param(timedelta(seconds=60), True, id="after the interval"),
        pytest.param(timedelta(hours=-1), True, id="written by a process whose clock was ahead"),
    ],
)
def test_changed_value_is_written_once_per_interval(age: timedelta, *, is_due: bool) -> None:
    writer = ExternalMetricStatusWriter(UNUSED, UNUSED, UNUSED, lambda: NOW)
    before = {"lastValue": "1", "lastReadTime": format_rfc3339(NOW - age)}
    assert writer._is_due(before, {"lastValue": "2"}) is is_due

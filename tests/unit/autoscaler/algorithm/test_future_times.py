"""Times of a status that are later than now."""

from datetime import UTC, datetime, timedelta

from autoscaler.algorithm.future_times import without_future_times
from autoscaler.types.status import MetricStatus, Status
from tests.builders import make_autoscaler

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RESOURCE = MetricStatus(type="Resource")


def test_later_time_becomes_now_and_metrics_of_other_types_are_unchanged() -> None:
    status = Status(last_scale_time=NOW + timedelta(hours=1), current_metrics=(RESOURCE,))
    limited = without_future_times(make_autoscaler(status=status), NOW).status
    assert (limited.last_scale_time, limited.current_metrics) == (NOW, (RESOURCE,))


def test_status_without_later_times_is_unchanged() -> None:
    autoscaler = make_autoscaler(status=Status(last_scale_time=NOW))
    assert without_future_times(autoscaler, NOW) is autoscaler

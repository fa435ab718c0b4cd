"""Replace times in the status that are later than now.

A process whose clock was ahead has written them, or another client. Durations that began in the future would not end
until the clock has caught up: a fallback would not come, and transition times would be shown with negative ages.
"""

from datetime import datetime

from msgspec.structs import replace

from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.status import MetricStatus, Status


def without_future_times(autoscaler: Autoscaler, now: datetime) -> Autoscaler:
    """Return the autoscaler with ``now`` instead of each later time of its status."""
    status = autoscaler.status
    times = [status.last_scale_time]
    times += [condition.last_transition_time for condition in status.conditions]
    times += [metric.external.first_failure_time for metric in status.current_metrics or () if metric.external]
    if max(filter(None, times), default=now) <= now:
        return autoscaler
    return replace(autoscaler, status=_limited(status, now.replace(microsecond=0)))


def _limited(status: Status, latest: datetime) -> Status:
    return replace(
        status,
        last_scale_time=_earlier(status.last_scale_time, latest),
        conditions=tuple(
            replace(condition, last_transition_time=_earlier(condition.last_transition_time, latest))
            for condition in status.conditions
        ),
        current_metrics=status.current_metrics
        and tuple(_limited_metric(each, latest) for each in status.current_metrics),
    )


def _limited_metric(metric: MetricStatus, latest: datetime) -> MetricStatus:
    if metric.external is None:
        return metric
    since = _earlier(metric.external.first_failure_time, latest)
    return replace(metric, external=replace(metric.external, first_failure_time=since))


def _earlier(time: datetime | None, latest: datetime) -> datetime | None:
    return None if time is None else min(time, latest)

"""What a replay can use: the timeline of the decision log, or a period of the decision history. Pure."""

from datetime import datetime, timedelta
from typing import Final

from adapter.debug.recorded_load import RecordedLoad, points_gaps
from adapter.debug.timeline import Timeline
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.history.reader import RecordedPeriod

_MAX_TIMELINE_BYTES: Final = 2**20


def logged_load(timeline: Timeline, last: datetime, sync_period: timedelta) -> RecordedLoad:
    """Return the load of a timeline whose last decision is of this time."""
    load = timeline.load((last + sync_period).timestamp())
    return load.with_gaps(points_gaps(load.points, sync_period))


def recorded_load(period: RecordedPeriod) -> RecordedLoad:
    """Return the load of a period of the decision history; raise ``ConfigInvalid`` if it has no decision.

    The first record was in force when the period began. The metrics of the last one determine where the load begins:
    values of other metrics cannot be replayed.
    """
    timeline, since = Timeline(), period.since.timestamp()
    for record in period.records:
        if not record.deleted:
            timeline.add(record.decision, _MAX_TIMELINE_BYTES)
    end = min(period.until, period.recorded_until or period.until).timestamp()
    if not len(timeline) or end <= since:
        raise ConfigInvalid([Problem("", "there is nothing to replay: no decision is recorded in this period")])
    load = timeline.load(end)
    points = {max(point.time, since): point for point in load.points}
    gaps = [(gap.start.timestamp(), gap.end.timestamp()) for gap in period.gaps]
    return load._replace(points=tuple(point._replace(time=time) for time, point in points.items())).with_gaps(gaps)

"""The recorded values of one metric, and the periods in which it cannot be read."""

from bisect import bisect_right

from autoscaler.types.record import Record


class MetricHistory(Record):
    """Samples of a metric in the order of their times. A sample applies until the next one, or until it is too old."""

    times: tuple[float, ...]
    """In seconds since the epoch, strictly increasing."""

    milli: tuple[int | None, ...]
    """The values in thousandths; None: at this time the metric had no value."""

    max_age: float
    """The age in seconds at which a sample ends to apply: a longer distance between samples is a gap."""

    def at(self, time: float) -> int | None:
        """Return the value that applies at a time; None before the first sample and in a gap."""
        index = bisect_right(self.times, time) - 1
        if index < 0 or time - self.times[index] >= self.max_age:
            return None
        return self.milli[index]

    def changes(self, start: float, end: float) -> list[float]:
        """Return the times after ``start`` and before ``end`` at which the value can change."""
        first, last = bisect_right(self.times, start), bisect_right(self.times, end)
        found = [*self.times[first:last]]
        gaps = [
            time + self.max_age for time in self.times[max(first - 1, 0) : last] if start < time + self.max_age < end
        ]
        return sorted({*found, *gaps} - {end})


class Outage(Record):
    """A period in which no metric can be read, although the load continues."""

    start: float
    """In seconds since the epoch; included."""

    end: float
    """Not included."""

"""Past recommendations and rescales, as far back as stabilization windows and scaling policies need them.

Like upstream, a new entry overwrites the last outdated one and the other outdated entries stay in place, because the
conformance vectors compare the stored entries.
"""

from datetime import datetime

import msgspec

from autoscaler.types.record import Record


class Recommendation(Record):
    """A recommended replica count before stabilization, and its time."""

    replicas: int
    at: datetime


class ScaleEvent(Record):
    """A past rescale: the absolute change in replicas, and its time."""

    change: int
    at: datetime
    outdated: bool = False


class UnknownRescale(Record):
    """A rescale whose outcome is unknown: its response was lost, and the API server may still apply it."""

    before: int
    replicas: int
    at: datetime
    resource_version: str
    """The resourceVersion of the target that the write requires; empty: not known."""

    reason: str = ""


class History(Record):
    """Recommendations and rescales of one autoscaler."""

    recommendations: tuple[Recommendation, ...] = ()
    scale_ups: tuple[ScaleEvent, ...] = ()
    scale_downs: tuple[ScaleEvent, ...] = ()
    unknown: tuple[UnknownRescale, ...] = ()

    def seeded(self, replicas: int, now: datetime) -> "History":
        """Add the current replicas to an empty history, so that a restart does not skip the stabilization window."""
        if self.recommendations:
            return self
        return msgspec.structs.replace(self, recommendations=(Recommendation(replicas, now),))

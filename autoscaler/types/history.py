"""What was: past recommendations and past rescales, as far as windows and policies still need them.

Slots are reused as upstream reuses them (the last outdated one is overwritten, others stay), because that is what
decides which memory a pass leaves behind.
"""

from datetime import datetime

import msgspec

from autoscaler.types.record import Record


class Recommendation(Record):
    """What the metrics asked for at a moment, before any limit."""

    replicas: int
    at: datetime


class ScaleEvent(Record):
    """A rescale that happened: by how many replicas, and when."""

    change: int
    at: datetime
    outdated: bool = False


class History(Record):
    """One autoscaler's past."""

    recommendations: tuple[Recommendation, ...] = ()
    scale_ups: tuple[ScaleEvent, ...] = ()
    scale_downs: tuple[ScaleEvent, ...] = ()

    def seeded(self, replicas: int, now: datetime) -> "History":
        """Begin with the current size, so that a fresh start does not scale before a window has passed."""
        if self.recommendations:
            return self
        return msgspec.structs.replace(self, recommendations=(Recommendation(replicas, now),))

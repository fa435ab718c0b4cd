"""Pauses of an autoscaler: by its annotation, which takes precedence, or by ``spec.mode``."""

from datetime import datetime

from autoscaler.types.autoscaler import PAUSED_ANNOTATION, Autoscaler, Metadata
from autoscaler.types.record import Record
from autoscaler.types.spec import PAUSED


class Pause(Record):
    """A pause, and how it ends."""

    until: datetime | None = None
    """None: it does not end by itself."""

    annotation: str | None = None
    """The value of the annotation that causes it; None: ``spec.mode`` does."""


def annotation_of(metadata: Metadata) -> str | None:
    return (metadata.annotations or {}).get(PAUSED_ANNOTATION)


def pause_of(autoscaler: Autoscaler, now: datetime) -> Pause | None:
    """Return the pause of an autoscaler. An invalid value of the annotation pauses, as an invalid spec does."""
    value = annotation_of(autoscaler.metadata)
    if value is not None and value != "false":
        return Pause(annotation=value)
    spec = autoscaler.spec
    if spec.mode == PAUSED and (spec.paused_until is None or spec.paused_until > now):
        return Pause(spec.paused_until)
    return None

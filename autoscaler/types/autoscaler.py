"""One autoscaler object: metadata, spec and status."""

from collections.abc import Mapping
from typing import Final

from autoscaler.types.record import Record
from autoscaler.types.spec import Spec
from autoscaler.types.status import Status

PAUSED_ANNOTATION: Final = "steadyscale.dev/paused"
"""Pauses a PodAutoscaler, whatever its ``spec.mode``."""

PAUSED_VALUES: Final = ("true", "false")


class Metadata(Record):
    """The part of an object's metadata that validation and the controller need."""

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    generation: int = 0
    resource_version: str = ""
    uid: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


class Autoscaler(Record):
    """A PodAutoscaler, or a HorizontalPodAutoscaler."""

    metadata: Metadata = Metadata()
    spec: Spec = Spec()
    status: Status = Status()

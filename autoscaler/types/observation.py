"""The inputs of one decision: target, pods and metric readings. A failed read is a value here, not an exception."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from autoscaler.types.record import Record
from autoscaler.values.quantity import Quantity


class Container(Record):
    """A container's resource requests. ``restart_policy: Always`` on an init container makes it a sidecar."""

    name: str
    requests: Mapping[str, Quantity] = {}
    restart_policy: str | None = None


class Pod(Record):
    """The fields of a pod that the calculation needs."""

    name: str
    phase: str
    labels: Mapping[str, str]
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    requests: Mapping[str, Quantity] | None = None
    """Pod-level requests (``spec.resources``); None: not set."""

    overhead: Mapping[str, Quantity] | None = None
    ready: str | None = None
    """Status of the Ready condition; None: the pod has no such condition."""

    ready_since: datetime | None = None
    """Last transition time of the Ready condition."""

    started: datetime | None = None
    terminating: bool = False


class PodSample(Record):
    """A metric value of one pod, its timestamp and the window it was averaged over."""

    milli: int
    at: datetime
    window: timedelta


class PodReading(Record):
    """A Resource, ContainerResource or Pods metric: the samples by pod name."""

    samples: Mapping[str, PodSample]
    at: datetime | None = None


class ObjectReading(Record):
    """An Object metric: one value."""

    milli: int
    at: datetime | None = None


class ExternalReading(Record):
    """An External metric: the values of all matching series."""

    milli: tuple[int, ...]
    at: datetime | None = None


class FailureClass(StrEnum):
    """Why a metric could not be read. The values appear in messages."""

    UNKNOWN_METRIC = "unknown metric"
    NO_SERIES = "no series"
    NOT_A_NUMBER = "not a number"
    OUT_OF_RANGE = "out of range"
    TOO_OLD = "too old"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed out"
    UNAUTHORIZED = "unauthorized"
    BAD_QUERY = "bad query"
    AMBIGUOUS = "ambiguous"
    OVER_BUDGET = "over budget"
    API_UNAVAILABLE = "metrics API unavailable"


class UnavailableReading(Record):
    """A metric that could not be read."""

    message: str
    failure: FailureClass = FailureClass.API_UNAVAILABLE


class BadSelector(Record):
    """The metric's selector in the spec is invalid, so no request was sent."""

    message: str


Reading: TypeAlias = PodReading | ObjectReading | ExternalReading | UnavailableReading | BadSelector


class ScaleTarget(Record):
    """The target's scale subresource."""

    replicas: int
    """``spec.replicas``."""

    status_replicas: int
    """``status.replicas``."""

    selector: str
    """``status.selector``: the label selector of its pods; empty if not set."""

    selector_error: str | None = None
    """Parse error of the selector; None: the selector is valid."""


class TargetReadStage(StrEnum):
    """The stage at which reading the target's scale failed."""

    REFERENCE = "parsing scaleTargetRef"
    MAPPING = "mapping the kind to a resource"
    SCALE = "reading the scale subresource"


class UnavailableTarget(Record):
    """The target's scale could not be read."""

    message: str
    stage: TargetReadStage = TargetReadStage.SCALE


class Observation(Record):
    """Everything that one reconcile read."""

    target: ScaleTarget | UnavailableTarget
    pods: tuple[Pod, ...] = ()
    """The pods that the target's selector matches."""

    readings: tuple[Reading, ...] = ()
    """One reading per entry of spec.metrics, in the same order."""

    selected_by: tuple[str, ...] = ()
    """Autoscalers whose target's selector matches some of these pods, as ``namespace/name``; two are ambiguous."""

    conflicts: tuple[str, ...] = ()
    """Other autoscalers with the same target, such as ``HorizontalPodAutoscaler/shop/web``."""

    read_durations: tuple[timedelta, ...] = ()
    """How long each reading took; not used by decisions."""

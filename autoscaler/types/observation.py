"""What is true now: all that one pass has seen of the world. What could not be seen is a value in it, no exception."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from autoscaler.types.record import Record
from autoscaler.values.quantity import Quantity


class Container(Record):
    """A container's requests. ``restart_policy: Always`` on an init container makes it a sidecar."""

    name: str
    requests: Mapping[str, Quantity]
    restart_policy: str | None = None


class Pod(Record):
    """What the arithmetic needs of a pod."""

    name: str
    phase: str
    labels: Mapping[str, str]
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    requests: Mapping[str, Quantity] | None = None
    """Requests of the pod as a whole, where it sets any."""

    overhead: Mapping[str, Quantity] | None = None
    ready: str | None = None
    """Status of the Ready condition; None: the pod has no such condition."""

    ready_since: datetime | None = None
    """When that condition last changed."""

    started: datetime | None = None
    terminating: bool = False


class PodSample(Record):
    """One pod's number, when it was taken and over how long."""

    milli: int
    at: datetime
    window: timedelta


class PodReading(Record):
    """A Resource, ContainerResource or Pods metric: a number for each pod that has one."""

    samples: Mapping[str, PodSample]
    at: datetime | None = None


class ObjectReading(Record):
    """An Object metric: one number."""

    milli: int
    at: datetime | None = None


class ExternalReading(Record):
    """An External metric: a number for each series that matches."""

    milli: tuple[int, ...]
    at: datetime | None = None


class FailureClass(StrEnum):
    """Why a number could not be had, in the words operators search for."""

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
    API_UNAVAILABLE = "metrics API unavailable"


class UnavailableReading(Record):
    """The number was asked for and could not be had."""

    message: str
    failure: FailureClass = FailureClass.API_UNAVAILABLE


class BadSelector(Record):
    """The spec's selector does not parse, so nothing was asked: the user's error, not the metric system's."""

    message: str


Reading: TypeAlias = PodReading | ObjectReading | ExternalReading | UnavailableReading | BadSelector


class ScaleTarget(Record):
    """The workload as its scale subresource shows it."""

    replicas: int
    """What its spec asks for."""

    status_replicas: int
    """How many it has."""

    selector: str
    """Its pods, as the text of a label selector; empty if it has none."""

    selector_error: str | None = None
    """Why that text does not parse, where it does not; whoever looked for the pods had to find out."""


class Hop(StrEnum):
    """Where the way to the target's scale ended."""

    REFERENCE = "the reference cannot be read"
    MAPPING = "no resource is known for the kind"
    SCALE = "the scale was not given"


class TargetUnreadable(Record):
    """The scale could not be read."""

    message: str
    hop: Hop = Hop.SCALE


class Observation(Record):
    """Everything one pass has seen."""

    target: ScaleTarget | TargetUnreadable
    pods: tuple[Pod, ...] = ()
    """The pods that the target's selector matches."""

    readings: tuple[Reading, ...] = ()
    """One for each entry of spec.metrics, in that order."""

    selecting: tuple[str, ...] = ()
    """Autoscalers whose selectors match some of these pods, as ``namespace/name``; more than one is an ambiguity."""

    rivals: tuple[str, ...] = ()
    """Other owners of the same target, such as ``HorizontalPodAutoscaler/shop/web``."""

"""The autoscaler's knobs, with the names and defaults of kube-controller-manager's flags, and its feature gates."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from autoscaler.types.record import Record


class Settings(Record):
    """What the operator of a cluster sets once for all autoscalers."""

    tolerance: float = 0.1
    """How far a ratio may stray from 1 and change nothing, both ways, unless an autoscaler says otherwise.
    Upstream: --horizontal-pod-autoscaler-tolerance."""

    downscale_stabilization: timedelta = timedelta(minutes=5)
    """A scale-down waits until no recommendation of this long ago was higher.
    Upstream: --horizontal-pod-autoscaler-downscale-stabilization."""

    cpu_initialization_period: timedelta = timedelta(minutes=5)
    """For this long after its start a pod's CPU counts only while it is ready and was measured since it became so.
    Upstream: --horizontal-pod-autoscaler-cpu-initialization-period."""

    initial_readiness_delay: timedelta = timedelta(seconds=30)
    """A pod that turned unready within this long of starting was never ready; its CPU is not counted.
    Upstream: --horizontal-pod-autoscaler-initial-readiness-delay."""

    sync_period: timedelta = timedelta(seconds=15)
    """How often each autoscaler is looked at. Upstream: --horizontal-pod-autoscaler-sync-period."""

    fallback_floor: timedelta = timedelta(seconds=180)
    """The shortest failureDurationSeconds that is accepted; a test cluster may lower it."""


class FeatureGates(Record, rename=None):
    """Switches with Kubernetes' names, all on by default here."""

    HPAScaleToZero: bool = True
    """Allow minReplicas 0, remember who scaled to zero, and wake up from there (KEP-2021)."""

    HPAConfigurableTolerance: bool = True
    """Honour behavior.scaleUp.tolerance and behavior.scaleDown.tolerance (KEP-4951)."""

    HPAExternalMetricFallback: bool = True
    """Honour external.fallback (KEP-5679)."""

    HPAGeneration: bool = True
    """Write status.observedGeneration."""

    PodLevelResources: bool = True
    """Requests of a pod as a whole replace the sum of its containers' for utilization."""


EMBEDDED: Final = "embedded"
CLUSTER: Final = "cluster"


class Operation(Record):
    """How the controller runs in this process."""

    settings: Settings = Settings()
    gates: FeatureGates = FeatureGates()
    concurrent_syncs: int = 5
    """How many autoscalers are looked at at once; those that take long do not count.
    Upstream: --concurrent-horizontal-pod-autoscaler-syncs."""

    external_metrics: str = EMBEDDED
    """Who is asked for external metrics: this process, or whichever server the cluster has registered."""

    leader_elect: bool = True
    """Whether to control only while holding a Lease; without, there must be one process."""

    lease_duration: timedelta = timedelta(seconds=15)
    renew_deadline: timedelta = timedelta(seconds=10)
    retry_period: timedelta = timedelta(seconds=2)
    lease_name: str = "steadyscale"
    lease_namespace: str = "steadyscale"


class FlagsInvalid(ValueError):
    """Some flags make no sense; says of each why."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class Flag(NamedTuple):
    """One flag of the command line, with kube-controller-manager's name where it has one."""

    name: str
    field: str
    """Where its value goes: a field of ``Operation``, or ``settings.`` and a field of ``Settings``."""

    read: Callable[[str], object]
    help: str


def operation(given: Mapping[str, str]) -> Operation:
    """Make sense of the flags that were given, by name without dashes; raise FlagsInvalid with every problem."""
    chosen: dict[str, object] = {}
    problems: list[str] = []
    for flag in FLAGS:
        if flag.name in given:
            try:
                chosen[flag.field] = flag.read(given[flag.name])
            except ValueError as error:
                problems.append(f"--{flag.name}: {error}")
    if problems:
        raise FlagsInvalid(problems)
    knobs = {name.removeprefix("settings."): value for name, value in chosen.items() if name.startswith("settings.")}
    rest = {name: value for name, value in chosen.items() if not name.startswith("settings.")}
    made = replace(Operation(), settings=replace(Settings(), **knobs), **rest)
    if not made.retry_period < made.renew_deadline < made.lease_duration:
        raise FlagsInvalid(["--leader-elect-*: retry-period < renew-deadline < lease-duration must hold"])
    return made


def _gates(text: str) -> FeatureGates:
    """Read ``A=true,B=false``."""
    chosen: dict[str, bool] = {}
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = one.partition("=")
        if name not in FeatureGates.__struct_fields__:
            raise ValueError(f"unrecognized feature gate: {name}; known: {', '.join(FeatureGates.__struct_fields__)}")
        chosen[name] = _truth(value)
    return FeatureGates(**chosen)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"must be true or false, is {text!r}")
    return text.lower() == "true"


_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)", re.ASCII)
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def _duration(text: str) -> timedelta:
    """Read ``1m30s``; nothing here makes sense at zero."""
    if not re.fullmatch(rf"(?:{_PART.pattern})+", text, re.ASCII):
        raise ValueError(f"must be a duration such as 15s or 5m0s, is {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if not 0 < seconds < 10**9:
        raise ValueError(f"must be more than nothing, is {text!r}")
    return timedelta(seconds=seconds)


def _window(text: str) -> timedelta:
    return timedelta(0) if text in ("0", "0s") else _duration(text)


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"must be a number and not negative, is {text!r}")
    return value


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,6}", text) or int(text) < 1:
        raise ValueError(f"must be greater than 0, but got {text}")
    return int(text)


def _source(text: str) -> str:
    if text not in (EMBEDDED, CLUSTER):
        raise ValueError(f"must be {EMBEDDED} or {CLUSTER}, is {text!r}")
    return text


_HPA: Final = "horizontal-pod-autoscaler"

FLAGS: Final = (
    Flag(f"{_HPA}-sync-period", "settings.sync_period", _duration, "how often each autoscaler is looked at (15s)"),
    Flag(f"{_HPA}-tolerance", "settings.tolerance", _tolerance, "how far a ratio may stray from 1 (0.1)"),
    Flag(
        f"{_HPA}-downscale-stabilization",
        "settings.downscale_stabilization",
        _window,
        "how long the highest recommendation holds a workload up (5m0s)",
    ),
    Flag(
        f"{_HPA}-cpu-initialization-period",
        "settings.cpu_initialization_period",
        _window,
        "how long after its start a pod's CPU counts only while it is ready (5m0s)",
    ),
    Flag(
        f"{_HPA}-initial-readiness-delay",
        "settings.initial_readiness_delay",
        _window,
        "a pod that turned unready so soon after its start was never ready (30s)",
    ),
    Flag(f"concurrent-{_HPA}-syncs", "concurrent_syncs", _count, "how many autoscalers are looked at at once (5)"),
    Flag("fallback-floor", "settings.fallback_floor", _window, "the shortest failureDurationSeconds accepted (180s)"),
    Flag("feature-gates", "gates", _gates, "A=true,B=false"),
    Flag("external-metrics", "external_metrics", _source, "who is asked for external metrics: embedded or cluster"),
    Flag("leader-elect", "leader_elect", _truth, "control only while holding a Lease (true)"),
    Flag("leader-elect-lease-duration", "lease_duration", _duration, "how long others wait for a leader (15s)"),
    Flag("leader-elect-renew-deadline", "renew_deadline", _duration, "how long a leader goes on unrenewed (10s)"),
    Flag("leader-elect-retry-period", "retry_period", _duration, "how often a leader renews (2s)"),
    Flag("leader-elect-resource-name", "lease_name", str, "the Lease's name (steadyscale)"),
    Flag("leader-elect-resource-namespace", "lease_namespace", str, "the Lease's namespace (steadyscale)"),
)

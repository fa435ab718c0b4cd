"""Command-line flags of the controller, with the names and defaults of kube-controller-manager."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from autoscaler.settings import CLUSTER, EMBEDDED, ControllerOptions, FeatureGates, Settings


class InvalidFlags(ValueError):
    """One or more flags have invalid values."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class Flag(NamedTuple):
    """A command-line flag, with kube-controller-manager's name where it has one."""

    name: str
    field: str
    """The field that it sets: of ``ControllerOptions``, or of ``Settings`` with the prefix ``settings.``."""

    parse: Callable[[str], object]
    help: str


def parse_flags(flags: Mapping[str, str]) -> ControllerOptions:
    """Parse flags, by name without dashes; raise InvalidFlags with all problems."""
    values: dict[str, object] = {}
    problems: list[str] = []
    for flag in FLAGS:
        if flag.name in flags:
            try:
                values[flag.field] = flag.parse(flags[flag.name])
            except ValueError as error:
                problems.append(f"--{flag.name}: {error}")
    if problems:
        raise InvalidFlags(problems)
    settings = {name.removeprefix("settings."): value for name, value in values.items() if name.startswith("settings.")}
    others = {name: value for name, value in values.items() if not name.startswith("settings.")}
    options = replace(ControllerOptions(), settings=replace(Settings(), **settings), **others)
    if not options.retry_period < options.renew_deadline < options.lease_duration:
        raise InvalidFlags(["--leader-elect-*: retry-period < renew-deadline < lease-duration must hold"])
    if options.shards > 1 and not options.leader_elect:
        raise InvalidFlags(["--shards: shards are divided by leader election, which --leader-elect=false disables"])
    return options


def _gates(text: str) -> FeatureGates:
    """Parse ``A=true,B=false``."""
    gates: dict[str, bool] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = entry.partition("=")
        if name not in FeatureGates.__struct_fields__:
            raise ValueError(f"unrecognized feature gate: {name}; known: {', '.join(FeatureGates.__struct_fields__)}")
        gates[name] = _bool(value)
    return FeatureGates(**gates)


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"must be true or false, got {text!r}")
    return text.lower() == "true"


_DURATION_PART: Final = re.compile(r"(?<![\d.])(\d++(?:\.\d++)?)(h|ms|m|s)", re.ASCII)
_UNIT_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def _duration(text: str) -> timedelta:
    """Parse a positive duration such as ``1m30s``."""
    if not re.fullmatch(rf"(?:{_DURATION_PART.pattern})+", text, re.ASCII):
        raise ValueError(f"must be a duration such as 15s or 5m0s, got {text!r}")
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
    if not 0 < seconds < 10**9:
        raise ValueError(f"must be greater than 0, got {text!r}")
    return timedelta(seconds=seconds)


def _duration_or_zero(text: str) -> timedelta:
    return timedelta(0) if text in ("0", "0s") else _duration(text)


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"must be a number greater than or equal to 0, got {text!r}")
    return value


def _positive_int(text: str) -> int:
    if not re.fullmatch(r"\d{1,6}", text) or int(text) < 1:
        raise ValueError(f"must be greater than 0, got {text}")
    return int(text)


def _shards(text: str) -> int:
    if _positive_int(text) > MAX_SHARDS:
        raise ValueError(f"must be at most {MAX_SHARDS}, got {text}")
    return int(text)


def _metrics_source(text: str) -> str:
    if text not in (EMBEDDED, CLUSTER):
        raise ValueError(f"must be {EMBEDDED} or {CLUSTER}, got {text!r}")
    return text


MAX_SHARDS: Final = 256
"""Each shard has a Lease that is renewed every retry period."""

_HPA: Final = "horizontal-pod-autoscaler"

FLAGS: Final = (
    Flag(f"{_HPA}-sync-period", "settings.sync_period", _duration, "Interval between reconciles. (default 15s)"),
    Flag(
        f"{_HPA}-tolerance",
        "settings.tolerance",
        _tolerance,
        "Minimum change (from 1.0) in the desired-to-actual metrics ratio to consider scaling. (default 0.1)",
    ),
    Flag(
        f"{_HPA}-downscale-stabilization",
        "settings.downscale_stabilization",
        _duration_or_zero,
        "Period in which the autoscaler does not scale down below any recommendation it made. (default 5m0s)",
    ),
    Flag(
        f"{_HPA}-cpu-initialization-period",
        "settings.cpu_initialization_period",
        _duration_or_zero,
        "Period after pod start when CPU samples might be skipped. (default 5m0s)",
    ),
    Flag(
        f"{_HPA}-initial-readiness-delay",
        "settings.initial_readiness_delay",
        _duration_or_zero,
        "Period after pod start during which readiness changes are treated as initial readiness. (default 30s)",
    ),
    Flag(f"concurrent-{_HPA}-syncs", "concurrent_syncs", _positive_int, "Number of concurrent reconciles. (default 5)"),
    Flag(
        "fallback-floor",
        "settings.fallback_floor",
        _duration_or_zero,
        "Smallest allowed failureDurationSeconds of a fallback. (default 180s)",
    ),
    Flag("feature-gates", "gates", _gates, "Feature gates as key=value pairs, such as A=true,B=false."),
    Flag(
        "external-metrics",
        "external_metrics",
        _metrics_source,
        "Source of external metrics: embedded (this process) or cluster (the registered API). (default embedded)",
    ),
    Flag("leader-elect", "leader_elect", _bool, "Gain leadership before running the controller. (default true)"),
    Flag(
        "leader-elect-lease-duration",
        "lease_duration",
        _duration,
        "Time that non-leaders wait after a leadership renewal before they acquire the lease. (default 15s)",
    ),
    Flag(
        "leader-elect-renew-deadline",
        "renew_deadline",
        _duration,
        "Time for which the leader retries to renew the lease before it stops leading. (default 10s)",
    ),
    Flag("leader-elect-retry-period", "retry_period", _duration, "Interval between lease attempts. (default 2s)"),
    Flag("leader-elect-resource-name", "lease_name", str, "Name of the Lease. (default steadyscale)"),
    Flag("leader-elect-resource-namespace", "lease_namespace", str, "Namespace of the Lease. (default steadyscale)"),
    Flag(
        "shards",
        "shards",
        _shards,
        "Number of shards into which namespaces are divided; all replicas share them evenly. (default 1)",
    ),
)

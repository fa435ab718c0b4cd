"""Hypothesis strategies for the inputs of ``decide``: valid, with unusual values in every part."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.observation import (
    BadSelector,
    ExternalReading,
    FailureClass,
    ObjectReading,
    Observation,
    Pod,
    PodReading,
    Reading,
    ScaleTarget,
    UnavailableReading,
    UnavailableTarget,
)
from autoscaler.types.spec import EXTERNAL, OBJECT, Behavior, Metric, Policy
from autoscaler.types.status import Condition, MetricStatus, Status
from tests.builders import (
    NOW,
    ago,
    failing_status,
    fallback_status,
    make_autoscaler,
    make_behavior,
    make_container_metric,
    make_external_metric,
    make_fallback,
    make_object_metric,
    make_pod,
    make_pods_metric,
    make_resource_metric,
    make_rules,
    make_sample,
    make_spec,
    make_target,
)


@dataclass(frozen=True)
class DecisionInputs:
    """The inputs of one decision."""

    autoscaler: Autoscaler
    observation: Observation
    history: History
    settings: Settings
    gates: FeatureGates
    now: datetime

    def decide(self) -> Decision:
        return decide(
            autoscaler=self.autoscaler,
            observation=self.observation,
            history=self.history,
            settings=self.settings,
            gates=self.gates,
            now=self.now,
        )

    @property
    def current(self) -> int:
        assert isinstance(self.observation.target, ScaleTarget)
        return self.observation.target.replicas

    def ordered(self, order: list[int]) -> "DecisionInputs":
        """Return the same inputs with the metrics in another order."""
        spec = self.autoscaler.spec
        assert spec.metrics is not None
        return DecisionInputs(
            replace(self.autoscaler, spec=replace(spec, metrics=tuple(spec.metrics[index] for index in order))),
            replace(self.observation, readings=tuple(self.observation.readings[index] for index in order)),
            self.history,
            self.settings,
            self.gates,
            self.now,
        )


SIZES = st.integers(0, 30)
SECONDS = st.integers(0, 700)
PERIODS = st.integers(1, 600)

policies = st.builds(Policy, st.sampled_from(["Pods", "Percent"]), st.integers(1, 150), PERIODS)
rules = st.builds(
    lambda policy_list, window, select, tolerance: make_rules(
        *policy_list, window=window, select=select, tolerance=tolerance
    ),
    st.lists(policies, max_size=2),
    st.none() | st.integers(0, 600),
    st.sampled_from([None, "Max", "Min", "Disabled"]),
    st.sampled_from([None, "0", "0.05", "0.3"]),
)
behaviors: st.SearchStrategy[Behavior] = st.builds(make_behavior, st.none() | rules, st.none() | rules)

recommendations = st.lists(
    st.builds(lambda size, seconds: Recommendation(size, ago(seconds)), SIZES, SECONDS), max_size=5
).map(tuple)
scale_events = st.lists(
    st.builds(lambda size, seconds: ScaleEvent(size, ago(seconds)), st.integers(1, 10), SECONDS), max_size=4
).map(tuple)
histories = st.builds(History, recommendations, scale_events, scale_events)


# --- pods and samples ------------------------------------------------------------------------------------------


_KINDS = (
    *[make_pod()] * 6,
    make_pod(phase="Pending", ready="False"),
    make_pod(phase="Failed"),
    make_pod(phase="Succeeded"),
    make_pod(terminating=True),
    make_pod(ready=None),
    make_pod(ready="Unknown", ready_since=ago(20), started=ago(60)),
    make_pod(ready="True", ready_since=ago(20), started=ago(60)),
    make_pod(ready="False", ready_since=ago(590), started=ago(600)),
    make_pod(ready="False", ready_since=ago(100), started=ago(600)),
    make_pod(containers=()),
)
_SAMPLES = (None, *(make_sample(milli, ago(seconds)) for milli in (0, 90, 500, 1000, 2500) for seconds in (0, 60)))

pods: st.SearchStrategy[tuple[Pod, ...]] = st.lists(st.sampled_from(_KINDS), max_size=6).map(
    lambda kinds: tuple(replace(kind, name=f"web-{index}") for index, kind in enumerate(kinds))
)


_FAILURES: st.SearchStrategy[Reading] = st.sampled_from(
    [*(UnavailableReading("down", failure) for failure in FailureClass), BadSelector("bad")]
)
_TOTALS = st.lists(st.integers(0, 90_000), min_size=1, max_size=2).map(lambda milli: ExternalReading(tuple(milli)))


@cache
def _pod_readings(count: int) -> st.SearchStrategy[PodReading]:
    """Return samples of some pods, and sometimes of a pod that was not listed."""
    names = [*(f"web-{index}" for index in range(count)), "ghost"]
    return st.lists(st.sampled_from(_SAMPLES), min_size=len(names), max_size=len(names)).map(
        lambda samples: PodReading(
            {name: sample for name, sample in zip(names, samples, strict=True) if sample is not None}
        )
    )


@cache
def readings_of(kind: str, count: int) -> st.SearchStrategy[Reading]:
    """Return readings of a metric, available and unavailable."""
    available: st.SearchStrategy[Reading]
    if kind == EXTERNAL:
        available = _TOTALS
    elif kind == OBJECT:
        available = st.integers(0, 90_000).map(ObjectReading)
    else:
        available = _pod_readings(count)
    return st.one_of(available, available, available, _FAILURES)


fallbacks = st.builds(
    make_fallback,
    st.integers(1, 40),
    st.sampled_from([180, 300]),
    st.sampled_from(["Static", "UseMax", "UseMin"]),
)
metrics: st.SearchStrategy[Metric] = st.one_of(
    st.builds(make_resource_metric, st.sampled_from(["cpu", "memory", "gpu"]), utilization=st.integers(1, 200)),
    st.builds(make_resource_metric, average=st.sampled_from(["100m", "1", "3"])),
    st.builds(make_container_metric, container=st.sampled_from(["app", "side"])),
    st.builds(make_pods_metric, average=st.sampled_from(["100m", "1"])),
    st.builds(make_object_metric, value=st.sampled_from(["1", "15"])),
    st.builds(make_object_metric, average=st.sampled_from(["1", "15"])),
    st.builds(make_external_metric, st.sampled_from("ab"), value=st.sampled_from(["1", "15"])),
    st.builds(make_external_metric, st.sampled_from("cd"), average=st.sampled_from(["1", "15"])),
    st.builds(make_external_metric, st.sampled_from("ef"), average=st.sampled_from(["1", "15"]), fallback=fallbacks),
)


# --- status -----------------------------------------------------------------------------------------------

metric_statuses: st.SearchStrategy[MetricStatus] = st.builds(
    failing_status, st.sampled_from("efg"), SECONDS.map(ago)
) | st.builds(fallback_status, st.sampled_from("efg"), SECONDS.map(ago), st.integers(1, 30), st.integers(0, 30))
zero_conditions = st.builds(
    Condition, st.just("ScaledToZero"), st.sampled_from(["True", "False"]), SECONDS.map(ago), st.just("x"), st.just("y")
)


def name_in_status(entry: MetricStatus) -> str:
    assert entry.external is not None
    return entry.external.metric.name


statuses = st.builds(
    Status,
    desired_replicas=SIZES,
    current_replicas=SIZES,
    current_metrics=st.lists(metric_statuses, max_size=2, unique_by=name_in_status).map(tuple),
    conditions=st.lists(zero_conditions, max_size=1).map(tuple),
)
gates = st.sampled_from(
    [
        *[FeatureGates()] * 5,
        *(FeatureGates(**{name: False}) for name in FeatureGates.__struct_fields__),
        FeatureGates(*[False] * 5),
    ]
)
settings = st.builds(
    Settings,
    tolerance=st.sampled_from([0.0, 0.1, 0.5]),
    downscale_stabilization=st.integers(0, 600).map(lambda seconds: timedelta(seconds=seconds)),
)


_METRICS = st.lists(metrics, min_size=1, max_size=3)
_BEHAVIORS = st.none() | behaviors
_MODES = st.sampled_from([(None, None)] * 4 + [("Active", None), ("DryRun", None), ("Paused", None)]) | st.integers(
    -60, 60
).map(lambda seconds: ("Paused", NOW + timedelta(seconds=seconds)))
_SELECTORS = st.sampled_from([*["app=web"] * 7, ""])
_CONFLICTS = st.sampled_from([*[()] * 5, ("HorizontalPodAutoscaler/shop/web",)])
_TENTHS = st.integers(0, 9)
_BOUNDS = st.tuples(st.integers(0, 5), st.integers(1, 25)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@st.composite
def _decision_inputs(draw: st.DrawFn) -> DecisionInputs:
    minimum, maximum = draw(_BOUNDS)
    mode, until = draw(_MODES)
    spec = make_spec(
        *draw(_METRICS), minimum=minimum, maximum=maximum, behavior=draw(_BEHAVIORS), mode=mode, paused_until=until
    )
    listed = draw(pods)
    size = draw(SIZES)
    target = make_target(min(max(size, minimum), maximum) if draw(_TENTHS) else size, draw(SIZES), draw(_SELECTORS))
    readings = tuple(draw(readings_of(metric.type, len(listed))) for metric in spec.metrics or ())
    observation = Observation(target, listed, readings, conflicts=draw(_CONFLICTS))
    return DecisionInputs(
        make_autoscaler(spec, draw(statuses)), observation, draw(histories), draw(settings), draw(gates), NOW
    )


inputs_with_target: st.SearchStrategy[DecisionInputs] = _decision_inputs()
decision_inputs: st.SearchStrategy[DecisionInputs] = st.one_of(
    *[inputs_with_target] * 9,
    inputs_with_target.map(
        lambda inputs: DecisionInputs(
            **vars(inputs) | {"observation": replace(inputs.observation, target=UnavailableTarget("gone"))}
        )
    ),
)


# --- time ------------------------------------------------------------------------------------------------------------

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def shifted(value: Any, delta: timedelta) -> Any:
    """Shift every time within a value, also in texts."""
    move: Callable[[Any], Any] = lambda inner: shifted(inner, delta)  # noqa: E731 - short recursive helper
    match value:
        case datetime():
            return value + delta
        case str():
            return (
                type(value)(_TIMESTAMP.sub(lambda match: _shifted_timestamp(match[0], delta), value))
                if "Z" in value
                else value
            )
        case msgspec.Struct():
            fields = {name: move(getattr(value, name)) for name in value.__struct_fields__}
            return type(value)(**fields)
        case tuple():
            return tuple(map(move, value))
        case dict():
            return {key: move(inner) for key, inner in value.items()}
        case DecisionInputs():
            return DecisionInputs(**{name: move(inner) for name, inner in vars(value).items()})
        case _:
            return value


def _shifted_timestamp(text: str, delta: timedelta) -> str:
    return (datetime.strptime(text, _FORMAT).replace(tzinfo=UTC) + delta).strftime(_FORMAT)

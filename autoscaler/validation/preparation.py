"""Prepares an autoscaler for validation like the API server: drops fields of disabled features, unless in use."""

from msgspec.structs import replace

from autoscaler.settings import FeatureGates
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.spec import Behavior, Metric, Spec
from autoscaler.types.status import Status


def prepare(autoscaler: Autoscaler, *, gates: FeatureGates, old: Autoscaler | None = None) -> Autoscaler:
    """Return the object that is validated and stored; ``old`` is the stored object on an update."""
    spec = _without_disabled_fields(autoscaler.spec, gates=gates, old=old.spec if old else None)
    if old is None:
        generation = 1 if gates.HPAGeneration else autoscaler.metadata.generation
        return Autoscaler(replace(autoscaler.metadata, generation=generation), spec, Status())
    return Autoscaler(_updated_metadata(autoscaler.metadata, old, spec, gates), spec, old.status)


def _without_disabled_fields(spec: Spec, *, gates: FeatureGates, old: Spec | None = None) -> Spec:
    """Remove the fields of disabled features, unless the stored object already uses them."""
    if not gates.HPAConfigurableTolerance and not (old and _uses_tolerance(old)):
        spec = replace(spec, behavior=spec.behavior and _without_tolerance(spec.behavior))
    if not gates.HPAExternalMetricFallback and not (old and _uses_fallback(old)):
        spec = replace(spec, metrics=spec.metrics and tuple(map(_without_fallback, spec.metrics)))
    return spec


def _updated_metadata(metadata: Metadata, old: Autoscaler, spec: Spec, gates: FeatureGates) -> Metadata:
    """Set the fields that a client cannot change: generation and uid."""
    generation = old.metadata.generation
    has_changed = replace(spec, metrics=spec.metrics or ()) != replace(old.spec, metrics=old.spec.metrics or ())
    if gates.HPAGeneration and has_changed:
        generation += 1
    return replace(metadata, generation=generation, uid=metadata.uid or old.metadata.uid)


def _uses_tolerance(spec: Spec) -> bool:
    return spec.behavior is not None and any(
        rules is not None and rules.tolerance is not None
        for rules in (spec.behavior.scale_up, spec.behavior.scale_down)
    )


def _without_tolerance(behavior: Behavior) -> Behavior:
    up, down = behavior.scale_up, behavior.scale_down
    return Behavior(up and replace(up, tolerance=None), down and replace(down, tolerance=None))


def _uses_fallback(spec: Spec) -> bool:
    return any(metric.external is not None and metric.external.fallback is not None for metric in spec.metrics or ())


def _without_fallback(metric: Metric) -> Metric:
    return replace(metric, external=metric.external and replace(metric.external, fallback=None))

"""Everything that is wrong with an autoscaler, and how the API server would put it.

Kubernetes checks an object twice, by hand-written rules and by rules declared on its types, and lists the findings of
both; ``problems`` gives the first list, ``as_api_server_lists_them`` the final one.
"""

from collections.abc import Iterable, Iterator

from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.spec import Spec
from autoscaler.validation.metadata import (
    created_metadata_problems,
    stored_metadata_problems,
    updated_metadata_problems,
)
from autoscaler.validation.problem import Kind, Problem, invalid, required
from autoscaler.validation.spec import fewest_replicas, rules_for, spec_problems
from autoscaler.values.names import quoted


def problems(
    autoscaler: Autoscaler, *, gates: FeatureGates, settings: Settings, old: Autoscaler | None = None
) -> tuple[Problem, ...]:
    """List all problems of an autoscaler that is to be created or, given ``old``, to replace that one.

    Both are expected with their defaults filled in, and the new one prepared.
    """
    rules = rules_for(autoscaler.spec, gates=gates, settings=settings, old=old.spec if old else None)
    metadata = (
        updated_metadata_problems(autoscaler.metadata, old.metadata)
        if old
        else created_metadata_problems(autoscaler.metadata)
    )
    return (*metadata, *spec_problems(autoscaler.spec, rules))


def as_api_server_lists_them(
    found: Iterable[Problem], autoscaler: Autoscaler, *, gates: FeatureGates, old: Autoscaler | None = None
) -> tuple[Problem, ...]:
    """Turn the list of ``problems`` into the one that the API server answers with."""
    declared = tuple(_declared(autoscaler.spec, gates, old.spec if old else None))
    common = _common_on_update(autoscaler, old) if old else ()
    once = {str(problem): problem for problem in (*common, *found)}
    by_hand = (problem for problem in once.values() if not any(_is_twin(problem, twin) for twin in declared))
    return (*by_hand, *declared)


def refusal(found: Iterable[Problem], name: str, kind: str = "HorizontalPodAutoscaler.autoscaling") -> str:
    """Say in one line, as the API server does in a 422, why an object was not accepted."""
    lines = tuple(dict.fromkeys(map(str, found)))
    reasons = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    return f"{kind} {quoted(name)} is invalid: {reasons}"


def _common_on_update(autoscaler: Autoscaler, old: Autoscaler) -> Iterator[Problem]:
    """Check what the API server checks of every kind of object before the kind's own rules."""
    yield from stored_metadata_problems(autoscaler.metadata)
    yield from updated_metadata_problems(autoscaler.metadata, old.metadata)


def _declared(spec: Spec, gates: FeatureGates, old: Spec | None) -> Iterator[Problem]:
    """Apply the rules that are declared on the types; what an update leaves as it was is not looked at again."""
    fewest = fewest_replicas(gates, old)
    if (
        spec.min_replicas is not None
        and spec.min_replicas < fewest
        and not (old and old.min_replicas == spec.min_replicas)
    ):
        yield invalid("spec.minReplicas", spec.min_replicas, f"must be greater than or equal to {fewest}")
    if old and old.max_replicas == spec.max_replicas:
        return
    if spec.max_replicas == 0:
        yield required("spec.maxReplicas")
    elif spec.max_replicas < 0:
        yield invalid("spec.maxReplicas", spec.max_replicas, "must be greater than or equal to 1")


def _is_twin(by_hand: Problem, declared: Problem) -> bool:
    """Tell whether both say the same; of a missing value the hand-written rule says more."""
    return by_hand == declared or (by_hand.kind is declared.kind is Kind.REQUIRED and by_hand.path == declared.path)

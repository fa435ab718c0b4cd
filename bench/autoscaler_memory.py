"""Memory per autoscaler of what the controller keeps, by part.

The objects are decoded from JSON as the informers decode them; a decision is computed for each. Memory is that of
tracemalloc after a garbage collection, so it does not include fragmentation and the interpreter. The reference is the
JSON of the objects as decoded dicts. Run with ``python -m bench.autoscaler_memory``.
"""

import argparse
import gc
import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.state_changes import with_state
from autoscaler.controller.reconcile_plan import ReconcilePlans
from autoscaler.controller.state import ReconcileState
from autoscaler.kube.autoscalers import trimmed_autoscaler
from autoscaler.kube.invalid_objects import InvalidObject
from autoscaler.kube.objects import check_object
from autoscaler.kube.scale_paths import ObservedScale, built_in_scale
from autoscaler.readings import read_external
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.history import History
from autoscaler.types.observation import Observation
from bench.status_writes import own_status

Json = dict[str, Any]
_NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000)
    options = parser.parse_args()
    for name, size in measure(options.count).items():
        print(f"{name:<28}{size / options.count / 1000:>8.1f} kB per autoscaler")


def measure(count: int) -> dict[str, int]:
    """Return the memory of each part in bytes."""
    tracemalloc.start()
    sizes: dict[str, int] = {}
    plans = ReconcilePlans(Settings(), FeatureGates())
    with allocated(sizes, "autoscalers as JSON"):
        documents = [decoded(autoscaler_json(number)) for number in range(count)]
    with allocated(sizes, "autoscalers"):
        autoscalers = [trimmed_autoscaler(decoded(autoscaler_json(number))) for number in range(count)]
    with allocated(sizes, "targets"):
        targets = [built_in_scale(decoded(deployment_json(number))) for number in range(count)]
    with allocated(sizes, "plans"):
        for autoscaler in autoscalers:
            plans.get(key_of(autoscaler), autoscaler)
    with allocated(sizes, "states with decisions"):
        states = [state(one, target, plans) for one, target in zip(autoscalers, targets, strict=True)]
    sizes["all but JSON"] = sum(sizes.values()) - sizes["autoscalers as JSON"]
    del documents, states
    tracemalloc.stop()
    return sizes


@contextmanager
def allocated(sizes: dict[str, int], name: str) -> Iterator[None]:
    """Record the memory that the block has allocated and not freed."""
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    yield
    gc.collect()
    sizes[name] = tracemalloc.get_traced_memory()[0] - before


def key_of(autoscaler: Autoscaler) -> str:
    return f"{autoscaler.metadata.namespace}/{autoscaler.metadata.name}"


def decoded(document: bytes) -> Json:
    """Decode an object as the informers do."""
    checked = check_object(document)
    if isinstance(checked, InvalidObject):
        raise TypeError(checked.reason)
    return checked


def state(autoscaler: Autoscaler, target: ObservedScale, plans: ReconcilePlans) -> ReconcileState:
    """Return the state of an autoscaler after its first decision."""
    plan, readings = plans.get(key_of(autoscaler), autoscaler), (read_external((40_000,), _NOW),)
    decision = decide(
        autoscaler=msgspec.structs.replace(autoscaler, spec=plan.spec),
        observation=Observation(target.scale, readings=readings),
        history=History(),
        settings=Settings(),
        gates=FeatureGates(),
        now=_NOW,
    )
    return ReconcileState(autoscaler.metadata.uid, _NOW, decision.history, with_state(decision, autoscaler.status))


def autoscaler_json(number: int) -> bytes:
    metadata = {
        "name": f"a{number}",
        "namespace": f"team-{number % 100}",
        "generation": 1,
        "resourceVersion": str(100_000 + number),
        "uid": f"7a6f2d3c-0000-4000-8000-{number:012}",
        "creationTimestamp": "2026-03-01T11:00:00Z",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(_spec(number))},
        "labels": {"app.kubernetes.io/name": f"a{number}", "app.kubernetes.io/managed-by": "Helm"},
    }
    return msgspec.json.encode({"metadata": metadata, "spec": _spec(number), "status": own_status(number)})


def deployment_json(number: int) -> bytes:
    metadata = {
        "name": f"w{number}",
        "namespace": f"team-{number % 100}",
        "resourceVersion": str(200_000 + number),
        "uid": f"0b1f2d3c-0000-4000-8000-{number:012}",
    }
    spec = {"replicas": 8, "selector": {"matchLabels": {"app": f"w{number}"}}}
    return msgspec.json.encode({"metadata": metadata, "spec": spec, "status": {"replicas": 8}})


def _spec(number: int) -> Json:
    external = {"metric": {"name": f"m{number % 100}"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"w{number}"},
        "minReplicas": 1,
        "maxReplicas": 20,
        "mode": "Active",
        "metrics": [{"type": "External", "external": external}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }


if __name__ == "__main__":
    main()

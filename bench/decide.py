"""Benchmark of ``decide``: its duration relative to ``json.loads`` of the same autoscaler's JSON.

Both are timed alternately in the same run, and the best of many rounds counts for each: on shared machines the ratio of
two best rounds varies much less than absolute durations.
"""

import gc
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.explain import explain
from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.observation import (
    Container,
    ExternalReading,
    ObjectReading,
    Observation,
    Pod,
    PodReading,
    PodSample,
    Reading,
    ScaleTarget,
)
from autoscaler.values.quantity import Quantity
from autoscaler.wire import decode_autoscaler, encode

NOW = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
ROUNDS = 60
SECONDS_PER_ROUND = 0.01
GOALS = {"a": 5.0, "b": 15.0}

SETTINGS, GATES = Settings(), FeatureGates()


class Workload(NamedTuple):
    """One autoscaler with its observation and history."""

    letter: str
    title: str
    autoscaler: Autoscaler
    observation: Observation
    history: History

    def decide(self) -> Decision:
        """Decide once."""
        return decide(
            autoscaler=self.autoscaler,
            observation=self.observation,
            history=self.history,
            settings=SETTINGS,
            gates=GATES,
            now=NOW,
        )


def autoscaler_of(spec: dict[str, object]) -> Autoscaler:
    """Make an autoscaler with defaults and the usual metadata."""
    document = {
        "apiVersion": "steadyscale.dev/v1beta1",
        "kind": "PodAutoscaler",
        "metadata": {
            "name": "checkout-consumer",
            "namespace": "shop",
            "uid": "0b6f6a52-8f0e-4b7c-a9a5-3d1c0d6f8f11",
            "resourceVersion": "48213377",
            "generation": 3,
            "labels": {"app.kubernetes.io/name": "checkout", "app.kubernetes.io/part-of": "shop"},
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout-consumer"},
            **spec,
        },
    }
    autoscaler = decode_autoscaler(document)
    return replace(autoscaler, spec=with_defaults(autoscaler.spec))


def pods(count: int) -> tuple[Pod, ...]:
    """Make running, ready pods with two containers each."""
    containers = tuple(
        Container(name, {"cpu": Quantity.parse(cpu), "memory": Quantity.parse("256Mi")})
        for name, cpu in (("app", "500m"), ("proxy", "100m"))
    )
    return tuple(
        Pod(
            name=f"checkout-consumer-7d9f8b6c5d-{index:05}",
            phase="Running",
            labels={"app": "checkout"},
            containers=containers,
            ready="True",
            ready_since=NOW - timedelta(hours=1),
            started=NOW - timedelta(hours=1, seconds=20),
        )
        for index in range(count)
    )


def usage(pod_list: tuple[Pod, ...], milli: int) -> PodReading:
    """Make a reading with the same value for every pod."""
    sample = PodSample(milli, NOW - timedelta(seconds=10), timedelta(seconds=30))
    return PodReading({pod.name: sample for pod in pod_list}, NOW)


def recommendations(replicas: int, count: int = 20) -> tuple[Recommendation, ...]:
    """Make the recommendations of the last five minutes."""
    return tuple(Recommendation(replicas, NOW - timedelta(seconds=15 * (count - index))) for index in range(count))


EXTERNAL = {
    "type": "External",
    "external": {
        "metric": {"name": "queue_messages_ready", "selector": {"matchLabels": {"queue": "checkout"}}},
        "target": {"type": "AverageValue", "averageValue": "30"},
        "fallback": {"replicas": 10, "failureDurationSeconds": 300},
    },
}
FIVE = [
    EXTERNAL,
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "200Mi"}}},
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "requests_per_second"},
            "target": {"type": "AverageValue", "averageValue": "100"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main-route"},
            "metric": {"name": "hits"},
            "target": {"type": "Value", "value": "2k"},
        },
    },
]
BEHAVIOR = {
    "scaleUp": {
        "stabilizationWindowSeconds": 30,
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 60},
            {"type": "Percent", "value": 50, "periodSeconds": 60},
        ],
        "tolerance": "50m",
    },
    "scaleDown": {"policies": [{"type": "Percent", "value": 10, "periodSeconds": 300}], "tolerance": "200m"},
}


def workloads() -> list[Workload]:
    """Return the workloads to measure."""
    few, many = pods(6), pods(100)
    readings: tuple[Reading, ...] = (
        ExternalReading((180_000,), NOW),
        usage(few, 400),
        usage(few, 150 * 2**20 * 1000),
        usage(few, 120_000),
        ObjectReading(2_300_000, NOW),
    )
    events = tuple(ScaleEvent(1, NOW - timedelta(seconds=seconds)) for seconds in (200, 120, 40))
    one = autoscaler_of({"minReplicas": 1, "maxReplicas": 50, "metrics": [EXTERNAL]})
    five = autoscaler_of({"minReplicas": 1, "maxReplicas": 50, "metrics": FIVE, "behavior": BEHAVIOR})
    cpu = autoscaler_of({"minReplicas": 1, "maxReplicas": 500, "metrics": [FIVE[1]]})
    return [
        Workload(
            "a",
            "one external metric",
            one,
            Observation(ScaleTarget(6, 6, "app=checkout"), few, readings[:1], ("shop/checkout-consumer",)),
            History(recommendations(6)),
        ),
        Workload(
            "b",
            "five metrics, behavior, history",
            five,
            Observation(ScaleTarget(6, 6, "app=checkout"), few, readings, ("shop/checkout-consumer",)),
            History(recommendations(8), events, events),
        ),
        Workload(
            "c",
            "cpu over 100 pods",
            cpu,
            Observation(ScaleTarget(100, 100, "app=checkout"), many, (usage(many, 450),), ("shop/checkout-consumer",)),
            History(recommendations(100)),
        ),
    ]


def settled(workload: Workload) -> Workload:
    """Return the workload after its first reconcile, with a complete status."""
    decision = decide(
        autoscaler=workload.autoscaler,
        observation=workload.observation,
        history=workload.history,
        settings=SETTINGS,
        gates=GATES,
        now=NOW - timedelta(seconds=15),
    )
    return workload._replace(autoscaler=replace(workload.autoscaler, status=decision.status), history=decision.history)


def json_of(autoscaler: Autoscaler) -> str:
    """Return the autoscaler as JSON, as the API server sends it."""
    metadata = autoscaler.metadata
    return json.dumps(
        {
            "apiVersion": "steadyscale.dev/v1beta1",
            "kind": "PodAutoscaler",
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
                "generation": metadata.generation,
                "creationTimestamp": "2026-02-01T08:00:00Z",
                "labels": metadata.labels,
            },
            "spec": encode(autoscaler.spec),
            "status": encode(autoscaler.status),
        },
        separators=(",", ":"),
    )


def best(functions: tuple[Callable[[], object], ...]) -> list[float]:
    """Time several functions alternately; return the best seconds per call of each."""
    bests = [float("inf")] * len(functions)
    calls = [1] * len(functions)
    for index, function in enumerate(functions):
        calls[index] = max(1, int(SECONDS_PER_ROUND / timed(function, 20)))
    for _ in range(ROUNDS):
        for index, function in enumerate(functions):
            bests[index] = min(bests[index], timed(function, calls[index]))
    return bests


def timed(function: Callable[[], object], calls: int) -> float:
    """Return the average seconds per call."""
    started = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - started) / calls


def main() -> None:
    """Measure and print the table. A missed goal is shown but does not fail, because the machine may be busy."""
    gc.disable()
    print("decide() relative to json.loads of the same autoscaler (best of", ROUNDS, "alternating rounds)")
    print(
        f"{'':44}{'JSON':>8}{'json.loads':>12}{'decide':>10}{'per second':>12}{'ratio':>8}{'goal':>12}{'explain':>10}"
    )
    for workload in map(settled, workloads()):
        text = json_of(workload.autoscaler)
        decision = workload.decide()
        loads, decides, explains = best((partial(json.loads, text), workload.decide, partial(explain, decision)))
        ratio, goal = decides / loads, GOALS.get(workload.letter)
        result = "" if goal is None else f"≤ {goal:g} {'met' if ratio <= goal else 'MISSED'}"
        print(
            f"({workload.letter}) {workload.title:<40}{len(text):>6} B{loads * 1e6:>9.1f} µs{decides * 1e6:>7.1f} µs"
            f"{1 / decides:>12,.0f}{ratio:>8.2f}{result:>12}{explains * 1e6:>7.1f} µs"
        )
    print("explain: duration of rendering the steps as text, which happens only on request")


if __name__ == "__main__":
    main()

"""The definition of PodAutoscaler on a real API server: it refuses what Kubernetes refuses in an HPA, and no more."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from autoscaler.defaults import with_defaults
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import KubeError
from autoscaler.settings import FeatureGates, Settings
from autoscaler.validation import prepared, problems
from autoscaler.wire import DecodeError, decode_autoscaler, decode_spec, encode_spec
from tests.control_plane.cluster import ControlPlane
from tools.crd.__main__ import PLACE

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "validation.json").read_text())
COLLECTION = "/apis/steadyscale.dev/v1beta1/namespaces/default/podautoscalers"

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    await asyncio.to_thread(plane.kubectl, "apply", "-f", str(PLACE))
    await asyncio.to_thread(plane.kubectl, "wait", "--for=condition=Established", "-f", str(PLACE))
    async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as client:
        yield client


async def refusal(client: KubeClient, spec: Any) -> str | None:
    """Say in the server's words why a spec is not accepted; None if it is."""
    body = {"apiVersion": "steadyscale.dev/v1beta1", "kind": "PodAutoscaler", "metadata": {"name": "it"}, "spec": spec}
    try:
        await client.request("POST", COLLECTION, query={"dryRun": "All"}, body=body)
    except KubeError as error:
        return error.said
    return None


def expected_fields(document: Any) -> list[str] | None:
    """List the fields of which our own validation complains; None: the document cannot even be read."""
    try:
        sent = decode_autoscaler({**document, "metadata": {"name": "it", "namespace": "default"}})
    except DecodeError:
        return None
    gates = FeatureGates()
    filled = prepared(replace(sent, spec=with_defaults(sent.spec)), gates=gates)
    return [problem.path for problem in problems(filled, gates=gates, settings=Settings())]


def names(said: str, field: str) -> bool:
    """Say whether a refusal names the field, or what it is part of: a part that is missing has no parts."""
    parts = re.split(r"(?=[.\[])", field)
    return any("".join(parts[:length]) in said for length in range(2, len(parts) + 1))


async def test_it_refuses_what_kubernetes_refuses_and_names_the_field(client: KubeClient) -> None:
    cases = [case for case in VECTORS["validation"] if "old" not in case]
    differences = []
    for case in cases:
        fields, said = expected_fields(case["object"]), await refusal(client, case["object"]["spec"])
        if (said is None) != (fields == []) or (said and fields and not any(names(said, field) for field in fields)):
            differences.append((case["id"], fields, said))
    assert differences == []
    assert len(cases) > 300


async def test_it_fills_in_what_kubernetes_fills_in(client: KubeClient) -> None:
    checked = 0
    for case in VECTORS["defaulting"]:
        body = {"metadata": {"name": "it"}, "spec": case["input"]}
        body |= {"apiVersion": "steadyscale.dev/v1beta1", "kind": "PodAutoscaler"}
        try:
            kept = await client.request("POST", COLLECTION, query={"dryRun": "All"}, body=body)
        except KubeError:
            continue  # defaults of what is refused are nobody's concern
        filled = encode_spec(with_defaults(decode_spec(kept["spec"])))
        assert filled.pop("mode") == "Active"
        assert filled == case["output"]
        checked += 1
    assert checked > 30


QUEUE = {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}}}
PLAIN = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 10}


def with_fallback(**fallback: Any) -> Any:
    return {**PLAIN, "metrics": [{**QUEUE, "external": {**QUEUE["external"], "fallback": fallback}}]}  # type: ignore[dict-item]


def with_tolerance(tolerance: Any) -> Any:
    return {**PLAIN, "behavior": {"scaleUp": {"tolerance": tolerance}}}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(with_fallback(replicas=3), None, id="a fallback with replicas alone"),
        pytest.param(with_fallback(), "external.fallback.replicas: Required value", id="a fallback without replicas"),
        pytest.param(with_fallback(replicas=0), "fallback.replicas: Invalid value: 0", id="a fallback to nothing"),
        pytest.param(
            with_fallback(replicas=3, failureDurationSeconds=179),
            "fallback.failureDurationSeconds: Invalid value: 179",
            id="a fallback in a hurry",
        ),
        pytest.param(
            with_fallback(replicas=3, strategy="Guess"),
            'fallback.strategy: Unsupported value: "Guess"',
            id="a strategy",
        ),
        pytest.param({**PLAIN, "mode": "Paused", "pausedUntil": "2026-12-01T08:00:00Z"}, None, id="a pause that ends"),
        pytest.param({**PLAIN, "pausedUntil": "2026-12-01T08:00:00Z"}, "spec.pausedUntil: Forbidden", id="no pause"),
        pytest.param({**PLAIN, "mode": "Asleep"}, 'spec.mode: Unsupported value: "Asleep"', id="a mode"),
        pytest.param(with_tolerance(0.05), None, id="a tolerance as a number"),
        pytest.param(with_tolerance("50m"), None, id="a tolerance as a quantity"),
        pytest.param(with_tolerance(-0.1), "behavior.scaleUp.tolerance: Invalid value: -0.1", id="a negative number"),
        pytest.param(with_tolerance("-100m"), 'behavior.scaleUp.tolerance: Invalid value: "-100m"', id="a negative"),
        pytest.param(with_tolerance({"up": 1}), "behavior.scaleUp.tolerance", id="a tolerance that is an object"),
    ],
)
async def test_what_this_project_adds_is_checked_too(client: KubeClient, spec: Any, said: str | None) -> None:
    answer = await refusal(client, spec)
    assert (answer is None) == (said is None), answer
    assert said is None or (answer is not None and said in answer)


async def test_kubectl_explains_every_part(client: KubeClient, plane: ControlPlane) -> None:
    assert await client.get(COLLECTION)
    await asyncio.to_thread(plane.kubectl, "get", "spa")  # until then it may remember a time without the kind
    told = await asyncio.to_thread(plane.kubectl, "explain", "spa.spec.metrics.external.fallback")
    assert "failureDurationSeconds\t<integer>" in told
    assert "How many replicas to propose while the metric cannot be read" in " ".join(told.split())

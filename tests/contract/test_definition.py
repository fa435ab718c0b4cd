"""The PodAutoscaler schema on a real API server rejects exactly what Kubernetes rejects in an HPA."""

import asyncio
import json
import random
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
from autoscaler.validation import prepare, problems
from autoscaler.wire import DecodeError, decode_autoscaler, decode_spec, encode
from tests.control_plane.cluster import ControlPlane
from tools.crd.__main__ import PATH

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "validation.json").read_text())
COLLECTION = "/apis/steadyscale.dev/v1beta1/namespaces/default/podautoscalers"

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    await asyncio.to_thread(plane.kubectl, "apply", "-f", str(PATH))
    await asyncio.to_thread(plane.kubectl, "wait", "--for=condition=Established", "-f", str(PATH))
    async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as client:
        yield client


async def rejection(client: KubeClient, spec: Any) -> str | None:
    """Return the server's message for a rejected spec; None if it is accepted."""
    body = {"apiVersion": "steadyscale.dev/v1beta1", "kind": "PodAutoscaler", "metadata": {"name": "it"}, "spec": spec}
    try:
        await client.request("POST", COLLECTION, query={"dryRun": "All"}, body=body)
    except KubeError as error:
        return error.server_message
    return None


def expected_fields(document: Any) -> list[str] | None:
    """Return the invalid fields by `autoscaler.validation`; None if the document cannot be decoded."""
    try:
        sent = decode_autoscaler({**document, "metadata": {"name": "it", "namespace": "default"}})
    except DecodeError:
        return None
    gates = FeatureGates()
    filled = prepare(replace(sent, spec=with_defaults(sent.spec)), gates=gates)
    return [problem.path for problem in problems(filled, gates=gates, settings=Settings())]


def mentions(message: str, field: str) -> bool:
    """Return whether a message contains the field or one of its parents; a missing parent has no fields."""
    parts = re.split(r"(?=[.\[])", field)
    return any("".join(parts[:length]) in message for length in range(2, len(parts) + 1))


async def test_schema_rejects_what_kubernetes_rejects_and_names_the_field(client: KubeClient) -> None:
    cases = [case for case in VECTORS["validation"] if "old" not in case]
    differences = []
    for case in cases:
        fields, message = expected_fields(case["object"]), await rejection(client, case["object"]["spec"])
        is_mentioned = message is None or not fields or any(mentions(message, field) for field in fields)
        if (message is None) != (fields == []) or not is_mentioned:
            differences.append((case["id"], fields, message))
    assert differences == []
    assert len(cases) > 300


async def test_schema_fills_in_the_defaults_of_kubernetes(client: KubeClient) -> None:
    compared = 0
    for case in VECTORS["defaulting"]:
        body = {"metadata": {"name": "it"}, "spec": case["input"]}
        body |= {"apiVersion": "steadyscale.dev/v1beta1", "kind": "PodAutoscaler"}
        try:
            stored = await client.request("POST", COLLECTION, query={"dryRun": "All"}, body=body)
        except KubeError:
            continue  # defaults of a rejected object do not matter
        filled = encode(with_defaults(decode_spec(stored["spec"])))
        assert filled.pop("mode") == "Active"
        assert filled == case["output"]
        compared += 1
    assert compared > 30


QUEUE = {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}}}
PLAIN = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 10}


def with_fallback(**fallback: Any) -> Any:
    return {**PLAIN, "metrics": [{**QUEUE, "external": {**QUEUE["external"], "fallback": fallback}}]}  # type: ignore[dict-item]


def with_tolerance(tolerance: Any) -> Any:
    return {**PLAIN, "behavior": {"scaleUp": {"tolerance": tolerance}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(with_fallback(replicas=3), None, id="fallback with replicas"),
        pytest.param(with_fallback(), "external.fallback.replicas: Required value", id="fallback without replicas"),
        pytest.param(with_fallback(replicas=0), "fallback.replicas: Invalid value: 0", id="fallback to zero"),
        pytest.param(
            with_fallback(replicas=3, failureDurationSeconds=179),
            "fallback.failureDurationSeconds: Invalid value: 179",
            id="failureDurationSeconds too short",
        ),
        pytest.param(
            with_fallback(replicas=3, failureDurationSeconds=31536001),
            "fallback.failureDurationSeconds: Invalid value: 31536001",
            id="failureDurationSeconds longer than a year",
        ),
        pytest.param(
            with_fallback(replicas=3, strategy="Guess"),
            'fallback.strategy: Unsupported value: "Guess"',
            id="unknown strategy",
        ),
        pytest.param({**PLAIN, "mode": "Paused", "pausedUntil": "2026-12-01T08:00:00Z"}, None, id="pausedUntil"),
        pytest.param(
            {**PLAIN, "pausedUntil": "2026-12-01T08:00:00Z"},
            "spec.pausedUntil: Forbidden",
            id="pausedUntil without Paused",
        ),
        pytest.param({**PLAIN, "mode": "Asleep"}, 'spec.mode: Unsupported value: "Asleep"', id="unknown mode"),
        pytest.param(with_tolerance(0.05), None, id="tolerance as a number"),
        pytest.param(with_tolerance("50m"), None, id="tolerance as a quantity"),
        pytest.param(with_tolerance(-0.1), "behavior.scaleUp.tolerance: Invalid value: -0.1", id="negative number"),
        pytest.param(with_tolerance("-100m"), 'behavior.scaleUp.tolerance: Invalid value: "-100m"', id="negative"),
        pytest.param(with_tolerance(True), "behavior.scaleUp.tolerance", id="tolerance as a truth value"),  # noqa: FBT003
        pytest.param(with_tolerance({"up": 1}), "behavior.scaleUp.tolerance", id="tolerance as an object"),
    ],
)
async def test_fields_beyond_the_hpa_are_validated(client: KubeClient, spec: Any, expected: str | None) -> None:
    message = await rejection(client, spec)
    assert (message is None) == (expected is None), message
    assert expected is None or (message is not None and expected in message)


def quantity_candidates() -> list[Any]:
    """Return numbers, texts and other values that a user may write as a quantity, with a fixed seed."""
    source = random.Random(20)  # noqa: S311 - not for cryptography
    written: list[Any] = [0.5, 1, 1.0, 1e3, 1e-9, 0, 0.0, -1, -0.5, 2**40, True, False, [], {}, [1], {"value": 1}, None]
    written += ["500m", "0.5", ".5", "5.", "+5", "-5", "0", "000", "0.000", "0.0001", "00.100", "1e3", "1E-3", "1e", ""]
    written += [
        " 5",
        "5 ",
        "\t5\n",
        "5 m",
        "Mi",
        "1Mi",
        "1mi",
        "1n",
        "0n",
        "1u",
        "0Gi",
        "ten",
        "0x10",
        "1_000",
        "NaN",
        "inf",
    ]
    for _ in range(60):
        number = f"{source.choice(['', '+', '-'])}{source.choice(['', '0', '00', '7', '120'])}"
        number += source.choice(["", ".", ".0", ".50", ".004"])
        written.append(number + source.choice(["", "", "m", "k", "Ki", "Ei", "e3", "E-2", "e+1", "x", " "]))
    return written


async def test_quantities_are_accepted_exactly_if_an_hpa_and_the_check_accept_them(client: KubeClient) -> None:
    hpas = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    differences = []
    for value in quantity_candidates():
        target = {"type": "AverageValue", "averageValue": value}
        spec = {**PLAIN, "metrics": [{"type": "External", "external": {**QUEUE["external"], "target": target}}]}  # type: ignore[dict-item]
        body = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "it"},
            "spec": spec,
        }
        try:
            await client.request("POST", hpas, query={"dryRun": "All"}, body=body)
            accepted = True
        except KubeError:
            accepted = False
        message = await rejection(client, spec)
        by_schema, by_check = message is None, expected_fields({"spec": spec}) == []
        if not accepted == by_schema == by_check:
            differences.append((value, accepted, by_schema, by_check, message))
    assert not differences, differences


async def test_kubectl_explain_shows_the_descriptions(client: KubeClient, plane: ControlPlane) -> None:
    assert await client.get(COLLECTION)
    await asyncio.to_thread(plane.kubectl, "get", "spa")  # refreshes the discovery cache of kubectl
    explanation = await asyncio.to_thread(plane.kubectl, "explain", "spa.spec.metrics.external.fallback")
    assert "failureDurationSeconds\t<integer>" in explanation
    assert "The replicas to propose while the metric cannot be read" in " ".join(explanation.split())

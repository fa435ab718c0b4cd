"""``steadyscale check`` accepts an object exactly if a real API server accepts it with strict field validation."""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapter.commands.cluster_documents import cluster_documents
from adapter.commands.documents import CheckMessage
from adapter.custom_resources.object_problems import autoscaler_problems, external_metric_problems
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import BadRequest
from tests.control_plane.cluster import ControlPlane
from tests.mutations import EXTERNAL_METRICS, POD_AUTOSCALER, mutated

CRDS = Path(__file__).parents[2] / "manifests" / "crds"
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}
COUNT = int(os.environ.get("STEADYSCALE_CHECK_COUNT", "1000"))
SEED = int(os.environ.get("STEADYSCALE_CHECK_SEED", "15"))
UNKNOWN_TO_THE_API_SERVER = "spec.query: invalid PromQL"

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    for name in ("podautoscalers", "externalmetrics"):
        await asyncio.to_thread(plane.kubectl, "apply", "-f", str(CRDS / f"{name}.yaml"))
        await asyncio.to_thread(plane.kubectl, "wait", "--for=condition=Established", "-f", str(CRDS / f"{name}.yaml"))
    async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as client:
        yield client


async def rejection(client: KubeClient, document: Any) -> str | None:
    """Return the message of the API server for a rejected object; None if it accepts the object."""
    path = f"/apis/steadyscale.dev/v1beta1/namespaces/default/{document['kind'].lower()}s"
    try:
        await client.request("POST", path, query=STRICT, body=document)
    except BadRequest as error:
        return error.server_message
    return None


async def differences(client: KubeClient, documents: list[Any], check: Any) -> list[str]:
    limit, found = asyncio.Semaphore(32), []

    async def compare(document: Any, changes: Any) -> None:
        async with limit:
            message = await rejection(client, document)
        problems = [text for problem in check(document) if UNKNOWN_TO_THE_API_SERVER not in (text := str(problem))]
        if (message is None) != (problems == []):
            found.append(
                f"{changes}\n  server: {message}\n  check: {problems}\n  {json.dumps(document.get('spec'))[:300]}"
            )

    await asyncio.gather(*(compare(document, changes) for document, changes in documents))
    return found


async def test_pod_autoscalers_are_accepted_exactly_if_the_api_server_accepts_them(client: KubeClient) -> None:
    source = random.Random(SEED)  # noqa: S311 - not for cryptography
    documents = [mutated(POD_AUTOSCALER, source, source.choice((0, 1, 1, 1, 2, 3))) for _ in range(COUNT)]
    found = await differences(client, documents, autoscaler_problems)
    assert not found, f"{len(found)} of {COUNT}:\n" + "\n".join(found[:12])


async def test_external_metrics_are_accepted_exactly_if_the_api_server_accepts_them(client: KubeClient) -> None:
    source = random.Random(SEED)  # noqa: S311 - not for cryptography
    documents = [
        mutated(source.choice(EXTERNAL_METRICS), source, source.choice((0, 1, 1, 1, 2, 3))) for _ in range(COUNT)
    ]
    found = await differences(client, documents, lambda document: external_metric_problems(document, None))
    assert not found, f"{len(found)} of {COUNT}:\n" + "\n".join(found[:12])


async def test_user_without_permissions_is_told_what_cannot_be_read(client: KubeClient, plane: ControlPlane) -> None:
    assert await client.get("/apis/steadyscale.dev/v1beta1/podautoscalers")
    messages: list[CheckMessage] = []
    assert await cluster_documents(plane.kubeconfig("nobody"), None, messages) == []
    texts = [message.text for message in messages]
    expected = 'cannot be listed: podautoscalers.steadyscale.dev is forbidden: User "nobody" cannot list resource'
    assert texts[0].startswith(f"PodAutoscalers {expected}")
    assert [message.is_problem for message in messages] == [True, True, False]

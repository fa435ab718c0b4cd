"""Objects of the contract tests, and a custom resource with a scale subresource."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import AlreadyExists, KubeError
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.spec import ObjectReference, Spec
from tests.waiting import GIVE_UP

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.dev/v1/namespaces/default/widgets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def new_name() -> str:
    return f"it-{uuid.uuid4().hex[:8]}"


def deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "it", "image": "it"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def autoscaler_of(kind: str, name: str, api_version: str = "apps/v1") -> Autoscaler:
    return Autoscaler(Metadata(name, "default"), Spec(scale_target_ref=ObjectReference(kind, name, api_version)))


def widget_definition(*, plural: str = "widgets", kind: str = "Widget", scalable: bool = True) -> dict[str, Any]:
    size = {"type": "integer", "minimum": 0}
    properties = {
        "spec": {
            "type": "object",
            "properties": {"size": size, "colour": {"type": "string", "default": "grey", "enum": ["grey", "red"]}},
        },
        "status": {"type": "object", "properties": {"size": size, "selector": {"type": "string"}}},
    }
    paths = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}, **({"scale": paths} if scalable else {})},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    names: dict[str, Any] = {
        "kind": kind,
        "plural": plural,
        "singular": kind.lower(),
        "listKind": f"{kind}List",
        "shortNames": [kind[:2].lower()],
        "categories": ["all"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.dev"},
        "spec": {"group": "example.dev", "names": names, "scope": "Namespaced", "versions": [version]},
    }


async def define(client: KubeClient, definition: dict[str, Any]) -> None:
    """Create a CustomResourceDefinition and wait until the kind is served."""
    try:
        await client.create(DEFINITIONS, definition)
    except AlreadyExists:
        return
    spec = definition["spec"]
    root = f"/apis/{spec['group']}/{spec['versions'][0]['name']}"
    await eventually(lambda: _is_served(client, root, spec["names"]["plural"]))


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Poll until a condition holds."""
    async with asyncio.timeout(GIVE_UP):
        while not await condition():  # noqa: ASYNC110 - the other side is another process
            await asyncio.sleep(0.02)


async def _is_served(client: KubeClient, root: str, plural: str) -> bool:
    try:
        served = await client.get(root)
        await client.get(f"{root}/{plural}")
    except KubeError:
        return False
    return any(resource["name"] == plural for resource in served["resources"])


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a coroutine until the end of the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))

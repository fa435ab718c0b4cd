"""Reading of the objects of a cluster for ``steadyscale check --from-cluster``."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from adapter.commands.documents import CheckMessage, Document
from adapter.commands.registered_service import API_SERVICE
from adapter.commands.user_kubeconfig import user_kubeconfig
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import Forbidden, KubeError, NotFound

_SOURCE: Final = "cluster"
_GROUP: Final = "/apis/steadyscale.dev/v1beta1"
_KINDS: Final = {"podautoscalers": "PodAutoscaler", "externalmetrics": "ExternalMetric"}
_PAGE: Final = "250"


async def cluster_documents(
    kubeconfig: Path | None, namespace: str | None, messages: list[CheckMessage]
) -> list[Document]:
    """Return the PodAutoscalers, the ExternalMetrics and the configuration; add a message for what is not readable.

    Without a namespace, the objects of all namespaces are read.
    """
    async with KubeClient.open(await connect(user_kubeconfig(kubeconfig))) as client:
        documents = []
        for plural, kind in _KINDS.items():
            below = f"/namespaces/{namespace}" if namespace else ""
            try:
                items = [item async for item in _list(client, f"{_GROUP}{below}/{plural}")]
            except (Forbidden, NotFound) as error:
                messages.append(CheckMessage(_SOURCE, _reason(kind, error, namespace)))
            else:
                head = {"apiVersion": "steadyscale.dev/v1beta1", "kind": kind}
                documents += [_document({**head, **item}) for item in items]
        try:
            documents += await _configuration(client)
        except KubeError as error:
            text = f"the configuration cannot be read, so backends and rules are unknown: {error}"
            messages.append(CheckMessage(_SOURCE, text, is_problem=False))
    return documents


async def _configuration(client: KubeClient) -> list[Document]:
    """Return the ConfigMaps with a configuration in the namespace of the service that serves external metrics."""
    service = (await client.get(API_SERVICE)).get("spec", {}).get("service") or {}
    namespace = service.get("namespace", "steadyscale")
    maps = [
        _document({"kind": "ConfigMap", **item})
        async for item in _list(client, f"/api/v1/namespaces/{namespace}/configmaps")
    ]
    return [one for one in maps if any(one.configs())]


async def _list(client: KubeClient, path: str) -> AsyncIterator[dict[str, Any]]:
    query = {"limit": _PAGE}
    while True:
        page = await client.get(path, query)
        for item in page.get("items") or ():
            yield item
        if not (token := page.get("metadata", {}).get("continue")):
            return
        query["continue"] = token


def _document(content: dict[str, Any]) -> Document:
    return Document(f"{_SOURCE} {content['metadata'].get('namespace', '')}".strip(), 0, content)


def _reason(kind: str, error: KubeError, namespace: str | None) -> str:
    if isinstance(error, NotFound):
        return f"{kind}s cannot be listed: the CustomResourceDefinition is not installed"
    hint = "" if namespace else "; select a namespace that you may read with --namespace"
    return f"{kind}s cannot be listed: {error.server_message or error}{hint}"

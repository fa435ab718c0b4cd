"""The environment of the demo: the objects in the cluster, its user, the configuration of the service, a kubeconfig."""

import asyncio
import secrets
from base64 import b64encode
from importlib import resources
from typing import Any, Final

import yaml

from adapter.custom_resources.definitions import definition_of
from adapter.fakecluster.cluster import Cluster
from adapter.fakecluster.kinds import Json, Kinds
from autoscaler.kube.client import KubeClient
from autoscaler.kube.watch import ListWatch

AUTOSCALER: Final = "shop/checkout-consumer"
METRIC: Final = "checkout_queue_messages"
CONSUMERS: Final = ListWatch("/apis/apps/v1/namespaces/shop/deployments", "metadata.name=checkout-consumer")
API_SERVICE: Final = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"
LOOPBACK: Final = "127.0.0.1"
DEMO: Final = "demo"
METRICS: Final = "metrics"
_USER: Final = "demo-user"


async def create_objects(kube: KubeClient, kinds: Kinds) -> None:
    for content in await asyncio.to_thread(_objects):
        await kube.create(_collection(content, kinds), content)


def create_user(cluster: Cluster) -> str:
    token = secrets.token_urlsafe(24)
    cluster.reviews.tokens[token] = {"username": _USER, "groups": ["system:authenticated"]}
    cluster.reviews.authorize = lambda spec: spec.get("user") == _USER
    return token


def service_config(*, port: int, backend: str, speed: float, is_fake: bool) -> Json:
    """Return the configuration of the service; timeouts of clients, which run in real time, are multiplied by speed."""
    prometheus: dict[str, Any] = {"url": backend}
    if is_fake:
        prometheus["sampleTimes"] = False  # the fake Prometheus does not support the timestamp() query
    request_timeout, idle_timeout = f"{10 * speed:.0f}s", f"{120 * speed:.0f}s"
    return {
        "serving": {"address": LOOPBACK, "port": port, "tls": {"selfManaged": {"namespace": "steadyscale"}}},
        "limits": {
            "requestTimeout": request_timeout,
            "headerTimeout": request_timeout,
            "idleTimeout": idle_timeout,
            "shutdownDelay": "0s",
            "drainTimeout": "2s",
        },
        "log": {"format": "text"},
        "backends": {"prometheus": {"prometheus": prometheus}},
        "rules": [
            {
                "name": METRIC,
                "backend": "prometheus",
                "query": METRIC,
                "interval": "5s",
                "deadline": f"{max(5.0, 2 * speed):.0f}s",  # two seconds of real time, for busy machines
            }
        ],
    }


def kubeconfig(*, cluster: str, metrics: str = "", ca: str = "", token: str = "") -> Json:
    """Return a kubeconfig for the cluster and, if its URL is known, for the metrics API.

    They have separate contexts, because the in-memory API server does not proxy requests to aggregated API servers.
    """
    entries: dict[str, tuple[Json, Json]] = {DEMO: ({"server": cluster}, {})}
    if metrics:
        ca_data = b64encode(ca.encode()).decode()
        entries[METRICS] = {"server": metrics, "certificate-authority-data": ca_data}, {"token": token}
    contexts = {name: {"cluster": name, "user": name, "namespace": "shop"} for name in entries}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": DEMO,
        "clusters": [{"name": name, "cluster": settings} for name, (settings, _) in entries.items()],
        "users": [{"name": name, "user": user} for name, (_, user) in entries.items()],
        "contexts": [{"name": name, "context": context} for name, context in contexts.items()],
    }


def _objects() -> list[Json]:
    file = resources.files(__package__) / "shop.yaml"
    return [
        *map(definition_of, ("podautoscalers", "externalmetrics")),
        *yaml.safe_load_all(file.read_text(encoding="utf-8")),
    ]


def _collection(content: Json, kinds: Kinds) -> str:
    kind = next(one for one in kinds if (one.api_version, one.kind) == (content["apiVersion"], content["kind"]))
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    namespace = f"/namespaces/{content['metadata']['namespace']}" if kind.namespaced else ""
    return f"{root}{namespace}/{kind.plural}"

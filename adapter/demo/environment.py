"""What is there before the day begins: objects in the cluster, a caller it knows, the service's configuration."""

import asyncio
import secrets
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final

import yaml

from adapter.fakecluster.cluster import Cluster
from adapter.fakecluster.kinds import Json, Kinds
from autoscaler.kube.client import KubeClient
from autoscaler.kube.watch import Watched

KEY: Final = "shop/checkout-consumer"
METRIC: Final = "checkout_queue_messages"
CONSUMERS: Final = Watched("/apis/apps/v1/namespaces/shop/deployments", "metadata.name=checkout-consumer")
REGISTRATION: Final = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"
LOOPBACK: Final = "127.0.0.1"
VISITOR: Final = "visitor"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where there is one: a second sooner."""

_CHECKOUT: Final = Path(__file__).parents[2] / "manifests" / "crds"


async def furnish(kube: KubeClient, kinds: Kinds) -> None:
    """Create everything that is in the cluster, as anyone would: by asking its API to."""
    for thing in await asyncio.to_thread(_things):
        await kube.create(_collection(thing, kinds), thing)


def welcome(cluster: Cluster) -> str:
    """Let the cluster know a visitor who may read everything here, and return the token that he comes with."""
    token = secrets.token_urlsafe(24)
    cluster.reviews.tokens[token] = {"username": VISITOR, "groups": ["system:authenticated"]}
    cluster.reviews.allows = lambda asked: asked.get("user") == VISITOR
    return token


def configuration(*, port: int, backend: str, speed: float, is_own: bool) -> Json:
    """Make the service's configuration; its patience with clients is stretched, as they live in the world's time."""
    prometheus: dict[str, Any] = {"url": backend}
    if is_own:
        prometheus["sampleTimes"] = False  # it knows metrics by name only
    patient, idle = f"{10 * speed:.0f}s", f"{120 * speed:.0f}s"
    return {
        "serving": {"address": LOOPBACK, "port": port, "tls": {"selfManaged": {"namespace": "steadyscale"}}},
        "limits": {
            "requestTimeout": patient,
            "headerTimeout": patient,
            "idleTimeout": idle,
            "shutdownDelay": "0s",
            "drain": "2s",
        },
        "log": {"format": "text"},
        "backends": {"prometheus": {"prometheus": prometheus}},
        "rules": [
            {
                "name": METRIC,
                "backend": "prometheus",
                "query": METRIC,
                "interval": "5s",
                "deadline": f"{max(5.0, 2 * speed):.0f}s",  # two seconds of the world's: a busy machine is no outage
            }
        ],
    }


def _things() -> tuple[Json, ...]:
    shop = (resources.files("adapter.demo") / "shop.yaml").read_text()
    return (*_definitions(), *_documents(shop))


def _definitions() -> Iterator[Json]:
    """Give the definitions of our kinds: from the wheel, or from the checkout that this is."""
    packed = resources.files("adapter.demo") / "crds"
    folder = packed if packed.is_dir() else _CHECKOUT
    for name in ("podautoscalers.yaml", "externalmetrics.yaml"):
        yield from _documents((folder / name).read_text())


def _documents(text: str) -> Iterator[Json]:
    yield from yaml.load_all(text, Loader=_LOADER)


def _collection(thing: Json, kinds: Kinds) -> str:
    """Say where an object is created."""
    kind = next(one for one in kinds if (one.api_version, one.kind) == (thing["apiVersion"], thing["kind"]))
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    namespace = f"/namespaces/{thing['metadata']['namespace']}" if kind.namespaced else ""
    return f"{root}{namespace}/{kind.plural}"

"""The kubeconfig that the demonstration leaves beside itself: for the service, and for whoever has kubectl.

Two contexts, because nothing stands in front of both servers as an API server would: `demo` is the cluster in memory,
`metrics` the served metrics API.
"""

from base64 import b64encode
from typing import Any

DEMO = "demo"
METRICS = "metrics"


def kubeconfig(*, cluster: str, metrics: str = "", authority: str = "", token: str = "") -> dict[str, Any]:
    """Describe how to reach the cluster at a URL and, once there is one, the metrics API at another."""
    clusters, users, contexts = [_cluster(DEMO, server=cluster)], [{"name": DEMO, "user": {}}], [_context(DEMO)]
    if metrics:
        trusted = b64encode(authority.encode()).decode()
        clusters.append(_cluster(METRICS, **{"server": metrics, "certificate-authority-data": trusted}))
        users.append({"name": METRICS, "user": {"token": token}})
        contexts.append(_context(METRICS))
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": DEMO,
        "clusters": clusters,
        "users": users,
        "contexts": contexts,
    }


def _cluster(name: str, **how: str) -> dict[str, Any]:
    return {"name": name, "cluster": how}


def _context(name: str) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": name, "user": name, "namespace": "shop"}}

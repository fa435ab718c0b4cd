"""A kubeconfig for the in-memory cluster and the metrics API of the service.

There are two contexts, `demo` for the cluster and `metrics` for the metrics API, because the in-memory API server does
not proxy requests to aggregated API servers.
"""

from base64 import b64encode
from typing import Any

DEMO = "demo"
METRICS = "metrics"


def kubeconfig(*, cluster: str, metrics: str = "", ca: str = "", token: str = "") -> dict[str, Any]:
    """Return a kubeconfig for the cluster and, if its URL is known, for the metrics API."""
    clusters, users, contexts = [_cluster(DEMO, server=cluster)], [{"name": DEMO, "user": {}}], [_context(DEMO)]
    if metrics:
        ca_data = b64encode(ca.encode()).decode()
        clusters.append(_cluster(METRICS, **{"server": metrics, "certificate-authority-data": ca_data}))
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


def _cluster(name: str, **settings: str) -> dict[str, Any]:
    return {"name": name, "cluster": settings}


def _context(name: str) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": name, "user": name, "namespace": "shop"}}

"""The API server under test, in memory or real: a client, and setup of accounts and permissions."""

import asyncio

from autoscaler.kube.client import Json, KubeClient
from tests.control_plane.cluster import ControlPlane
from tests.fakes.cluster import Cluster

MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"


class Api:
    """A client of the fake cluster or of a real control plane."""

    def __init__(self, client: KubeClient, cluster: Cluster | ControlPlane) -> None:
        self.client = client
        self._cluster = cluster

    async def token_of(self, name: str) -> str:
        """Create a service account and return a token for it."""
        if isinstance(self._cluster, Cluster):
            groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
            user = {"username": f"system:serviceaccount:default:{name}", "uid": "1", "groups": groups}
            self._cluster.reviews.tokens[f"token of {name}"] = user
            return f"token of {name}"
        await asyncio.to_thread(self._cluster.kubectl, "create", "serviceaccount", name)
        return (await asyncio.to_thread(self._cluster.kubectl, "create", "token", name)).strip()

    async def expire_resource_versions(self) -> None:
        """Make every current resourceVersion too old for a watch."""
        if isinstance(self._cluster, Cluster):
            self._cluster.expire_watches()
            return
        await self.client.create(f"{MAPS}", {"metadata": {"generateName": "newer-"}})
        await asyncio.to_thread(self._cluster.apiserver.stop)
        await asyncio.to_thread(self._cluster.apiserver.start)

    async def allow(self, user: str, resource: str) -> None:
        """Allow ``user`` to list one resource of external.metrics.k8s.io in the namespace default."""
        if isinstance(self._cluster, Cluster):
            self._cluster.reviews.authorize = lambda spec: (
                spec["user"] == user and spec.get("resourceAttributes", {}).get("resource") == resource
            )
            return
        rule = {"apiGroups": ["external.metrics.k8s.io"], "resources": [resource], "verbs": ["list"]}
        await self.client.create(f"{ROLES}/roles", _rbac("Role", resource, rules=[rule]))
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": resource}
        binding = _rbac("RoleBinding", resource, roleRef=role, subjects=[subject])
        await self.client.create(f"{ROLES}/rolebindings", binding)
        await asyncio.sleep(1)  # the authorizer reads roles from an informer


def _rbac(kind: str, name: str, **rest: object) -> Json:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **rest}

"""Either API server, the one in memory or the real one: a client of it, and how to make somebody known and allowed."""

import asyncio

from adapter.fakecluster.cluster import Cluster
from autoscaler.kube.client import Json, KubeClient
from tests.control_plane.cluster import ControlPlane

MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"


class Api:
    """A client; behind it one of the two."""

    def __init__(self, client: KubeClient, behind: Cluster | ControlPlane) -> None:
        self.client = client
        self._behind = behind

    async def token_of(self, name: str) -> str:
        """Make an account, and give a token of it."""
        if isinstance(self._behind, Cluster):
            groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
            user = {"username": f"system:serviceaccount:default:{name}", "uid": "1", "groups": groups}
            self._behind.reviews.tokens[f"token of {name}"] = user
            return f"token of {name}"
        await asyncio.to_thread(self._behind.kubectl, "create", "serviceaccount", name)
        return (await asyncio.to_thread(self._behind.kubectl, "create", "token", name)).strip()

    async def forget_the_past(self) -> None:
        """Let no watch go on from a version that is known now."""
        if isinstance(self._behind, Cluster):
            self._behind.expire_watches()
            return
        await self.client.create(f"{MAPS}", {"metadata": {"generateName": "so-that-time-has-passed-"}})
        await asyncio.to_thread(self._behind.apiserver.stop)
        await asyncio.to_thread(self._behind.apiserver.start)

    async def allow(self, user: str, resource: str) -> None:
        """Let `user` list one resource of our group in the namespace default."""
        if isinstance(self._behind, Cluster):
            self._behind.reviews.allows = lambda spec: (
                spec["user"] == user and spec.get("resourceAttributes", {}).get("resource") == resource
            )
            return
        rule = {"apiGroups": ["external.metrics.k8s.io"], "resources": [resource], "verbs": ["list"]}
        await self.client.create(f"{ROLES}/roles", _rbac("Role", resource, rules=[rule]))
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": resource}
        binding = _rbac("RoleBinding", resource, roleRef=role, subjects=[subject])
        await self.client.create(f"{ROLES}/rolebindings", binding)
        await asyncio.sleep(1)  # the authorizer's own view follows behind the write


def _rbac(kind: str, name: str, **rest: object) -> Json:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **rest}

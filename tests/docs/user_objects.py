"""Objects of a user who follows the pages, and what the commands of a page changed in them."""

import json
from typing import Any, Final

from tests.control_plane.cluster import ControlPlane

Json = dict[str, Any]

KINDS: Final = (
    *("namespaces", "deployments.apps", "configmaps", "secrets", "services", "serviceaccounts"),
    *("horizontalpodautoscalers", "podautoscalers.steadyscale.dev", "externalmetrics.steadyscale.dev"),
    *("roles", "rolebindings", "clusterroles", "clusterrolebindings", "networkpolicies"),
)
IN_OUR_NAMESPACE: Final = ("ConfigMap/steadyscale/steadyscale", "Secret/steadyscale/steadyscale-credentials")
"""Objects of the user in the namespace of Steadyscale; the others belong to the installation."""

_IN_EVERY_NAMESPACE: Final = {"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"}
_PROMETHEUS_ADAPTER: Final = """\
rules:
- {seriesQuery: http_requests_total, resources: {template: <<.Resource>>}, metricsQuery: "sum(<<.Series>>)"}
externalRules:
- seriesQuery: queue_depth
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>})
- seriesQuery: '{__name__=~"^queue_.*"}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"""


def create_before_installation(plane: ControlPlane) -> None:
    """Create workloads, an HPA and the configuration of prometheus-adapter, with names that pages use in examples."""
    for namespace in ("shop", "monitoring"):
        plane.kubectl("create", "namespace", namespace)
    image = "--image=registry.k8s.io/pause:3.10"
    plane.kubectl("create", "deployment", "orders", "--namespace=shop", "--replicas=4", image)
    plane.kubectl("create", "deployment", "orders", "--namespace=default", "--replicas=2", image)
    plane.kubectl("create", "deployment", "checkout", "--namespace=shop", "--replicas=2", image)
    plane.kubectl("autoscale", "deployment", "checkout", "--namespace=shop", "--min=2", "--max=9", "--cpu-percent=80")
    plane.kubectl("create", "configmap", "settings", "--namespace=shop", "--from-literal=currency=EUR")
    plane.kubectl("create", "rolebinding", "readers", "--namespace=shop", "--clusterrole=view", "--user=alice")
    rules = f"--from-literal=config.yaml={_PROMETHEUS_ADAPTER}"
    plane.kubectl("create", "configmap", "adapter-config", "--namespace=monitoring", rules)


def create_after_installation(plane: ControlPlane) -> None:
    """Create an autoscaler of the user."""
    metric = {"name": "orders-waiting"}, {"static": [{"value": 40}]}
    external = {"metric": {"name": "orders-waiting"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"},
        "maxReplicas": 9,
        "metrics": [{"type": "External", "external": external}],
    }
    for kind, (metadata, content) in {"ExternalMetric": metric, "PodAutoscaler": ({"name": "orders"}, spec)}.items():
        item = {"apiVersion": "steadyscale.dev/v1beta1", "kind": kind, "metadata": metadata, "spec": content}
        plane.kubectl("create", "--namespace=shop", "--filename=-", stdin=json.dumps(item))


def user_objects(plane: ControlPlane, *, kinds: tuple[str, ...] = KINDS) -> dict[str, Json]:
    """Return everything in the cluster that belongs neither to Kubernetes nor to Steadyscale, by key."""
    items = plane.get(",".join(kinds), "--all-namespaces")["items"]
    return {key: _content(item) for item in items if _is_of_user(key := _key(item), item)}


def changes(before: dict[str, Json], after: dict[str, Json]) -> list[str]:
    """Return what was deleted, created or changed.

    Pages may create the objects in the namespace of Steadyscale, and add keys and lines to them.
    """
    created = [key for key in after.keys() - before.keys() if key not in IN_OUR_NAMESPACE]
    changed = [key for key in before.keys() & after.keys() if not _is_kept(key, before[key], after[key])]
    return [
        *(f"deleted: {key}" for key in before.keys() - after.keys()),
        *(f"created: {key}" for key in created),
        *(f"changed: {key}: {before[key]} is now {after[key]}" for key in changed),
    ]


def _is_kept(key: str, before: Json, after: Json) -> bool:
    if key not in IN_OUR_NAMESPACE:
        return before == after
    data = before.get("data") or {}
    return before["uid"] == after["uid"] and all(
        after["data"].get(name, "").startswith(text) for name, text in data.items()
    )


def _key(item: Json) -> str:
    return f"{item['kind']}/{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"


def _is_of_user(key: str, item: Json) -> bool:
    kind, namespace, name = key.split("/", 2)
    if namespace == "steadyscale":
        return key in IN_OUR_NAMESPACE
    if f"{kind}/{name}" in _IN_EVERY_NAMESPACE:
        return False
    parts = (namespace or name).split(":")[0].split("-")
    return parts[0] not in {"kube", "system", "steadyscale"} and "rbac-defaults" not in json.dumps(item["metadata"])


def _content(item: Json) -> Json:
    """Return an object without what Kubernetes adds; with its uid, which shows that an object was created again."""
    kept = {name: value for name, value in item.items() if name not in {"metadata", "status"}}
    metadata = item["metadata"]
    return {**kept, "uid": metadata["uid"], "labels": metadata.get("labels") or {}}

"""The resource, custom and external metrics APIs, served from values that tests set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from adapter.fakecluster.api_errors import ApiError, unknown_resource
from adapter.fakecluster.kinds import Json
from adapter.fakecluster.storage import Storage
from autoscaler.values.selector import parse
from autoscaler.values.timestamps import format_rfc3339

_RESOURCE: Final = "metrics.k8s.io"
_CUSTOM: Final = "custom.metrics.k8s.io"
_EXTERNAL: Final = "external.metrics.k8s.io"


@dataclass
class Metrics:
    """The metric values. An API without values is not registered."""

    storage: Storage
    clock: Callable[[], datetime]
    usage: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Usage of each container, such as ``{"cpu": "250m"}``, by pod (``namespace/name``)."""

    pod_metrics: dict[tuple[str, str], str] = field(default_factory=dict)
    """Values of custom metrics, by metric and pod (``namespace/name``)."""

    object_metrics: dict[tuple[str, str], str] = field(default_factory=dict)
    """Values of custom metrics, by metric and object (``namespace/deployments.apps/name``)."""

    external: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Values of the series of external metrics, by namespace and metric."""

    def groups(self) -> dict[str, tuple[str, ...]]:
        values = {
            _RESOURCE: (("v1beta1",), self.usage),
            _CUSTOM: (("v1beta2", "v1beta1"), self.pod_metrics or self.object_metrics),
            _EXTERNAL: (("v1beta1",), self.external),
        }
        return {group: versions for group, (versions, has_values) in values.items() if has_values}

    def handle(self, path: str, query: Mapping[str, str]) -> Json | None:
        """Return the response to a metrics request; None if the path is not one."""
        items = self._items(path.strip("/").split("/"), query)
        return None if items is None else {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}

    def _items(self, parts: list[str], query: Mapping[str, str]) -> list[Json] | None:
        match parts:
            case ["apis", group, _, *_] if group in {_RESOURCE, _CUSTOM, _EXTERNAL} and group not in self.groups():
                raise unknown_resource()
            case ["apis", "metrics.k8s.io", "v1beta1", "namespaces", namespace, "pods"]:
                return [self._usage(pod) for pod in self._pods(namespace, query) if _key(pod) in self.usage]
            case ["apis", "custom.metrics.k8s.io", _, "namespaces", namespace, "pods", "*", metric]:
                pods = {(metric, _key(pod)): pod for pod in self._pods(namespace, query)}
                values = self.pod_metrics
                return [self._value(metric, values[key], pod) for key, pod in pods.items() if key in values]
            case ["apis", "custom.metrics.k8s.io", _, "namespaces", namespace, resource, name, metric]:
                value = self.object_metrics.get((metric, f"{namespace}/{resource}/{name}"))
                if value is not None:
                    return [self._value(metric, value, {"metadata": {"name": name}})]
                raise ApiError(404, "NotFound", f"the server could not find the metric {metric} for {resource} {name}")
            case ["apis", "external.metrics.k8s.io", "v1beta1", "namespaces", namespace, metric]:
                external = self.external.get((namespace, metric))
                if external is not None:
                    return [{"metricName": metric, "timestamp": self._now(), "value": value} for value in external]
                raise ApiError(404, "NotFound", f"the server could not find the metric {metric}")
            case _:
                return None

    def _pods(self, namespace: str, query: Mapping[str, str]) -> list[Json]:
        selector = parse(query.get("labelSelector", ""))
        pods = (pod for pod in self.storage.list(("", "pods")) if pod["metadata"]["namespace"] == namespace)
        return [pod for pod in pods if selector.matches(pod["metadata"].get("labels") or {})]

    def _usage(self, pod: Json) -> Json:
        usage = self.usage[_key(pod)]
        containers = [{"name": container["name"], "usage": dict(usage)} for container in pod["spec"]["containers"]]
        metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
        return {"metadata": metadata, "timestamp": self._now(), "window": "30s", "containers": containers}

    def _value(self, metric: str, value: str, target: Json) -> Json:
        described = {"kind": target.get("kind", ""), "name": target["metadata"]["name"]}
        return {"describedObject": described, "metric": {"name": metric}, "timestamp": self._now(), "value": value}

    def _now(self) -> str:
        return format_rfc3339(self.clock())


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"

"""The metrics APIs of the cluster in memory: numbers that somebody put there, in the form in which they are served."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from adapter.fakecluster.api_errors import Refused
from adapter.fakecluster.kinds import Json
from adapter.fakecluster.storage import Shelf
from autoscaler.values.selector import parse
from autoscaler.wire import print_time

_RESOURCE: Final = "metrics.k8s.io"
_CUSTOM: Final = "custom.metrics.k8s.io"
_EXTERNAL: Final = "external.metrics.k8s.io"


@dataclass
class Metrics:
    """What can be measured. All empty, and none of the three APIs is registered."""

    shelf: Shelf
    clock: Callable[[], datetime]
    usage: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """By pod (``namespace/name``): what each of its containers uses, such as ``{"cpu": "250m"}``."""

    of_pods: dict[tuple[str, str], str] = field(default_factory=dict)
    """By metric and pod (``namespace/name``): a custom metric."""

    of_objects: dict[tuple[str, str], str] = field(default_factory=dict)
    """By metric and object (``namespace/deployments.apps/name``): a custom metric."""

    external: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """By namespace and metric: the values of its series."""

    def groups(self) -> dict[str, tuple[str, ...]]:
        """List the APIs that have something to serve, with their versions."""
        there = {
            _RESOURCE: (("v1beta1",), self.usage),
            _CUSTOM: (("v1beta2", "v1beta1"), self.of_pods or self.of_objects),
            _EXTERNAL: (("v1beta1",), self.external),
        }
        return {group: versions for group, (versions, numbers) in there.items() if numbers}

    def answer(self, path: str, query: Mapping[str, str]) -> Json | None:
        """Answer a question for a metric; None: the path asks for something else."""
        match path.strip("/").split("/"):
            case ["apis", group, _, *_] if group in {_RESOURCE, _CUSTOM, _EXTERNAL} and group not in self.groups():
                raise Refused(404, "NotFound", "the server could not find the requested resource")
            case ["apis", "metrics.k8s.io", "v1beta1", "namespaces", namespace, "pods"]:
                return self._list([self._usage(pod) for pod in self._pods(namespace, query) if _key(pod) in self.usage])
            case ["apis", "custom.metrics.k8s.io", _, "namespaces", namespace, "pods", "*", metric]:
                pods = [pod for pod in self._pods(namespace, query) if (metric, _key(pod)) in self.of_pods]
                return self._list([self._value(metric, self.of_pods[metric, _key(pod)], pod) for pod in pods])
            case ["apis", "custom.metrics.k8s.io", _, "namespaces", namespace, resource, name, metric]:
                return self._object(metric, namespace, resource, name)
            case ["apis", "external.metrics.k8s.io", "v1beta1", "namespaces", namespace, metric]:
                return self._external(namespace, metric)
            case _:
                return None

    def _pods(self, namespace: str, query: Mapping[str, str]) -> list[Json]:
        selector = parse(query.get("labelSelector", ""))
        pods = (pod for pod in self.shelf.all(("", "pods")) if pod["metadata"]["namespace"] == namespace)
        return [pod for pod in pods if selector.matches(pod["metadata"].get("labels") or {})]

    def _usage(self, pod: Json) -> Json:
        usage = self.usage[_key(pod)]
        containers = [{"name": one["name"], "usage": dict(usage)} for one in pod["spec"]["containers"]]
        metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
        return {"metadata": metadata, "timestamp": self._now(), "window": "30s", "containers": containers}

    def _value(self, metric: str, value: str, about: Json) -> Json:
        described = {"kind": about.get("kind", ""), "name": about["metadata"]["name"]}
        return {"describedObject": described, "metric": {"name": metric}, "timestamp": self._now(), "value": value}

    def _object(self, metric: str, namespace: str, resource: str, name: str) -> Json:
        value = self.of_objects.get((metric, f"{namespace}/{resource}/{name}"))
        if value is None:
            raise Refused(404, "NotFound", f"the server could not find the metric {metric} for {resource} {name}")
        return self._list([self._value(metric, value, {"metadata": {"name": name}})])

    def _external(self, namespace: str, metric: str) -> Json:
        values = self.external.get((namespace, metric))
        if values is None:
            raise Refused(404, "NotFound", f"the server could not find the metric {metric}")
        return self._list([{"metricName": metric, "timestamp": self._now(), "value": value} for value in values])

    def _list(self, items: list[Json]) -> Json:
        return {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}

    def _now(self) -> str:
        return print_time(self.clock())


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"

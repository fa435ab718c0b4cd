"""Reads metrics from the resource, custom and external metrics APIs with the same requests as the HPA controller.

Failures are not raised: an unavailable metric is an `UnavailableReading` with upstream's message.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from autoscaler import readings
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.discovery import Discovery, NoMatch, group_resource, split_api_version
from autoscaler.kube.errors import Forbidden, KubeError, MalformedResponse, NotFound, Unauthorized, client_go_message
from autoscaler.kube.objects import decode_response
from autoscaler.kube.paths import api_path
from autoscaler.readings import MetricsApi, decode_pod_value, decode_usage, parse_milli, timestamp_of
from autoscaler.types.observation import BadSelector, FailureClass, ObjectReading, Reading, UnavailableReading
from autoscaler.types.spec import Metric, MetricIdentifier, ObjectSource
from autoscaler.values.selector import LabelSelector, Selector, SelectorError, from_label_selector

_CUSTOM_GROUP: Final = "custom.metrics.k8s.io"
_CUSTOM_VERSIONS: Final = ("v1beta2", "v1beta1")
_CUSTOM_VERSION_TTL: Final = timedelta(minutes=1)
_RESOURCE: Final = "/apis/metrics.k8s.io/v1beta1"
_EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"


class MetricsApis:
    """Client of the three metrics APIs."""

    def __init__(self, client: KubeClient, discovery: Discovery) -> None:
        self._client = client
        self._discovery = discovery
        self._custom_root = ""
        self._custom_root_until = 0.0

    async def read(self, namespace: str, metric: Metric, pods: Selector) -> Reading:
        """Read one entry of ``spec.metrics``; ``pods`` selects the target's pods."""
        try:
            return await self._read(namespace, metric, str(pods))
        except SelectorError as error:
            return BadSelector(str(error))

    async def _read(self, namespace: str, metric: Metric, pods: str) -> Reading:
        if metric.resource is not None:
            return await self._resource(namespace, pods, metric.resource.name, "")
        if metric.container_resource is not None:
            source = metric.container_resource
            return await self._resource(namespace, pods, source.name, source.container)
        if metric.pods is not None:
            return await self._pods(namespace, metric.pods.metric, pods)
        if metric.object is not None:
            return await self._object(namespace, metric.object)
        if metric.external is not None:
            return await self.external(namespace, metric.external.metric)
        return UnavailableReading("metric has no source: set the field that matches its type")

    async def external(self, namespace: str, metric: MetricIdentifier) -> Reading:
        """Read an external metric from the server that is registered for external.metrics.k8s.io."""
        name = metric.name.lower()  # client-go treats it as a resource name and lowercases it
        query = _query(labelSelector=_selector_text(metric.selector))
        try:
            response = await self._client.get(f"{_EXTERNAL}{api_path('namespaces', namespace, name)}", query)
            return decode_response("ExternalMetricValueList", _read_external, response)
        except KubeError as error:
            return _failed(MetricsApi.EXTERNAL, error, f"get {name}.external.metrics.k8s.io")

    async def _resource(self, namespace: str, selector: str, resource: str, container: str) -> Reading:
        query = _query(labelSelector=selector)
        try:
            response = await self._client.get(f"{_RESOURCE}{api_path('namespaces', namespace, 'pods')}", query)
            items = decode_response("PodMetricsList", lambda: [decode_usage(item) for item in _items(response)])
        except KubeError as error:
            return _failed(MetricsApi.RESOURCE, error, "get pods.metrics.k8s.io")
        return readings.read_resource(items, resource, container)

    async def _pods(self, namespace: str, metric: MetricIdentifier, selector: str) -> Reading:
        path = api_path("namespaces", namespace, "pods", "*", metric.name)
        query = _query(labelSelector=selector, metricLabelSelector=_selector_text(metric.selector))
        return await self._get_custom(path, query, f"get pods.{_CUSTOM_GROUP} *", _read_pods)

    async def _object(self, namespace: str, source: ObjectSource) -> Reading:
        query = _query(metricLabelSelector=_selector_text(source.metric.selector))
        described = source.described_object
        group, _ = split_api_version(described.api_version)
        metric = source.metric.name
        if (group, described.kind) == ("", "Namespace"):
            path = api_path("namespaces", namespace, "metrics", metric)
            action = f"get namespaces.{_CUSTOM_GROUP} {namespace}"
        else:
            try:
                resource = await self._discovery.resource(group, described.kind)
            except NoMatch as error:
                kind = group_resource(group, described.kind)
                return readings.api_failure(MetricsApi.CUSTOM, f"unable to map kind {kind} to resource: {error}")
            full = group_resource(resource.group, resource.plural)
            path = api_path("namespaces", namespace, full, described.name, metric)
            action = f"get {full}.{_CUSTOM_GROUP}"
        return await self._get_custom(path, query, action, _read_object)

    async def _get_custom(
        self, path: str, query: Mapping[str, str], action: str, decode: Callable[[Json], Reading]
    ) -> Reading:
        try:
            root = await self._find_custom_root()
            if isinstance(root, UnavailableReading):
                return root
            return decode_response("MetricValueList", decode, await self._client.get(f"{root}{path}", query))
        except KubeError as error:
            return _failed(MetricsApi.CUSTOM, error, action)

    async def _find_custom_root(self) -> str | UnavailableReading:
        """Return the base path of the custom metrics API in the preferred supported version, cached for a minute."""
        now = asyncio.get_running_loop().time()
        if now < self._custom_root_until:
            return self._custom_root
        try:
            versions = await self._discovery.versions(_CUSTOM_GROUP)
        except NotFound:
            return readings.api_failure(MetricsApi.CUSTOM, f"no custom metrics API ({_CUSTOM_GROUP}) registered")
        version = next((version for version in versions if version in _CUSTOM_VERSIONS), None)
        if version is None:
            return readings.api_failure(MetricsApi.CUSTOM, "no known available metric versions found")
        self._custom_root = api_path("apis", _CUSTOM_GROUP, version)
        self._custom_root_until = now + _CUSTOM_VERSION_TTL.total_seconds()
        return self._custom_root


def _items(response: Json) -> Sequence[Json]:
    items = response.get("items") or ()
    if not isinstance(items, list | tuple):
        raise TypeError("items is not a list")
    return items


def _read_external(response: Json) -> Reading:
    items = _items(response)
    return readings.read_external(
        [parse_milli(item["value"]) for item in items], timestamp_of(items[0] if items else {})
    )


def _read_pods(response: Json) -> Reading:
    return readings.read_pods([decode_pod_value(item) for item in _items(response)])


def _read_object(response: Json) -> Reading:
    items = _items(response)
    if len(items) != 1:
        message = f"the custom metrics API server returned {len(items)} results when we asked for exactly one"
        return readings.api_failure(
            MetricsApi.CUSTOM, message, FailureClass.AMBIGUOUS if items else FailureClass.NO_SERIES
        )
    return ObjectReading(parse_milli(items[0]["value"]), timestamp_of(items[0]))


def _failed(api: MetricsApi, error: KubeError, action: str) -> UnavailableReading:
    return readings.api_failure(api, client_go_message(error, action), _failure_class(error))


def _failure_class(error: KubeError) -> FailureClass:
    if isinstance(error, NotFound):
        return FailureClass.UNKNOWN_METRIC
    if isinstance(error, MalformedResponse):
        return FailureClass.NOT_A_NUMBER
    if isinstance(error, Forbidden | Unauthorized):
        return FailureClass.UNAUTHORIZED
    if error.code == 0:
        timed_out = isinstance(error.__cause__, TimeoutError)
        return FailureClass.TIMED_OUT if timed_out else FailureClass.UNREACHABLE
    return FailureClass.API_UNAVAILABLE


def _selector_text(selector: LabelSelector | None) -> str:
    return str(from_label_selector(selector))


def _query(**parameters: str) -> dict[str, str]:
    """Drop empty parameters, as client-go does."""
    return {name: value for name, value in parameters.items() if value}

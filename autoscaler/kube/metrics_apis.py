"""Metrics as the cluster serves them: resource, custom and external ones, asked for as the HPA asks.

Nothing here raises for the server's sake. A metric that cannot be had is a reading that says why, in upstream's words.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from autoscaler import readings
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.client_go_messages import group_resource, in_words
from autoscaler.kube.custom_metrics import GROUP, CustomMetricsVersion, NoCustomMetrics
from autoscaler.kube.discovery import Discovery, NoMatch, split_api_version
from autoscaler.kube.errors import Forbidden, KubeError, NotFound, Unauthorized
from autoscaler.kube.metric_items import decode_pod_value, decode_usage, items_of, milli, moment_of
from autoscaler.readings import MetricsApi
from autoscaler.types.observation import BadSelector, FailureClass, Reading, UnavailableReading
from autoscaler.types.spec import Metric, MetricIdentifier, ObjectSource
from autoscaler.values.quantity import QuantityError
from autoscaler.values.selector import LabelSelector, Selector, SelectorError, from_label_selector

_RESOURCE: Final = "/apis/metrics.k8s.io/v1beta1"
_EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"

_MALFORMED: Final = (KeyError, TypeError, ValueError, AttributeError, QuantityError)
"""What decoding an answer may stumble over that is not of the promised shape."""


class MetricsApis:
    """The three APIs as one question: what does this metric say."""

    def __init__(self, client: KubeClient, discovery: Discovery) -> None:
        self._client = client
        self._discovery = discovery
        self._custom = CustomMetricsVersion(client)

    async def read(self, namespace: str, metric: Metric, pods: Selector) -> Reading:
        """Say what one entry of ``spec.metrics`` is now, or why that cannot be told; `pods` selects the target's."""
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
        return UnavailableReading("there is nothing to read for this type")

    async def external(self, namespace: str, metric: MetricIdentifier) -> Reading:
        """Read an external metric from whichever server is registered for it."""
        name = metric.name.lower()  # client-go takes it for the name of a resource, and those are in lower case
        query = _query(labelSelector=_printed(metric.selector))
        try:
            answer = await self._client.get(f"{_EXTERNAL}/namespaces/{namespace}/{quote(name, safe='')}", query)
            items = items_of(answer)
            values = [milli(item["value"]) for item in items]
        except KubeError as error:
            return _failed(MetricsApi.EXTERNAL, error, f"get {name}.external.metrics.k8s.io")
        except _MALFORMED as error:
            return _malformed(MetricsApi.EXTERNAL, error)
        return readings.read_external(values, moment_of(items[0] if items else {}))

    async def _resource(self, namespace: str, selector: str, resource: str, container: str) -> Reading:
        query = _query(labelSelector=selector)
        try:
            answer = await self._client.get(f"{_RESOURCE}/namespaces/{namespace}/pods", query)
            items = [decode_usage(item) for item in items_of(answer)]
        except KubeError as error:
            return _failed(MetricsApi.RESOURCE, error, "get pods.metrics.k8s.io")
        except _MALFORMED as error:
            return _malformed(MetricsApi.RESOURCE, error)
        return readings.read_resource(items, resource, container)

    async def _pods(self, namespace: str, metric: MetricIdentifier, selector: str) -> Reading:
        place = f"namespaces/{namespace}/pods/*/{quote(metric.name, safe='')}"
        query = _query(labelSelector=selector, metricLabelSelector=_printed(metric.selector))
        found = await self._ask_custom(place, query, f"get pods.{GROUP} *")
        if isinstance(found, UnavailableReading):
            return found
        try:
            return readings.read_pods([decode_pod_value(item) for item in items_of(found)])
        except _MALFORMED as error:
            return _malformed(MetricsApi.CUSTOM, error)

    async def _object(self, namespace: str, source: ObjectSource) -> Reading:
        query = _query(metricLabelSelector=_printed(source.metric.selector))
        described = source.described_object
        group, _ = split_api_version(described.api_version)
        metric = quote(source.metric.name, safe="")
        if (group, described.kind) == ("", "Namespace"):
            place, asked = f"namespaces/{namespace}/metrics/{metric}", f"get namespaces.{GROUP} {namespace}"
        else:
            try:
                resource = await self._discovery.resource(group, described.kind)
            except NoMatch as error:
                kind = group_resource(group, described.kind)
                return readings.failed(MetricsApi.CUSTOM, f"unable to map kind {kind} to resource: {error}")
            full = group_resource(resource.group, resource.plural)
            place, asked = f"namespaces/{namespace}/{full}/{described.name}/{metric}", f"get {full}.{GROUP}"
        found = await self._ask_custom(place, query, asked)
        return found if isinstance(found, UnavailableReading) else _the_one(found)

    async def _ask_custom(self, place: str, query: Mapping[str, str], asked: str) -> Json | UnavailableReading:
        try:
            return await self._client.get(f"{await self._custom.root()}/{place}", query)
        except NoCustomMetrics as error:
            return readings.failed(MetricsApi.CUSTOM, str(error))
        except KubeError as error:
            return _failed(MetricsApi.CUSTOM, error, asked)


def _the_one(answer: Json) -> Reading:
    items = items_of(answer)
    if len(items) != 1:
        told = f"the custom metrics API server returned {len(items)} results when we asked for exactly one"
        return readings.failed(MetricsApi.CUSTOM, told, FailureClass.AMBIGUOUS if items else FailureClass.NO_SERIES)
    try:
        return readings.read_object(milli(items[0]["value"]), moment_of(items[0]))
    except _MALFORMED as error:
        return _malformed(MetricsApi.CUSTOM, error)


def _failed(api: MetricsApi, error: KubeError, asked: str) -> UnavailableReading:
    return readings.failed(api, in_words(error, asked), _class_of(error))


def _malformed(api: MetricsApi, error: Exception) -> UnavailableReading:
    return readings.failed(api, f"the answer cannot be read: {error!r}", FailureClass.NOT_A_NUMBER)


def _class_of(error: KubeError) -> FailureClass:
    if isinstance(error, NotFound):
        return FailureClass.UNKNOWN_METRIC
    if isinstance(error, Forbidden | Unauthorized):
        return FailureClass.UNAUTHORIZED
    if error.code == 0:
        timed_out = isinstance(error.__cause__, TimeoutError)
        return FailureClass.TIMED_OUT if timed_out else FailureClass.UNREACHABLE
    return FailureClass.API_UNAVAILABLE


def _printed(selector: LabelSelector | None) -> str:
    return str(from_label_selector(selector))


def _query(**parameters: str) -> dict[str, str]:
    """Leave out what is empty, as client-go does."""
    return {name: value for name, value in parameters.items() if value}

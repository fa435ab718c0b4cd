"""Our OpenAPI documents, version 2 and 3, both from one description; JSON, which is all the API server ever asks for.

The index of version 3 lists our group alone: a key that the API server has too would race with its own.
"""

import hashlib
from typing import Any

from aiohttp import web

from adapter.server import serialization
from adapter.server.content_negotiation import JSON, PROTOBUF, YAML
from adapter.server.discovery import tagged
from adapter.server.group import GROUP, GROUP_VERSION, LIST_KIND, ROOT, VERSION
from adapter.server.request_context import RequestContext

V3_PATH = f"/openapi/v3{ROOT}"
_PREFIX = "io.k8s.metrics.pkg.apis.external_metrics.v1beta1"
_INFO = {"title": "Steadyscale external metrics", "version": VERSION}
_METRIC_PATH = ROOT + "/namespaces/{namespace}/{metric}"
_YEAR = "public, immutable, max-age=31536000"


def _kind(name: str) -> list[dict[str, str]]:
    return [{"group": GROUP, "version": VERSION, "kind": name}]


def _schemas(ref: str) -> dict[str, Any]:
    text = {"type": "string"}
    value = {
        "description": "A metric value of some external metric.",
        "type": "object",
        "required": ["metricName", "metricLabels", "timestamp", "value"],
        "properties": {
            "metricName": {**text, "description": "The name of the metric."},
            "metricLabels": {
                "type": "object",
                "additionalProperties": text,
                "description": "Labels of the series.",
            },
            "timestamp": {**text, "format": "date-time", "description": "When the value was taken."},
            "window": {
                "type": "integer",
                "format": "int64",
                "description": "Seconds that the value is an average over.",
            },
            "value": {**text, "description": "The value, as a Kubernetes quantity."},
        },
        "x-kubernetes-group-version-kind": _kind("ExternalMetricValue"),
    }
    values = {
        "description": "A list of values for one external metric.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text,
            "kind": text,
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": {"$ref": f"{ref}{_PREFIX}.ExternalMetricValue"}},
        },
        "x-kubernetes-group-version-kind": _kind(LIST_KIND),
    }
    resources = {"description": "The resources of this group and version.", "type": "object"}
    return {
        f"{_PREFIX}.ExternalMetricValue": value,
        f"{_PREFIX}.{LIST_KIND}": values,
        "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList": resources,
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status": {"description": "Why there is no answer.", "type": "object"},
    }


_SAYS = {"200": "OK", "400": "Bad Request", "401": "Unauthorized", "403": "Forbidden", "404": "Not Found"}
_SAYS |= {"405": "Watching is not possible", "406": "Not Acceptable", "429": "Too Many Requests"}
_SAYS |= {"500": "It could not be found out who asks", "503": "The metric has no number now", "504": "Too late"}
_QUERY = {
    "labelSelector": ("string", "Only series with such labels."),
    "timeout": ("string", "How long the answer may take, such as 5s."),
    "limit": ("integer", "Accepted and without effect."),
    "pretty": ("string", "Indent the answer."),
}
_METRIC = ("readExternalMetric", "read the values of a metric", LIST_KIND, ("namespace", "metric"), tuple(_QUERY))
_RESOURCES = ("getAPIResources", "get available resources", "APIResourceList", (), ())


def _parameter(name: str, place: str, *, nested: bool) -> dict[str, Any]:
    type_, says = _QUERY.get(name, ("string", f"The {name}'s name."))
    shape = {"schema": {"type": type_}} if nested else {"type": type_}
    return {"name": name, "in": place, "description": says, "required": place == "path", **shape}


def _responses(kind: str, ref: str, media: list[str], *, nested: bool) -> dict[str, Any]:
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1"
    good = {"$ref": f"{ref}{_PREFIX if kind == LIST_KIND else meta}.{kind}"}
    bad = {"$ref": f"{ref}{meta}.Status"}

    def one(code: str, says: str) -> dict[str, Any]:
        schema = good if code == "200" else bad
        types = media if code == "200" else [JSON.media]
        shape = {"content": {each: {"schema": schema} for each in types}} if nested else {"schema": schema}
        return {"description": says, **shape}

    return {code: one(code, says) for code, says in _SAYS.items()}


def _paths(ref: str, *, nested: bool) -> dict[str, Any]:
    def operation(row: tuple[str, str, str, tuple[str, ...], tuple[str, ...]]) -> dict[str, Any]:
        name, says, kind, places, query = row
        media = [JSON.media, YAML.media] + ([PROTOBUF.media] if kind == LIST_KIND else [])
        get: dict[str, Any] = {
            "operationId": f"{name}ExternalMetricsV1beta1",
            "description": says,
            "tags": [GROUP.replace(".", "_")],
            "parameters": [
                *(_parameter(each, "path", nested=nested) for each in places),
                *(_parameter(each, "query", nested=nested) for each in query),
            ],
            "responses": _responses(kind, ref, media, nested=nested),
        }
        return {"get": get if nested else {**get, "produces": media, "schemes": ["https"]}}

    return {f"{ROOT}/": operation(_RESOURCES), _METRIC_PATH: operation(_METRIC)}


V2: dict[str, Any] = {
    "swagger": "2.0",
    "info": _INFO,
    "paths": _paths("#/definitions/", nested=False),
    "definitions": _schemas("#/definitions/"),
}
V3: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": _INFO,
    "paths": _paths("#/components/schemas/", nested=True),
    "components": {"schemas": _schemas("#/components/schemas/")},
}
_V2_BODY = serialization.to_bytes(V2, JSON.media)
_V3_BODY = serialization.to_bytes(V3, JSON.media)
_V3_HASH = hashlib.sha256(_V3_BODY).hexdigest().upper()
_V3_URL = f"{V3_PATH}?hash={_V3_HASH}"
_INDEX = serialization.to_bytes({"paths": {f"apis/{GROUP_VERSION}": {"serverRelativeURL": _V3_URL}}}, JSON.media)


async def v2(exchange: RequestContext) -> web.Response:
    """Answer ``/openapi/v2``."""
    return tagged(exchange, _V2_BODY, exchange.wants((JSON,)).media, {})


async def v3_index(exchange: RequestContext) -> web.Response:
    """Answer ``/openapi/v3``: where the document is, under a name that changes with it."""
    return tagged(exchange, _INDEX, exchange.wants((JSON,)).media, {})


async def v3(exchange: RequestContext) -> web.Response:
    """Answer the document of our group: for ever under its hash, and under another hash not at all."""
    media = exchange.wants((JSON,)).media
    asked = exchange.query.get("hash")
    if asked is not None and asked != _V3_HASH:
        return web.Response(status=301, headers={"Location": _V3_URL, "Content-Type": media})
    return tagged(exchange, _V3_BODY, media, {} if asked is None else {"Cache-Control": _YEAR})

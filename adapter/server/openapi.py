"""The OpenAPI documents, versions 2 and 3, generated from one description and served as JSON for the API server.

The index of version 3 lists only this group, because entries of other groups would conflict with the API server's own.
"""

import hashlib
from typing import Any

from aiohttp import web

from adapter.server import serialization
from adapter.server.content_negotiation import JSON, PROTOBUF, YAML
from adapter.server.discovery import cacheable
from adapter.server.request_context import RequestContext
from adapter.server.serialization import GROUP, GROUP_VERSION, LIST_KIND, ROOT, VERSION

V3_PATH = f"/openapi/v3{ROOT}"
_PREFIX = "io.k8s.metrics.pkg.apis.external_metrics.v1beta1"
_INFO = {"title": "Steadyscale external metrics", "version": VERSION}
_METRIC_PATH = ROOT + "/namespaces/{namespace}/{metric}"
_IMMUTABLE = "public, immutable, max-age=31536000"


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
                "description": "Seconds over which the value was averaged.",
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
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status": {"description": "The reason of a failure.", "type": "object"},
    }


_DESCRIPTIONS = {"200": "OK", "400": "Bad Request", "401": "Unauthorized", "403": "Forbidden", "404": "Not Found"}
_DESCRIPTIONS |= {"405": "Watch is not supported", "406": "Not Acceptable", "429": "Too Many Requests"}
_DESCRIPTIONS |= {"500": "Authorization failed", "503": "The metric is unavailable", "504": "Timeout"}
_QUERY = {
    "labelSelector": ("string", "Selects series by their labels."),
    "timeout": ("string", "Timeout of the request, such as 5s."),
    "limit": ("integer", "Ignored."),
    "pretty": ("string", "Indent the response."),
}
_METRIC = ("readExternalMetric", "read the values of a metric", LIST_KIND, ("namespace", "metric"), tuple(_QUERY))
_RESOURCES = ("getAPIResources", "get available resources", "APIResourceList", (), ())


def _parameter(name: str, location: str, *, nested: bool) -> dict[str, Any]:
    type_, description = _QUERY.get(name, ("string", f"Name of the {name}."))
    shape = {"schema": {"type": type_}} if nested else {"type": type_}
    return {"name": name, "in": location, "description": description, "required": location == "path", **shape}


def _responses(kind: str, ref: str, media: list[str], *, nested: bool) -> dict[str, Any]:
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1"
    success = {"$ref": f"{ref}{_PREFIX if kind == LIST_KIND else meta}.{kind}"}
    failure = {"$ref": f"{ref}{meta}.Status"}

    def response(code: str, description: str) -> dict[str, Any]:
        schema = success if code == "200" else failure
        types = media if code == "200" else [JSON.media]
        shape = {"content": {media_type: {"schema": schema} for media_type in types}} if nested else {"schema": schema}
        return {"description": description, **shape}

    return {code: response(code, description) for code, description in _DESCRIPTIONS.items()}


def _paths(ref: str, *, nested: bool) -> dict[str, Any]:
    def operation(row: tuple[str, str, str, tuple[str, ...], tuple[str, ...]]) -> dict[str, Any]:
        name, description, kind, path, query = row
        media = [JSON.media, YAML.media] + ([PROTOBUF.media] if kind == LIST_KIND else [])
        get: dict[str, Any] = {
            "operationId": f"{name}ExternalMetricsV1beta1",
            "description": description,
            "tags": [GROUP.replace(".", "_")],
            "parameters": [
                *(_parameter(parameter, "path", nested=nested) for parameter in path),
                *(_parameter(parameter, "query", nested=nested) for parameter in query),
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


async def v2(context: RequestContext) -> web.Response:
    """Serve ``/openapi/v2``."""
    return cacheable(context, _V2_BODY, context.negotiate((JSON,)).media, {})


async def v3_index(context: RequestContext) -> web.Response:
    """Serve ``/openapi/v3``: the URL of the document, which contains its hash."""
    return cacheable(context, _INDEX, context.negotiate((JSON,)).media, {})


async def v3(context: RequestContext) -> web.Response:
    """Serve the document of the group: immutable under its hash, a redirect under another hash."""
    media = context.negotiate((JSON,)).media
    requested = context.query.get("hash")
    if requested is not None and requested != _V3_HASH:
        return web.Response(status=301, headers={"Location": _V3_URL, "Content-Type": media})
    return cacheable(context, _V3_BODY, media, {} if requested is None else {"Cache-Control": _IMMUTABLE})

"""The discovery documents that kubectl, the HPA's client and the API server read first.

One resource represents all metrics. They share one kind, which clients map to a single resource: with one resource for
each metric, ``kubectl get`` could request the wrong one. The documents and their ETags therefore never change.
"""

import hashlib
from typing import Any

from aiohttp import web

from adapter.rules.rule import INDEX
from adapter.server import serialization
from adapter.server.content_negotiation import JSON, YAML, Offer
from adapter.server.request_context import RequestContext
from adapter.server.serialization import GROUP, GROUP_VERSION, LIST_KIND, VERSION

_AGGREGATED = "APIGroupDiscoveryList"
_AGGREGATED_OFFERS = tuple(
    Offer(JSON.media, kind=_AGGREGATED, group="apidiscovery.k8s.io", version=version) for version in ("v2", "v2beta1")
)
_SERVED = {"groupVersion": GROUP_VERSION, "version": VERSION}
_GROUP: dict[str, Any] = {"name": GROUP, "versions": [_SERVED], "preferredVersion": _SERVED}
_GROUPS = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]}
_RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": GROUP_VERSION,
    "resources": [{"name": INDEX, "singularName": "", "namespaced": True, "kind": LIST_KIND, "verbs": ["get"]}],
}


def _aggregated(version: str) -> dict[str, Any]:
    resource = {
        "resource": INDEX,
        "responseKind": {"group": GROUP, "version": VERSION, "kind": LIST_KIND},
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": ["get"],
    }
    versions = [{"version": VERSION, "freshness": "Current", "resources": [resource]}]
    return {
        "kind": _AGGREGATED,
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [{"metadata": {"name": GROUP}, "versions": versions}],
    }


_BODIES = {offer: serialization.to_bytes(_aggregated(offer.version), JSON.media) for offer in _AGGREGATED_OFFERS}


async def groups(context: RequestContext) -> web.Response:
    """Serve ``/apis``: aggregated discovery if the client accepts it, else the list of groups."""
    offer = context.negotiate((JSON, YAML, *_AGGREGATED_OFFERS))
    if offer not in _BODIES:
        return context.respond(_GROUPS)
    return cacheable(context, _BODIES[offer], offer.content_type, {"Cache-Control": "public"})


async def group(context: RequestContext) -> web.Response:
    """Serve ``/apis/<group>``."""
    return context.respond({"kind": "APIGroup", "apiVersion": "v1", **_GROUP})


async def resources(context: RequestContext) -> web.Response:
    """Serve ``/apis/<group>/<version>``, which is also the API server's availability check."""
    return context.respond(_RESOURCES)


def cacheable(context: RequestContext, body: bytes, content_type: str, headers: dict[str, str]) -> web.Response:
    """Return the body with an ETag, or 304 if ``If-None-Match`` has this ETag."""
    etag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
    headers = {"ETag": etag, "Vary": "Accept", **headers}
    etags = ",".join(context.request.headers.getall("If-None-Match", ()))
    if any(tag.strip().removeprefix("W/") in {etag, "*"} for tag in etags.split(",")):
        return web.Response(status=304, headers={**headers, "Content-Type": content_type})
    return web.Response(body=body, headers={**headers, "Content-Type": content_type})

"""What we serve, as kubectl, the HPA's client and the API server ask for it first.

One resource stands for all metrics. They share one kind, and clients map a kind to one resource: with two of them
``kubectl get`` would silently ask for the other. So these documents never change, and their ETag neither.
"""

import hashlib
from typing import Any

from aiohttp import web

from adapter.rules.rule import INDEX
from adapter.server import serialization
from adapter.server.content_negotiation import JSON, YAML, Offer
from adapter.server.group import GROUP, GROUP_VERSION, LIST_KIND, VERSION
from adapter.server.request_context import RequestContext

_AGGREGATED = "APIGroupDiscoveryList"
_AGGREGATED_OFFERS = tuple(
    Offer(JSON.media, kind=_AGGREGATED, group="apidiscovery.k8s.io", version=version) for version in ("v2", "v2beta1")
)
_PLAIN = (JSON, YAML)

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


async def groups(exchange: RequestContext) -> web.Response:
    """Answer ``/apis``: everything at once for who understands it, the list of groups for who does not."""
    offer = exchange.wants((*_PLAIN, *_AGGREGATED_OFFERS))
    if offer not in _BODIES:
        return _plain(_GROUPS, exchange)
    return tagged(exchange, _BODIES[offer], offer.content_type, {"Cache-Control": "public"})


async def group(exchange: RequestContext) -> web.Response:
    """Answer ``/apis/<group>``."""
    return _plain({"kind": "APIGroup", "apiVersion": "v1", **_GROUP}, exchange)


async def resources(exchange: RequestContext) -> web.Response:
    """Answer ``/apis/<group>/<version>``: the API server's test of whether we are alive."""
    return _plain(_RESOURCES, exchange)


def _plain(document: dict[str, Any], exchange: RequestContext) -> web.Response:
    media = exchange.wants(_PLAIN).media
    return web.Response(body=serialization.to_bytes(document, media, pretty=exchange.pretty()), content_type=media)


def tagged(exchange: RequestContext, body: bytes, content_type: str, headers: dict[str, str]) -> web.Response:
    """Answer with an ETag, or with 304 to who has these bytes already."""
    etag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
    headers = {"ETag": etag, "Vary": "Accept", **headers}
    known = ",".join(exchange.request.headers.getall("If-None-Match", ()))
    if any(tag.strip().removeprefix("W/") in {etag, "*"} for tag in known.split(",")):
        return web.Response(status=304, headers={**headers, "Content-Type": content_type})
    return web.Response(body=body, headers={**headers, "Content-Type": content_type})

"""The discovery documents that kubectl, the HPA's client and the API server read first.

One resource represents all external metrics. They share one kind, which clients map to a single resource: with one
resource for each metric, ``kubectl get`` could request the wrong one. The documents and their ETags therefore never
change.
"""

import hashlib
from typing import Any, Final, NamedTuple

from aiohttp import web

from adapter.rules.rule import INDEX
from adapter.server import debug_api_paths, serialization
from adapter.server.content_negotiation import JSON, YAML, Offer
from adapter.server.request_context import RequestContext
from adapter.server.serialization import GROUP, LIST_KIND, VERSION

_AGGREGATED = "APIGroupDiscoveryList"
_AGGREGATED_OFFERS = tuple(
    Offer(JSON.media, kind=_AGGREGATED, group="apidiscovery.k8s.io", version=version) for version in ("v2", "v2beta1")
)


class _Resource(NamedTuple):
    name: str
    kind: str
    namespaced: bool = True


class ApiGroup(NamedTuple):
    """A group that the server registers with the API server, with its only version."""

    name: str
    version: str
    resources: tuple[_Resource, ...]

    @property
    def root(self) -> str:
        return f"/apis/{self.name}/{self.version}"

    def document(self) -> dict[str, Any]:
        served = {"groupVersion": f"{self.name}/{self.version}", "version": self.version}
        return {"name": self.name, "versions": [served], "preferredVersion": served}

    def resource_list(self) -> dict[str, Any]:
        """Return the APIResourceList.

        ``get`` is the only verb: clients that find ``list`` expect objects with metadata and try to list them all.
        """
        resources = [
            {"name": one.name, "singularName": "", "namespaced": one.namespaced, "kind": one.kind, "verbs": ["get"]}
            for one in self.resources
        ]
        version = f"{self.name}/{self.version}"
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}

    def aggregated(self) -> dict[str, Any]:
        resources = [
            {
                "resource": one.name,
                "responseKind": {"group": self.name, "version": self.version, "kind": one.kind},
                "scope": "Namespaced" if one.namespaced else "Cluster",
                "singularResource": "",
                "verbs": ["get"],
            }
            for one in self.resources
        ]
        versions = [{"version": self.version, "freshness": "Current", "resources": resources}]
        return {"metadata": {"name": self.name}, "versions": versions}


METRICS: Final = ApiGroup(GROUP, VERSION, (_Resource(INDEX, LIST_KIND),))
DEBUG: Final = ApiGroup(
    debug_api_paths.GROUP,
    debug_api_paths.VERSION,
    (
        _Resource(debug_api_paths.DECISIONS, "Decision"),
        _Resource(debug_api_paths.HISTORIES, "DecisionHistory"),
        _Resource(debug_api_paths.METRICS, "MetricTrace"),
        _Resource(debug_api_paths.VIEWS, "View", namespaced=False),
    ),
)
API_GROUPS: Final = (METRICS, DEBUG)
_GROUPS = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [one.document() for one in API_GROUPS]}


def _aggregated(version: str) -> dict[str, Any]:
    return {
        "kind": _AGGREGATED,
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [one.aggregated() for one in API_GROUPS],
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
    return context.respond({"kind": "APIGroup", "apiVersion": "v1", **_requested(context).document()})


async def resources(context: RequestContext) -> web.Response:
    """Serve ``/apis/<group>/<version>``, which is also the API server's availability check."""
    return context.respond(_requested(context).resource_list())


def _requested(context: RequestContext) -> ApiGroup:
    name = context.path.strip("/").split("/")[1]
    return next(one for one in API_GROUPS if one.name == name)


def cacheable(context: RequestContext, body: bytes, content_type: str, headers: dict[str, str]) -> web.Response:
    """Return the body with an ETag, or 304 if ``If-None-Match`` has this ETag."""
    etag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
    headers = {"ETag": etag, "Vary": "Accept", **headers}
    etags = ",".join(context.request.headers.getall("If-None-Match", ()))
    if any(tag.strip().removeprefix("W/") in {etag, "*"} for tag in etags.split(",")):
        return web.Response(status=304, headers={**headers, "Content-Type": content_type})
    return web.Response(body=body, headers={**headers, "Content-Type": content_type})

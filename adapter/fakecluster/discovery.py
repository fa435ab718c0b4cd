"""API discovery: groups, versions of a group, resources of a version."""

from collections.abc import Iterator

from adapter.fakecluster.api_errors import unknown_resource
from adapter.fakecluster.kinds import Json, Kind, Kinds

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def discover(path: str, kinds: Kinds, aggregated: dict[str, tuple[str, ...]]) -> Json | None:
    """Return a discovery document; None if the path is not a discovery path.

    ``aggregated`` maps the groups of aggregated API servers to their versions.
    """
    match path.strip("/").split("/"):
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["api", "v1"]:
            return _resources("", "v1", kinds)
        case ["apis"]:
            groups = dict.fromkeys((*(kind.group for kind in kinds if kind.group), *aggregated))
            listed = [_group(group, kinds.versions(group) or aggregated[group]) for group in groups]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group]:
            versions = kinds.versions(group) or aggregated.get(group)
            if not versions:
                raise unknown_resource()
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}
        case ["apis", group, version]:
            return _resources(group, version, kinds)
        case _:
            return None


def _group(group: str, versions: tuple[str, ...]) -> Json:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resources(group: str, version: str, kinds: Kinds) -> Json:
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        raise unknown_resource()
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [entry for kind in served for entry in _entries(kind)],
    }


def _entries(kind: Kind) -> Iterator[Json]:
    entry: Json = {"name": kind.plural, "singularName": kind.kind.lower(), "namespaced": kind.namespaced}
    aliases = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    yield {**entry, "kind": kind.kind, "verbs": _VERBS, **{key: names for key, names in aliases.items() if names}}
    if kind.has_status:
        yield {**entry, "name": f"{kind.plural}/status", "kind": kind.kind, "verbs": ["get", "patch", "update"]}
    if kind.scale is not None:
        scale = {"kind": "Scale", "group": "autoscaling", "version": "v1", "verbs": ["get", "patch", "update"]}
        yield {**entry, "name": f"{kind.plural}/scale", **scale}

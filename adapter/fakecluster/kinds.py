"""The kinds that the API server serves, built-in and of CustomResourceDefinitions, and the request paths of objects."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from autoscaler.kube.scale_paths import ScalePaths, scale_paths_of
from autoscaler.types.record import Record

Json: TypeAlias = dict[str, Any]

_REPLICAS: Final = ScalePaths(".spec.replicas", ".status.replicas")
_ALL: Final = ("all",)
CRD_RESOURCE: Final = ("apiextensions.k8s.io", "customresourcedefinitions")


class Kind(Record):
    """One kind in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    has_status: bool = False
    """Whether there is a status subresource."""

    scale: ScalePaths | None = None
    has_generation: bool = False
    """Whether metadata.generation is incremented when the spec changes."""

    allow_create_on_update: bool = False
    """Whether PUT creates a missing object."""

    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    """Groups of kinds in kubectl, such as ``kubectl get all``."""

    schema: Json | None = None
    """The structural schema; None for built-in kinds."""

    @property
    def resource(self) -> tuple[str, str]:
        return self.group, self.plural

    @property
    def full_name(self) -> str:
        """The name in error messages: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_custom(self) -> bool:
        return self.schema is not None


def _controlled(
    group: str, version: str, plural: str, kind: str, short_name: str, scale: ScalePaths | None = None
) -> Kind:
    names = Kind(group, version, plural, kind, short_names=(short_name,), categories=_ALL)
    return replace(names, has_status=True, scale=scale, has_generation=True)


BUILT_IN: Final = (
    Kind("", "v1", "configmaps", "ConfigMap", short_names=("cm",)),
    Kind("", "v1", "events", "Event", short_names=("ev",)),
    Kind("", "v1", "namespaces", "Namespace", namespaced=False, has_status=True, short_names=("ns",)),
    Kind("", "v1", "pods", "Pod", has_status=True, short_names=("po",), categories=_ALL),
    Kind("", "v1", "secrets", "Secret"),
    Kind("", "v1", "services", "Service", short_names=("svc",), categories=_ALL),
    _controlled("apps", "v1", "deployments", "Deployment", "deploy", _REPLICAS),
    _controlled("apps", "v1", "replicasets", "ReplicaSet", "rs", _REPLICAS),
    _controlled("apps", "v1", "statefulsets", "StatefulSet", "sts", _REPLICAS),
    _controlled("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa"),
    Kind("coordination.k8s.io", "v1", "leases", "Lease", allow_create_on_update=True),
    Kind("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False, has_status=True),
    Kind(*CRD_RESOURCE[:1], "v1", CRD_RESOURCE[1], "CustomResourceDefinition", namespaced=False, has_status=True),
)


class ResourcePath(NamedTuple):
    """The collection, object or subresource that a request addresses."""

    kind: Kind
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def is_served(self) -> bool:
        kind = self.kind
        subresources = {"": True, "status": kind.has_status, "scale": kind.scale is not None}
        return subresources.get(self.subresource, False) and (kind.namespaced is bool(self.namespace) or not self.name)


class Kinds:
    """All kinds that are served."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        for kind in BUILT_IN:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def add(self, kind: Kind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind

    def parse(self, path: str) -> ResourcePath | None:
        """Parse a path such as ``/apis/apps/v1/namespaces/shop/deployments/web/scale``; None if it is not served."""
        match path.strip("/").split("/"):
            case ["api", version, *rest]:
                group = ""
            case ["apis", group, version, *rest]:
                pass
            case _:
                return None
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}:
            namespace, rest = rest[1], rest[2:]
        kind = self._kinds.get((group, version, rest[0])) if 0 < len(rest) < 4 else None
        parsed = None if kind is None else ResourcePath(kind, namespace, *rest[1:])
        return parsed if parsed is not None and parsed.is_served else None

    def versions(self, group: str) -> tuple[str, ...]:
        """Return the versions of a group, the preferred one first."""
        return tuple(dict.fromkeys(kind.version for kind in self if kind.group == group))

    def add_crd(self, crd: Json) -> None:
        """Add the kinds of a CustomResourceDefinition, the storage version first."""
        for kind in sorted(_kinds_of(crd), key=lambda kind: kind.version != _storage_version(crd)):
            self._kinds.pop((kind.group, kind.version, kind.plural), None)
            self.add(kind)

    def remove_crd(self, crd: Json) -> None:
        for kind in _kinds_of(crd):
            self._kinds.pop((kind.group, kind.version, kind.plural), None)


def _storage_version(crd: Json) -> str:
    return next(str(version["name"]) for version in crd["spec"]["versions"] if version.get("storage"))


def _kinds_of(crd: Json) -> Iterator[Kind]:
    spec = crd["spec"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        yield Kind(
            spec["group"],
            version["name"],
            spec["names"]["plural"],
            spec["names"]["kind"],
            namespaced=spec["scope"] == "Namespaced",
            has_status="status" in subresources,
            scale=scale_paths_of(crd, version["name"]),
            has_generation=True,
            short_names=tuple(spec["names"].get("shortNames") or ()),
            categories=tuple(spec["names"].get("categories") or ()),
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        )

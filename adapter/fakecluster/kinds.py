"""The kinds of objects that the cluster in memory knows: some built in, others defined while it runs."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from autoscaler.kube.scale_paths import ScalePaths
from autoscaler.types.record import Record

Json: TypeAlias = dict[str, Any]

_REPLICAS: Final = ScalePaths(".spec.replicas", ".status.replicas")
_ALL: Final = ("all",)
DEFINITIONS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")


class Kind(Record):
    """One kind in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    has_status: bool = False
    """Whether status is written by itself, through its subresource."""

    scale: ScalePaths | None = None
    counts_changes: bool = False
    """Whether metadata.generation grows when the spec changes."""

    created_by_put: bool = False
    short_names: tuple[str, ...] = ()
    """What people call it at a terminal."""

    categories: tuple[str, ...] = ()
    """In which lists of several kinds it is, such as ``kubectl get all``."""

    schema: Json | None = None
    """What a custom kind's objects must look like."""

    @property
    def resource(self) -> tuple[str, str]:
        """What stays the same in every version."""
        return self.group, self.plural

    @property
    def full_name(self) -> str:
        """As messages name it: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """As objects name it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_custom(self) -> bool:
        """Whether somebody defined it while the cluster ran."""
        return self.schema is not None


def _workload(plural: str, kind: str, short: str) -> Kind:
    return Kind(
        "apps",
        "v1",
        plural,
        kind,
        has_status=True,
        scale=_REPLICAS,
        counts_changes=True,
        short_names=(short,),
        categories=_ALL,
    )


BUILT_IN: Final = (
    Kind("", "v1", "configmaps", "ConfigMap", short_names=("cm",)),
    Kind("", "v1", "events", "Event", short_names=("ev",)),
    Kind("", "v1", "namespaces", "Namespace", namespaced=False, has_status=True, short_names=("ns",)),
    Kind("", "v1", "pods", "Pod", has_status=True, short_names=("po",), categories=_ALL),
    Kind("", "v1", "secrets", "Secret"),
    Kind("", "v1", "services", "Service", short_names=("svc",), categories=_ALL),
    _workload("deployments", "Deployment", "deploy"),
    _workload("replicasets", "ReplicaSet", "rs"),
    _workload("statefulsets", "StatefulSet", "sts"),
    Kind(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        has_status=True,
        counts_changes=True,
        short_names=("hpa",),
        categories=_ALL,
    ),
    Kind("coordination.k8s.io", "v1", "leases", "Lease", created_by_put=True),
    Kind("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False, has_status=True),
    Kind(*DEFINITIONS[:1], "v1", DEFINITIONS[1], "CustomResourceDefinition", namespaced=False, has_status=True),
)


class Kinds:
    """All kinds there are at the moment."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        for kind in BUILT_IN:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def add(self, kind: Kind) -> None:
        """Serve a kind from now on."""
        self._kinds[kind.group, kind.version, kind.plural] = kind

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Find a kind by the words of a path."""
        return self._kinds.get((group, version, plural))

    def versions(self, group: str) -> tuple[str, ...]:
        """List the versions of a group, the preferred one first."""
        return tuple(dict.fromkeys(kind.version for kind in self if kind.group == group))

    def define(self, definition: Json) -> None:
        """Serve what a CustomResourceDefinition defines, the version that it stores first."""
        for kind in sorted(_defined(definition), key=lambda kind: kind.version != _stored(definition)):
            self._kinds.pop((kind.group, kind.version, kind.plural), None)
            self.add(kind)

    def undefine(self, definition: Json) -> None:
        """Serve it no longer."""
        for kind in _defined(definition):
            self._kinds.pop((kind.group, kind.version, kind.plural), None)


def _stored(definition: Json) -> str:
    return next(str(one["name"]) for one in definition["spec"]["versions"] if one.get("storage"))


def _defined(definition: Json) -> Iterator[Kind]:
    spec = definition["spec"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        parts = version.get("subresources") or {}
        scale = parts.get("scale")
        yield Kind(
            spec["group"],
            version["name"],
            spec["names"]["plural"],
            spec["names"]["kind"],
            namespaced=spec["scope"] == "Namespaced",
            has_status="status" in parts,
            scale=scale
            and ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath")),
            counts_changes=True,
            short_names=tuple(spec["names"].get("shortNames") or ()),
            categories=tuple(spec["names"].get("categories") or ()),
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        )

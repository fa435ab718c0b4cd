"""One entry of ``externalRules``, field for field, and what its fields mean."""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapter.rules.go_template.parser import parse
from adapter.rules.go_template.render import fill
from autoscaler.types.record import Record

_NAMESPACE: Final = frozenset({"namespace", "namespaces"})


class SeriesFilter(Record, frozen=True):
    """A series' name must match ``is``, or must not match ``isNot``; one of the two."""

    is_: str = msgspec.field(default="", name="is")
    is_not: str = ""


class GroupResource(Record, frozen=True):
    """A kind of Kubernetes object."""

    group: str = ""
    resource: str = ""


class Resources(Record, frozen=True):
    """How labels name Kubernetes objects. Of an external rule only the namespace's label matters."""

    template: str = ""
    overrides: Mapping[str, GroupResource] = {}
    namespaced: bool = True

    def namespace_label(self) -> str:
        """Say which label holds the namespace; empty if nothing says so. Raise ``TemplateError`` for a bad template."""
        for label, thing in sorted(self.overrides.items()):
            if not thing.group and thing.resource.lower() in _NAMESPACE:
                return label
        return fill(parse(self.template), {"Group": "", "Resource": "namespace"}) if self.template else ""


class Name(Record, frozen=True):
    """How a series' name becomes the metric's."""

    matches: str = ""
    as_: str = msgspec.field(default="", name="as")


class DiscoveryRule(Record, frozen=True):
    """One entry of ``externalRules``."""

    series_query: str = ""
    series_filters: tuple[SeriesFilter, ...] = ()
    resources: Resources = Resources()
    name: Name = Name()
    metrics_query: str = ""

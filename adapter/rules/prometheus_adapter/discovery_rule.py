"""The format of one entry of ``externalRules``."""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapter.rules.go_template.template import Template
from autoscaler.types.record import Record

_NAMESPACE: Final = frozenset({"namespace", "namespaces"})


class SeriesFilter(Record, frozen=True):
    """A filter on series names: either the name matches ``is``, or it does not match ``isNot``."""

    is_: str = msgspec.field(default="", name="is")
    is_not: str = ""


class GroupResource(Record, frozen=True):
    """A Kubernetes resource."""

    group: str = ""
    resource: str = ""


class Resources(Record, frozen=True):
    """Mapping of labels to Kubernetes resources. External rules only use the label of the namespace."""

    template: str = ""
    overrides: Mapping[str, GroupResource] = {}
    namespaced: bool = True

    def namespace_label(self) -> str:
        """Return the label that holds the namespace, or an empty text; raise ``TemplateError`` for a bad template."""
        for label, override in sorted(self.overrides.items()):
            if not override.group and override.resource.lower() in _NAMESPACE:
                return label
        return Template(self.template).render({"Group": "", "Resource": "namespace"}) if self.template else ""


class MetricName(Record, frozen=True):
    """Derivation of the metric name from the series name."""

    matches: str = ""
    as_: str = msgspec.field(default="", name="as")


class DiscoveryRule(Record, frozen=True):
    """One entry of ``externalRules``."""

    series_query: str = ""
    series_filters: tuple[SeriesFilter, ...] = ()
    resources: Resources = Resources()
    name: MetricName = MetricName()
    metrics_query: str = ""

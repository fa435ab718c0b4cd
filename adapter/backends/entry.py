"""How a metric system is configured: one key for each kind that there is. A new kind is a field here."""

from adapter.backends.prometheus.settings import Prometheus
from autoscaler.types.record import Record


class ForObjects(Record, frozen=True):
    """How ``ExternalMetric`` objects may use a backend."""

    namespace_label: str = "namespace"
    """The label that holds a series' namespace. It is added to whatever a team's query selects, so that no query can
    read another namespace's series."""

    namespaces: tuple[str, ...] = ()
    """Whose objects may use it; nowhere named means everywhere."""


class BackendEntry(Record, frozen=True):
    """One metric system: which kind it is, by the one key that is set, and who else may use it."""

    external_metrics: ForObjects | None = None
    """Set: ``ExternalMetric`` objects may use it. Left out: only rules of this file may."""

    prometheus: Prometheus | None = None
    """A server that answers Prometheus' HTTP API."""

    @property
    def kind(self) -> str:
        """Which kind of system it is; empty if nothing says so, or too much does."""
        said = [kind for kind in backend_kinds() if getattr(self, kind) is not None]
        return said[0] if len(said) == 1 else ""


def backend_kinds() -> tuple[str, ...]:
    """List the kinds of metric systems that there are."""
    return tuple(field for field in BackendEntry.__struct_fields__ if field != "external_metrics")

"""Settings of the upstream backend and the parameters of its rules."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import Parameters
from adapter.decoding.problem import Problem
from autoscaler.values import selector
from autoscaler.values.selector import SelectorError

_PATH_SEGMENT: Final = re.compile(r"[^/%?#\s]+")


class UpstreamParameters(Parameters, frozen=True):
    """A metric of the other server."""

    selecting: ClassVar[tuple[str, ...]] = ("namespace", "metric", "selector")

    namespace: str
    """Namespace in which the metric is read."""

    metric: str
    """Name of the metric on the other server."""

    selector: str = ""
    """Label selector, as in ``kubectl get --selector``. Default: all series."""

    def problems(self, path: str) -> Iterator[Problem]:
        for key, name in (("namespace", self.namespace), ("metric", self.metric)):
            if not _PATH_SEGMENT.fullmatch(name) or name in {".", ".."}:
                yield Problem(f"{path}.{key}", "must be a valid URL path segment", value=name)
        try:
            selector.parse(self.selector)
        except SelectorError as error:
            yield Problem(f"{path}.selector", str(error))


class Upstream(HttpSettings, frozen=True):
    """A server of ``external.metrics.k8s.io``, accessed directly or through an API server."""

    backend_class: ClassVar[str] = "adapter.backends.upstream.backend:UpstreamBackend"
    parameters_type: ClassVar[type[Parameters] | None] = UpstreamParameters

"""Which server, and which of its metrics."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import Parameters
from autoscaler.values import selector
from autoscaler.values.selector import SelectorError

_SEGMENT: Final = re.compile(r"[^/%?#\s]+")


class UpstreamParameters(Parameters, frozen=True):
    """One metric, as an HPA would ask for it."""

    namespace: str
    """The namespace to ask in."""

    metric: str
    """What it is called there."""

    selector: str = ""
    """Which of its series, as in ``kubectl get --selector``. Left out: all."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        for key, name in (("namespace", self.namespace), ("metric", self.metric)):
            if not _SEGMENT.fullmatch(name) or name in {".", ".."}:
                yield f"{at}.{key}: must be a name that can stand in a path, is {name!r}"
        try:
            selector.parse(self.selector)
        except SelectorError as error:
            yield f"{at}.selector: {error}"


class Upstream(HttpSettings, frozen=True):
    """A server of ``external.metrics.k8s.io``, asked at its own address or through an API server."""

    opened_by: ClassVar[str] = "adapter.backends.upstream.backend:UpstreamBackend"
    asked_with: ClassVar[type[Parameters] | None] = UpstreamParameters

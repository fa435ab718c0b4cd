"""Which Azure, who we are there, and which metric of which resource."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import ClassVar, Final, Literal

from adapter.backends.azure.credential_settings import AzureLogin
from adapter.backends.azure.resource_id import resource_problems
from adapter.backends.connection.urls import url_problems
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, Parameters, Price, at_least_one

_MINUTE: Final = timedelta(minutes=1)
_LONGEST: Final = timedelta(days=7)  # what is older is no reason to scale
_GRAINS: Final = {1: "1m", 5: "5m", 15: "15m", 30: "30m", 60: "1h", 360: "6h", 720: "12h", 1440: "24h"}
_MOST_RESOURCES: Final = 50
_MOST_SERIES: Final = 10_000
_REGION: Final = re.compile(r"[a-z0-9]{2,40}", re.ASCII)
_DOLLARS_A_CALL: Final = 0.01 / 1000


class AzureParameters(Parameters, frozen=True):
    """Which metric of which resources."""

    metric: str
    """What Azure calls it, as ``ActiveMessages``."""

    resource: str = ""
    """The id of one resource, ``/subscriptions/S/resourceGroups/G/providers/Microsoft.ServiceBus/namespaces/shop``."""

    resources: tuple[str, ...] = ()
    """Instead: the ids of several of one type in one subscription; each is a series of its own, or several."""

    namespace: str = ""
    """The namespace of the metric. Left out: the type of the resource, as ``Microsoft.ServiceBus/namespaces``."""

    aggregation: Literal["average", "minimum", "maximum", "total", "count"] = "average"
    """What is told of all that was measured within one ``granularity``."""

    granularity: timedelta = _MINUTE
    """What one number is over: 1m, 5m, 15m, 30m, 1h, 6h, 12h or 24h, as far as the metric has it."""

    window: timedelta = timedelta(minutes=10)
    """How far to look back for the newest number: it is that of the last whole ``granularity`` that has one."""

    delay: timedelta = timedelta()
    """How long to wait until a number is believed to be complete: those of the last minutes may still grow."""

    dimensions: Mapping[str, str] = {}
    """Only series with these values, as ``{EntityName: orders}``. The value ``*`` stands for any; each is a series."""

    filter: str = ""
    """Instead: a filter in Azure's own words, as ``EntityName eq 'orders' or EntityName eq 'mails'``."""

    roll_up_by: str = ""
    """Dimensions, by comma, whose values are put together in one series."""

    max_series: int = 100
    """Of one resource. More are refused, and not left out."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        if not self.metric:
            yield f"{at}.metric: must not be empty"
        if bool(self.resource) == bool(self.resources):
            yield f"{at}.resource: either this or resources is needed"
        if self.resource:
            yield from resource_problems((self.resource,), f"{at}.resource")
        yield from resource_problems(self.resources, f"{at}.resources")
        if len(self.resources) > _MOST_RESOURCES:
            yield f"{at}.resources: at most {_MOST_RESOURCES}, are {len(self.resources)}; write a second rule"
        yield from self._time_problems(at)
        yield from self._series_problems(at)

    def _time_problems(self, at: str) -> Iterator[str]:
        if self.granularity / _MINUTE not in _GRAINS:
            yield f"{at}.granularity: must be one of {', '.join(_GRAINS.values())}"
        elif self.window < self.granularity:
            yield f"{at}.window: must be at least as long as granularity"
        for key, time in (("window", self.window), ("delay", self.delay)):
            if time > _LONGEST:
                yield f"{at}.{key}: must be at most {_LONGEST / timedelta(hours=1):g}h"

    def _series_problems(self, at: str) -> Iterator[str]:
        if self.dimensions and self.filter:
            yield f"{at}.filter: excludes dimensions; write all of it here"
        if self.roll_up_by and not (self.dimensions or self.filter):
            yield f"{at}.rollUpBy: needs dimensions or a filter that names them"
        yield from at_least_one({"maxSeries": self.max_series}, at)
        if self.max_series > _MOST_SERIES:
            yield f"{at}.maxSeries: must be at most {_MOST_SERIES}, is {self.max_series}"


class Azure(BackendSettings, frozen=True):
    """Azure Monitor in one region of one cloud."""

    opened_by: ClassVar[str] = "adapter.backends.azure.backend:AzureBackend"
    library: ClassVar[tuple[str, ...]] = ("azure.monitor.querymetrics", "azure.identity")
    extra: ClassVar[str] = "azure"
    asked_with: ClassVar[type[Parameters] | None] = AzureParameters

    region: str = ""
    """Where the resources are, as ``westeurope``; ``global`` for those that are nowhere. A region is a backend."""

    cloud: Literal["public", "usGovernment", "china"] = "public"
    """Which Azure: where metrics and tokens are to be had, unless the next three say otherwise."""

    endpoint: str = ""
    """Instead of ``region``: where metrics are asked for. Without TLS only on this machine."""

    audience: str = ""
    """For whom a token is to be. Left out: the cloud's own, as ``https://metrics.monitor.azure.com``."""

    authority: str = ""
    """Where tokens are had. Left out: as the environment says (``AZURE_AUTHORITY_HOST``), or the cloud's own."""

    login: AzureLogin = AzureLogin()
    ca_file: str = ""
    """PEM; whom to trust instead of whom the system trusts. Read when the backend is opened."""

    proxy_url: str = ""
    """An HTTP proxy on the way to metrics and tokens. The environment's are not used."""

    connections: int = 4
    """Calls in flight at once."""

    calls_per_second: int = 20
    """More wait. Azure allows 360,000 an hour of one subscription, which is 100 a second."""

    max_response_bytes: int = 16 * 1024 * 1024
    """In bytes. More is refused before it fills our memory."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        if bool(self.region) == bool(self.endpoint):
            yield f"{at}.region: either this or endpoint is needed"
        elif self.region and not _REGION.fullmatch(self.region):
            yield f"{at}.region: must be a name such as westeurope, is {self.region!r}"
        for key, url in (("endpoint", self.endpoint), ("authority", self.authority), ("proxyUrl", self.proxy_url)):
            yield from url_problems(url, f"{at}.{key}", must_be_encrypted=key != "proxyUrl")
        yield from self.login.problems(f"{at}.login")
        counts = {"connections": self.connections, "callsPerSecond": self.calls_per_second}
        yield from at_least_one({**counts, "breaker.failures": self.breaker.failures}, at)

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:
        """Count a call for each resource: how many go together depends on the other rules."""
        resources = len(parameters.resources) if isinstance(parameters, AzureParameters) else 0
        calls = max(1, resources) * (timedelta(days=1) / interval)
        because = f"at most {calls:,.0f} calls at $0.01 per 1,000, as in July 2026; a million a month are free"
        return Price(calls * _DOLLARS_A_CALL, because)

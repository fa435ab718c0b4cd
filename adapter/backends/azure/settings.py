"""Settings of the Azure Monitor backend and the parameters of its rules."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from adapter.backends.azure.resource_id import resource_problems
from adapter.backends.connection.http_settings import HttpApiSettings
from adapter.backends.connection.urls import encryption_problems, url_problems
from adapter.backends.settings import Parameters, Price, QueryText, count_problems
from adapter.decoding.problem import Problem
from autoscaler.types.record import Record

_MINUTE: Final = timedelta(minutes=1)
_MAX_DURATION: Final = timedelta(days=7)
_GRANULARITIES: Final = {1: "1m", 5: "5m", 15: "15m", 30: "30m", 60: "1h", 360: "6h", 720: "12h", 1440: "24h"}
MAX_RESOURCES: Final = 50
"""Azure's limit on resources in one request."""

_MAX_SERIES: Final = 10_000
_REGION: Final = re.compile(r"[a-z0-9]{2,40}", re.ASCII)
_TENANT: Final = re.compile(r"[A-Za-z0-9.-]*")
_DOMAINS: Final = {"public": "azure.com", "usGovernment": "azure.us", "china": "azure.cn"}
_AUTHORITIES: Final = {
    "public": "",  # the default of azure-identity, which AZURE_AUTHORITY_HOST can change
    "usGovernment": "https://login.microsoftonline.us",
    "china": "https://login.chinacloudapi.cn",
}
_DOLLARS_PER_REQUEST: Final = 0.01 / 1000


class AzureParameters(Parameters, frozen=True):
    """A metric of one or more resources."""

    selecting: ClassVar[tuple[str, ...]] = ("metric", "namespace", "resource", "resources", "dimensions", "filter")

    metric: str
    """Name of the metric in Azure Monitor, such as ``ActiveMessages``."""

    resource: str = ""
    """ID of one resource, ``/subscriptions/S/resourceGroups/G/providers/Microsoft.ServiceBus/namespaces/shop``."""

    resources: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_RESOURCES)] = ()
    """Instead of ``resource``: IDs of up to 50 resources of one type in one subscription. Each has its own series."""

    namespace: str = ""
    """Metric namespace. Default: the type of the resource, such as ``Microsoft.ServiceBus/namespaces``."""

    aggregation: Literal["average", "minimum", "maximum", "total", "count"] = "average"
    """How the measurements within one ``granularity`` are aggregated."""

    granularity: timedelta = _MINUTE
    """Length of the interval of one value: 1m, 5m, 15m, 30m, 1h, 6h, 12h or 24h, if the metric supports it."""

    window: timedelta = timedelta(minutes=10)
    """How far back to search for the newest complete interval with a value. At most 168h. The default leaves room for
    metrics that Azure publishes some minutes late."""

    delay: timedelta = timedelta()
    """Ignore intervals that ended less than this long ago: Azure may still update the newest values. At most 168h."""

    dimensions: Mapping[str, str] = {}
    """Return only series with these dimension values, such as ``{EntityName: orders}``. With the value ``*`` every
    value of the dimension is a series."""

    filter: QueryText = ""
    """Instead of ``dimensions``: an Azure Monitor filter, such as
    ``EntityName eq 'orders' or EntityName eq 'mails'``."""

    roll_up_by: str = ""
    """Comma-separated dimensions whose values are aggregated into one series."""

    max_series: int = 100
    """Maximum number of series of one resource. A larger result is rejected, never truncated."""

    def problems(self, path: str) -> Iterator[Problem]:
        if not self.metric:
            yield Problem(f"{path}.metric", "must not be empty")
        if bool(self.resource) == bool(self.resources):
            yield Problem(f"{path}.resource", "exactly one of resource and resources is required")
        if self.resource:
            yield from resource_problems((self.resource,), f"{path}.resource")
        yield from resource_problems(self.resources, f"{path}.resources")
        yield from self._time_problems(path)
        yield from self._series_problems(path)

    def _time_problems(self, path: str) -> Iterator[Problem]:
        if self.granularity / _MINUTE not in _GRANULARITIES:
            yield Problem(f"{path}.granularity", f"must be one of {', '.join(_GRANULARITIES.values())}")
        elif self.window < self.granularity:
            yield Problem(f"{path}.window", "must be at least as long as granularity")
        for key, duration in (("window", self.window), ("delay", self.delay)):
            if duration > _MAX_DURATION:
                yield Problem(f"{path}.{key}", f"must be at most {_MAX_DURATION / timedelta(hours=1):g}h")

    def _series_problems(self, path: str) -> Iterator[Problem]:
        if self.dimensions and self.filter:
            yield Problem(f"{path}.filter", "cannot be combined with dimensions")
        if self.roll_up_by and not (self.dimensions or self.filter):
            yield Problem(f"{path}.rollUpBy", "requires dimensions or filter")
        yield from count_problems({"maxSeries": self.max_series}, path)
        if self.max_series > _MAX_SERIES:
            yield Problem(f"{path}.maxSeries", f"must be at most {_MAX_SERIES}", value=self.max_series)


class AzureLoginSettings(Record, frozen=True):
    """How an access token is obtained from Microsoft Entra ID."""

    method: Literal["auto", "workloadIdentity", "managedIdentity", "environment", "clientSecret"] = "auto"
    """``workloadIdentity``: the token of the service account, which AKS mounts. ``managedIdentity``: the identity of
    the node. ``environment``: ``AZURE_CLIENT_SECRET`` or ``AZURE_CLIENT_CERTIFICATE_PATH`` and the variables that
    belong to them. ``clientSecret``: a client secret in a file. ``auto``: the first of ``clientSecret``,
    ``environment`` and ``workloadIdentity`` for which files or variables are present; otherwise
    ``managedIdentity``."""

    tenant_id: str = ""
    """The tenant (directory). Default: ``AZURE_TENANT_ID``."""

    client_id: str = ""
    """The application, or the identity if the node has several. Default: ``AZURE_CLIENT_ID``."""

    client_secret_file: str = ""
    """File with the client secret, read for every request, so that the secret can be rotated."""

    token_file: str = ""
    """File with the token of the service account, read for every request. Default:
    ``AZURE_FEDERATED_TOKEN_FILE``."""

    def problems(self, path: str) -> Iterator[Problem]:
        if self.method == "clientSecret" and not self.client_secret_file:
            yield Problem(f"{path}.clientSecretFile", "required with method clientSecret")
        if self.client_secret_file and self.method not in {"auto", "clientSecret"}:
            yield Problem(f"{path}.clientSecretFile", f"not valid with method {self.method}")
        if self.token_file and self.method not in {"auto", "workloadIdentity"}:
            yield Problem(f"{path}.tokenFile", f"not valid with method {self.method}")
        if self.token_file and self.client_secret_file:
            yield Problem(f"{path}.tokenFile", "cannot be combined with clientSecretFile")
        if self.client_secret_file and not (self.tenant_id and self.client_id):
            yield Problem(f"{path}.clientSecretFile", "requires tenantId and clientId")
        if not _TENANT.fullmatch(self.tenant_id):
            yield Problem(f"{path}.tenantId", "must be a GUID or a domain name")


class Azure(HttpApiSettings, frozen=True, kw_only=True):
    """Azure Monitor in one region of one cloud."""

    backend_class: ClassVar[str] = "adapter.backends.azure.backend:AzureBackend"
    required_modules: ClassVar[tuple[str, ...]] = ("azure.identity",)
    extra: ClassVar[str] = "azure"
    parameters_type: ClassVar[type[Parameters] | None] = AzureParameters

    region: str = ""
    """Region of the resources, such as ``westeurope``, or ``global`` for resources without a region. Configure one
    backend for each region."""

    cloud: Literal["public", "usGovernment", "china"] = "public"
    """The Azure cloud. It selects the defaults of ``url``, ``audience`` and ``authority``."""

    url: str = ""
    """Instead of ``region``: URL of the metrics endpoint. Must use https, except on loopback."""

    audience: str = ""
    """Audience of the access token. Default: that of the cloud, such as ``https://metrics.monitor.azure.com``."""

    authority: str = ""
    """URL of the Microsoft Entra ID authority. Default: ``AZURE_AUTHORITY_HOST``, or that of the cloud."""

    login: AzureLoginSettings = AzureLoginSettings()
    max_requests_per_second: int = 20
    """Maximum request rate; further requests wait. Azure allows 360,000 requests per hour and subscription, which is
    100 per second, for all clients together."""

    @property
    def provider_url(self) -> str:
        return f"https://{self.region}.metrics.monitor.{_DOMAINS[self.cloud]}"

    @property
    def token_audience(self) -> str:
        """The audience, or that of the cloud."""
        return self.audience or f"https://metrics.monitor.{_DOMAINS[self.cloud]}"

    @property
    def login_authority(self) -> str:
        """The authority, or that of the cloud; empty: the default of azure-identity."""
        return self.authority or _AUTHORITIES[self.cloud]

    def problems(self, path: str) -> Iterator[Problem]:
        if bool(self.region) == bool(self.url):
            yield Problem(f"{path}.region", "exactly one of region and url is required")
        elif self.region and not _REGION.fullmatch(self.region):
            yield Problem(f"{path}.region", "must be a region name such as westeurope", value=self.region)
        else:
            yield from super().problems(path)
        yield from encryption_problems(self.url, f"{path}.url")
        yield from url_problems(self.authority, f"{path}.authority")
        yield from encryption_problems(self.authority, f"{path}.authority")
        yield from self.login.problems(f"{path}.login")
        yield from count_problems({"maxRequestsPerSecond": self.max_requests_per_second}, path)

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:
        """Return the price with one request per resource; batching with other rules makes it cheaper."""
        resources = len(parameters.resources) if isinstance(parameters, AzureParameters) else 0
        requests = max(1, resources) * (timedelta(days=1) / interval)
        calculation = f"at most {requests:,.0f} requests at $0.01 per 1,000 (July 2026); a million a month are free"
        return Price(requests * _DOLLARS_PER_REQUEST, calculation)

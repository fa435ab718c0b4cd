"""The records of the configuration file: each setting with its meaning, its unit and the reason for its default.

``docs/configuration.md`` is generated from these docstrings.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

import msgspec

from adapter.backends.configuration import BackendEntry
from adapter.rules.delegation import Delegate
from adapter.rules.prometheus_adapter.settings import PrometheusAdapterFile
from adapter.rules.rule import Rule
from autoscaler.types.record import Record


class ServingTlsFiles(Record, frozen=True):
    """A serving certificate from files, such as those of cert-manager; read again when they change."""

    cert_file: str
    """PEM, the certificate first, then any intermediates. Its names must include ``<service>.<namespace>.svc``."""

    key_file: str
    """PEM, the certificate's private key."""


class SelfManagedTls(Record, frozen=True):
    """A certificate authority and a serving certificate that Steadyscale creates, stores in a Secret and rotates."""

    namespace: str = ""
    """The namespace of the Secret and the Service; empty: that of the Lease, ``--leader-elect-resource-namespace``."""

    service: str = "steadyscale"
    """The Service that the APIService names; the certificate is for ``<service>.<namespace>.svc``."""

    cluster_domain: str = "cluster.local"
    """The cluster's DNS suffix, for clients that use the Service's full name."""

    secret: str = "steadyscale-serving-cert"  # noqa: S105 - the name of an object
    """The Secret that stores both, shared by all replicas."""

    ca_lifetime: timedelta = timedelta(days=3650)
    """Validity of the certificate authority; it is replaced after two thirds of it, with ``caOverlap``."""

    certificate_lifetime: timedelta = timedelta(days=90)
    """Validity of a serving certificate; it is replaced after two thirds of it."""

    ca_overlap: timedelta = timedelta(minutes=10)
    """How long a CA is in the CA bundle before it signs and after it stopped signing; the time for all API servers to
    load the new bundle."""

    check_interval: timedelta = timedelta(seconds=30)
    """How often a replica checks the Secret and the APIService; must be much shorter than ``caOverlap``."""


class ServingTls(Record, frozen=True):
    """The source of the serving certificate: one of the two; without either, ``selfManaged`` with its defaults."""

    files: ServingTlsFiles | None = None
    self_managed: SelfManagedTls | None = None


class Serving(Record, frozen=True):
    """The listening socket and its certificate."""

    address: str = "0.0.0.0"  # noqa: S104 - a pod; its Service and network policies limit access
    """Address to listen on."""

    port: int = 6443
    """Port to listen on; above 1023, so that the process needs no privileges. The Service maps 443 to it."""

    tls: ServingTls = ServingTls()


class Auth(Record, frozen=True):
    """Delegated authentication and authorization, and how long its results are cached."""

    kubeconfig: str = ""
    """kubeconfig file of the cluster that authenticates and authorizes; empty: the cluster of the pod."""

    token_cache_ttl: timedelta = msgspec.field(name="tokenCacheTTL", default=timedelta(seconds=10))
    """How long a TokenReview result is cached. Kubernetes' aggregated API servers use the same default."""

    authorized_ttl: timedelta = msgspec.field(name="authorizedTTL", default=timedelta(seconds=30))
    """How long an allowing SubjectAccessReview is cached. An HPA reads every 15 s, so with Kubernetes' default of 10 s
    nearly every read would need a review."""

    unauthorized_ttl: timedelta = msgspec.field(name="unauthorizedTTL", default=timedelta(seconds=10))
    """How long a denying SubjectAccessReview is cached; short, so that a new RoleBinding takes effect soon."""


class Limits(Record, frozen=True):
    """Limits of the server, per connection and in total."""

    max_concurrent_requests: int = 200
    """Requests in progress; more are answered with 429. A namespace gets a further read only if more requests are free
    than it has in progress, so that one namespace can use half of them, and two three quarters. Requests without a
    namespace and access reviews count for their caller in the same way. Health checks and discovery are not counted."""

    max_connections: int = 512
    """Open connections, counted before the TLS handshake. Half of them are for the API server: connections with the
    front proxy's certificate, which no others displace, and new ones from its addresses. A quarter is for connections
    with another valid credential, a quarter for unauthenticated ones. Above its part, the source address with most
    connections loses its least recently used one. A connection needs at most 0.5 MiB, so that with the default the
    process stays below the memory limit of 512 MiB."""

    request_timeout: timedelta = timedelta(seconds=10)
    """Deadline of a request. The API server waits 60 s; an HPA reads again after 15 s."""

    header_timeout: timedelta = timedelta(seconds=10)
    """Time limit for the TLS handshake, for the headers of each request, and for reading a response."""

    idle_timeout: timedelta = timedelta(seconds=120)
    """How long an idle connection stays open; longer than the 90 s of the API server's connection pool, so that the
    client closes first."""

    max_headers: int = 1024
    """Headers of a request. The front proxy sends each group of a caller as one header; some callers have hundreds."""

    max_header_bytes: int = 65536
    """Length of the request line, which contains the selector, and of all headers together; above it: 431."""

    shutdown_delay: timedelta = timedelta(seconds=10)
    """How long the server accepts requests after SIGTERM, until the endpoint is removed from all API servers."""

    drain_timeout: timedelta = timedelta(seconds=15)
    """How long requests in flight may take to finish after ``shutdownDelay``."""


class TenantLimits(Record, frozen=True):
    """Limits of the ``ExternalMetric`` objects of each namespace, so that no team can use up what all teams share."""

    max_objects: int = 200
    """Objects in force. The oldest objects are in force; the others are not, and their status says so."""

    max_bytes: int = 262144
    """Total size of the specs of the objects in force, as JSON; 256 KiB are 200 objects of 1.3 KiB."""

    queries_per_minute: int = 1000
    """Queries sent to backends. Adaptive intervals use at most 80 % of it: 53 objects can be queried every 4 s, 200
    objects every 15 s. Queries above the limit fail until the next one is due; a namespace that has been idle can send
    this number at once."""

    max_concurrent_queries: int = 10
    """Queries in progress on one backend. Further queries wait, within their deadline. While other namespaces and the
    operator's rules use the backend, too, some of its connections are reserved for them. Does not apply to backends
    that send batches (azure, cloudwatch, datadog, newrelic): they share their requests fairly between namespaces."""

    max_series: int = 10000
    """Series in memory, in the results of all queries. A result that would exceed the limit is refused."""


class DecisionHistory(Record, frozen=True):
    """The recorded decisions of all autoscalers, for ``steadyscale history``; stored in ConfigMaps."""

    enabled: bool = True
    """Whether decisions are recorded."""

    max_bytes: int = 33554432
    """Total size of the stored segments; the oldest are deleted first. They need as much space in etcd."""

    max_age: timedelta = timedelta(days=7)
    """How long decisions are kept, if ``maxBytes`` permits."""


class Log(Record, frozen=True):
    """The log on standard error."""

    format: Literal["json", "text"] = "json"
    """Format of a log line."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged."""


class Config(Record, frozen=True):
    """The whole configuration file."""

    serving: Serving = Serving()
    auth: Auth = Auth()
    limits: Limits = Limits()
    tenant_limits: TenantLimits = TenantLimits()
    decision_history: DecisionHistory = DecisionHistory()
    log: Log = Log()
    backends: Mapping[str, BackendEntry] = {}
    """Metric systems by name; rules and messages refer to a backend by this name."""

    rules: tuple[Rule, ...] = ()
    """Metrics for any namespace. ``ExternalMetric`` objects define metrics for one namespace."""

    prometheus_adapter: tuple[PrometheusAdapterFile, ...] = ()
    """Configuration files of prometheus-adapter whose external rules are served; ``rules`` of the same name take
    precedence."""

    delegate: Delegate | None = None
    """Another external metrics server, for metrics without a rule or for comparison."""

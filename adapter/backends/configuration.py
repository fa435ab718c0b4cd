"""The ``backends`` section of the configuration: one key for each backend kind.

A new kind is registered by a field of ``BackendEntry``; its settings name the backend's class and parameters.
"""

from collections.abc import Iterator, Mapping

from adapter.backends.azure.settings import Azure
from adapter.backends.cloudwatch.settings import CloudWatch
from adapter.backends.datadog.settings import Datadog
from adapter.backends.google.settings import Google
from adapter.backends.http.settings import Http
from adapter.backends.kafka.settings import Kafka
from adapter.backends.limits import limit_problems, size_problems
from adapter.backends.loader import import_object, missing_modules
from adapter.backends.nats.settings import Nats
from adapter.backends.newrelic.settings import NewRelic
from adapter.backends.postgresql.settings import PostgreSql
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.rabbitmq.settings import RabbitMq
from adapter.backends.redis.settings import Redis
from adapter.backends.settings import PROMQL, BackendSettings, Price
from adapter.backends.sqs.settings import Sqs
from adapter.backends.upstream.settings import Upstream
from adapter.decoding import documents
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.rule import DEFAULT_INTERVAL, STATIC, Rule
from autoscaler.types.record import Record


class ExternalMetricAccess(Record, frozen=True):
    """How ``ExternalMetric`` objects may use a backend."""

    namespace_label: str = "namespace"
    """The label that holds the namespace of a series. A matcher for it is added to each query of an object, so that
    it reads only series of the object's namespace."""

    namespaces: tuple[str, ...] = ()
    """The namespaces whose objects may use the backend; empty: all namespaces."""


class BackendEntry(Record, frozen=True):
    """One backend; exactly one of the keys of kinds is set."""

    external_metrics: ExternalMetricAccess | None = None
    """Set: ``ExternalMetric`` objects may use it. Default: only rules of the configuration file may."""

    prometheus: Prometheus | None = None
    http: Http | None = None
    upstream: Upstream | None = None
    rabbitmq: RabbitMq | None = None
    postgresql: PostgreSql | None = None
    datadog: Datadog | None = None
    newrelic: NewRelic | None = None
    azure: Azure | None = None
    google: Google | None = None
    cloudwatch: CloudWatch | None = None
    sqs: Sqs | None = None
    redis: Redis | None = None
    nats: Nats | None = None
    kafka: Kafka | None = None

    @property
    def kind(self) -> str:
        """The backend kind; empty if no key or more than one key is set."""
        kinds = [kind for kind in backend_kinds() if getattr(self, kind) is not None]
        return kinds[0] if len(kinds) == 1 else ""

    @property
    def settings(self) -> BackendSettings:
        """The settings of the kind; raises ``TypeError`` without a kind."""
        settings = getattr(self, self.kind)
        if not isinstance(settings, BackendSettings):
            raise TypeError(self.kind)
        return settings


def backend_kinds() -> tuple[str, ...]:
    return tuple(field for field in BackendEntry.__struct_fields__ if field != "external_metrics")


def problems(backends: Mapping[str, BackendEntry], path: str = "backends") -> Iterator[Problem]:
    """Return the problems of backends, each with its path."""
    for name, entry in backends.items():
        entry_path = f"{path}.{name}"
        if not entry.kind:
            yield Problem(entry_path, f"must have exactly one of these keys: {', '.join(backend_kinds())}")
            continue
        if missing := missing_modules(entry.settings):
            yield Problem(f"{entry_path}.{entry.kind}", missing)
        yield from entry.settings.problems(f"{entry_path}.{entry.kind}")
        access = entry.external_metrics
        if access is not None and entry.settings.labels_controlled_by_rules and not access.namespaces:
            message = f"required: with {entry.kind} no label can restrict an object to its own namespace's series"
            yield Problem(f"{entry_path}.externalMetrics.namespaces", message)
    if STATIC in backends:
        yield Problem(f"{path}.{STATIC}", "reserved for the built-in backend of fixed values", hint="use another name")


def query_problems(rule: Rule, entry: BackendEntry | None, path: str) -> Iterator[Problem]:
    """Return the problems of a rule's query or parameters with its backend; none if the backend is unknown."""
    if entry is None or not entry.kind:
        return
    settings, kind = entry.settings, entry.kind
    if rule.query and not settings.query_language:
        yield Problem(f"{path}.query", f"not supported by {kind}", hint="use parameters")
    elif rule.is_template and settings.query_language != PROMQL:
        yield Problem(f"{path}.query", "a selector placeholder is only supported in PromQL")
    elif rule.parameters and settings.parameters_type is None:
        hint = f"use query, in {settings.query_language}"
        yield Problem(f"{path}.parameters", f"not supported by {kind}", hint=hint)
    elif rule.parameters:
        yield from _parameter_problems(rule, settings, f"{path}.parameters")


def price_per_day(rule: Rule, entry: BackendEntry | None) -> Price | None:
    """Return what it costs to refresh a rule's query all day; None if it is free or unknown."""
    if entry is None or not entry.kind or entry.settings.parameters_type is None or not rule.parameters:
        return None
    parameters = documents.decode(rule.parameters, entry.settings.parameters_type)
    return entry.settings.price_per_day(parameters, rule.interval or DEFAULT_INTERVAL)


def selection(rule: Rule, entry: BackendEntry | None) -> str:
    """Return what determines the series of a rule, for messages: its query, or names such as that of a queue."""
    if rule.query or entry is None or not entry.kind or entry.settings.parameters_type is None:
        return rule.query
    return documents.decode(rule.parameters, entry.settings.parameters_type).selection()


def _parameter_problems(rule: Rule, settings: BackendSettings, path: str) -> Iterator[Problem]:
    if settings.parameters_type is None:
        return
    if found := list(limit_problems(rule.parameters, settings.parameters_type, path)):
        yield from found
        return
    try:
        parameters = documents.decode(rule.parameters, settings.parameters_type, path)
    except ConfigInvalid as error:
        yield from error.problems
        return
    found = list(size_problems(rule.parameters, path)) or list(parameters.problems(path))
    if not found and settings.parameters_validator and not missing_modules(settings):
        found = list(import_object(settings.parameters_validator)(parameters, path))
    yield from found

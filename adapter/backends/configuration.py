"""How a metric system is configured: one key for each kind that there is.

A new kind is registered by a field here, and nowhere else: its settings say what rules ask it with and who opens it.
"""

from collections.abc import Iterator, Mapping

from adapter.backends.azure.settings import Azure
from adapter.backends.cloudwatch.settings import CloudWatch
from adapter.backends.datadog.settings import Datadog
from adapter.backends.google.settings import Google
from adapter.backends.http.settings import Http
from adapter.backends.kafka.settings import Kafka
from adapter.backends.loader import imported, missing
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
from adapter.errors import ConfigInvalid
from adapter.rules.rule import STATIC, Rule
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
        """Which kind of system it is; empty if nothing says so, or too much does."""
        said = [kind for kind in backend_kinds() if getattr(self, kind) is not None]
        return said[0] if len(said) == 1 else ""

    @property
    def settings(self) -> BackendSettings:
        """How it is reached; only of an entry that has a kind."""
        found = getattr(self, self.kind)
        if not isinstance(found, BackendSettings):
            raise TypeError(self.kind)
        return found


def backend_kinds() -> tuple[str, ...]:
    """List the kinds of metric systems that there are."""
    return tuple(field for field in BackendEntry.__struct_fields__ if field != "external_metrics")


def problems(backends: Mapping[str, BackendEntry], at: str = "backends") -> Iterator[str]:
    """Say everything that is wrong with backends, each problem with its path."""
    kinds = ", ".join(backend_kinds())
    for name, entry in backends.items():
        if not entry.kind:
            yield f"{at}.{name}: exactly one of these says what it is: {kinds}"
            continue
        here = f"{at}.{name}.{entry.kind}"
        if why := missing(entry.settings):
            yield f"{here}: {why}"
        yield from entry.settings.problems(here)
        if entry.external_metrics and entry.settings.rules_write_labels and not entry.external_metrics.namespaces:
            yield f"{at}.{name}.externalMetrics.namespaces: is needed: with labels of its own a rule sees everything"
    if STATIC in backends:
        yield f"{at}.{STATIC}: is there already, for fixed numbers; choose another name"


def question_problems(rule: Rule, entry: BackendEntry | None, at: str) -> Iterator[str]:
    """Say what is wrong with what a rule asks of this backend; nothing, if it is not known which that is."""
    if entry is None or not entry.kind:
        return
    settings, kind = entry.settings, entry.kind
    if rule.query and not settings.language:
        yield f"{at}.query: {kind} is asked with parameters"
    elif rule.is_template and settings.language != PROMQL:
        yield f"{at}.query: only PromQL can have a selector inside"
    elif rule.parameters and settings.asked_with is None:
        yield f"{at}.parameters: {kind} is asked with a query in {settings.language}"
    elif rule.parameters and settings.asked_with is not None:
        yield from _parameter_problems(rule, settings, f"{at}.parameters")


def price_per_day(rule: Rule, entry: BackendEntry | None) -> Price | None:
    """Say what it costs to keep a rule up to date while somebody reads it; None: nothing, or nobody knows."""
    if entry is None or not entry.kind or entry.settings.asked_with is None or not rule.parameters:
        return None
    asked = documents.decode(rule.parameters, entry.settings.asked_with)
    return entry.settings.price_per_day(asked, rule.interval)


def _parameter_problems(rule: Rule, settings: BackendSettings, at: str) -> Iterator[str]:
    if settings.asked_with is None:
        return
    try:
        asked = documents.decode(rule.parameters, settings.asked_with, at)
    except ConfigInvalid as error:
        yield from error.problems
        return
    found = list(asked.problems(at))
    if not found and settings.questions_checked_by and not missing(settings):
        found = list(imported(settings.questions_checked_by)(asked, at))
    yield from found

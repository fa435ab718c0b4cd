"""Every setting, with its meaning, its unit and the reason for its default; and the only reader of files and flags."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from adapter.backends import configuration as backend_entry
from adapter.backends.configuration import BackendEntry
from adapter.decoding import documents
from adapter.errors import ConfigInvalid
from adapter.rules import problems as rule_problems
from adapter.rules.delegation import Delegate
from adapter.rules.prometheus_adapter.settings import PrometheusAdapterFile
from adapter.rules.rule import Rule
from autoscaler.types.record import Record


class TlsFiles(Record, frozen=True):
    """A serving certificate that someone else keeps, read again when it changes."""

    cert_file: str
    """PEM, the certificate first, then any intermediates. Its names must include ``<service>.<namespace>.svc``."""

    key_file: str
    """PEM, the certificate's private key."""


class SelfManagedTls(Record, frozen=True):
    """A certificate authority and a serving certificate that we make, keep in a Secret and rotate."""

    namespace: str
    """Where we run; the Secret and the Service are there."""

    service: str = "steadyscale"
    """The Service that the APIService names; the certificate is for ``<service>.<namespace>.svc``."""

    cluster_domain: str = "cluster.local"
    """The cluster's DNS suffix, for who calls us by the Service's full name."""

    secret: str = "steadyscale-serving-cert"  # noqa: S105  (the name of an object, not what is in it)
    """The Secret that keeps them, shared by all replicas."""

    ca_lifetime: timedelta = timedelta(days=3650)
    """How long our certificate authority lives; it is replaced, with overlap, when two thirds of that are over."""

    certificate_lifetime: timedelta = timedelta(days=90)
    """How long a serving certificate lives; it is replaced when two thirds of that are over."""

    overlap: timedelta = timedelta(minutes=10)
    """How long an authority is trusted before it signs and after it stopped: time for all API servers to hear of it."""

    check_interval: timedelta = timedelta(seconds=30)
    """How often a replica looks whether something is to be done; much more often than the overlap is long."""


class Tls(Record, frozen=True):
    """Where the serving certificate comes from: one of the two."""

    files: TlsFiles | None = None
    self_managed: SelfManagedTls | None = None


class Serving(Record, frozen=True):
    """Where we listen."""

    address: str = "0.0.0.0"  # noqa: S104  (a server in a pod; the Service decides who reaches it)
    """Address to listen on."""

    port: int = 6443
    """Port to listen on: above 1023, so that no privilege is needed. The Service maps 443 to it."""

    tls: Tls = Tls()


class Auth(Record, frozen=True):
    """How callers are told apart: by the word of a cluster's API server, remembered for a while."""

    kubeconfig: str = ""
    """The cluster to ask for reviews; empty: the one we run in."""

    token_cache_ttl: timedelta = msgspec.field(name="tokenCacheTTL", default=timedelta(seconds=10))
    """How long a token's review is believed. Kubernetes' own servers use the same."""

    authorized_ttl: timedelta = msgspec.field(name="authorizedTTL", default=timedelta(seconds=30))
    """How long a yes is believed. An HPA asks every 15 s, so Kubernetes' 10 s would never be of use."""

    unauthorized_ttl: timedelta = msgspec.field(name="unauthorizedTTL", default=timedelta(seconds=10))
    """How long a no is believed: short, because someone is waiting for a role binding to work."""


class Limits(Record, frozen=True):
    """What one caller, or all of them together, can take."""

    max_concurrent_requests: int = 200
    """Requests answered at once; beyond that 429. Health, discovery and the API server's own probes are not counted."""

    connections: int = 2000
    """Connections open at once; beyond that a new one is closed."""

    request_timeout: timedelta = timedelta(seconds=10)
    """How long an answer may take. The API server waits 60 s, an HPA comes again after 15 s."""

    header_timeout: timedelta = timedelta(seconds=10)
    """How long a client may take over its handshake and over its first request."""

    idle_timeout: timedelta = timedelta(seconds=120)
    """How long a connection may lie idle: longer than the 90 s of the API server's pool, so that it closes first."""

    max_headers: int = 4096
    """Headers in a request. Each group of a caller is one, and some have hundreds."""

    max_header_bytes: int = 65536
    """Length of one header, and of the request line with its selector."""

    shutdown_delay: timedelta = timedelta(seconds=10)
    """How long we go on answering after being told to stop, until no API server sends us anything more."""

    drain: timedelta = timedelta(seconds=15)
    """How long requests in flight may then take to finish."""


class Log(Record, frozen=True):
    """What is written to standard error."""

    format: Literal["json", "text"] = "json"
    """How a line looks: for machines or for people."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """What is worth a line."""


class Config(Record, frozen=True):
    """The whole configuration file."""

    serving: Serving = Serving()
    auth: Auth = Auth()
    limits: Limits = Limits()
    log: Log = Log()
    backends: Mapping[str, BackendEntry] = {}
    """Metric systems, by a name that rules and messages call them by."""

    rules: tuple[Rule, ...] = ()
    """What the metrics are; here for any namespace, in ``ExternalMetric`` objects for one."""

    prometheus_adapter: tuple[PrometheusAdapterFile, ...] = ()
    """Files of prometheus-adapter to serve; a rule of ours goes before theirs of the same name."""

    delegate: Delegate | None = None
    """Another server of external metrics: for the names that no rule has, or to compare with. Left out: none."""


def load(path: Path, flags: Mapping[str, Mapping[str, object]]) -> Config:
    """Read a configuration file and lay the command line's flags over it; raise ``ConfigInvalid`` with its problems."""
    return decode(read(path, flags))


def read(path: Path, flags: Mapping[str, Mapping[str, object]]) -> object:
    """Read a configuration file as the document it is, with the flags over it; ``ConfigInvalid`` if it is none."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigInvalid([f"{path}: {error.strerror}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigInvalid([f"{path}: not YAML: {' '.join(str(error).split())}"]) from error
    return _overlaid({} if document is None else document, flags)


def decode(document: object) -> Config:
    """Make a configuration of a document; raise ``ConfigInvalid`` with its problems, each with its path."""
    config = documents.decode(document, Config)
    if found := [
        *_serving_problems(config),
        *_limit_problems(config.limits),
        *backend_entry.problems(config.backends),
        *_rule_problems(config),
        *_import_problems(config),
        *_passing_problems(config),
    ]:
        raise ConfigInvalid(found)
    return config


def _overlaid(document: object, flags: Mapping[str, Mapping[str, object]]) -> object:
    """Return the document with each flag that was given in its place; one that was not is None."""
    if not isinstance(document, dict):
        return document
    given = {part: {key: flag for key, flag in each.items() if flag is not None} for part, each in flags.items()}
    merged = {part: {**(document.get(part) or {}), **each} for part, each in given.items() if each}
    return {**document, **merged}


def _serving_problems(config: Config) -> list[str]:
    serving = config.serving
    found = []
    if not 0 <= serving.port <= 65535:
        found.append(f"serving.port: must be between 0 and 65535, is {serving.port}")
    if serving.tls.files is not None and serving.tls.self_managed is not None:
        found.append("serving.tls: files and selfManaged exclude each other")
    return found


def _rule_problems(config: Config) -> Iterator[str]:
    yield from rule_problems.problems(config.rules, backends=config.backends)
    for number, rule in enumerate(config.rules):
        yield from backend_entry.question_problems(rule, config.backends.get(rule.backend), f"rules[{number}]")


def _import_problems(config: Config) -> Iterator[str]:
    for number, each in enumerate(config.prometheus_adapter):
        at, entry = f"prometheusAdapter[{number}]", config.backends.get(each.backend)
        if entry is None or entry.kind != "prometheus":
            yield f"{at}.backend: there is no Prometheus {each.backend!r} under backends"
        for key, time in (("relistInterval", each.relist_interval), ("interval", each.interval)):
            if time <= timedelta():
                yield f"{at}.{key}: must be more than nothing"
        if each.file in {other.file for other in config.prometheus_adapter[:number]}:
            yield f"{at}.file: is listed twice"


def _passing_problems(config: Config) -> Iterator[str]:
    how = config.delegate
    if how is None:
        return
    entry = config.backends.get(how.backend)
    if entry is None or entry.kind != "upstream":
        yield f"delegate.backend: there is no upstream {how.backend!r} under backends"
    if not how.unknown and not how.compare:
        yield "delegate: does nothing without one of unknown and compare"
    if not 0 <= how.tolerance < 1:
        yield f"delegate.tolerance: must be from 0 to less than 1, is {how.tolerance:g}"
    for key, time in (("interval", how.interval), ("deadline", how.deadline), ("maxSampleAge", how.max_sample_age)):
        if time <= timedelta():
            yield f"delegate.{key}: must be more than nothing"


def _limit_problems(limits: Limits) -> list[str]:
    numbers = ("max_concurrent_requests", "connections", "max_headers", "max_header_bytes")
    times = ("request_timeout", "header_timeout", "idle_timeout")
    names = dict(zip(limits.__struct_fields__, limits.__struct_encode_fields__, strict=True))
    return [
        f"limits.{names[each]}: must be more than nothing, is {getattr(limits, each)}"
        for each in (*numbers, *times)
        if getattr(limits, each) <= type(getattr(limits, each))()
    ]

"""The records that the settings of all backend kinds are made of.

Settings modules import no client library of a metric system, so a configuration can be checked without them installed.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

from adapter.decoding.problem import Problem
from autoscaler.types.record import Record

PROMQL: Final = "PromQL"

QueryText: TypeAlias = Annotated[str, msgspec.Meta(max_length=16384)]
"""A query in the language of a metric system. ``adapter.backends.limits`` has the limits of other parameters."""


class Parameters(Record, frozen=True):
    """The ``parameters`` of a rule, for one backend kind."""

    selecting: ClassVar[tuple[str, ...]] = ()
    """The fields that determine which series a query has, for messages about a query without series."""

    def selection(self) -> str:
        """Return the fields in ``selecting`` that are set: ``queue 'orders', vhost '/'``."""
        keys = dict(zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True))
        values = ((keys[field], getattr(self, field)) for field in self.selecting)
        return ", ".join(f"{key} {_shown(value)}" for key, value in values if value)

    def problems(self, path: str) -> Iterator[Problem]:  # noqa: ARG002 - overridden
        """Return the problems that decoding does not find, each with its path."""
        yield from ()


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_shown(inner)}" for key, inner in value.items())
    return " or ".join(map(repr, value)) if isinstance(value, tuple) else repr(value)


class Price(Record, frozen=True):
    """What it costs to send one query all day, by the provider's price list."""

    dollars: float
    """Per day."""

    calculation: str
    """How the price follows from the price list, for users."""


class BackendSettings(Record, frozen=True):
    """The settings of one backend; each kind has its own record."""

    backend_class: ClassVar[str] = ""
    """The backend's class as ``package.module:Class``; imported when the backend is created."""

    required_modules: ClassVar[tuple[str, ...]] = ()
    """Modules that the class imports and that only an extra installs."""

    extra: ClassVar[str] = ""
    """That extra: ``pip install 'steadyscale[EXTRA]'``."""

    parameters_type: ClassVar[type[Parameters] | None] = None
    """The type of a rule's ``parameters``; None if rules of this kind have none."""

    parameters_validator: ClassVar[str] = ""
    """A function ``(parameters, path) -> problems`` as ``package.module:function``, for checks with the library."""

    query_language: ClassVar[str] = ""
    """The language of a rule's ``query``; empty if rules of this kind have none."""

    has_adaptive_interval: ClassVar[bool] = False
    """Whether the interval of a rule without one is adapted to the duration of its query. Only if requests cost no
    money, have no rate limit of a provider, and are not combined into batches."""

    labels_controlled_by_rules: ClassVar[bool] = False
    """Whether a rule determines the labels of its series, or no label identifies their owner. Then a label cannot
    restrict which series a tenant reads."""

    def problems(self, path: str) -> Iterator[Problem]:  # noqa: ARG002 - overridden
        """Return the problems that decoding does not find, each with its path."""
        yield from ()

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:  # noqa: ARG002 - overridden
        """Return what it costs to send a query at this interval; None if it is free or unknown."""
        return None


class CircuitBreakerSettings(Record, frozen=True):
    """When requests to a failing backend are stopped.

    Each namespace with ``ExternalMetric`` objects has a circuit of its own, which its failures open; the circuit of the
    operator's rules applies to all namespaces.
    """

    failure_threshold: int = 5
    """How many different queries must fail in a row to open the circuit; a single bad rule never does."""

    open_duration: timedelta = timedelta(seconds=1)
    """How long the circuit stays open before the first probe; doubled after each failed probe."""

    max_open_duration: timedelta = timedelta(seconds=10)
    """The upper limit of that duration, which is the longest that a recovery remains unnoticed."""

    min_timeout: timedelta = timedelta(seconds=2)
    """A timeout after a shorter time is no failure of the backend: the deadline of the rule may be too short."""


class Tls(Record, frozen=True):
    """TLS of the connection to a server. Files are read again when they change."""

    ca_file: str = ""
    """PEM file of the CAs that verify the server's certificate. Default: the system's CAs."""

    cert_file: str = ""
    """PEM file of the client certificate, for servers that require one."""

    key_file: str = ""
    """PEM file of its private key."""

    server_name: str = ""
    """The host name that the server's certificate must match, if it is not the host of the URL."""

    insecure_skip_verify: bool = False
    """Do not verify the server's certificate. An attacker on the network can then forge metrics."""


def tls_problems(tls: Tls, path: str) -> Iterator[Problem]:
    if tls.key_file and not tls.cert_file:
        yield Problem(f"{path}.certFile", "required with keyFile")


def connection_problems(
    tls: Tls | None, circuit_breaker: CircuitBreakerSettings, counts: dict[str, int], path: str
) -> Iterator[Problem]:
    """Return the problems of TLS and circuit breaker, and of counts that must be at least one, by their keys."""
    if tls is not None:
        yield from tls_problems(tls, f"{path}.tls")
    yield from count_problems({**counts, "circuitBreaker.failureThreshold": circuit_breaker.failure_threshold}, path)


def count_problems(counts: dict[str, int], path: str) -> Iterator[Problem]:
    """Return a problem for each count below one."""
    for key, count in counts.items():
        if count < 1:
            yield Problem(f"{path}.{key}", "must be at least 1", count)

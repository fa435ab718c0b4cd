"""What every kind of metric system says of itself: how it is reached, what rules ask it with, who speaks with it.

Neither this nor the settings of any kind import a metric system's library, so a configuration can be read and checked
where none is installed.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Final

from autoscaler.types.record import Record

PROMQL: Final = "PromQL"


class Parameters(Record, frozen=True):
    """What a rule says in ``parameters``, for one kind: its fields."""

    def problems(self, at: str) -> Iterator[str]:  # noqa: ARG002 - for those that have some
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from ()


class Price(Record, frozen=True):
    """What it costs to ask one query all day, by the price list."""

    dollars: float
    """A day."""

    because: str
    """How that comes about: how many of what, at how much."""


class BackendSettings(Record, frozen=True):
    """The settings of one kind; those of each kind are a record of its own."""

    opened_by: ClassVar[str] = ""
    """The class that speaks with it, ``package.module:Class``; not imported before it is needed."""

    library: ClassVar[tuple[str, ...]] = ()
    """The modules that class needs and that are not always installed."""

    extra: ClassVar[str] = ""
    """The extra that installs them: ``pip install 'steadyscale[EXTRA]'``."""

    asked_with: ClassVar[type[Parameters] | None] = None
    """What a rule's ``parameters`` are; None: it has none."""

    questions_checked_by: ClassVar[str] = ""
    """A function ``(parameters, at) -> problems``, named likewise, for what cannot be seen without the library."""

    language: ClassVar[str] = ""
    """What a rule's ``query`` is written in; empty: it has none."""

    rules_write_labels: ClassVar[bool] = False
    """Whether a rule decides itself which labels its series have, or none of them tells whose a series is. Then no
    label can say what a team may see."""

    def problems(self, at: str) -> Iterator[str]:  # noqa: ARG002 - for those that have some
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from ()

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:  # noqa: ARG002
        """Say what it costs to ask this every interval; None: nothing, or nobody knows."""
        return None


class CircuitBreakerSettings(Record, frozen=True):
    """When to stop asking a server that does not answer."""

    failures: int = 5
    """How many different queries must fail in a row; one bad rule alone never keeps the others waiting."""

    rest: timedelta = timedelta(seconds=1)
    """How long nobody asks at first; twice as long after each trial that fails."""

    longest: timedelta = timedelta(seconds=10)
    """How long nobody asks at most: the longest that a recovery can go unnoticed."""


class Tls(Record, frozen=True):
    """How the server is verified and how we show who we are; files are read again when they change."""

    ca_file: str = ""
    """PEM; who may have signed the server's certificate. Left out: whom the system trusts."""

    cert_file: str = ""
    """PEM; our own certificate, for servers that ask for one."""

    key_file: str = ""
    """PEM; its private key."""

    server_name: str = ""
    """The name the certificate must be for, if it is not the URL's."""

    insecure_skip_verify: bool = False
    """Believe any certificate. Whoever is in between can then make workloads grow and shrink."""


def tls_problems(tls: Tls, at: str) -> Iterator[str]:
    """Say what is wrong with settings of TLS."""
    if tls.key_file and not tls.cert_file:
        yield f"{at}.certFile: is needed with keyFile"


def at_least_one(counts: dict[str, int], at: str) -> Iterator[str]:
    """Say which of these are too few."""
    for key, count in counts.items():
        if count < 1:
            yield f"{at}.{key}: must be at least 1, is {count}"

"""Which database, and which query."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from adapter.backends.settings import (
    BackendSettings,
    CircuitBreakerSettings,
    Parameters,
    Tls,
    at_least_one,
    tls_problems,
)
from autoscaler.types.record import Record

_BEFORE_THE_FIRST_WORD: Final = re.compile(r"(?:\s|\(|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_READING: Final = ("SELECT", "WITH", "VALUES", "TABLE")


class PostgreSqlParameters(Parameters, frozen=True):
    """A query, and which of its columns are what. Each row is a series."""

    query: str
    """One statement in SQL that reads; it is run in a transaction that can do nothing else."""

    value: str = ""
    """The column with the number. Left out: the one that is called ``value``, or else the only one. NULL is NaN."""

    labels: tuple[str, ...] = ()
    """The columns that are labels. Left out: all others. A label that is NULL is left out of its series."""

    at: str = ""
    """The column with the time that a number is from. Left out: when it was asked for."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        word = first_word(self.query)
        if not word:
            yield f"{at}.query: must not be empty"
        elif word not in _READING:
            yield f"{at}.query: must begin with {', '.join(_READING[:-1])} or {_READING[-1]}: it may only read"
        if "\0" in self.query:
            yield f"{at}.query: holds a zero byte, which PostgreSQL does not take"
        for column in sorted({self.value, self.at} & set(self.labels) - {""}):
            yield f"{at}.labels: {column!r} is not a label but the number or its time"
        if self.at and self.at == self.value:
            yield f"{at}.at: {self.at!r} is the number; the time is another column"


class Certificates(Record, frozen=True):
    """Who may vouch for the server, and how we show who we are; files are read again when they change."""

    ca_file: str = ""
    """PEM; who may have signed the server's certificate. Left out: whom the system trusts."""

    cert_file: str = ""
    """PEM; our own certificate, for servers that ask for one or know users by it."""

    key_file: str = ""
    """PEM; its private key."""


class PostgreSql(BackendSettings, frozen=True):
    """A database of a PostgreSQL server, or of something that speaks its protocol."""

    opened_by: ClassVar[str] = "adapter.backends.postgresql.backend:PostgreSqlBackend"
    library: ClassVar[tuple[str, ...]] = ("asyncpg",)
    extra: ClassVar[str] = "postgresql"
    asked_with: ClassVar[type[Parameters] | None] = PostgreSqlParameters
    rules_write_labels: ClassVar[bool] = True

    host: str
    """The server's name or address."""

    database: str
    """Which of its databases."""

    username: str
    """Whom to say we are. Give it nothing but what it must read."""

    port: int = 5432
    """The server's port."""

    password_file: str = ""
    """Read at every connection; connections that were made with another password are not used any more. Left out:
    no password, as where a certificate says who we are. The environment and ``~/.pgpass`` are not used."""

    ssl_mode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    """How the connection is protected, in libpq's words. The server's certificate is verified, with its name or
    without; or the connection is encrypted, nobody knows to whom; or it is not."""

    tls: Certificates = Certificates()
    connections: int = 2
    """Queries under way at once, each in a connection of its own; idle ones are kept."""

    max_rows: int = 1000
    """A query that finds more is refused before they fill our memory."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from _host_problems(self.host, f"{at}.host")
        for key, text in (("database", self.database), ("username", self.username)):
            if not text:
                yield f"{at}.{key}: must not be empty"
        if not 0 < self.port < 65536:
            yield f"{at}.port: must be from 1 to 65535, is {self.port}"
        if self.ssl_mode == "disable" and self.tls != Certificates():
            yield f"{at}.tls: is not used with sslMode: disable"
        if self.ssl_mode == "require" and self.tls.ca_file:
            yield f"{at}.tls.caFile: is not used with sslMode: require; verify-ca or verify-full uses it"
        yield from tls_problems(Tls(cert_file=self.tls.cert_file, key_file=self.tls.key_file), f"{at}.tls")
        counts = {
            "connections": self.connections,
            "maxRows": self.max_rows,
            "breaker.failures": self.breaker.failures,
        }
        yield from at_least_one(counts, at)


def first_word(query: str) -> str:
    """Say what kind of statement it is; comments and parentheses may stand before."""
    start = _BEFORE_THE_FIRST_WORD.match(query)
    found = re.match(r"[A-Za-z]+|\S+", query[start.end() if start else 0 :])
    return found[0].upper() if found else ""


def _host_problems(host: str, at: str) -> Iterator[str]:
    if not host:
        yield f"{at}: must not be empty"
    elif "://" in host or "@" in host:
        yield f"{at}: is a URL; write the parts: host, port, database, username and passwordFile"
    elif host.startswith("/") or not re.fullmatch(r"[^\s,/]+", host):
        yield f"{at}: must be one name or address"

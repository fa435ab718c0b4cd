"""Settings of the PostgreSQL backend and the parameters of its rules."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from adapter.backends.settings import (
    BackendSettings,
    CircuitBreakerSettings,
    Parameters,
    QueryText,
    Tls,
    connection_problems,
)
from adapter.decoding.problem import Problem
from autoscaler.types.record import Record

_FIRST_KEYWORD: Final = re.compile(r"(?>(?:\s|\(|--[^\n]*+(?:\n|\Z)|/\*.*?\*/)*)([A-Za-z]++|\S++|\Z)", re.DOTALL)
"""The first keyword of a statement, after comments and parentheses."""

_READ_STATEMENTS: Final = ("SELECT", "WITH", "VALUES", "TABLE")


class PostgreSqlParameters(Parameters, frozen=True):
    """A SQL query, and the meaning of its columns. Each row is a series."""

    selecting: ClassVar[tuple[str, ...]] = ("query",)

    query: QueryText
    """One SQL statement. It is run in a read-only transaction."""

    value: str = ""
    """Column with the value. Default: the column ``value``, or the only remaining column. NULL is NaN."""

    labels: tuple[str, ...] = ()
    """Columns that become labels. Default: all other columns. NULL labels are left out."""

    timestamp: str = ""
    """Column with the timestamp of the value. Default: the time of the query."""

    def problems(self, path: str) -> Iterator[Problem]:
        match = _FIRST_KEYWORD.match(self.query)
        keyword = match[1].upper() if match else ""
        if not keyword:
            yield Problem(f"{path}.query", "must not be empty")
        elif keyword not in _READ_STATEMENTS:
            allowed = f"{', '.join(_READ_STATEMENTS[:-1])} or {_READ_STATEMENTS[-1]}"
            yield Problem(f"{path}.query", f"must be read-only and start with {allowed}")
        if "\0" in self.query:
            yield Problem(f"{path}.query", "must not contain a null byte")
        for column in sorted({self.value, self.timestamp} & set(self.labels) - {""}):
            yield Problem(f"{path}.labels", f"{column!r} is already the value or timestamp column")
        if self.timestamp and self.timestamp == self.value:
            yield Problem(f"{path}.timestamp", f"{self.timestamp!r} is already the value column")


class PostgreSqlCertificates(Record, frozen=True):
    """Certificates for TLS. Files are read again when they change."""

    ca_file: str = ""
    """PEM file of the CAs that verify the server's certificate. Default: the system's CAs."""

    cert_file: str = ""
    """PEM file of the client certificate, for servers that require one."""

    key_file: str = ""
    """PEM file of its private key."""


class PostgreSql(BackendSettings, frozen=True):
    """A database of a PostgreSQL-compatible server."""

    backend_class: ClassVar[str] = "adapter.backends.postgresql.backend:PostgreSqlBackend"
    required_modules: ClassVar[tuple[str, ...]] = ("asyncpg",)
    extra: ClassVar[str] = "postgresql"
    parameters_type: ClassVar[type[Parameters] | None] = PostgreSqlParameters
    has_adaptive_interval: ClassVar[bool] = True
    labels_controlled_by_rules: ClassVar[bool] = True

    host: str
    """Host name or IP address of the server."""

    database: str
    """Name of the database."""

    username: str
    """User name. Grant this user SELECT on the tables of the queries and nothing else."""

    port: int = 5432
    """Port of the server."""

    password_file: str = ""
    """File with the password, read before every query. Connections with an old password are not reused. Default: no
    password, for servers that authenticate by certificate. Environment variables and ``~/.pgpass`` are ignored."""

    ssl_mode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    """TLS mode, as in libpq. ``verify-full`` verifies the server's certificate and host name, ``verify-ca`` only the
    certificate, ``require`` encrypts without verification, and ``disable`` does not use TLS. The default is the only
    mode that is safe against an attacker on the network."""

    tls: PostgreSqlCertificates = PostgreSqlCertificates()
    max_connections: int = 2
    """Maximum number of connections, which limits the number of concurrent queries. Idle connections are kept. The
    default is low, because each connection is a process on the server."""

    max_rows: int = 1000
    """Maximum number of rows of a query. More are an error, which bounds memory."""

    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, path: str) -> Iterator[Problem]:
        yield from _host_problems(self.host, f"{path}.host")
        for key, text in (("database", self.database), ("username", self.username)):
            if not text:
                yield Problem(f"{path}.{key}", "must not be empty")
        if not 0 < self.port < 65536:
            yield Problem(f"{path}.port", "must be from 1 to 65535", value=self.port)
        if self.ssl_mode == "disable" and self.tls != PostgreSqlCertificates():
            yield Problem(f"{path}.tls", "cannot be combined with sslMode: disable")
        if self.ssl_mode == "require" and self.tls.ca_file:
            hint = "use verify-ca or verify-full"
            yield Problem(f"{path}.tls.caFile", "has no effect with sslMode: require", hint=hint)
        tls = Tls(cert_file=self.tls.cert_file, key_file=self.tls.key_file)
        counts = {"maxConnections": self.max_connections, "maxRows": self.max_rows}
        yield from connection_problems(tls, self.circuit_breaker, counts, path)


def _host_problems(host: str, path: str) -> Iterator[Problem]:
    if not host:
        yield Problem(path, "must not be empty")
    elif "://" in host or "@" in host:
        yield Problem(path, "must not be a URL", hint="use host, port, database, username and passwordFile")
    elif host.startswith("/") or not re.fullmatch(r"[^\s,/]+", host):
        yield Problem(path, "must be one host name or IP address")

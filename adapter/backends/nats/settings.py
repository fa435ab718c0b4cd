"""Settings of the NATS backend and the parameters of its rules."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from adapter.backends.connection.address import address_problems
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, Parameters, Tls, connection_problems
from adapter.decoding.problem import Problem

PORT: Final = 4222
_NAME: Final = re.compile(r"[^\s.*>/\\\x00-\x1f\x7f]+")
_SUBJECT: Final = re.compile(r"[^\s*>\x00-\x1f\x7f]+")


class NatsParameters(Parameters, frozen=True):
    """One or more JetStream streams or consumers, and what to measure."""

    selecting: ClassVar[tuple[str, ...]] = ("stream", "consumer")

    stream: str = ""
    """Name of the stream. Optional with ``messages``: by default each stream is a series with the label ``stream``."""

    consumer: str = ""
    """Name of a consumer of the stream. Default: each consumer is a series with the labels ``stream`` and
    ``consumer``."""

    measure: Literal["lag", "pending", "ackPending", "messages"] = "lag"
    """What to measure. For consumers: ``pending``, messages that are not delivered yet; ``ackPending``, messages that
    are delivered and not acknowledged; ``lag``, the sum of both. For streams: ``messages``, the number of stored
    messages. The default counts all work that is not finished."""

    def problems(self, path: str) -> Iterator[Problem]:
        for key, name in (("stream", self.stream), ("consumer", self.consumer)):
            if name and not _NAME.fullmatch(name):
                yield Problem(f"{path}.{key}", "must not contain spaces, dots, slashes, * or >")
        if self.measure == "messages" and self.consumer:
            hint = "use lag, pending or ackPending for a consumer"
            yield Problem(f"{path}.consumer", "cannot be used with measure messages", hint=hint)
        if self.measure != "messages" and not self.stream:
            yield Problem(f"{path}.stream", f"required with measure {self.measure}")


class Nats(BackendSettings, frozen=True):
    """A NATS server or cluster with JetStream. The credentials determine the account."""

    backend_class: ClassVar[str] = "adapter.backends.nats.backend:NatsBackend"
    required_modules: ClassVar[tuple[str, ...]] = ("nats",)
    extra: ClassVar[str] = "nats"
    parameters_type: ClassVar[type[Parameters] | None] = NatsParameters
    has_adaptive_interval: ClassVar[bool] = True
    labels_controlled_by_rules: ClassVar[bool] = True  # the name of a stream does not identify its owner

    addresses: tuple[str, ...]
    """Addresses as ``host:port``, tried in order. Any server of a cluster can serve all queries. Default port: 4222."""

    username: str = ""
    """User name; requires ``passwordFile``."""

    password_file: str = ""
    """File with the password. This and the other files are read at every connection, so that they can be rotated."""

    token_file: str = ""
    """Instead of a password: file with a token."""

    credentials_file: str = ""
    """Instead of a password: ``.creds`` file with a user JWT and its nkey seed."""

    nkey_file: str = ""
    """Instead of a password: file with the seed of a user nkey."""

    tls: Tls | None = None
    """Set, even to ``{}``: TLS is required, and no credentials are sent to a server without TLS. Default: TLS is used
    if the server requires it."""

    domain: str = ""
    """JetStream domain, such as that of a leaf node. Default: the domain of the server."""

    api_prefix: str = ""
    """Instead of ``domain``: subject prefix of a JetStream API that is imported from another account."""

    inbox_prefix: str = "_INBOX"
    """Subject prefix for responses, without ``.>``. The user must be allowed to subscribe to it. The default is that of
    all NATS clients."""

    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    @property
    def api(self) -> str:
        return self.api_prefix or (f"$JS.{self.domain}.API" if self.domain else "$JS.API")

    @property
    def secret_files(self) -> dict[str, str]:
        """Return the files with credentials that are set, by key. At most one is valid."""
        files = {
            "passwordFile": self.password_file,
            "tokenFile": self.token_file,
            "credentialsFile": self.credentials_file,
            "nkeyFile": self.nkey_file,
        }
        return {key: file for key, file in files.items() if file}

    def problems(self, path: str) -> Iterator[Problem]:
        yield from address_problems(self.addresses, f"{path}.addresses")
        used = list(self.secret_files)
        if len(used) > 1:
            yield Problem(f"{path}.{used[1]}", f"cannot be combined with {used[0]}")
        if self.username and not self.password_file:
            yield Problem(f"{path}.passwordFile", "required with username")
        if self.password_file and not self.username:
            yield Problem(f"{path}.username", "required with passwordFile")
        if self.domain and not _NAME.fullmatch(self.domain):
            yield Problem(f"{path}.domain", "must not contain spaces, dots, slashes, * or >")
        if self.domain and self.api_prefix:
            yield Problem(f"{path}.apiPrefix", "cannot be combined with domain")
        for key, subject in (("apiPrefix", self.api_prefix), ("inboxPrefix", self.inbox_prefix)):
            if (subject or key == "inboxPrefix") and (not _SUBJECT.fullmatch(subject) or subject.endswith(".")):
                yield Problem(f"{path}.{key}", "must be a subject without spaces, * or >, and not end with a dot")
        yield from connection_problems(self.tls, self.circuit_breaker, {}, path)

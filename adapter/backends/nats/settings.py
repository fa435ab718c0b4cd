"""Which NATS, and which of its streams and consumers."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from adapter.backends.connection.address import address_problems
from adapter.backends.settings import (
    BackendSettings,
    CircuitBreakerSettings,
    Parameters,
    Tls,
    at_least_one,
    tls_problems,
)

PORT: Final = 4222
_NAME: Final = re.compile(r"[^\s.*>/\\\x00-\x1f\x7f]+")
_SUBJECT: Final = re.compile(r"[^\s*>\x00-\x1f\x7f]+")


class NatsParameters(Parameters, frozen=True):
    """Which streams or consumers, and what of them."""

    stream: str = ""
    """The name of a stream. With ``messages`` it may be left out: each is a series, with the label ``stream``."""

    consumer: str = ""
    """The name of one of its consumers. Left out: each is a series, with the labels ``stream`` and ``consumer``."""

    reads: Literal["lag", "pending", "ackPending", "messages"] = "lag"
    """Of consumers: ``pending``, not yet delivered; ``ackPending``, delivered and not yet acknowledged; ``lag``, both
    together. Of streams: ``messages``, how many there are."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        for key, name in (("stream", self.stream), ("consumer", self.consumer)):
            if name and not _NAME.fullmatch(name):
                yield f"{at}.{key}: cannot be a name in JetStream; those have no spaces, dots, slashes, * or >"
        if self.reads == "messages" and self.consumer:
            yield f"{at}.consumer: messages are of the stream; of a consumer there are lag, pending and ackPending"
        if self.reads != "messages" and not self.stream:
            yield f"{at}.stream: is needed with {self.reads}: consumers are of a stream"


class Nats(BackendSettings, frozen=True):
    """A NATS with JetStream: a server, or some of a cluster. The account is the one that the credentials are of."""

    opened_by: ClassVar[str] = "adapter.backends.nats.backend:NatsBackend"
    library: ClassVar[tuple[str, ...]] = ("nats",)
    extra: ClassVar[str] = "nats"
    asked_with: ClassVar[type[Parameters] | None] = NatsParameters
    rules_write_labels: ClassVar[bool] = True  # a stream's name does not say whose it is

    addresses: tuple[str, ...]
    """Where it is: ``host:port``, tried in turn; any server of a cluster answers for all."""

    username: str = ""
    """Whom to say we are, with ``passwordFile``."""

    password_file: str = ""
    """A password. This and the other files are read at every connection, so that they can be changed."""

    token_file: str = ""
    """Instead: a token."""

    credentials_file: str = ""
    """Instead: a file ``.creds`` with a JWT and the seed of its nkey."""

    nkey_file: str = ""
    """Instead: the seed of an nkey."""

    tls: Tls | None = None
    """Set, if only to ``{}``: a connection that is not encrypted is refused before anything is shown. Left out: it is
    encrypted if the server asks for that."""

    domain: str = ""
    """The domain of JetStream, such as that of a leaf node; left out: that of the server we connect to."""

    api_prefix: str = ""
    """Instead of a domain: where an account has the API of another's JetStream imported."""

    inbox_prefix: str = "_INBOX"
    """Where answers are sent: what the user may subscribe to, without ``.>``."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    @property
    def api(self) -> str:
        """Say what the subjects of the API begin with."""
        return self.api_prefix or (f"$JS.{self.domain}.API" if self.domain else "$JS.API")

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from address_problems(self.addresses, f"{at}.addresses")
        ways = {
            "passwordFile": self.password_file,
            "tokenFile": self.token_file,
            "credentialsFile": self.credentials_file,
            "nkeyFile": self.nkey_file,
        }
        said = [key for key, path in ways.items() if path]
        if len(said) > 1:
            yield f"{at}.{said[1]}: excludes {said[0]}"
        if bool(self.username) != bool(self.password_file):
            yield f"{at}.{'passwordFile' if self.username else 'username'}: is needed with the other of the two"
        if self.domain and not _NAME.fullmatch(self.domain):
            yield f"{at}.domain: must be one word without dots, * or >"
        if self.domain and self.api_prefix:
            yield f"{at}.apiPrefix: excludes domain"
        for key, subject in (("apiPrefix", self.api_prefix), ("inboxPrefix", self.inbox_prefix)):
            if (subject or key == "inboxPrefix") and (not _SUBJECT.fullmatch(subject) or subject.endswith(".")):
                yield f"{at}.{key}: must be words with dots between them, without spaces, * or >"
        if self.tls is not None:
            yield from tls_problems(self.tls, f"{at}.tls")
        yield from at_least_one({"breaker.failures": self.breaker.failures}, at)

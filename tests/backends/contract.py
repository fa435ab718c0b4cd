"""The interface of peers: the metric systems that all backends are tested against.

A peer is the real metric system or the closest substitute, behind a ``FaultyProxy``, together with the configuration
of its backend. Each module in ``tests/backends/peers`` has a class ``Peer`` for one backend kind.
"""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import pytest

from autoscaler.types.observation import FailureClass
from tests.backends import peers
from tests.backends.faulty_proxy import FaultyProxy

Json = dict[str, Any]


class Case(StrEnum):
    """The cases that every backend is tested with."""

    VALUE = "value and labels"
    SEVERAL = "several series"
    EMPTY = "empty"
    UNKNOWN = "unknown"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    DRIPPING = "one byte at a time"
    CUT = "connection closed during the response"
    SLOW = "slow"
    THROTTLED = "throttled"
    UNAUTHORIZED = "unauthorized"
    RENEWED = "renewed credentials"
    UNREADABLE = "unreadable credentials"
    GARBAGE = "invalid response"
    CANCELLED = "cancelled request"
    CLOSED = "backend closed during a request"
    CONCURRENT = "concurrent queries"
    SECRETS = "redacted secrets"
    PING = "ping"
    PARAMETERS = "parameters"


class ContractPeer(ABC):
    """One metric system on the loopback interface."""

    kind: ClassVar[str]
    """The backend kind, which is a key of an entry of ``backends``."""

    verified_against: ClassVar[str]
    """The metric system and its version, as in docs/backends/README.md."""

    marks: ClassVar[tuple[pytest.MarkDecorator, ...]] = ()
    """``pytest.mark.broker`` if a program must be installed."""

    inapplicable: ClassVar[Mapping[Case, str]] = {}
    """Cases that do not apply, each with the reason; docs/backends/README.md lists them."""

    unknown_failure: ClassVar[FailureClass | None] = None
    """The failure of a rule for a metric that does not exist; None: an empty result."""

    garbage_failures: ClassVar[frozenset[FailureClass]] = frozenset({FailureClass.REFUSED})
    """The possible failures for an invalid response."""

    response_start: ClassVar[bytes] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    """The start of a long response in the system's protocol."""

    cut_failures: ClassVar[frozenset[FailureClass]] = frozenset({FailureClass.UNREACHABLE})
    """The possible failures for a connection that is closed before the response."""

    deadline_seconds: ClassVar[float] = 60.0
    """A deadline that is long enough for every response without a failure."""

    def __init__(self, folder: Path, proxy: FaultyProxy) -> None:
        self.folder = folder
        self.proxy = proxy

    # ---- the metric system

    @abstractmethod
    def start(self) -> None:
        """Start the system and set the proxy's upstream; call ``require`` for programs that must be installed."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the system."""

    @abstractmethod
    def set_values(self, numbers: Mapping[str, int]) -> None:
        """Replace all values, by name; return when the system responds with them."""

    # ---- configuration and rules

    @abstractmethod
    def settings(self) -> Json:
        """Return the settings of a backend that connects through the proxy."""

    @abstractmethod
    def parameters_for(self, name: str) -> Json:
        """Return the ``parameters`` of a rule for one value."""

    @abstractmethod
    def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of the series of one value."""

    def rule_fields(self, parameters: Json) -> Json:
        """Return the fields of a rule with these parameters; overridden by kinds whose rules have a query."""
        return {"parameters": parameters}

    def parameters_for_all(self) -> Json:
        """Return the parameters of a rule for all values."""
        raise NotImplementedError

    def labels_among_all(self, name: str) -> Mapping[str, str]:
        return self.labels(name)

    def parameters_without_result(self) -> Json:
        """Return the parameters of a valid rule with an empty result."""
        raise NotImplementedError

    def parameters_for_unknown(self) -> Json:
        """Return the parameters of a rule for a metric that does not exist."""
        return self.parameters_for("does-not-exist")

    # ---- failures of the system itself; the others are the proxy's

    def throttle(self) -> None:
        """Reject requests because of a rate limit."""
        raise NotImplementedError

    def reject_credentials(self) -> None:
        """Reject the backend's credentials."""
        raise NotImplementedError

    def send_garbage(self) -> None:
        """Respond with bytes that are invalid in the protocol."""
        self.proxy.respond(b"\x00\xff garbage \r\n\r\n\x00\x01\x02")

    def recover(self) -> None:
        """End all failures."""
        self.proxy.forward()

    # ---- credentials

    secrets: tuple[str, ...] = ()
    """Texts that must not appear in any message, in all their encodings."""

    @property
    def current_secret(self) -> str:
        """The secret that the backend sends; some servers repeat it in responses."""
        return self.secrets[0]

    def expire_credentials(self) -> None:
        """Change the secret in the system only."""
        raise NotImplementedError

    def renew_credentials(self) -> None:
        """Write the system's current secret to the backend's file."""
        raise NotImplementedError

    def remove_credentials(self) -> None:
        """Delete the backend's file; ``renew_credentials`` restores it."""
        raise NotImplementedError


class HttpPeer(ContractPeer):
    """A peer that is an HTTP server: the proxy injects its error responses."""

    def throttle(self) -> None:
        self.proxy.respond_http(429, b"slow down")

    def reject_credentials(self) -> None:
        self.proxy.respond_http(401, f"unknown credentials {self.current_secret}".encode())

    def send_garbage(self) -> None:
        self.proxy.respond_http(200, b"<html>please log in</html>")


def all_peers() -> dict[str, type[ContractPeer]]:
    """Return all peers by the name of their module."""
    modules = (module.name for module in pkgutil.iter_modules(peers.__path__))
    return {name: importlib.import_module(f"{peers.__name__}.{name}").Peer for name in modules}

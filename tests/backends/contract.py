"""What a metric system's peer must be able to do so that its backend can be put through the suite.

A peer is the real system or the nearest there is, behind a ``Hop``, and knows how its backend is configured and asked.
One file in ``tests/backends/peers`` with a class ``Peer`` in it is one kind; all of them are found there.
"""

import importlib
import os
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import pytest

from autoscaler.types.observation import FailureClass
from tests.backends import peers
from tests.backends.faulty_proxy import Hop

Json = dict[str, Any]


class Case(StrEnum):
    """What every backend is tried with, as the tests are called."""

    VALUE = "value and labels"
    SEVERAL = "several series"
    EMPTY = "empty"
    UNKNOWN = "unknown"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    DRIPPING = "dripping"
    CUT = "cut"
    SLOW = "slow"
    THROTTLED = "throttled"
    UNAUTHORISED = "unauthorised"
    RENEWED = "expired credentials renewed"
    UNREADABLE = "credentials unreadable"
    GARBAGE = "garbage"
    CANCELLED = "cancelled mid-flight"
    CLOSED = "closed mid-flight"
    CROWD = "a crowd at once"
    SECRETS = "secrets stay secret"
    PING = "ping"
    PARAMETERS = "parameters"


class ContractPeer(ABC):
    """One metric system on loopback, and how it is asked."""

    kind: ClassVar[str]
    """The key under ``backends``."""

    verified_against: ClassVar[str]
    """What it is, in the words of the page docs/backends/README.md."""

    marks: ClassVar[tuple[pytest.MarkDecorator, ...]] = ()
    """``pytest.mark.broker`` if it needs a program that must be installed."""

    not_meant: ClassVar[Mapping[Case, str]] = {}
    """Cases that have no meaning here, each with the reason; the page lists them."""

    unknown_is: ClassVar[FailureClass | None] = None
    """How it is told that what the rule names does not exist; None: as no series."""

    garbage_is: ClassVar[frozenset[FailureClass]] = frozenset({FailureClass.REFUSED})
    """What nonsense in place of an answer may be taken for."""

    begins: ClassVar[bytes] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    """How a long answer begins in its protocol."""

    cut_is: ClassVar[frozenset[FailureClass]] = frozenset({FailureClass.UNREACHABLE})

    patience: ClassVar[float] = 5.0
    """Seconds in which an answer surely comes if nothing is in its way."""

    def __init__(self, folder: Path, hop: Hop) -> None:
        self.folder = folder
        self.hop = hop

    # ---- the system

    @abstractmethod
    def start(self) -> None:
        """Start the system, and stand the hop in front of it; ``require`` what it needs."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it."""

    @abstractmethod
    def hold(self, numbers: Mapping[str, int]) -> None:
        """Make it hold these numbers, by name, and no others; return when it would answer with them."""

    # ---- how it is asked

    @abstractmethod
    def settings(self) -> Json:
        """Say how it is configured, under ``backends.NAME.KIND``, to be reached through the hop."""

    @abstractmethod
    def one(self, name: str) -> Json:
        """Say the ``parameters`` of a rule for one number."""

    @abstractmethod
    def labels(self, name: str) -> Mapping[str, str]:
        """Say the labels that the series of one number has."""

    def asking(self, parameters: Json) -> Json:
        """Say the fields of a rule that asks this; a kind that is asked with a query makes one of it."""
        return {"parameters": parameters}

    def several(self) -> Json:
        """Say the parameters of a rule for all numbers at once."""
        raise NotImplementedError

    def labels_among_several(self, name: str) -> Mapping[str, str]:
        return self.labels(name)

    def nothing(self) -> Json:
        """Say the parameters of a rule that is well understood and finds nothing."""
        raise NotImplementedError

    def unknown(self) -> Json:
        """Say the parameters of a rule for something that does not exist."""
        return self.one("nobody-has-heard-of-it")

    # ---- trouble of its own; what is the same for all is the hop's

    def throttle(self) -> None:
        """Make it answer that it is asked too often."""
        raise NotImplementedError

    def lock_out(self) -> None:
        """Make it admit nobody, or not us."""
        raise NotImplementedError

    def talk_nonsense(self) -> None:
        """Make it answer something that makes no sense in its protocol."""
        self.hop.answer(b"\x00\xff nonsense \r\n\r\n\x00\x01\x02")

    def recover(self) -> None:
        """End all trouble."""
        self.hop.delegate()

    # ---- secrets

    secrets: tuple[str, ...] = ()
    """What must never be seen, in any form that it takes on the way."""

    @property
    def shown(self) -> str:
        """What we show it now: some servers repeat that."""
        return self.secrets[0]

    def expire(self) -> None:
        """Make the system believe another secret from now on, while we still hold the old one."""
        raise NotImplementedError

    def renew(self) -> None:
        """Give us the new one: rewrite the file."""
        raise NotImplementedError

    def lose_secret(self) -> None:
        """Take our secret away: the file is gone. ``renew`` brings it back."""
        raise NotImplementedError


class HttpPeer(ContractPeer):
    """A peer that speaks HTTP: its refusals can be said by the hop."""

    def throttle(self) -> None:
        self.hop.answer_http(429, b"slow down")

    def lock_out(self) -> None:
        self.hop.answer_http(401, f"who is {self.shown}?".encode())

    def talk_nonsense(self) -> None:
        self.hop.answer_http(200, b"<html>please log in</html>")


def require(program: str, package: str, is_there: bool) -> None:  # noqa: FBT001
    """Make sure that a program is there; without, skip loudly, or fail where nothing may be skipped."""
    if not is_there:
        why = f"no {program} here (the package {package} has it)"
        if os.environ.get("CI") == "true":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


def every_peer() -> dict[str, type[ContractPeer]]:
    """Find all peers, by the name of their file."""
    found = {}
    for module in pkgutil.iter_modules(peers.__path__):
        peer = importlib.import_module(f"{peers.__name__}.{module.name}").Peer
        found[module.name] = peer
    return found

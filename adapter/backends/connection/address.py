"""Addresses of servers as ``host:port``, for protocols other than HTTP."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from adapter.decoding.problem import Problem

_HOST: Final = re.compile(r"[\w.:%-]+")
"""A host name or an IP address; an IPv6 address can have a zone."""


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str, default_port: int) -> Address:
    """Parse ``host``, ``host:port`` or ``[::1]:port``; raise ``ValueError`` for any other text."""
    parts = urlsplit(f"//{text}")
    port = default_port if parts.port is None else parts.port
    if not parts.hostname or parts.path or parts.query or parts.fragment or "@" in text or not port:
        raise ValueError(text)
    if not text.isprintable() or not _HOST.fullmatch(parts.hostname):
        raise ValueError(text)
    return Address(parts.hostname, port)


def address_problems(texts: Sequence[str], path: str) -> Iterator[Problem]:
    """Return the problems of a list of addresses; ``path`` is that of the list."""
    if not texts:
        yield Problem(path, "must have at least one address", hint="write host:port")
    for index, text in enumerate(texts):
        if "@" in text:
            yield Problem(f"{path}[{index}]", "must not contain credentials", hint="use username and passwordFile")
            continue
        try:
            address(text, 1)
        except ValueError:
            yield Problem(f"{path}[{index}]", "not an address", hint="write host:port, without a scheme")

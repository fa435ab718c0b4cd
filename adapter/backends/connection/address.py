"""Where a server is, written ``host:port``, for systems that do not speak HTTP."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_HOST: Final = re.compile(r"[\w.:%-]+")
"""A name or an address, of IPv6 perhaps with a zone."""


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str, default_port: int) -> Address:
    """Read ``host``, ``host:port`` or ``[::1]:port``; raise ``ValueError`` if it is none of them."""
    parts = urlsplit(f"//{text}")
    port = default_port if parts.port is None else parts.port
    if not parts.hostname or parts.path or parts.query or parts.fragment or "@" in text or not port:
        raise ValueError(text)
    if not text.isprintable() or not _HOST.fullmatch(parts.hostname):
        raise ValueError(text)
    return Address(parts.hostname, port)


def address_problems(texts: Sequence[str], at: str) -> Iterator[str]:
    """Say which of these are no addresses."""
    if not texts:
        yield f"{at}: at least one is needed, written host:port"
    for number, text in enumerate(texts):
        if "@" in text:
            yield f"{at}[{number}]: holds a user or a password; they have settings of their own"
            continue
        try:
            address(text, 1)
        except ValueError:
            yield f"{at}[{number}]: not an address; write host:port, without any scheme"

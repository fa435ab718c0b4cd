"""URLs in settings: where a server or a proxy is. A password in one would be seen by whoever sees the configuration."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def parsed(url: str) -> SplitResult | None:
    """Take a URL of HTTP with a host apart; None if it is none."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_valid else None


def url_problems(url: str, at: str, *, must_be_encrypted: bool = False) -> Iterator[str]:
    """Say what is wrong with a URL that need not be there; without TLS a token may go to this machine only."""
    if not url:
        return
    parts = parsed(url)
    if parts is None:
        yield f"{at}: not an http or https URL with a host"
    elif "@" in parts.netloc:
        yield f"{at}: must not hold a password"
    elif parts.query or parts.fragment:
        yield f"{at}: must not hold a query or a fragment"
    elif must_be_encrypted and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        yield f"{at}: must be https: a token would be seen on the way"

"""Validation of URLs in settings."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

from adapter.decoding.problem import Problem

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def parsed(url: str) -> SplitResult | None:
    """Return the parts of an HTTP or HTTPS URL with a host; None if it is not one."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_valid else None


def url_problems(url: str, path: str, *, is_required: bool = False) -> Iterator[Problem]:
    """Return the problems of a URL."""
    if not url and not is_required:
        return
    parts = parsed(url)
    if parts is None:
        yield Problem(path, "not an http or https URL with a host")
    elif "@" in parts.netloc:
        yield Problem(path, "must not contain credentials")
    elif parts.query or parts.fragment:
        yield Problem(path, "must not contain a query or a fragment")


def encryption_problems(url: str, path: str) -> Iterator[Problem]:
    """Return a problem if a URL uses plain HTTP to another host than loopback."""
    parts = parsed(url)
    if parts is not None and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        yield Problem(path, "must be https, because credentials are sent to it")

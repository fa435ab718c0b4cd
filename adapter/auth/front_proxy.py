"""Authentication by the front proxy's X-Remote-* headers, accepted only with the front proxy's client certificate."""

from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import unquote

from aiohttp import web
from cachetools import LRUCache
from multidict import CIMultiDictProxy

from adapter.auth.caller import Caller
from adapter.auth.peer_certificate import PeerCertificates
from adapter.auth.trust_store import TrustedAuthorities, TrustStore
from adapter.errors import Unauthenticated

_RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]
_MAX_ENTRIES: Final = 1024
_MAX_HEADER_BYTES: Final = 4096
"""Longer headers are not cached."""


class FrontProxyAuthenticator:
    """Accepts the headers of a verified front proxy."""

    def __init__(self, trust_store: TrustStore, peer_certificates: PeerCertificates) -> None:
        self._trust_store = trust_store
        self._peer_certificates = peer_certificates
        self._headers = _HeaderParser(trust_store.current)

    async def authenticate(self, request: web.BaseRequest) -> Caller | None:
        """Return the user named by the front proxy; None without a certificate or a user header."""
        peer, trusted = self._peer_certificates.get(request), self._trust_store.current
        if peer is None:
            return None
        if peer.front_proxy_error is not None:
            raise Unauthenticated(f"front proxy certificate not trusted: {peer.front_proxy_error}")
        if trusted.allowed_names and peer.common_name not in trusted.allowed_names:
            raise Unauthenticated(f"front proxy certificate not trusted: {peer.common_name!r} is not an allowed name")
        if trusted is not self._headers.trusted:
            self._headers = _HeaderParser(trusted)
        return self._headers.caller(request)


class _HeaderParser:
    """Reads the caller from headers, and caches it: equal headers name the same caller."""

    def __init__(self, trusted: TrustedAuthorities) -> None:
        self.trusted = trusted
        names = (*trusted.user_headers, *trusted.uid_headers, *trusted.group_headers, *trusted.extra_prefixes)
        self._prefixes = tuple(name.lower().encode() for name in names)
        self._callers: LRUCache[_RawHeaders, Caller | None] = LRUCache(_MAX_ENTRIES)

    def caller(self, request: web.BaseRequest) -> Caller | None:
        """Return the caller; None if no user is named."""
        headers = tuple([header for header in request.raw_headers if header[0].lower().startswith(self._prefixes)])
        try:
            return self._callers[headers]
        except KeyError:
            caller = _caller(self.trusted, request.headers)
        if sum(len(name) + len(value) for name, value in headers) <= _MAX_HEADER_BYTES:
            self._callers[headers] = caller
        return caller


def _caller(trusted: TrustedAuthorities, headers: CIMultiDictProxy[str]) -> Caller | None:
    user = _first(trusted.user_headers, headers)
    if not user:
        return None
    groups = [group for header in trusted.group_headers for group in headers.getall(header, ()) if group]
    return Caller(user, _first(trusted.uid_headers, headers), tuple(groups), _extra(trusted, headers))


def _first(names: tuple[str, ...], headers: CIMultiDictProxy[str]) -> str:
    """Return the value of the first header that has one; only the first value of each header counts."""
    return next((value for name in names if (value := headers.get(name))), "")


@lru_cache(maxsize=16)
def _lowered(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(prefix.lower() for prefix in prefixes)


def _extra(trusted: TrustedAuthorities, headers: CIMultiDictProxy[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    prefixes = _lowered(trusted.extra_prefixes)
    extra: dict[str, tuple[str, ...]] = {}
    for name in headers:
        lowered = name.lower()
        if lowered.startswith(prefixes):
            prefix = next(prefix for prefix in prefixes if lowered.startswith(prefix))
            key = unquote(lowered[len(prefix) :])
            if key not in extra:
                extra[key] = tuple(headers.getall(name))
    return tuple(sorted(extra.items()))

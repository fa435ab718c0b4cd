"""Authentication by the front proxy's X-Remote-* headers, accepted only with the front proxy's client certificate."""

from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import unquote

from aiohttp import web
from multidict import CIMultiDict

from adapter.auth.authentication import Caller, with_authenticated_group
from adapter.auth.peer_certificate import PeerCertificates
from adapter.auth.trust_store import TrustedAuthorities, TrustStore
from adapter.errors import Unauthenticated

FRONT_PROXY: Final = web.RequestKey("front_proxy", bool)
"""The key that a request has if its connection has the front proxy's certificate."""

RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]
_MAX_ENTRIES: Final = 1024
_MAX_HEADER_BYTES: Final = 4096
"""Longer headers are not cached."""


class FrontProxyAuthenticator:
    """Accepts the headers of a verified front proxy."""

    def __init__(self, trust_store: TrustStore, peer_certificates: PeerCertificates) -> None:
        self._trust_store = trust_store
        self._peer_certificates = peer_certificates
        self._headers = HeaderParser(trust_store.current)

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
            self._headers = HeaderParser(trusted)
        request[FRONT_PROXY] = True
        return self._headers.caller(request.raw_headers)


class HeaderParser:
    """Reads the caller from headers, and caches it: equal headers name the same caller."""

    def __init__(self, trusted: TrustedAuthorities) -> None:
        self.trusted = trusted
        names = (*trusted.user_headers, *trusted.uid_headers, *trusted.group_headers, *trusted.extra_prefixes)
        self._prefixes = tuple(name.lower().encode() for name in names)
        self._extra_prefixes = tuple(prefix.lower() for prefix in trusted.extra_prefixes)
        self.parse_cached = lru_cache(_MAX_ENTRIES)(self.parse)

    def caller(self, raw_headers: RawHeaders) -> Caller | None:
        """Return the caller; None if no user is named."""
        headers = tuple([header for header in raw_headers if header[0].lower().startswith(self._prefixes)])
        is_cacheable = sum([len(name) + len(value) for name, value in headers]) <= _MAX_HEADER_BYTES
        return self.parse_cached(headers) if is_cacheable else self.parse(headers)

    def parse(self, raw_headers: RawHeaders) -> Caller | None:
        """Return the caller without the cache."""
        headers = CIMultiDict((_decode(name), _decode(value)) for name, value in raw_headers)
        user = _first(self.trusted.user_headers, headers)
        if not user:
            return None
        groups = [group for header in self.trusted.group_headers for group in headers.getall(header, ()) if group]
        uid = _first(self.trusted.uid_headers, headers)
        # The group is added here, so that the cached caller, whose hash is cached too, is the key of authorizations.
        return with_authenticated_group(Caller(user, uid, tuple(groups), self._extra(headers)))

    def _extra(self, headers: CIMultiDict[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        extra: dict[str, tuple[str, ...]] = {}
        for name in headers:
            prefix = next((prefix for prefix in self._extra_prefixes if name.lower().startswith(prefix)), None)
            if prefix is not None:
                extra.setdefault(unquote(name.lower()[len(prefix) :]), tuple(headers.getall(name)))
        return tuple(sorted(extra.items()))


def _first(names: tuple[str, ...], headers: CIMultiDict[str]) -> str:
    """Return the value of the first header that has one; only the first value of each header counts."""
    return next((value for name in names if (value := headers.get(name))), "")


def _decode(text: bytes) -> str:
    return text.decode(errors="surrogateescape")  # as aiohttp decodes headers

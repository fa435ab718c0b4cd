"""The API server's word for who is calling: X-Remote-* headers, believed from its own certificate and nobody else's."""

from functools import lru_cache
from typing import TypeAlias
from urllib.parse import unquote

from aiohttp import web
from multidict import CIMultiDictProxy

from adapter.auth.caller import Caller
from adapter.auth.peer_certificate import Peers
from adapter.auth.trust_store import Trust, Trusted
from adapter.errors import Unauthenticated

_Said: TypeAlias = tuple[tuple[bytes, bytes], ...]
_REMEMBERED, _LONGEST_REMEMBERED = 1024, 4096


class FrontProxy:
    """Believes headers that a verified front proxy sends."""

    def __init__(self, trusted: Trusted, peers: Peers) -> None:
        self._trusted = trusted
        self._peers = peers
        self._spoken_for = _SpokenFor(trusted.current)

    async def authenticate(self, request: web.BaseRequest) -> Caller | None:
        """Name the user that the front proxy speaks for; None if it names nobody, or there is no certificate."""
        peer, trust = self._peers.of(request), self._trusted.current
        if peer is None:
            return None
        if peer.not_a_proxy is not None:
            raise Unauthenticated(f"not a front proxy: {peer.not_a_proxy}")
        if trust.allowed_names and peer.common_name not in trust.allowed_names:
            raise Unauthenticated(f"not a front proxy: the name {peer.common_name!r} is not allowed")
        if trust is not self._spoken_for.trust:
            self._spoken_for = _SpokenFor(trust)
        return self._spoken_for.named(request)


class _SpokenFor:
    """Whom the headers named so far: the same words name the same caller, for as long as the trust is the same."""

    def __init__(self, trust: Trust) -> None:
        self.trust = trust
        headers = (*trust.user_headers, *trust.uid_headers, *trust.group_headers, *trust.extra_prefixes)
        self._beginnings = tuple(name.lower().encode() for name in headers)
        self._callers: dict[_Said, Caller | None] = {}

    def named(self, request: web.BaseRequest) -> Caller | None:
        """Name the caller; None if nobody is named."""
        said = tuple([each for each in request.raw_headers if each[0].lower().startswith(self._beginnings)])
        if said not in self._callers:
            caller = _caller(self.trust, request.headers)
            if sum(len(name) + len(value) for name, value in said) > _LONGEST_REMEMBERED:
                return caller
            if len(self._callers) >= _REMEMBERED:
                self._callers.clear()
            self._callers[said] = caller
        return self._callers[said]


def _caller(trust: Trust, headers: CIMultiDictProxy[str]) -> Caller | None:
    user = _first(trust.user_headers, headers)
    if not user:
        return None
    groups = [group for header in trust.group_headers for group in headers.getall(header, ()) if group]
    return Caller(user, _first(trust.uid_headers, headers), tuple(groups), _extra(trust, headers))


def _first(listed: tuple[str, ...], headers: CIMultiDictProxy[str]) -> str:
    """Give the first value of the first listed header that has one; a header's later values are never looked at."""
    for name in listed:
        value = headers.get(name)
        if value:
            return value
    return ""


@lru_cache(maxsize=16)
def _lowered(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(prefix.lower() for prefix in prefixes)


def _extra(trust: Trust, headers: CIMultiDictProxy[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    prefixes = _lowered(trust.extra_prefixes)
    extra: dict[str, tuple[str, ...]] = {}
    for name in headers:
        lowered = name.lower()
        if lowered.startswith(prefixes):
            prefix = next(prefix for prefix in prefixes if lowered.startswith(prefix))
            key = unquote(lowered[len(prefix) :])
            if key not in extra:
                extra[key] = tuple(headers.getall(name))
    return tuple(sorted(extra.items()))

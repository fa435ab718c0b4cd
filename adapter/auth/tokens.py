"""Authentication by bearer token through TokenReviews, with cached results."""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from aiohttp import web

from adapter.auth.authentication import Caller
from adapter.config.model import Auth
from adapter.errors import Unauthenticated
from adapter.ttl_cache import TTLCache
from autoscaler.kube.errors import KubeError
from autoscaler.kube.reviews import Subject

_MAX_ENTRIES: Final = 8192


class TokenAuthenticator:
    """Accepts tokens that the API server authenticates."""

    def __init__(self, review: Callable[[str], Awaitable[Subject | None]], settings: Auth) -> None:
        self._review = review
        self._hmac_key = secrets.token_bytes(32)
        self._cache: TTLCache[bytes, Subject | None] = TTLCache(_MAX_ENTRIES)
        # A cached rejection limits the TokenReviews that a client with an invalid token causes.
        valid, invalid = settings.token_cache_ttl, settings.token_cache_ttl / 2
        self._ttl: Callable[[Subject | None], timedelta] = lambda user: invalid if user is None else valid

    async def authenticate(self, request: web.BaseRequest) -> Caller | None:
        """Return the token's user; None without a token."""
        token = bearer_token(request.headers.get("Authorization", ""))
        if not token:
            return None
        # A keyed digest: the cache, or a dump of the memory, reveals no token.
        key = hmac.digest(self._hmac_key, token.encode(errors="surrogateescape"), hashlib.sha256)
        try:
            user = await self._cache.get_or_load(key, lambda: self._review(token), self._ttl)
        except KubeError as error:
            raise Unauthenticated(f"TokenReview failed: {error}") from error
        if user is None or not user.name:
            raise Unauthenticated("the bearer token is invalid")
        return Caller(name=user.name, uid=user.uid, groups=user.groups, extra=tuple(sorted(user.extra.items())))


def bearer_token(header: str) -> str:
    """Return the token of an Authorization header, parsed as Kubernetes does; empty if there is none."""
    scheme, _, rest = header.strip().partition(" ")
    return rest.split(" ")[0] if scheme.lower() == "bearer" else ""

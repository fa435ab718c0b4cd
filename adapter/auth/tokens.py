"""Authentication by bearer token through TokenReviews, with cached results."""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from aiohttp import web

from adapter.auth.authentication import Caller
from adapter.auth.review_budget import ReviewBudget, ReviewEntries
from adapter.auth.source_address import source_of
from adapter.config.model import Auth
from adapter.errors import Unauthenticated
from adapter.ttl_cache import TTLCache
from autoscaler.kube.errors import KubeError
from autoscaler.kube.reviews import Subject

_BURST: Final = 50
_PER_SECOND: Final = 2.0
_MAX_CONCURRENT: Final = 32


class TokenAuthenticator:
    """Accepts tokens that the API server authenticates."""

    def __init__(self, review: Callable[[str], Awaitable[Subject | None]], settings: Auth) -> None:
        self._review = review
        self._hmac_key = secrets.token_bytes(32)
        self._entries: ReviewEntries[bytes, Subject | None] = ReviewEntries(_is_valid)
        self._cache: TTLCache[bytes, Subject | None] = TTLCache(entries=self._entries)
        self._budget = ReviewBudget(burst=_BURST, per_second=_PER_SECOND, max_concurrent=_MAX_CONCURRENT)
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

        async def review() -> Subject | None:
            if key in self._entries.accepted:  # valid before: a flood of new tokens must not reject it
                return await self._review(token)
            # Valid tokens cost, too: a client that may create tokens can have any number of them.
            return await self._budget.pay(source_of(request.remote), lambda: self._review(token))

        try:
            user = await self._cache.get_or_load(key, review, self._ttl)
        except KubeError as error:
            raise Unauthenticated(f"TokenReview failed: {error}") from error
        if user is None or not user.name:
            raise Unauthenticated("the bearer token is invalid")
        return Caller(name=user.name, uid=user.uid, groups=user.groups, extra=tuple(sorted(user.extra.items())))


def _is_valid(user: Subject | None) -> bool:
    return user is not None


def bearer_token(header: str) -> str:
    """Return the token of an Authorization header, parsed as Kubernetes does; empty if there is none."""
    scheme, _, rest = header.strip().partition(" ")
    return rest.split(" ")[0] if scheme.lower() == "bearer" else ""

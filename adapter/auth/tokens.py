"""Bearer tokens: the API server says whose they are, and we remember it briefly, without remembering the token."""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from aiohttp import web

from adapter.auth.caller import Caller
from adapter.auth.ttl_cache import Memory
from adapter.errors import Unauthenticated
from autoscaler.kube.errors import KubeError
from autoscaler.kube.reviews import Subject

KNOWN_FOR: Final = timedelta(seconds=10)
"""How long a token goes on working after it was revoked. Kubernetes' own servers use the same."""

UNKNOWN_FOR: Final = timedelta(seconds=5)
"""How long a bad token is refused without asking: enough to keep a loop of them off the API server."""

_REMEMBERED: Final = 8192


class Tokens:
    """Believes tokens that the API server knows."""

    def __init__(
        self,
        review: Callable[[str], Awaitable[Subject | None]],
        *,
        known_for: timedelta = KNOWN_FOR,
        unknown_for: timedelta = UNKNOWN_FOR,
    ) -> None:
        self._review = review
        self._key = secrets.token_bytes(32)
        self._memory: Memory[bytes, Subject | None] = Memory(
            _REMEMBERED, lambda subject: unknown_for if subject is None else known_for
        )

    async def authenticate(self, request: web.BaseRequest) -> Caller | None:
        """Name the token's owner; None if there is no token."""
        token = bearer_token(request.headers.get("Authorization", ""))
        if not token:
            return None
        # Keyed, so that neither memory nor its dump holds anything that is or could be turned back into a token.
        key = hmac.digest(self._key, token.encode(errors="surrogateescape"), hashlib.sha256)
        try:
            subject = await self._memory.recall(key, lambda: self._review(token))
        except KubeError as error:
            raise Unauthenticated(f"the token could not be reviewed: {error}") from error
        if subject is None or not subject.name:
            raise Unauthenticated("the token is not known")
        return Caller(
            name=subject.name, uid=subject.uid, groups=subject.groups, extra=tuple(sorted(subject.extra.items()))
        )


def bearer_token(header: str) -> str:
    """Take the token out of an Authorization header, as Kubernetes does; empty if there is none."""
    scheme, _, rest = header.strip().partition(" ")
    return rest.split(" ")[0] if scheme.lower() == "bearer" else ""

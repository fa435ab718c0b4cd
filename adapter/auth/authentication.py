"""The caller of a request, and its authenticators, tried in Kubernetes' order; the first that succeeds determines the caller.

An invalid credential beside a valid one is ignored. A request with only invalid credentials is rejected and never
treated as anonymous.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from aiohttp import web

from adapter.errors import Unauthenticated
from autoscaler.types.record import Record

AUTHENTICATED: Final = "system:authenticated"
_AUTHENTICATION_GROUPS: Final = frozenset({AUTHENTICATED, "system:unauthenticated"})


class Caller(Record, frozen=True, cache_hash=True):
    """A user as in the status of a TokenReview; part of the key of cached authorizations."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Extra fields as pairs of name and values, sorted by name."""


ANONYMOUS: Final = Caller(name="system:anonymous", groups=("system:unauthenticated",))
"""The caller of a request without credentials."""


class RequestAuthenticator(Protocol):
    """Authenticates requests by one kind of credential."""

    async def authenticate(self, request: web.BaseRequest) -> Caller | None:
        """Return the caller; None without such a credential; raise ``Unauthenticated`` if it is invalid."""


class UnionAuthenticator:
    """Tries several authenticators in order."""

    def __init__(self, authenticators: Iterable[RequestAuthenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def authenticate(self, request: web.BaseRequest) -> Caller:
        """Return the caller, anonymous without credentials; raise ``Unauthenticated`` if no credential is valid."""
        errors: list[str] = []
        for authenticator in self._authenticators:
            try:
                caller = await authenticator.authenticate(request)
            except Unauthenticated as error:
                errors.append(error.cause)
            else:
                if caller is not None:
                    return _with_authenticated_group(caller)
        if errors:
            raise Unauthenticated("; ".join(errors))
        return ANONYMOUS


def _with_authenticated_group(caller: Caller) -> Caller:
    """Add ``system:authenticated``, which the API server omits in requests of its own."""
    if caller.name == ANONYMOUS.name or _AUTHENTICATION_GROUPS.intersection(caller.groups):
        return caller
    return Caller(name=caller.name, uid=caller.uid, groups=(*caller.groups, AUTHENTICATED), extra=caller.extra)

"""The caller of a request, determined by the first authenticator that succeeds, in Kubernetes' order.

A request with a valid and an invalid credential is accepted. A request with only invalid credentials is rejected; it is
never treated as anonymous.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from aiohttp import web

from adapter.errors import Unauthenticated
from autoscaler.types.record import Record

AUTHENTICATED: Final = "system:authenticated"
_UNAUTHENTICATED: Final = "system:unauthenticated"


class Caller(Record, frozen=True, cache_hash=True):
    """A user as in the status of a TokenReview; part of the key of cached authorizations."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Extra fields as pairs of name and values, sorted by name."""


ANONYMOUS: Final = Caller(name="system:anonymous", groups=(_UNAUTHENTICATED,))
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
                    return with_authenticated_group(caller)
        if errors:
            raise Unauthenticated("; ".join(errors))
        return ANONYMOUS


def with_authenticated_group(caller: Caller) -> Caller:
    """Add ``system:authenticated``, which the API server omits in requests of its own."""
    if AUTHENTICATED in caller.groups or _UNAUTHENTICATED in caller.groups or caller.name == ANONYMOUS.name:
        return caller
    return Caller(name=caller.name, uid=caller.uid, groups=(*caller.groups, AUTHENTICATED), extra=caller.extra)

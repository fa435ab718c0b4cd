"""Who is calling: every way of saying so, in Kubernetes' order, and the first that succeeds wins.

A bad credential does no harm beside a good one; alone it is refused, never taken for anonymous.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from aiohttp import web

from adapter.auth.caller import ANONYMOUS, Caller
from adapter.errors import Unauthenticated

AUTHENTICATED: Final = "system:authenticated"
_SETTLED: Final = frozenset({AUTHENTICATED, "system:unauthenticated"})


class Way(Protocol):
    """One way of saying who one is."""

    async def authenticate(self, request: web.BaseRequest) -> Caller | None:
        """Name the caller; None if nothing was said in this way; raise Unauthenticated if what was said is no good."""


class Authentication:
    """Tries the ways in order."""

    def __init__(self, ways: Iterable[Way]) -> None:
        self._ways = tuple(ways)

    async def authenticate(self, request: web.BaseRequest) -> Caller:
        """Name the caller, anonymous if nothing was said at all; raise Unauthenticated if nothing said was any good."""
        objections: list[str] = []
        for way in self._ways:
            try:
                caller = await way.authenticate(request)
            except Unauthenticated as refused:
                objections.append(refused.why)
            else:
                if caller is not None:
                    return _authenticated(caller)
        if objections:
            raise Unauthenticated("; ".join(objections))
        return ANONYMOUS


def _authenticated(caller: Caller) -> Caller:
    """Add the group of all who are known: the API server leaves it out when it asks in its own name."""
    if caller.name == ANONYMOUS.name or _SETTLED.intersection(caller.groups):
        return caller
    return Caller(name=caller.name, uid=caller.uid, groups=(*caller.groups, AUTHENTICATED), extra=caller.extra)

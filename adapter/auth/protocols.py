"""The authenticator and the authorizer that the server requires.

The server calls both for every request except the three health endpoints. Each rejects a request by raising an error
and never by a return value, so that an ignored result cannot grant access.
"""

from typing import Protocol

from aiohttp import web

from adapter.auth.attributes import Attributes
from adapter.auth.caller import Caller


class Authenticator(Protocol):
    """Determines the caller of a request."""

    async def authenticate(self, request: web.BaseRequest) -> Caller:
        """Return the caller, anonymous without credentials; raise ``Unauthenticated`` if they are invalid."""


class Authorizer(Protocol):
    """Decides whether a caller may make a request."""

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:
        """Return if the caller is authorized; raise ``AccessDenied`` if not, ``ReviewUnavailable`` if reviews fail."""

"""What the server needs at its door: someone to say who is calling, and someone to say whether they may.

The server calls them in this order on every request but the three health roots. Either refuses by raising; neither
returns a refusal, so a forgotten check cannot let anyone in.
"""

from typing import Protocol

from aiohttp import web

from adapter.auth.attributes import Attributes
from adapter.auth.caller import Caller


class Authenticator(Protocol):
    """Says who is calling."""

    async def authenticate(self, request: web.BaseRequest) -> Caller:
        """Return the caller, anonymous if no credentials were shown; raise ``Unauthenticated`` if bad ones were."""


class Authorizer(Protocol):
    """Says whether the caller may."""

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:
        """Return if the caller may; raise ``Forbidden`` if not, ``ReviewUnavailable`` if it could not be found out."""

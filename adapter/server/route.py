"""What the server does with the requests for one path."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from aiohttp import web

from adapter.server.request_context import RequestContext

Handler: TypeAlias = Callable[[RequestContext], Awaitable[web.StreamResponse]]


class Route(NamedTuple):
    """A handler, its name in metrics and logs, and whether it counts against the concurrency limit."""

    handler: Handler
    endpoint: str
    limited: bool = True

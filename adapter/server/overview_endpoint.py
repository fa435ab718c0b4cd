"""GET /debug/overview: the data of the page, with long polling and deltas.

The page sends the ETag of its last response. The response is sent when the overview has changed, or after a timeout.
With the parameter ``delta`` it contains only what changed since the response with that ETag, if that one is stored.
"""

import asyncio
import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec
from aiohttp import web
from multidict import MultiMapping

from adapter.debug.decision_log import DecisionLog
from adapter.debug.formatting import Json, format_time
from adapter.debug.overview_delta import overview_delta
from adapter.server.content_negotiation import JSON
from adapter.server.leader_forwarding import FORWARDED
from adapter.server.peer_overviews import PeerOverviews
from adapter.server.request_context import RequestContext

Content: TypeAlias = Callable[[MultiMapping[str]], Json]
"""Returns the overview for query parameters."""

_RULE_CHECK_INTERVAL: Final = 1.0
"""Seconds after which a waiting request checks the rules, whose changes are not notified."""

_DEBOUNCE: Final = 0.2
"""Seconds to wait after a change, so that the many decisions of a large cluster cause few responses."""

_MAX_WAITING: Final = 32
"""Requests that may wait at the same time; further requests get an immediate response."""

_MAX_WAITING_PER_CALLER: Final = 8
_MAX_WAITING_FORWARDED: Final = 24
"""Limit for requests that other replicas forward: they have the same caller, the service account, for all pages."""

_MAX_STORED: Final = _MAX_WAITING
"""Responses that deltas can refer to. A page whose last response is no longer stored gets a full response."""


class OverviewEndpoint:
    """The endpoint of one process."""

    def __init__(
        self,
        content: Content,
        log: DecisionLog,
        clock: Callable[[], datetime],
        poll_timeout: timedelta,
        headers: Mapping[str, str],
        peers: PeerOverviews | None = None,
    ) -> None:
        """Create the endpoint; ``peers`` are the other replicas, which know about the autoscalers of their shards."""
        self._content = content
        self._peers = peers
        self._log = log
        self._clock = clock
        self._poll_timeout = poll_timeout.total_seconds()
        self._headers = headers
        self._waiting: Counter[str] = Counter()
        """Waiting requests by caller."""

        self._stored: OrderedDict[str, Json] = OrderedDict()
        """The last responses by ETag."""

        self.is_shutting_down = False

    async def handle(self, context: RequestContext) -> web.Response:
        known_etag = context.request.headers.get("If-None-Match", "")
        content, body, etag = await self._next(context, known_etag)
        headers = {"ETag": etag, "X-Now": format_time(self._clock()) or "", **self._headers}
        if etag == known_etag:
            return web.Response(status=304, headers=headers)
        if "delta" in context.query:
            base = self._stored.get(known_etag)
            self._store(etag, content)
            if base is not None:
                body = msgspec.json.encode({"base": known_etag, **overview_delta(base, content)})
        return web.Response(body=body, content_type=JSON.media, headers=headers)

    async def _next(self, context: RequestContext, known_etag: str) -> tuple[Json, bytes, str]:
        """Return the first overview with another ETag, or the current one if waiting is not possible any longer."""
        loop, caller = asyncio.get_running_loop(), context.caller.name if context.caller else ""
        is_forwarded = FORWARDED in context.request.headers
        deadline = loop.time() + self._poll_timeout
        while True:
            version, content = self._log.version, self._content(context.query)
            if self._peers is not None and not is_forwarded:
                content = await self._peers.merged(content, context.query)
            body = msgspec.json.encode(content)
            etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
            remaining = deadline - loop.time()
            if etag != known_etag or remaining <= 0 or not self._may_wait(caller, is_forwarded=is_forwarded):
                return content, body, etag
            self._waiting[caller] += 1
            try:
                await self._log.wait_for_change(version, min(remaining, _RULE_CHECK_INTERVAL))
                await asyncio.sleep(min(remaining, _DEBOUNCE))
            finally:
                self._waiting -= Counter((caller,))  # removes a caller without waiting requests

    def _may_wait(self, caller: str, *, is_forwarded: bool) -> bool:
        limit = _MAX_WAITING_FORWARDED if is_forwarded else _MAX_WAITING_PER_CALLER
        has_place = self._waiting.total() < _MAX_WAITING and self._waiting[caller] < limit
        return has_place and not self.is_shutting_down

    def _store(self, etag: str, content: Json) -> None:
        self._stored[etag] = content
        self._stored.move_to_end(etag)
        while len(self._stored) > _MAX_STORED:
            self._stored.popitem(last=False)

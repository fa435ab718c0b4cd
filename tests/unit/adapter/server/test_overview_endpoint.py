"""How many requests for the overview wait at the same time."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp.test_utils import make_mocked_request

from adapter.auth.authentication import Caller
from adapter.debug.decision_log import DecisionLog
from adapter.server.leader_forwarding import FORWARDED
from adapter.server.overview_endpoint import OverviewEndpoint
from adapter.server.request_context import RequestContext
from tests.fakes.backend import loop_clock

pytestmark = pytest.mark.looptime


class Pages:
    """Pages that wait for a change of the overview."""

    def __init__(self) -> None:
        self.endpoint = OverviewEndpoint(lambda _: {}, DecisionLog(), loop_clock, timedelta(seconds=20), {})
        self.etag = ""
        self._tasks: list[asyncio.Task[object]] = []

    async def open(self, count: int, caller: str, *, forwarded: bool = False) -> int:
        """Open pages; return how many of them wait."""
        if not self.etag:
            self.etag = (await self.endpoint.handle(self._context(caller, {}))).headers["ETag"]
        headers = {"If-None-Match": self.etag, **({FORWARDED: "1"} if forwarded else {})}
        opened = [asyncio.create_task(self.endpoint.handle(self._context(caller, headers))) for _ in range(count)]
        self._tasks += opened
        await asyncio.sleep(0.5)
        return sum(not task.done() for task in opened)

    async def close(self) -> None:
        await asyncio.gather(*self._tasks)

    def _context(self, caller: str, headers: dict[str, str]) -> RequestContext:
        context = RequestContext.create(make_mocked_request("GET", "/debug/overview", headers=headers))
        context.caller = Caller(caller)
        return context


async def test_pages_of_one_caller_leave_places_for_others():
    pages = Pages()
    assert await pages.open(20, "ann") == 8
    assert await pages.open(20, "bob") == 8
    await pages.close()


async def test_pages_that_replicas_forward_do_not_count_as_those_of_one_caller():
    pages = Pages()
    assert await pages.open(20, "steadyscale", forwarded=True) == 20
    await pages.close()


async def test_forwarded_pages_leave_places_for_others():
    pages = Pages()
    assert await pages.open(40, "steadyscale", forwarded=True) == 24
    assert await pages.open(20, "ann") == 8
    await pages.close()

"""A watch, through everything that a server does to one."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from adapter.fakecluster.cluster import Cluster
from autoscaler.kube.errors import Expired, Unavailable
from autoscaler.kube.watch import Change, Happened, Listing, News, Progress, Watched, follow

ONE = "/api/v1/namespaces/default/configmaps/one"
SOON = timedelta(milliseconds=5)
ALL = Watched("/api/v1/namespaces/default/configmaps")


def line(kind: str, **thing: Any) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode()


def test_a_change_is_told_and_moves_the_version():
    progress = Progress("1")
    thing = {"metadata": {"resourceVersion": "2", "name": "one"}}
    assert progress.feed(line("ADDED", **thing)) == Change(Happened.ADDED, thing)
    assert progress.version == "2"


def test_a_bookmark_only_moves_the_version():
    progress = Progress("1")
    assert progress.feed(line("BOOKMARK", metadata={"resourceVersion": "7"})) is None
    assert progress.version == "7"


def test_a_version_that_is_too_old_is_said_within_the_stream():
    with pytest.raises(Expired):
        Progress("1").feed(line("ERROR", code=410, reason="Expired", message="too old resource version"))


def test_what_is_not_json_is_an_outage():
    with pytest.raises(Unavailable):
        Progress("1").feed(b"upstream connect error")


@pytest.fixture
async def api() -> AsyncIterator[Cluster]:
    async with Cluster.serving() as serving:
        serving.put(ONE, {"data": {"is": "1"}})
        yield serving


class Listener:
    """Hears all news of a watch, one at a time."""

    def __init__(self, news: AsyncIterator[News]) -> None:
        self._news = news

    async def next(self) -> News:
        async with asyncio.timeout(5):
            return await anext(self._news)


def data(news: News) -> Any:
    match news:
        case Listing(objects):
            return [thing["data"]["is"] for thing in objects]
        case Change(happened, thing):
            return happened, thing["data"]["is"]


async def test_it_lists_and_then_tells_what_happens(api: Cluster) -> None:
    async with api.client() as client, aclosing(follow(client, ALL, first_pause=SOON)) as news:
        listener = Listener(news)
        assert data(await listener.next()) == ["1"]
        api.put(ONE, {"data": {"is": "2"}})
        assert data(await listener.next()) == (Happened.MODIFIED, "2")
        api.delete(ONE)
        assert data(await listener.next()) == (Happened.DELETED, "2")


async def test_a_stream_that_ends_is_taken_up_where_it_was(api: Cluster) -> None:
    async with api.client() as client, aclosing(follow(client, ALL, first_pause=SOON)) as news:
        listener = Listener(news)
        await listener.next()
        api.hang_up()
        api.put(ONE, {"data": {"is": "2"}})
        assert data(await listener.next()) == (Happened.MODIFIED, "2")


async def test_an_expired_version_means_a_new_list(api: Cluster) -> None:
    async with api.client() as client, aclosing(follow(client, ALL, first_pause=SOON)) as news:
        listener = Listener(news)
        assert data(await listener.next()) == ["1"]
        api.expire_watches()
        assert data(await listener.next()) == ["1"]


async def test_an_outage_is_waited_out_and_nothing_is_missed(api: Cluster) -> None:
    async with api.client() as client, aclosing(follow(client, ALL, first_pause=SOON)) as news:
        listener = Listener(news)
        await listener.next()
        api.weather.refusing = 503
        api.hang_up()
        await asyncio.sleep(0.05)
        api.put(ONE, {"data": {"is": "2"}})
        api.weather.refusing = 0
        assert data(await listener.next()) == (Happened.MODIFIED, "2")


async def test_an_outage_at_the_start_is_waited_out(api: Cluster) -> None:
    api.weather.refusing = 403
    async with api.client() as client, aclosing(follow(client, ALL, first_pause=SOON)) as news:
        waiting = asyncio.create_task(anext(news))
        await asyncio.sleep(0.05)
        api.weather.refusing = 0
        async with asyncio.timeout(5):
            assert data(await waiting) == ["1"]


@pytest.mark.looptime
async def test_a_watch_whose_time_is_over_goes_on_at_once(api: Cluster) -> None:
    async with api.client() as client, aclosing(follow(client, ALL, first_pause=timedelta(minutes=10))) as news:
        await anext(news)
        hearing = asyncio.ensure_future(anext(news))
        await asyncio.sleep(2)
        api.hang_up()
        api.put(ONE, {"data": {"is": "2"}})
        async with asyncio.timeout(60):
            assert data(await hearing) == (Happened.MODIFIED, "2")

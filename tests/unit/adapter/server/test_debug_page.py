"""The page over HTTP: its files, its picture, who waits and for how long, and what is not there."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession

from tests.browser.serving import Shown, page
from tests.browser.story import passes_on, told
from tests.builders import pod_reading, external_reading


@pytest.fixture
async def shown() -> AsyncIterator[Shown]:
    async with page() as ready:
        told(ready.shelf)
        yield ready


@pytest.fixture
async def session(shown: Shown) -> AsyncIterator[ClientSession]:
    async with ClientSession(shown.url) as opened:
        yield opened


async def test_every_file_is_served_as_what_it_is_and_may_reach_nothing_else(session: ClientSession):
    kinds = {"": "text/html", "/page.js": "text/javascript", "/page.css": "text/css", "/icon.svg": "image/svg+xml"}
    for path, kind in kinds.items():
        async with session.get(f"/debug/page{path}") as answer:
            assert (answer.status, answer.content_type) == (200, kind)
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
            assert "http" not in (await answer.text()).replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/debug/page/../app.py", "could not find the requested resource"),
        ("/debug/page/nothing.js", "could not find the requested resource"),
        ("/debug/autoscalers/shop/nothing", "no decision was made for an autoscaler 'shop/nothing'; there are 13"),
    ],
)
async def test_what_is_not_there_is_told(session: ClientSession, path: str, says: str):
    async with session.get(path) as answer:
        assert answer.status == 404
        assert says in (await answer.json())["message"]


async def test_a_process_that_decided_nothing_says_whom_to_ask(session: ClientSession, shown: Shown):
    shown.shelf.on_leadership_lost()
    async with session.get("/debug/autoscalers/shop/orders") as answer:
        assert "perhaps another one leads" in (await answer.json())["message"]
    shown.shelf.leader = lambda: "steadyscale-7d4f_1_ab12"
    async with session.get("/debug/autoscalers/shop/orders") as answer:
        assert "steadyscale-7d4f leads; ask that one" in (await answer.json())["message"]


async def test_one_autoscaler_is_explained_step_by_step(session: ClientSession):
    async with session.get("/debug/autoscalers/shop/orders") as answer:
        found = await answer.json()

    assert found["explanation"]["bound"] == "the stabilization window"
    assert found["explanation"]["mayChangeAt"] == "2026-03-01T12:45:45.000Z"
    assert found["explanation"]["steps"][found["decisive"]]["step"] == "Stabilization"
    assert (found["minimum"], found["maximum"], found["replicas"]) == (2, 24, 4)


async def test_the_picture_counts_all_and_lists_the_gravest_first(session: ClientSession):
    async with session.get("/debug/overview") as answer:
        found = await answer.json()

    assert found["total"] == sum(found["counts"].values()) == 13
    assert [one["state"] for one in found["autoscalers"]][:3] == ["target lost", "two owners", "fallback"]
    assert found["rulesFailing"] == ["mails_waiting"]


async def test_a_picture_is_narrowed_by_text_and_state(session: ClientSession):
    async with session.get("/debug/overview", params={"text": "shop/", "state": "failing"}) as answer:
        assert [one["name"] for one in (await answer.json())["autoscalers"]] == ["search"]


async def test_who_has_the_picture_waits_for_the_next(session: ClientSession, shown: Shown):
    async with session.get("/debug/overview") as answer:
        tag = answer.headers["ETag"]
    waiting = asyncio.create_task(session.get("/debug/overview", headers={"If-None-Match": tag}))
    async with session.get("/debug/overview") as meanwhile:
        assert (meanwhile.status, waiting.done()) == (200, False)
    passes_on(shown.shelf, "shop/web", external_reading(90), pod_reading(600, 600, 600), at=shown.now())
    async with await waiting as answer:
        assert answer.status == 200
        assert answer.headers["ETag"] != tag


async def test_who_waits_in_vain_is_told_the_time(session: ClientSession):
    async with session.get("/debug/overview") as answer:
        tag = answer.headers["ETag"]
    async with session.get("/debug/overview", headers={"If-None-Match": tag}) as answer:
        assert answer.status == 304
        assert answer.headers["X-Now"].startswith("2026-03-01T12:45:")


async def test_nobody_waits_for_a_process_that_is_leaving(session: ClientSession, shown: Shown):
    async with session.get("/debug/overview") as answer:
        tag = answer.headers["ETag"]
    leaving = asyncio.create_task(shown.server.leave())
    await asyncio.sleep(0)
    async with session.get("/debug/overview", headers={"If-None-Match": tag}) as answer:
        assert answer.status == 304
    leaving.cancel()


async def test_nothing_is_written_through_the_page(session: ClientSession):
    async with session.post("/debug/page") as answer:
        assert answer.status == 405

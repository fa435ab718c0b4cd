"""The debugging page over HTTP: its files, the overview with long polling, and errors."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession

from adapter.debug.render import NO_COLORS, explanation_lines
from tests.browser.sample_decisions import add_samples, reconcile_again
from tests.browser.served_page import ServedPage, serve_page
from tests.builders import external_reading, pod_reading

OVERVIEW = "/debug/overview"


@pytest.fixture
async def page() -> AsyncIterator[ServedPage]:
    async with serve_page() as served:
        add_samples(served.log)
        yield served


@pytest.fixture
async def session(page: ServedPage) -> AsyncIterator[ClientSession]:
    async with ClientSession(page.url) as opened:
        yield opened


async def etag_of(session: ClientSession) -> str:
    async with session.get(OVERVIEW) as response:
        return response.headers["ETag"]


async def test_files_have_their_content_type_and_no_references_to_other_origins(session: ClientSession):
    types = {"": "text/html", "/page.js": "text/javascript", "/page.css": "text/css", "/icon.svg": "image/svg+xml"}
    for path, content_type in types.items():
        async with session.get(f"/debug/page{path}") as response:
            assert (response.status, response.content_type) == (200, content_type)
            assert response.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
            assert "http" not in (await response.text()).replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/debug/page/../app.py", "could not find the requested resource"),
        ("/debug/page/nothing.js", "could not find the requested resource"),
        ("/debug/autoscalers/shop/nothing", "no decision for PodAutoscaler 'shop/nothing'; this replica has decisions"),
    ],
)
async def test_unknown_file_or_autoscaler_is_not_found(session: ClientSession, path: str, message: str):
    async with session.get(path) as response:
        assert response.status == 404
        assert message in (await response.json())["message"]


async def test_replica_without_decisions_and_without_history_names_the_leader(session: ClientSession, page: ServedPage):
    page.history.is_enabled = False
    for key, _ in list(page.log):
        page.log.on_deleted(key)
    async with session.get("/debug/autoscalers/shop/orders") as response:
        assert "the leader (unknown)" in (await response.json())["message"]
    page.leader = "steadyscale-7d4f_1_ab12"
    async with session.get("/debug/autoscalers/shop/orders") as response:
        assert "the leader (steadyscale-7d4f)" in (await response.json())["message"]


async def test_decisions_before_the_loss_of_leadership_are_shown_as_outdated(session: ClientSession, page: ServedPage):
    page.log.on_leadership_lost()
    async with session.get("/debug/autoscalers/shop/orders") as response:
        view = await response.json()
    async with session.get(OVERVIEW) as response:
        overview = await response.json()
    assert view["outdatedSince"] == overview["outdatedSince"] == "2026-03-01T12:45:00.000Z"
    assert overview["total"] == 13
    assert any("no longer the leader" in line for line in explanation_lines(view, NO_COLORS))


async def test_autoscaler_is_explained_step_by_step(session: ClientSession):
    async with session.get("/debug/autoscalers/shop/orders") as response:
        view = await response.json()

    assert view["limitingFactor"] == "stabilization window"
    assert view["explanation"]["mayChangeAt"] == "2026-03-01T12:45:45.000Z"
    assert view["explanation"]["steps"][view["decisiveStep"]]["step"] == "Stabilization"
    assert (view["minReplicas"], view["maxReplicas"], view["replicas"]) == (2, 24, 4)


async def test_overview_counts_all_autoscalers_and_lists_the_most_severe_first(session: ClientSession):
    async with session.get(OVERVIEW) as response:
        overview = await response.json()

    states = [autoscaler["state"] for autoscaler in overview["autoscalers"]]
    assert overview["total"] == sum(overview["counts"].values()) == 13
    assert states[:3] == ["target unavailable", "conflict", "fallback"]
    assert overview["rulesFailing"] == ["mails_waiting"]


async def test_overview_is_filtered_by_text_and_state(session: ClientSession):
    async with session.get(OVERVIEW, params={"text": "shop/", "state": "metric failing"}) as response:
        assert [autoscaler["name"] for autoscaler in (await response.json())["autoscalers"]] == ["search"]


async def test_request_with_the_current_etag_waits_for_a_change(session: ClientSession, page: ServedPage):
    etag = await etag_of(session)
    waiting = asyncio.create_task(session.get(OVERVIEW, headers={"If-None-Match": etag}))
    async with session.get(OVERVIEW) as response:
        assert (response.status, waiting.done()) == (200, False)
    reconcile_again(page.log, "shop/web", external_reading(90), pod_reading(600, 600, 600), now=page.now())
    async with await waiting as response:
        assert response.status == 200
        assert response.headers["ETag"] != etag


async def test_long_poll_without_a_change_ends_with_304_and_the_time(session: ClientSession):
    async with session.get(OVERVIEW, headers={"If-None-Match": await etag_of(session)}) as response:
        assert response.status == 304
        assert response.headers["X-Now"].startswith("2026-03-01T12:45:")


async def test_long_poll_does_not_wait_during_shutdown(session: ClientSession, page: ServedPage):
    etag = await etag_of(session)
    stopping = asyncio.create_task(page.server.begin_shutdown())
    await asyncio.sleep(0)
    async with session.get(OVERVIEW, headers={"If-None-Match": etag}) as response:
        assert response.status == 304
    stopping.cancel()


async def test_other_methods_than_get_are_not_allowed(session: ClientSession):
    async with session.post("/debug/page") as response:
        assert response.status == 405

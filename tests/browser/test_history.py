"""The decision history on the page: a scrollable timeline, moments, links to moments."""

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.conftest import BrowserSession, ColorScheme
from tests.browser.served_page import ServedPage
from tests.waiting import GIVE_UP

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

ORDERS = "#/autoscalers/shop/orders"
UNTIL_SCROLLED_TO_THE_END = """(node) => new Promise((resolve) => {
  const check = () => (node.scrollLeft + node.clientWidth >= node.scrollWidth - 2 ? resolve() : setTimeout(check, 50));
  check();
})"""
OUTAGE = f"{ORDERS}/at/2026-03-01T12:24:00.000Z"


async def show_hour(page: Page) -> None:
    await page.get_by_role("button", name="1 hour", exact=True).click()
    await expect(page.locator(".history svg[data-range='1h'] path.replicas")).to_have_count(1)


async def test_click_on_a_moment_shows_the_steps_of_that_moment(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open(ORDERS)
        await show_hour(visit.page)
        svg = visit.page.locator(".history svg")
        box = await svg.bounding_box()
        assert box is not None
        minute = (box["width"] - 32) / 60
        await svg.click(position={"x": 16 + 39.2 * minute, "y": 60})  # 12:24, during the outage
        await expect(visit.page.locator("#steps-title")).to_have_text(re.compile("Decision at 2026-03-01 12:2[34]:"))
        await expect(visit.page.locator("#moment")).to_contain_text("limiting factor: unavailable metrics")
        await expect(visit.page.locator("#moment")).to_contain_text("No change since 2026-03-01 12:22:00 UTC")
        await expect(visit.page.locator("#steps")).to_contain_text("stay at 16")
        assert "/at/2026-03-01T12%3A2" in visit.page.url
        await visit.page.get_by_role("link", name="Show the last decision").click()
        await expect(visit.page.locator("#steps-title")).to_have_text("Last decision")
        await expect(visit.page.locator("#moment")).to_be_hidden()


async def test_link_to_a_moment_opens_it(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open(OUTAGE)
        await expect(visit.page.locator("#steps-title")).to_have_text("Decision at 2026-03-01 12:24:00 UTC")
        await expect(visit.page.locator("#steps li[data-decisive]")).to_contain_text("unavailable")
        await expect(visit.page.locator(".history .cursor.moment")).to_have_count(1)


async def test_arrow_keys_move_from_decision_to_decision(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open(OUTAGE)
        await show_hour(visit.page)
        await visit.page.locator(".scroller").focus()
        await visit.page.keyboard.press("ArrowRight")
        await expect(visit.page.locator("#steps-title")).to_have_text("Decision at 2026-03-01 12:25:00 UTC")
        await expect(visit.page.locator("#moment")).to_contain_text("fallback")
        await visit.page.keyboard.press("ArrowLeft")
        await visit.page.keyboard.press("ArrowLeft")
        await expect(visit.page.locator("#steps-title")).to_have_text("Decision at 2026-03-01 12:18:15 UTC")
        await visit.page.keyboard.press("Escape")
        await expect(visit.page.locator("#steps-title")).to_have_text("Last decision")


async def test_click_on_the_timeline_shows_the_moment(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open(ORDERS)
        box = await visit.page.locator(".stage").bounding_box()
        assert box is not None
        await visit.page.locator(".stage").click(position={"x": box["width"] / 2, "y": 200})
        await expect(visit.page.locator("#steps-title")).to_have_text(re.compile("Decision at 2026-03-01 12:2"))


async def test_moment_before_the_history_is_reported_as_unknown(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open(f"{ORDERS}/at/2026-02-28T12:00:00Z")
        await expect(visit.page.locator("#moment")).to_contain_text("Nothing is known: the history begins at")
        await expect(visit.page.locator("#steps li")).to_have_count(0)


async def test_end_of_the_history_stays_visible_when_the_window_becomes_narrower(
    browser: BrowserSession, served: ServedPage
):
    async with browser.visit(served) as visit:
        await visit.open(ORDERS)
        await expect(visit.page.locator(".history path.replicas")).to_be_in_viewport()
        await visit.page.set_viewport_size({"width": 400, "height": 900})
        await asyncio.wait_for(visit.page.locator(".scroller").evaluate(UNTIL_SCROLLED_TO_THE_END), GIVE_UP)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 900, 1440])
async def test_history_fits_every_width_and_scrolls_inside(
    browser: BrowserSession, served: ServedPage, width: int, scheme: ColorScheme
):
    async with browser.visit(served, width=width, scheme=scheme) as visit:
        await visit.open(OUTAGE)
        await show_hour(visit.page)
        overflow = await visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0
        scrolls = await visit.page.evaluate(
            "(() => { const e = document.querySelector('.scroller'); return e.scrollWidth > e.clientWidth })()"
        )
        assert scrolls or width > 390
        await visit.screenshot(f"history-{width}-{scheme}")


async def test_replica_that_is_not_the_leader_shows_the_history(browser: BrowserSession, served: ServedPage):
    entries = dict(served.log)
    entry = entries["shop/mails"]
    served.log.on_deleted("shop/mails")
    try:
        async with browser.visit(served) as visit:
            await visit.open("#/autoscalers/shop/mails")
            await expect(visit.page.locator("#detail .notice")).to_contain_text("From the decision history")
            await expect(visit.page.locator("#replicas b")).to_have_text(str(entry.decision.replicas))
            await expect(visit.page.locator("#steps li[data-decisive]")).to_have_count(1)
    finally:
        served.log.on_decision("shop/mails", entry.autoscaler, entry.decision)


async def test_late_response_about_another_autoscaler_is_not_shown(browser: BrowserSession, served: ServedPage):
    entry, released = dict(served.log)["shop/mails"], asyncio.Event()
    served.log.on_deleted("shop/mails")

    async def delay(route: Route) -> None:
        await released.wait()
        await route.continue_()

    try:
        async with browser.visit(served) as visit:
            await visit.page.route("**/debug/history/shop/mails*", delay)
            async with visit.page.expect_request("**/debug/history/shop/mails*"):
                await visit.open("#/autoscalers/shop/mails")
            await visit.page.evaluate(f"location.hash = '{ORDERS}'")
            title = visit.page.locator("#detail h2")
            await expect(title).to_have_text("shop/orders")
            async with visit.page.expect_response("**/debug/history/shop/mails*"):
                released.set()
            await asyncio.sleep(1)
            await expect(title).to_have_text("shop/orders")
            await expect(visit.page.locator("#detail .notice")).to_be_hidden()
    finally:
        served.log.on_decision("shop/mails", entry.autoscaler, entry.decision)


async def test_loss_of_leadership_and_problems_of_the_store_are_shown(browser: BrowserSession, served: ServedPage):
    served.log.on_leadership_lost()
    served.history.writer.problem = "the decision history cannot be stored: forbidden"
    try:
        async with browser.visit(served) as visit:
            await visit.open(ORDERS)
            notice = visit.page.locator("#notice")
            await expect(notice).to_contain_text("This replica is no longer the leader")
            await expect(notice).to_contain_text("cannot be stored: forbidden")
            await expect(visit.page.locator("#detail .notice")).to_contain_text("Outdated")
    finally:
        served.history.writer.problem = None
        served.log.outdated_since = None


async def test_replicas_that_do_not_respond_are_named(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open(ORDERS)
        await expect(visit.page.locator("#detail h2")).to_be_visible()
        notice = visit.page.locator("#notice")
        await expect(notice).to_be_hidden()
        try:
            served.silent.addresses += ["10.0.0.2:6443", "10.0.0.3:6443"]
            await expect(notice).to_contain_text(
                "no response from replicas 10.0.0.2:6443, 10.0.0.3:6443, whose autoscalers are not shown"
            )
            served.silent.addresses.pop()
            await expect(notice).to_contain_text("no response from replica 10.0.0.2:6443, whose")
        finally:
            served.silent.addresses.clear()
        await expect(notice).to_be_hidden()

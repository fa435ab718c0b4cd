"""A replay with an edited spec on the page: keyboard, problems with paths, three widths and both themes."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import BrowserSession, ColorScheme, PageVisit
from tests.browser.served_page import ServedPage

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


async def open_what_if(visit: PageVisit) -> Page:
    await visit.open("#/autoscalers/shop/orders")
    await visit.page.locator(".what-if > summary").focus()
    await visit.page.keyboard.press("Enter")
    await expect(visit.page.locator("#what-if-spec")).to_have_value(re.compile("maxReplicas: 24"))
    return visit.page


async def edit_spec(page: Page, old: str, new: str) -> None:
    spec = page.locator("#what-if-spec")
    await spec.fill((await spec.input_value()).replace(old, new))
    await spec.press("Control+Enter")


async def test_spec_is_edited_and_replayed_with_the_keyboard(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        page = await open_what_if(visit)
        await edit_spec(page, "maxReplicas: 24", "maxReplicas: 9")
        result = page.locator(".what-if-result")
        await expect(result.locator("path.was")).to_have_count(1)
        await expect(result.locator("path.replicas")).to_have_count(1)
        assert await result.locator(".shade.under").count() > 0
        await expect(result.locator("thead th")).to_have_text(["Measure", "as it was", "edited spec"])
        await result.locator(".stage").focus()
        await page.keyboard.press("Home")
        await expect(result.locator(".readout")).to_have_text(
            re.compile("^2026-03-01 12:00:00 UTC · as it was: 3 replicas")
        )
        await page.keyboard.press("ArrowRight")
        await expect(result.locator(".readout")).to_have_text(re.compile("^2026-03-01 12:00:15 UTC"))

        await edit_spec(page, "maxReplicas: 9", "maxReplicas: 1\nmaxReplica: 2")
        problems = page.locator("#what-if-problems li")
        await expect(problems.first).to_contain_text("spec.maxReplica unknown field")
        await expect(result).to_be_hidden()
        await page.get_by_role("button", name="Current spec").press("Enter")
        await expect(page.locator("#what-if-spec")).to_have_value(re.compile("maxReplicas: 24"))
        await expect(problems).to_have_count(0)
        visit.errors = [error for error in visit.errors if "422" not in error]  # Chromium logs the rejected request


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (820, "dark"), (1280, "light"), (1280, "dark")])
async def test_result_fits_the_width(browser: BrowserSession, served: ServedPage, width: int, scheme: ColorScheme):
    async with browser.visit(served, width=width, scheme=scheme) as visit:
        page = await open_what_if(visit)
        await page.get_by_role("button", name="24 hours").last.click()
        await edit_spec(page, "maxReplicas: 24", "maxReplicas: 9")
        await expect(page.locator(".what-if-result path.replicas")).to_have_count(1)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await visit.screenshot(f"what-if-{width}-{scheme}")

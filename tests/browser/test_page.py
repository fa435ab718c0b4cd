"""The page as a person sees it: in Chromium, through the real server, with every state there is."""

import re
from datetime import timedelta

import pytest
from playwright.async_api import Page, expect

from autoscaler.types.limiting_factor import Bound
from tests.browser.conftest import Browsing, Scheme
from tests.browser.serving import ORDERS, Shown
from tests.browser.story import HOSTILE, passes_on
from tests.builders import queue_of, unreadable

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

EVERY_STATE = {
    "data/lost": "target lost",
    "shop/cart": "two owners",
    "shop/mails": "fallback",
    "shop/search": "failing",
    "data/pods": "no say",
    "data/train": "paused",
    "data/etl": "dry run",
    "night/import": "switched off",
    "shop/checkout": "limited",
    "night/reports": "at zero",
    "shop/web": "normal",
}


def row(page: Page, key: str):
    return page.locator(f'#list li[data-key="{key}"]')


async def test_every_state_is_seen_at_a_glance(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open()
        for key, state in EVERY_STATE.items():
            await expect(row(visit.page, key).locator(".word")).to_have_text(state)
        await expect(row(visit.page, "shop/search").locator(".for")).to_have_text(re.compile(r"^\d\d:\d\d$"))
        await expect(row(visit.page, "data/etl").locator(".size")).to_have_text("3 → 6")
        await visit.keep("states")


@pytest.mark.parametrize("key", [*EVERY_STATE, "shop/orders"])
async def test_the_working_adds_up_to_the_replicas_that_are_shown(browser: Browsing, shown: Shown, key: str):
    kept = shown.shelf.get(key)
    assert kept is not None
    async with browser.visit(shown) as visit:
        await visit.open(f"#/autoscalers/{key}")
        await expect(visit.page.locator("#replicas b")).to_have_text(str(kept.decision.replicas))
        came = await visit.page.locator("#working li:not([data-step^=Metric]) .came").all_text_contents()
        numbers = [int(one) for one in came if one.isdigit()]
        assert numbers[-1:] in ([], [kept.decision.replicas])
        assert await visit.page.locator("#working li[data-decisive]").count() == 1
        bound = kept.decision.bound
        verdict = "This is what the metrics ask for" if bound is Bound.NOTHING else f"Decided by {bound.value}"
        await expect(visit.page.locator(".bound")).to_have_text(verdict)


async def test_what_holds_it_and_until_when_counts_down(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open("#/autoscalers/data/train")
        countdown = visit.page.locator(".change b")
        await expect(countdown).to_have_text(re.compile(r"^1[0-5]:\d\d$"))
        first = await countdown.text_content()
        await expect(countdown).not_to_have_text(first or "")


async def test_outage_and_fallback_are_shaded_in_the_timeline(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open("#/autoscalers/shop/orders")
        await expect(visit.page.locator("rect.shade.outage")).to_have_count(1)
        await expect(visit.page.locator("rect.shade.fallback")).to_have_count(1)
        stage = visit.page.locator(".stage")
        await stage.focus()
        await visit.page.keyboard.press("Home")
        await expect(visit.page.locator("#readout")).to_have_text(re.compile(r"^12:00:00 UTC · orders_waiting 2\d"))
        await visit.page.keyboard.press("ArrowRight")
        await expect(visit.page.locator("#readout")).to_have_text(re.compile(r"^12:00:15 UTC"))
        await visit.keep("timeline")


async def test_a_decision_appears_without_reloading(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open("#/autoscalers/shop/checkout")
        await expect(visit.page.locator(".chips .word").first).to_have_text("limited")
        passes_on(shown.shelf, "shop/checkout", unreadable(), at=shown.now())
        await expect(visit.page.locator(".chips .word").first).to_have_text("failing")
        await expect(visit.page.locator("#announcements")).to_have_text(re.compile("shop/checkout: failing"))
        passes_on(shown.shelf, "shop/checkout", queue_of(90), at=shown.now() + timedelta(seconds=1))
        await expect(visit.page.locator(".chips .word").first).to_have_text("limited")


async def test_a_broken_backend_is_named_with_its_words(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open("#/rules")
        card = visit.page.locator(".card", has_text="mails_waiting").first
        await expect(card.locator(".chip")).to_contain_text("failing")
        await expect(card).to_contain_text("mail-prometheus")
        await expect(card.locator(".notice")).to_contain_text("mail-prometheus: refused: connection refused")
        await expect(visit.page.locator("#rules-failing")).to_have_text("1")
        await visit.keep("rules")


async def test_a_metric_is_tried_and_the_way_is_shown(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open("#/try")
        await visit.page.get_by_label("Namespace").fill("shop")
        await visit.page.get_by_label("Metric", exact=True).fill("orders_waiting")
        await visit.page.get_by_label("Selector").fill("queue=orders")
        await visit.page.keyboard.press("Enter")
        await expect(visit.page.locator("#way-value")).to_have_text("412")
        await expect(visit.page.locator("#way pre")).to_have_text(ORDERS)
        await expect(visit.page.locator("#way tr.unmatched")).to_contain_text("queue is 'returns'")
        await visit.page.get_by_label("Metric", exact=True).fill("orders_wating")
        await visit.page.keyboard.press("Enter")
        await expect(visit.page.locator("#way")).to_contain_text("nearest: orders_waiting")
        await visit.keep("try")


async def test_labels_that_look_like_markup_are_text(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open("#/autoscalers/odd/hostile")
        await expect(visit.page.locator("#working")).to_contain_text(HOSTILE)
        await visit.open("#/try/shop/strange")
        await visit.page.get_by_role("button", name="Read it now").click()
        await expect(visit.page.locator("#way table")).to_contain_text(HOSTILE)
        assert await visit.page.locator("main script, main img").count() == 0


async def test_the_list_is_walked_and_opened_by_keyboard_alone(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open()
        await visit.page.get_by_label("Find an autoscaler").focus()
        await visit.page.keyboard.type("shop/")
        await expect(visit.page.locator("#list li")).to_have_count(6)
        await visit.page.keyboard.press("ArrowDown")
        await visit.page.keyboard.press("ArrowDown")
        focused = visit.page.locator("#list a:focus-visible")
        await expect(focused).to_have_attribute("aria-label", re.compile("^shop/mails, fallback"))
        assert await focused.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
        await visit.page.keyboard.press("Enter")
        await expect(visit.page.locator(".detail h2")).to_have_text("shop/mails")
        await expect(visit.page.locator(".detail h2")).to_be_focused()


async def test_one_state_is_picked_out_of_many(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open()
        await visit.page.get_by_role("button", name="failing").click()
        await expect(visit.page.locator("#list li")).to_have_count(2)
        await expect(visit.page.get_by_role("button", name="failing")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("route", ["autoscalers", "autoscalers/shop/orders", "autoscalers/odd/hostile", "rules", "try"])
async def test_nothing_is_wider_than_the_window(browser: Browsing, shown: Shown, route: str, scheme: Scheme):
    async with browser.visit(shown, scheme=scheme) as visit:
        await visit.open(f"#/{route}")
        for width in (1280, 768, 400):
            await visit.page.set_viewport_size({"width": width, "height": 900})
            assert await visit.page.evaluate("document.documentElement.scrollWidth") <= width
            await visit.keep(f"{route.replace('/', '-')}-{width}-{scheme}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_can_be_read_in_both_themes(browser: Browsing, shown: Shown, scheme: Scheme):
    async with browser.visit(shown, scheme=scheme) as visit:
        await visit.open("#/autoscalers/shop/search")
        assert await visit.page.evaluate(FAINTEST) >= 4.5


async def test_nothing_moves_for_who_asked_for_that(browser: Browsing, shown: Shown):
    async with browser.visit(shown, motion="reduce") as visit:
        await visit.open()
        assert await visit.page.evaluate("document.getAnimations().length") == 0


async def test_lost_contact_is_told_and_found_again(browser: Browsing, shown: Shown):
    async with browser.visit(shown) as visit:
        await visit.open()
        await visit.page.context.set_offline(True)
        await expect(visit.page.locator("#contact")).to_contain_text("Lost contact", timeout=10_000)
        await visit.page.context.set_offline(False)
        await expect(visit.page.locator("#contact-text")).to_have_text("Live", timeout=10_000)
        visit.complaints.clear()  # the browser itself complains of a network that is gone


FAINTEST = """() => {
  const channel = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const found = parts(getComputedStyle(node).backgroundColor);
      if (found.length === 3 || found[3] > 0.99) return found;
    }
    return [255, 255, 255];
  };
  const shown = [...document.querySelectorAll("h1, h2, h3, p, span, b, strong, small, a, button, summary, label")]
    .filter((node) => node.checkVisibility())
    .filter((node) => [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim()));
  return Math.min(...shown.map((node) => {
    const [a, b] = [light(parts(getComputedStyle(node).color)), light(ground(node))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
}"""

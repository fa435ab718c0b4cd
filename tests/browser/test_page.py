"""The page in Chromium, served by the real server, with autoscalers in every state."""

import asyncio
import re
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest
from playwright.async_api import Page, Response, expect

from adapter.debug.overview_delta import overview_delta
from autoscaler.types.limiting_factor import LimitingFactor
from tests.browser.conftest import BrowserSession, ColorScheme
from tests.browser.overviews import overviews
from tests.browser.sample_decisions import HOSTILE, reconcile_again
from tests.browser.served_page import ORDERS, ServedPage
from tests.builders import external_reading, unavailable_reading
from tests.waiting import EXPECT, GIVE_UP

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

EVERY_STATE = {
    "data/deleted": "target unavailable",
    "shop/cart": "conflict",
    "shop/mails": "fallback",
    "shop/search": "metric failing",
    "data/pods": "metric unavailable",
    "data/train": "paused",
    "data/etl": "dry run",
    "night/import": "scaling disabled",
    "shop/checkout": "limited",
    "night/reports": "scaled to zero",
    "shop/web": "normal",
}


def row(page: Page, key: str):
    return page.locator(f'#list li[data-key="{key}"]')


async def test_list_shows_the_state_of_each_autoscaler(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open()
        for key, state in EVERY_STATE.items():
            await expect(row(visit.page, key).locator(".label")).to_have_text(state)
        await expect(row(visit.page, "shop/search").locator(".duration")).to_have_text(re.compile(r"^1 min$"))
        await expect(row(visit.page, "shop/mails").locator(".chip")).to_have_text(re.compile(r"^fallback[12] min$"))
        await expect(row(visit.page, "data/etl").locator(".count")).to_have_text("3 → 6")
        await visit.screenshot("states")


@pytest.mark.parametrize("key", [*EVERY_STATE, "shop/orders"])
async def test_last_step_results_in_the_displayed_replicas(browser: BrowserSession, served: ServedPage, key: str):
    entry = served.log.get(key)
    assert entry is not None
    async with browser.visit(served) as visit:
        await visit.open(f"#/autoscalers/{key}")
        await expect(visit.page.locator("#replicas b")).to_have_text(str(entry.decision.replicas))
        outputs = await visit.page.locator("#steps li:not([data-step^=Metric]) .output").all_text_contents()
        numbers = [int(text) for text in outputs if text.isdigit()]
        assert numbers[-1:] in ([], [entry.decision.replicas])
        assert await visit.page.locator("#steps li[data-decisive]").count() == 1
        factor = entry.decision.limiting_factor
        reason = f"Limiting factor: {factor.value}"
        if factor is LimitingFactor.NONE:
            reason = "No limiting factor: follows the metrics"
        await expect(visit.page.locator(".reason")).to_have_text(reason)


async def test_countdown_to_the_next_possible_change(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open("#/autoscalers/data/train")
        countdown = visit.page.locator(".change b")
        await expect(countdown).to_have_text(re.compile(r"^1[0-5] min \d\d s$"))
        first = await countdown.text_content()
        await expect(countdown).not_to_have_text(first or "")


async def test_fallback_shows_when_it_and_the_failure_began_and_marks_the_metric(
    browser: BrowserSession, served: ServedPage
):
    async with browser.visit(served) as visit:
        await visit.open("#/autoscalers/shop/mails")
        state = visit.page.locator(".chips .state").first
        await expect(state.locator(".duration")).to_have_text(re.compile(r"^[12] min$"))
        await expect(state.locator(".note")).to_have_text(re.compile("; failing since 12:40:15 UTC$"))
        await expect(visit.page.locator(".reason")).to_have_text("Limiting factor: metric fallback")
        await expect(visit.page.locator("#steps li[data-decisive]")).to_contain_text("fallback proposes 6 replicas")


async def test_opened_steps_have_units(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open("#/autoscalers/shop/orders")
        for summary in await visit.page.locator("#steps summary").all():
            await summary.click()
        values = visit.page.locator("#steps dl div")
        await expect(values.filter(has_text="window")).to_have_text(["window5 min"])
        await expect(values.filter(has_text="target value")).to_have_text(["target value30"])
        assert not re.search(r"PT\d|[{}\[\]]|T\d\d:", " ".join(await values.all_text_contents()))
        await visit.screenshot("opened-steps")


async def test_deltas_result_in_the_same_overview_as_full_responses(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open()
        base, *following = overviews(Random(15), 80)  # noqa: S311 - not cryptographic
        pairs = [(overview_delta(before, after), after) for before, after in pairwise([base, *following])]
        results = await visit.page.evaluate(APPLY_DELTAS, [base, [delta for delta, _ in pairs]])
        for result, (_, expected) in zip(results, pairs, strict=True):
            for overview in (result, expected):
                if "rules" in overview:
                    overview["rules"]["rules"].sort(key=lambda rule: (rule["name"], rule["namespaces"]))
            assert result == expected


async def test_updates_contain_only_changed_rows(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        sizes: asyncio.Queue[int] = asyncio.Queue()
        await visit.open("#/autoscalers/shop/checkout")
        await expect(row(visit.page, "shop/checkout").locator(".label")).to_have_text("limited")

        async def record(response: Response) -> None:
            if "overview" in response.url and response.status == 200:
                body = await response.json()
                sizes.put_nowait(len(body["autoscalers"]["changed"]))

        visit.page.on("response", record)
        reconcile_again(served.log, "shop/checkout", unavailable_reading(), now=served.now())
        await expect(row(visit.page, "shop/checkout").locator(".label")).to_have_text("metric failing")
        await expect(visit.page.locator("#list li")).to_have_count(13)
        reconcile_again(served.log, "shop/checkout", external_reading(90), now=served.now() + timedelta(seconds=1))
        await expect(row(visit.page, "shop/checkout").locator(".label")).to_have_text("limited")
        assert [await asyncio.wait_for(sizes.get(), GIVE_UP) for _ in range(2)] == [1, 1]


async def test_timeline_shades_outage_and_fallback_and_is_read_with_arrow_keys(
    browser: BrowserSession, served: ServedPage
):
    async with browser.visit(served) as visit:
        await visit.open("#/autoscalers/shop/orders")
        await expect(visit.page.locator("rect.shade.failed")).to_have_count(1)
        await expect(visit.page.locator("rect.shade.fallback")).to_have_count(1)
        stage = visit.page.locator(".stage")
        await stage.focus()
        await visit.page.keyboard.press("Home")
        await expect(visit.page.locator("#readout")).to_have_text(re.compile(r"^12:00:00 UTC · orders_waiting 2\d"))
        await visit.page.keyboard.press("ArrowRight")
        await expect(visit.page.locator("#readout")).to_have_text(re.compile(r"^12:00:15 UTC"))
        await visit.screenshot("timeline")


async def test_new_decision_appears_without_reload(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open("#/autoscalers/shop/checkout")
        await expect(visit.page.locator(".chips .label").first).to_have_text("limited")
        reconcile_again(served.log, "shop/checkout", unavailable_reading(), now=served.now())
        await expect(visit.page.locator(".chips .label").first).to_have_text("metric failing")
        await expect(visit.page.locator("#announcements")).to_have_text(re.compile("shop/checkout: metric failing"))
        reconcile_again(served.log, "shop/checkout", external_reading(90), now=served.now() + timedelta(seconds=1))
        await expect(visit.page.locator(".chips .label").first).to_have_text("limited")


async def test_rule_with_failing_backend_shows_the_error(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open("#/rules")
        card = visit.page.locator(".card", has_text="mails_waiting").first
        await expect(card.locator(".chip")).to_contain_text("failing")
        await expect(card).to_contain_text("mail-prometheus")
        await expect(card.locator(".notice")).to_contain_text("connection refused")
        await expect(visit.page.locator("#rules-failing")).to_have_text("1")
        await visit.screenshot("rules")


async def test_reading_a_metric_shows_the_trace(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open("#/read")
        await visit.page.get_by_label("Namespace").fill("shop")
        await visit.page.get_by_label("Metric", exact=True).fill("orders_waiting")
        await visit.page.get_by_label("Selector").fill("queue=orders")
        await visit.page.keyboard.press("Enter")
        await expect(visit.page.locator("#trace-value")).to_have_text("412")
        await expect(visit.page.locator("#trace pre")).to_have_text(ORDERS)
        await expect(visit.page.locator("#trace tr.unmatched")).to_contain_text("queue is 'returns'")
        await visit.page.get_by_label("Metric", exact=True).fill("orders_wating")
        await visit.page.keyboard.press("Enter")
        await expect(visit.page.locator("#trace")).to_contain_text("similar: orders_waiting")
        await visit.screenshot("read")


async def test_markup_in_labels_is_shown_as_text(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open("#/autoscalers/odd/hostile")
        await expect(visit.page.locator("#steps")).to_contain_text(HOSTILE)
        await visit.open("#/read/shop/strange")
        await visit.page.get_by_role("button", name="Read", exact=True).click()
        await expect(visit.page.locator("#trace table")).to_contain_text(HOSTILE)
        assert await visit.page.locator("main script, main img").count() == 0


async def test_list_is_usable_by_keyboard(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open()
        await visit.page.get_by_label("Filter", exact=True).focus()
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


@pytest.mark.parametrize("height", [700, 900, 1200])
async def test_list_ends_within_the_window_and_scrolls_inside(browser: BrowserSession, served: ServedPage, height: int):
    async with browser.visit(served) as visit:
        await visit.page.set_viewport_size({"width": 1280, "height": height})
        await visit.open()
        await expect(visit.page.locator("#list li")).to_have_count(13)
        assert await visit.page.evaluate("document.documentElement.scrollHeight") <= height
        await visit.page.locator("#list a").first.focus()
        await visit.page.keyboard.press("End")
        await expect(visit.page.locator("#list a").last).to_be_focused()
        await expect(visit.page.locator("#list a").last).to_be_in_viewport()


async def test_list_is_filtered_by_state(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open()
        await visit.page.get_by_role("button", name="metric failing").click()
        await expect(visit.page.locator("#list li")).to_have_count(2)
        await expect(visit.page.get_by_role("button", name="metric failing")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "route", ["autoscalers", "autoscalers/shop/orders", "autoscalers/odd/hostile", "rules", "read"]
)
async def test_page_needs_no_horizontal_scrolling(
    browser: BrowserSession, served: ServedPage, route: str, scheme: ColorScheme
):
    async with browser.visit(served, scheme=scheme) as visit:
        await visit.open(f"#/{route}")
        for width in (1280, 768, 400):
            await visit.page.set_viewport_size({"width": width, "height": 900})
            assert await visit.page.evaluate("document.documentElement.scrollWidth") <= width
            await visit.screenshot(f"{route.replace('/', '-')}-{width}-{scheme}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_contrast_is_sufficient_in_both_themes(
    browser: BrowserSession, served: ServedPage, scheme: ColorScheme
):
    async with browser.visit(served, scheme=scheme) as visit:
        await visit.open("#/autoscalers/shop/search")
        assert await visit.page.evaluate(MINIMUM_CONTRAST) >= 4.5


async def test_no_animations_with_reduced_motion(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served, motion="reduce") as visit:
        await visit.open()
        assert await visit.page.evaluate("document.getAnimations().length") == 0


async def test_lost_connection_is_shown_and_restored(browser: BrowserSession, served: ServedPage):
    async with browser.visit(served) as visit:
        await visit.open()
        await visit.page.context.set_offline(True)
        await expect(visit.page.locator("#connection")).to_contain_text("Disconnected", timeout=EXPECT)
        await visit.page.context.set_offline(False)
        await expect(visit.page.locator("#connection-text")).to_have_text("Connected", timeout=EXPECT)
        visit.errors.clear()  # Chromium logs an error when it is offline


APPLY_DELTAS = """async ([base, deltas]) => {
  const { applyDelta } = await import("/debug/page/overview.js");
  return deltas.map((delta) => structuredClone(base = applyDelta(base, delta)));
}"""
MINIMUM_CONTRAST = """() => {
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

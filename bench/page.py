"""Load of the debugging page in Chromium with a large fleet: time to the first list, longest task, bytes per minute.

    python -m bench.page [--count 2000] [--seconds 15] [--screenshots DIRECTORY]

The real server serves ``--count`` autoscalers, all of which are reconciled every 15 seconds; a percentage of the
reconciles changes replicas or state. The page is opened at three widths and in both themes. Bytes are those on the
wire, in relation to full responses without compression, which the page got before it requested deltas.
"""

import argparse
import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from aiohttp import ClientSession
from msgspec.structs import replace
from playwright.async_api import Browser, CDPSession, Page, async_playwright

from adapter.debug.decision_log import DecisionLog
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.decision import Decision
from autoscaler.types.observation import Reading
from autoscaler.types.spec import ObjectReference
from tests.browser.conftest import CHROMIUM, FLAGS, ColorScheme
from tests.browser.sample_decisions import END
from tests.browser.served_page import ServedPage, serve_page
from tests.builders import (
    ReconcileInput,
    external_reading,
    make_autoscaler,
    make_external_metric,
    make_fallback,
    make_spec,
    run_reconciles,
    unavailable_reading,
)

PERIOD = 15.0
TICK = 0.05
WIDTHS = (400, 900, 1440)
SCHEMES: tuple[ColorScheme, ...] = ("light", "dark")
CHANGING = (0, 1, 10, 100)
SPEC = make_spec(make_external_metric("orders_waiting", average="10", fallback=make_fallback(6, 180)), maximum=20)
OBSERVER = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
}).observe({ type: "longtask", buffered: true });
new MutationObserver(() => { window.firstList ??= document.querySelector("#list li") ? performance.now() : undefined; })
  .observe(document, { childList: true, subtree: true });
"""


class Fleet:
    """Autoscalers whose reconciles repeat a decision, or change to another one."""

    def __init__(self, log: DecisionLog, count: int) -> None:
        self._log = log
        self._random = random.Random(1)  # noqa: S311 - a reproducible run
        self._decisions = _decisions()
        self._autoscalers = {key: _autoscaler(key) for key in map(_key, range(count))}
        self._current = dict.fromkeys(self._autoscalers, 0)
        self.changing = 0.0
        for key in self._autoscalers:
            self._current[key] = self._random.randrange(len(self._decisions))
            self._reconcile(key, END)

    async def run(self, served: ServedPage) -> None:
        """Reconcile all autoscalers in each period."""
        keys, done, started = list(self._autoscalers), 0, asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(TICK)
            due = int((asyncio.get_running_loop().time() - started) / PERIOD * len(keys))
            for number in range(done, due):
                key = keys[number % len(keys)]
                if self._random.random() < self.changing:
                    self._current[key] = self._random.randrange(len(self._decisions))
                self._reconcile(key, served.now())
            done = due

    def _reconcile(self, key: str, now: datetime) -> None:
        self._log.on_decision(key, self._autoscalers[key], replace(self._decisions[self._current[key]], at=now))


def _key(number: int) -> str:
    return f"team-{number % 40:02}/service-{number:04}"


def _autoscaler(key: str) -> Autoscaler:
    namespace, _, name = key.partition("/")
    spec = replace(SPEC, scale_target_ref=ObjectReference("Deployment", name, "apps/v1"))
    return replace(make_autoscaler(spec), metadata=Metadata(name, namespace, uid=key))


def _decisions() -> list[Decision]:
    """Return decisions of several states and replica counts; most are normal."""
    outage = unavailable_reading("metric 'orders_waiting' could not be read: prometheus: rejected: connection refused")
    runs: list[list[Reading]] = [[external_reading(value)] * 3 for value in (30, 40, 55, 70, 85, 100, 115, 500)]
    runs += [[external_reading(40), outage], [external_reading(40), *[outage] * 14]]
    inputs = [[ReconcileInput(15 * index, (one,)) for index, one in enumerate(run)] for run in runs]
    return [run_reconciles(SPEC, run)[-1] for run in inputs]


class Visit(NamedTuple):
    """What the browser measured."""

    first_list: float
    longest_task: float


async def visit(browser: Browser, served: ServedPage, width: int, scheme: ColorScheme, images: Path | None) -> Visit:
    """Open the page, look at the list and at one autoscaler while the fleet changes."""
    context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = await context.new_page()
    await page.add_init_script(OBSERVER)
    await page.goto(f"{served.url}/debug/page")
    await page.locator("#list li").first.wait_for()
    first_list = await page.evaluate("window.firstList")
    await asyncio.sleep(3)
    await _screenshot(page, images, f"list-{width}-{scheme}")
    await page.locator("#list a").first.click()
    await page.locator("#replicas b").wait_for()
    await asyncio.sleep(2)
    await _screenshot(page, images, f"autoscaler-{width}-{scheme}")
    longest = await page.evaluate("window.longest")
    await context.close()
    return Visit(first_list, longest)


async def _screenshot(page: Page, images: Path | None, name: str) -> None:
    if images is not None:
        await page.screenshot(path=images / f"{name}.png")


class Traffic:
    """The bytes and the number of the responses to requests of the overview."""

    def __init__(self, session: CDPSession) -> None:
        self.received, self.updates = 0.0, 0
        self._overviews: set[str] = set()
        session.on("Network.responseReceived", self._on_response)
        session.on("Network.loadingFinished", self._on_finished)

    def _on_response(self, event: dict[str, dict[str, str]]) -> None:
        if "/debug/overview" in event["response"]["url"]:
            self._overviews.add(str(event["requestId"]))
            self.updates += str(event["response"]["status"]) == "200"

    def _on_finished(self, event: dict[str, float]) -> None:
        if str(event["requestId"]) in self._overviews:
            self.received += event["encodedDataLength"]


async def traffic(browser: Browser, served: ServedPage, route: str, seconds: float) -> Traffic:
    """Count the traffic of an open page, after its first response."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{served.url}/debug/page{route}")
    await page.locator("#list li").first.wait_for()
    session = await context.new_cdp_session(page)
    await session.send("Network.enable")
    counted = Traffic(session)
    await asyncio.sleep(seconds)
    await context.close()
    return counted


async def full_size(served: ServedPage, selected: str) -> int:
    """Return the size of a full response without compression."""
    async with (
        ClientSession() as session,
        session.get(
            f"{served.url}/debug/overview?selected={selected}", headers={"Accept-Encoding": "identity"}
        ) as response,
    ):
        return len(await response.read())


@asynccontextmanager
async def running(fleet: Fleet, served: ServedPage) -> AsyncIterator[None]:
    task = asyncio.create_task(fleet.run(served))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def main(count: int, seconds: float, images: Path | None) -> None:
    if CHROMIUM is None:
        raise SystemExit("chromium is not installed: apt install chromium")
    async with serve_page() as served, async_playwright() as playwright:
        fleet = Fleet(served.log, count)
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        async with running(fleet, served):
            fleet.changing = 0.1
            print(f"{count} autoscalers, reconciled every {PERIOD:g} s, 10 % of the reconciles change the row")
            print(f"{'width':>6} {'theme':<6} {'first list':>12} {'longest task':>14}")
            for width in WIDTHS:
                for scheme in SCHEMES:
                    found = await visit(browser, served, width, scheme, images)
                    longest = f"{found.longest_task:.0f} ms" if found.longest_task else "<50 ms"
                    print(f"{width:>6} {scheme:<6} {found.first_list:>9.0f} ms {longest:>14}")
            print(f"\n{'view':<12} {'changing':>9} {'updates/min':>12} {'KB/min':>8} {'full KB/min':>12} {'ratio':>7}")
            for name, selected in (("list", ""), ("autoscaler", _key(0))):
                for percentage in CHANGING:
                    fleet.changing = percentage / 100
                    counted = await traffic(browser, served, f"#/autoscalers/{selected}", seconds)
                    minute = 60 / seconds
                    size, full = counted.received * minute / 1000, await full_size(served, selected)
                    before = counted.updates * minute * full / 1000
                    ratio = f"{size / before:.3f}" if before else "-"
                    updates = counted.updates * minute
                    print(f"{name:<12} {percentage:>7} % {updates:>12.0f} {size:>8.1f} {before:>12.1f} {ratio:>7}")
        await browser.close()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Load of the debugging page in Chromium.")
    arguments.add_argument("--count", type=int, default=2000)
    arguments.add_argument("--seconds", type=float, default=15)
    arguments.add_argument("--screenshots", type=Path)
    parsed = arguments.parse_args()
    asyncio.run(main(parsed.count, parsed.seconds, parsed.screenshots))

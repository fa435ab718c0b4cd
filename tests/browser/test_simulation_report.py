"""The report of a simulation in Chromium: three widths, two themes, keyboard, pointer, no error and no request."""

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from adapter.__main__ import main
from tests.browser.conftest import FLAGS, SCREENSHOTS, chromium_path

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

SPEC = """
apiVersion: steadyscale.dev/v1beta1
kind: PodAutoscaler
metadata: {name: orders, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: orders}
  minReplicas: 2
  maxReplicas: 40
  metrics:
  - type: External
    external:
      metric: {name: orders-waiting}
      target: {type: AverageValue, averageValue: "30"}
"""


def write_report(folder: Path) -> Path:
    """Write a report about a day with a morning rush and an outage."""
    rows = ["timestamp,value"]
    for minute in range(24 * 60):
        value = 400 + 350 * math.sin(minute / 230) + (300 if 480 <= minute < 540 else 0) + 25 * math.sin(minute * 7)
        rows.append(f"{1772323200 + 60 * minute},{value:.0f}")
    (folder / "orders.yaml").write_text(SPEC)
    (folder / "load.csv").write_text("\n".join(rows))
    fallback = "--set=spec.metrics[0].external.fallback={replicas: 25}"
    window = "--set=spec.behavior.scaleDown.stabilizationWindowSeconds=3600"
    outage = ("--outage=2026-03-01T07:30Z/3h", "--startup=45s", "--period=30s")
    arguments = [str(folder / "orders.yaml"), f"--history={folder / 'load.csv'}", fallback, window, *outage]
    assert main(["simulate", *arguments, "-o", "html", f"--file={folder / 'report.html'}"]) == 0
    return folder / "report.html"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    path = chromium_path()  # skips the test before Playwright is started
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        await launched.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("report"))


class ReportVisit:
    """A window with the report, and its errors."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("console", lambda message: self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "request",
            lambda request: self.errors.extend([request.url] * (not request.url.startswith(("file:", "data:")))),
        )

    async def open(self, report: Path) -> None:
        await self.page.goto(report.as_uri())
        await self.page.locator("path.replicas").first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 820, 1400])
async def test_report_fits_every_width_in_both_themes(browser: Browser, report: Path, width, scheme):
    page = await browser.new_page(viewport={"width": width, "height": 1200}, color_scheme=scheme)
    visit = ReportVisit(page)
    await visit.open(report)
    SCREENSHOTS.mkdir(exist_ok=True, parents=True)
    await page.screenshot(path=SCREENSHOTS / f"report-{width}-{scheme}.png", full_page=True)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.locator("path.replicas").count() == 3
    assert await page.locator(".shade.under").count() > 0
    assert await page.locator(".shade.fallback").count() > 0
    assert visit.errors == []
    await page.close()


async def test_keyboard_and_pointer_show_the_steps_of_a_decision(browser: Browser, report: Path):
    page = await browser.new_page(viewport={"width": 1000, "height": 1000})
    visit = ReportVisit(page)
    await visit.open(report)
    readout = page.locator("#readout")
    await page.locator(".stage").focus()
    await page.keyboard.press("ArrowRight")
    assert (await readout.inner_text()).startswith("2026-03-01 00:0")
    await page.keyboard.press("End")
    assert (await readout.inner_text()).startswith("2026-03-01 23:59")
    await page.keyboard.press("Escape")
    box = await page.locator(".stage").bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 60)
    assert (await readout.inner_text()).startswith("2026-03-01 08:55")
    articles = page.locator("#steps article")
    assert await articles.count() == 3
    assert "fallback" in await articles.nth(1).inner_text()
    assert visit.errors == []
    await page.close()

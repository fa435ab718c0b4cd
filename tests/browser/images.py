"""Makes the screenshots of the documentation: ``python -m tests.browser.images``."""

import asyncio
import re
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, async_playwright, expect

from adapter.__main__ import main as main_command
from tests.browser.conftest import FLAGS, ColorScheme, chromium_path
from tests.browser.sample_decisions import add_samples
from tests.browser.served_page import serve_page
from tools.sample_load import load

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
WINDOWS: Final[tuple[tuple[str, ColorScheme, int, int], ...]] = (
    ("page-light", "light", 1280, 1360),
    ("page-dark", "dark", 1280, 1360),
    ("page-phone", "light", 400, 1000),
)
REPORTS: Final = {
    "report.html": "simulation.png",
    "target.html": "simulation-target.png",
    "fallback.html": "simulation-fallback.png",
}


async def main() -> None:
    async with serve_page() as served, async_playwright() as playwright:
        add_samples(served.log)
        browser = await playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        for name, scheme, width, height in WINDOWS:
            context = await browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = await context.new_page()
            await page.goto(f"{served.url}/debug/page#/autoscalers/shop/orders")
            await page.get_by_role("button", name="1 hour", exact=True).click()
            await page.locator(".history path.replicas").wait_for()
            await page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
            await page.mouse.move(0, 0)
            await page.screenshot(path=IMAGES / f"{name}.png")
            await context.close()
        await _what_if(browser, served.url)
        await _reports(browser)
        await browser.close()


async def _what_if(browser: Browser, url: str) -> None:
    """Make the picture of a replay: a lower maximum and a higher fallback."""
    page = await browser.new_page(viewport={"width": 1280, "height": 1500}, color_scheme="light")
    await page.goto(f"{url}/debug/page#/autoscalers/shop/orders")
    await page.locator(".what-if > summary").click()
    spec = page.locator("#what-if-spec")
    await expect(spec).to_have_value(re.compile("maxReplicas: 24"))
    edited = (
        (await spec.input_value()).replace("maxReplicas: 24", "maxReplicas: 14").replace("replicas: 12", "replicas: 6")
    )
    await spec.fill(edited.replace("strategy: UseMax", "strategy: Static"))
    await page.get_by_role("button", name="Replay").click()
    await page.locator(".what-if-result path.replicas").wait_for()
    await page.evaluate("document.querySelector('#what-if-spec').scrollTop = 0")
    await page.locator(".what-if-result .stage").hover(position={"x": 500, "y": 200})
    await page.locator(".what-if").screenshot(path=IMAGES / "what-if.png")


async def _reports(browser: Browser) -> None:
    """Make the pictures of the reports that the commands of docs/simulation.md write."""
    page_text = (IMAGES.parent / "simulation.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for spec in ("web.yaml", "jobs.yaml"):
            content = page_text.partition(f"# {spec}\n")[2].partition("```")[0]
            (folder / spec).write_text(content, encoding="utf-8")
        rows = "".join(f"{at.isoformat()},{value:.1f}\n" for at, value in load(days=1, peak=1000))
        (folder / "load.csv").write_text(f"timestamp,value\n{rows}", encoding="utf-8")
        for command in re.findall(r"^steadyscale (simulate .* -o html .*)$", page_text, re.MULTILINE):
            with chdir(folder):
                main_command(command.split())
            report = folder / command.rpartition("--file=")[2]
            page = await browser.new_page(viewport={"width": 1100, "height": 1150}, color_scheme="light")
            await page.goto(report.as_uri())
            await page.locator("path.replicas").first.wait_for()
            chart = await page.locator("figure.chart").bounding_box()
            assert chart is not None
            await page.set_viewport_size({"width": 1100, "height": round(chart["y"] + chart["height"] + 24)})
            await page.locator(".stage").hover(position={"x": 860, "y": 250})
            await page.screenshot(path=IMAGES / REPORTS[report.name])


if __name__ == "__main__":
    asyncio.run(main())

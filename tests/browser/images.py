"""Makes the screenshots of the documentation: ``python -m tests.browser.images``."""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, async_playwright

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
        await _simulation(browser)
        await browser.close()


async def _simulation(browser: Browser) -> None:
    """Make the picture of the report that docs/simulation.md describes."""
    with tempfile.TemporaryDirectory() as folder:
        spec, history, report = (Path(folder) / name for name in ("web.yaml", "load.csv", "report.html"))
        page_text = (IMAGES.parent / "simulation.md").read_text(encoding="utf-8")
        spec.write_text(page_text.partition("# web.yaml\n")[2].partition("```")[0], encoding="utf-8")
        rows = "".join(f"{at.isoformat()},{value:.1f}\n" for at, value in load(days=1, peak=1000))
        history.write_text(f"timestamp,value\n{rows}", encoding="utf-8")
        window = "--set=spec.behavior.scaleDown.stabilizationWindowSeconds=0"
        options = [f"--history={history}", "--startup=1m", "--period=60s", window, "-o", "html", f"--file={report}"]
        main_command(["simulate", str(spec), *options])
        page = await browser.new_page(viewport={"width": 1100, "height": 1150}, color_scheme="light")
        await page.goto(report.as_uri())
        await page.locator("path.replicas").first.wait_for()
        await page.locator(".stage").hover(position={"x": 560, "y": 250})
        await page.screenshot(path=IMAGES / "simulation.png")


if __name__ == "__main__":
    asyncio.run(main())

"""Fixtures: Chromium and the served page, once per module. Without Chromium the tests are skipped, but fail in CI."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright

from tests.browser.sample_decisions import add_samples
from tests.browser.served_page import ServedPage, serve_page
from tests.missing_programs import missing

ColorScheme: TypeAlias = Literal["light", "dark"]
Motion: TypeAlias = Literal["no-preference", "reduce"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCREENSHOTS = Path(os.environ.get("SCREENSHOTS", Path(tempfile.gettempdir()) / "steadyscale-screenshots"))


def chromium_path() -> str:
    """Return the path of Chromium; skip the test if it is not installed, or fail it in CI."""
    if CHROMIUM is None:
        missing("chromium", "apt install chromium")
    return CHROMIUM


@dataclass
class PageVisit:
    """A browser window on the page; it records errors and requests to other hosts."""

    page: Page
    served: ServedPage
    errors: list[str] = field(default_factory=list)
    external_requests: list[str] = field(default_factory=list)

    def record(self) -> None:
        """Record errors, warnings, dialogs and external requests."""
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._on_request)
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def _on_request(self, request: Request) -> None:
        if urlsplit(request.url).hostname != "127.0.0.1":
            self.external_requests.append(request.url)

    async def open(self, route: str = "") -> None:
        await self.page.goto(f"{self.served.url}/debug/page{route}")
        await self.page.get_by_text("Connected", exact=True).wait_for()

    async def screenshot(self, name: str) -> None:
        await self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served() -> AsyncIterator[ServedPage]:
    async with serve_page() as page:
        add_samples(page.log)
        yield page


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator["BrowserSession"]:
    """Start Chromium with a new, temporary profile."""
    program = chromium_path()
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield BrowserSession(chromium)
        await chromium.close()


@dataclass
class BrowserSession:
    """Opens windows that share no state."""

    chromium: Browser

    @asynccontextmanager
    async def visit(
        self, served: ServedPage, *, width: int = 1280, scheme: ColorScheme = "light", motion: Motion = "no-preference"
    ) -> AsyncIterator[PageVisit]:
        """Open a window; at the end, assert that there were no errors and no external requests."""
        context = await self.chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion=motion
        )
        try:
            visit = PageVisit(await context.new_page(), served)
            visit.record()
            yield visit
            assert visit.errors == []
            assert visit.external_requests == []
        finally:
            await context.close()

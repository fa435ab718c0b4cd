"""One Chromium and one served page for a module of tests. Without Chromium they are skipped, loudly; never on CI."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright

from tests.browser.serving import Shown, page
from tests.browser.story import told

Scheme: TypeAlias = Literal["light", "dark"]
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
KEPT = Path(os.environ.get("SCREENSHOTS", Path(tempfile.gettempdir()) / "steadyscale-screenshots"))
"""Where pictures of each run are kept."""


def browser_program() -> str:
    """Find Chromium; skip where a user has none, and fail where a machine ought to have it."""
    if CHROMIUM is None:
        told_how = "no chromium here (the package chromium): the page was NOT looked at"
        if os.environ.get("CI") == "true":
            pytest.fail(told_how)
        pytest.skip(told_how)
    return CHROMIUM


@dataclass
class Visit:
    """A person at the page, and everything that went wrong or elsewhere meanwhile."""

    page: Page
    shown: Shown
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Note what should not happen."""
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._request)
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).hostname != "127.0.0.1":
            self.elsewhere.append(request.url)

    async def open(self, route: str = "") -> None:
        await self.page.goto(f"{self.shown.url}/debug/page{route}")
        await self.page.get_by_text("Live", exact=True).wait_for()

    async def keep(self, name: str) -> None:
        await self.page.screenshot(path=KEPT / f"{name}.png", full_page=True)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shown() -> AsyncIterator[Shown]:
    async with page() as ready:
        told(ready.shelf)
        yield ready


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator["Browsing"]:
    """Start Chromium, with a profile that nobody has used and that is thrown away."""
    program = browser_program()
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield Browsing(started)
        await started.close()


@dataclass
class Browsing:
    """Opens windows that share nothing."""

    chromium: Browser

    @asynccontextmanager
    async def visit(
        self, shown: Shown, *, width: int = 1280, scheme: Scheme = "light", motion: Motion = "no-preference"
    ) -> AsyncIterator[Visit]:
        """Look at the page, and see afterwards that nothing was complained of and nothing left the machine."""
        context = await self.chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion=motion
        )
        try:
            visit = Visit(await context.new_page(), shown)
            visit.watch()
            yield visit
            assert visit.complaints == []
            assert visit.elsewhere == []
        finally:
            await context.close()

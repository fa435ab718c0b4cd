"""The page during the whole scenario of the demo: real process, real controller, real browser."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby

import pytest

from tests.browser.conftest import BrowserSession
from tests.waiting import GIVE_UP

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

RECORD_CHANGES = """() => {
  window.recorded = [];
  const record = () => {
    const output = [...document.querySelectorAll("#steps li:not([data-step^=Metric]) .output")]
      .map((node) => node.textContent).filter((text) => /^[0-9]+$/.test(text)).at(-1);
    window.recorded.push([document.querySelector(".chips .label")?.textContent ?? "",
      document.querySelector("#replicas b")?.textContent ?? "", output ?? "",
      document.querySelector("#rules-failing").hidden]);
  };
  new MutationObserver(record).observe(document.getElementById("announcements"), { childList: true });
  record();
}"""
"""Records at each change: state, replicas, result of the last step, and whether no rule is failing."""


@asynccontextmanager
async def running_demo() -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run the demo at double the default speed; yield the process and the page's address."""
    command = (sys.executable, "-m", "adapter", "demo", "--speed", "60")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        while (found := re.search(rb"http://127\S+/open/\S+", await process.stdout.readline())) is None:
            assert process.returncode is None
        yield process, found[0].decode()
    finally:
        process.send_signal(signal.SIGINT)
        await process.communicate()


async def _until_scaled_from_zero(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(GIVE_UP * 3):
        while b"scaled from zero" not in await process.stdout.readline():
            assert process.returncode is None


async def test_page_shows_the_states_of_the_story_and_steps_that_lead_to_the_replicas(browser: BrowserSession, served):
    async with running_demo() as (process, url), browser.visit(served) as visit:
        await visit.page.goto(f"{url}#/autoscalers/shop/checkout-consumer")
        await visit.page.locator("#replicas b").wait_for()
        await visit.page.evaluate(RECORD_CHANGES)
        await _until_scaled_from_zero(process)
        await visit.page.locator(".chips .label", has_text="normal").first.wait_for()
        await visit.screenshot("demo")
        recorded = await visit.page.evaluate("window.recorded")

    states = [state for state, _ in groupby(one[0] for one in recorded)]
    unlimited = [state for state, _ in groupby(state for state in states if state != "limited")]
    assert unlimited == ["normal", "metric failing", "fallback", "normal", "scaled to zero", "normal"]
    assert [one for one in recorded if one[1] != one[2]] == []
    assert any(not no_rule_fails for *_, no_rule_fails in recorded)

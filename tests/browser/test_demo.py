"""The page through the whole day of the demonstration: the real process, the real controller, a real browser."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby

import pytest

from tests.browser.conftest import Browsing, Visit

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

OBSERVED = """() => {
  window.observed = [];
  const look = () => {
    const came = [...document.querySelectorAll("#working li:not([data-step^=Metric]) .came")]
      .map((node) => node.textContent).filter((text) => /^[0-9]+$/.test(text)).at(-1);
    window.observed.push([document.querySelector(".chips .word")?.textContent ?? "",
      document.querySelector("#replicas b")?.textContent ?? "", came ?? "",
      document.querySelector("#rules-failing").hidden]);
  };
  new MutationObserver(look).observe(document.getElementById("announcements"), { childList: true });
  look();
}"""
"""Notes, whenever the state or the size changes: both, what the working came to, and whether no rule fails."""


@asynccontextmanager
async def day() -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Play the demonstration's day, twice as fast as usual; yield the process and the page's address."""
    command = (sys.executable, "-m", "adapter", "demo", "--speed", "60")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        while (found := re.search(rb"http://127\S+(?=/debug/page)", await process.stdout.readline())) is None:
            assert process.returncode is None
        yield process, found[0].decode()
    finally:
        process.send_signal(signal.SIGINT)
        await process.communicate()


async def _until_the_day_is_over(process: asyncio.subprocess.Process) -> None:
    """Read the story until the first order of the next morning has been served."""
    assert process.stdout is not None
    async with asyncio.timeout(180):
        while b"woke up" not in await process.stdout.readline():
            assert process.returncode is None


async def test_the_states_of_a_day_appear_in_order_and_every_working_adds_up(browser: Browsing, shown):
    async with day() as (process, url), browser.visit(shown) as visit:
        await visit.page.goto(f"{url}/debug/page#/autoscalers/shop/checkout-consumer")
        await visit.page.locator("#replicas b").wait_for()
        await visit.page.evaluate(OBSERVED)
        await _until_the_day_is_over(process)
        await _shows(visit, "normal")
        await visit.keep("day")
        observed = await visit.page.evaluate("window.observed")

    states = [state for state, _ in groupby(one[0] for one in observed)]
    calm = [state for state, _ in groupby(state for state in states if state != "limited")]
    assert calm == ["normal", "failing", "fallback", "normal", "at zero", "normal"]
    assert [one for one in observed if one[1] != one[2]] == []
    assert any(not no_rule_fails for *_, no_rule_fails in observed)


async def _shows(visit: Visit, state: str) -> None:
    await visit.page.locator(".chips .word", has_text=state).first.wait_for()

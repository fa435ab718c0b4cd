import asyncio

from adapter.debug.trace import MOST_SERIES, way
from adapter.debug.trace_text import lines
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import RuleReader, Sources
from adapter.rules.rule import Namespacing, Rule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, ScriptedBackend, raw


async def told(rows: tuple, selector: str = "", rule: Rule | None = None) -> dict:
    backend = ScriptedBackend(rows={"q": rows})
    sources = Sources.of(Fetcher({"b": backend}, lambda: BEGINNING))
    reader = RuleReader(RuleRegistry([rule or Rule("m", backend="b", query="q")]), sources, lambda: BEGINNING)
    look = await reader.look("shop", "m", parse(selector))
    await sources.aclose()
    return way(look, reader)


async def test_a_series_of_another_namespace_says_so():
    way_there = await told((raw(1, namespace="shop"), raw(2, namespace="bank"), raw(3)))

    assert [item.get("why") for item in way_there["series"]["items"]] == [
        None,
        "namespace is 'bank', not 'shop'",
        "namespace is None, not 'shop'",
    ]


async def test_of_many_series_those_that_matched_are_shown_first():
    rows = tuple(raw(number, n=str(number)) for number in range(1000))
    way_there = await told(rows, "n=999", Rule("m", backend="b", query="q", namespace=Namespacing()))

    assert way_there["series"]["items"][0]["value"] == "999"
    assert way_there["series"]["leftOff"] == 1000 - MOST_SERIES
    assert "  and 980 more" in list(lines(way_there))


async def test_hostile_labels_cannot_speak_to_the_terminal():
    said = "\n".join(lines(await told((raw(1, namespace="shop", a="\x1b[2J\r\nvalue 99 <script>"),))))

    assert "\x1b" not in said
    assert "\\x1b[2J\\r\\nvalue 99 <script>" in said


async def test_a_bug_in_one_read_is_not_in_anothers_way():
    first, second = await asyncio.gather(
        told((raw(float("nan"), namespace="shop"),)), told((raw(1, namespace="shop"),))
    )

    assert (first["error"]["class"], second["value"]) == ("not a number", "1")

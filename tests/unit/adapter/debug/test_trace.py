"""The view of a read trace, and its text."""

import asyncio

from adapter.debug.render import trace_lines
from adapter.debug.trace import MAX_SERIES, namespace_trace_view, trace_view
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.rule import Namespacing, Rule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, ScriptedBackend, raw


async def trace_of(rows: tuple, selector: str = "", rule: Rule | None = None) -> dict:
    backend = ScriptedBackend(results={"q": rows})
    sources = Sources(Fetcher({"b": backend}, lambda: BEGINNING))
    reader = MetricReader(RuleRegistry([rule or Rule("m", backend="b", query="q")]), sources, lambda: BEGINNING)
    trace = await reader.read("shop", "m", parse(selector))
    await sources.aclose()
    return trace_view(trace, reader)


async def test_series_of_another_namespace_has_the_mismatch_as_reason():
    trace = await trace_of((raw(1, namespace="shop"), raw(2, namespace="bank"), raw(3)))

    assert [item.get("reason") for item in trace["series"]["items"]] == [
        None,
        "namespace is 'bank', not 'shop'",
        "no label namespace",
    ]


async def test_selected_label_that_a_series_does_not_have_is_the_reason():
    trace = await trace_of((raw(60.0, namespace="shop"),), "queue=orders")

    assert trace["series"]["items"][0]["reason"] == "not queue=orders: no label queue"
    assert "  - {namespace=shop} 60 (0s old)   not queue=orders: no label queue" in list(trace_lines(trace))


async def test_matching_series_are_listed_first_and_the_list_is_limited():
    rows = tuple(raw(number, n=str(number)) for number in range(1000))
    trace = await trace_of(rows, "n=999", Rule("m", backend="b", query="q", namespace=Namespacing()))

    assert trace["series"]["items"][0]["value"] == "999"
    assert trace["series"]["omitted"] == 1000 - MAX_SERIES
    assert "  and 980 more" in list(trace_lines(trace))


async def test_control_characters_in_labels_are_escaped():
    text = "\n".join(trace_lines(await trace_of((raw(1, namespace="shop", a="\x1b[2J\r\nvalue 99 <script>"),))))

    assert "\x1b" not in text
    assert "\\x1b[2J\\r\\nvalue 99 <script>" in text


async def test_concurrent_reads_have_independent_errors():
    first, second = await asyncio.gather(
        trace_of((raw(float("nan"), namespace="shop"),)), trace_of((raw(1, namespace="shop"),))
    )

    assert (first["error"]["class"], second["value"]) == ("not a number", "1")


async def test_refused_object_is_not_reported_as_unknown_to_users_of_its_namespace():
    sources = Sources(Fetcher({}, lambda: BEGINNING))
    registry = RuleRegistry([])
    registry.refuse_object("shop/m", "spec.backend: unknown")
    reader = MetricReader(registry, sources, lambda: BEGINNING)
    trace = await reader.read("shop", "m", parse(""))
    await sources.aclose()

    refused = "rule          none: refused: ExternalMetric 'm': spec.backend: unknown"
    assert refused in list(trace_lines(namespace_trace_view(trace, reader)))

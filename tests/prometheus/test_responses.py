"""Responses of a real Prometheus with fixed data."""

import math
from datetime import timedelta
from typing import Any

import pytest

from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.errors import BadQuery
from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.expression import LabelMatcher, VectorSelector
from adapter.rules.promql.matchers import equality_matcher, escape_regex, quote
from adapter.rules.promql.printer import to_text
from adapter.rules.query_builder import Query
from adapter.rules.tenancy import restrict_to_namespace
from adapter.sample import RawSample
from tests.prometheus.fixed_responses import HOSTILE, MANY, NOW, as_of, backend
from tests.prometheus.server import Server

pytestmark = [pytest.mark.prometheus, pytest.mark.usefixtures("no_resource_leaks")]
DEADLINE = timedelta(seconds=60)


async def fetch(prometheus: PrometheusBackend, query: str) -> tuple[RawSample, ...]:
    return tuple(await prometheus.fetch(Query("prometheus", query), DEADLINE))


def age(sample: RawSample) -> int:
    return round((as_of(0) - sample.at).total_seconds())


async def test_series_have_their_labels_values_and_sample_timestamps(fixed: Server) -> None:
    async with backend(fixed.url) as prometheus:
        results = {
            sample.labels["queue"]: sample for sample in await fetch(prometheus, 'depth{namespace="shop",queue!=""}')
        }
    assert results["a"].labels == {"__name__": "depth", "queue": "a", "namespace": "shop", "tier": "gold"}
    assert {queue: (sample.value, age(sample)) for queue, sample in results.items()} == {"a": (3, 10), "b": (4.5, 100)}


@pytest.mark.parametrize(
    ("query", "value", "seconds"),
    [
        pytest.param('sum(depth{namespace="shop"})', 15.5, 100, id="sum is as old as its oldest sample"),
        pytest.param('sum by (tier) (depth{queue="a"})', 3, 10, id="aggregation by label"),
        pytest.param('(depth{queue="a"})', 3, 10, id="parentheses"),
        pytest.param('depth{queue="a"} * 2', 6, 10, id="arithmetic with a number"),
        pytest.param(
            'depth{queue="a"} + on () depth{queue="b"}', 7.5, 100, id="binary operation is as old as its older operand"
        ),
        pytest.param('sum(depth{queue="a"}) # with "quotes"', 3, 10, id="comment"),
        pytest.param('max_over_time(depth{queue="b"}[10m])', 4.5, 100, id="range function"),
        pytest.param("sum(gone) or vector(0)", 0, 0, id="missing series or constant is current"),
        pytest.param("vector(5)", 5, 0, id="constant is current"),
        pytest.param("42", 42, 0, id="scalar is current"),
        pytest.param('scalar(depth{queue="b"})', 4.5, 100, id="scalar of a series"),
        pytest.param('scalar(depth{queue="b"}) * 2 # comment', 9, 100, id="arithmetic with a scalar of a series"),
    ],
)
async def test_age_of_a_result_is_the_age_of_its_oldest_sample(
    fixed: Server, query: str, value: float, seconds: int
) -> None:
    async with backend(fixed.url) as prometheus:
        (sample,) = await fetch(prometheus, query)
    assert (sample.value, age(sample)) == (value, seconds)


async def test_query_variant_that_worked_is_reused(fixed: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async with backend(fixed.url) as prometheus:
        await fetch(prometheus, 'scalar(depth{queue="b"})')
        sent, original = [], prometheus._query

        async def record(text: str, *others: Any) -> object:
            sent.append(text)
            return await original(text, *others)

        monkeypatch.setattr(prometheus, "_query", record)
        (sample,) = await fetch(prometheus, 'scalar(depth{queue="b"})')
    assert (len(sent), age(sample)) == (1, 100)


async def test_results_are_current_if_sample_times_is_disabled(fixed: Server) -> None:
    async with backend(fixed.url, sample_times=False) as prometheus:
        (sample,) = await fetch(prometheus, 'depth{queue="b"}')
    assert age(sample) == 0


async def test_values_that_cannot_be_served_are_returned_unchanged(fixed: Server) -> None:
    async with backend(fixed.url) as prometheus:
        results = {sample.labels["kind"]: sample.value for sample in await fetch(prometheus, "odd")}
    assert math.isnan(results.pop("NaN"))
    assert results == {"+Inf": math.inf, "-Inf": -math.inf, "-5": -5, "1e300": 1e300, "0.1": 0.1}


@pytest.mark.parametrize("query", ["nothing_has_this_name", "gone", 'depth{queue="z"}'])
async def test_missing_and_stale_series_are_an_empty_result(fixed: Server, query: str) -> None:
    async with backend(fixed.url) as prometheus:
        assert await fetch(prometheus, query) == ()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("depth[5m]", "the result is a matrix, not a number for each series", id="matrix"),
        pytest.param('"text"', "the result is a string, not a number for each series", id="string"),
        pytest.param(
            "sum(depth", 'invalid parameter "query": 1:10: parse error: unclosed left parenthesis', id="parse error"
        ),
        pytest.param("depth * on () depth", "HTTP 422 Unprocessable Entity (execution)", id="execution error"),
        pytest.param(
            'label_replace(depth, "x", "y", "queue", "(")',
            "HTTP 422 Unprocessable Entity (execution)",
            id="invalid regular expression",
        ),
    ],
)
async def test_invalid_query_is_a_bad_query_with_a_constant_message(fixed: Server, query: str, message: str) -> None:
    async with backend(fixed.url) as prometheus:
        for _ in range(2):
            with pytest.raises(BadQuery) as caught:
                await fetch(prometheus, query)
            assert caught.value.message == message


@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_label_value_with_special_characters_is_matched_exactly(fixed: Server, number: int) -> None:
    text = HOSTILE[number]
    async with backend(fixed.url, method="POST") as prometheus:
        for query in (
            f"hostile{{{equality_matcher('text', text)}}}",
            f"hostile{{text=~{quote(escape_regex(text))}}}",
            to_text(VectorSelector("hostile", (LabelMatcher("text", "=", text),))),
        ):
            assert [(sample.value, sample.labels["text"]) for sample in await fetch(prometheus, query)] == [
                (number, text)
            ]


async def test_ten_thousand_series_are_returned(fixed: Server) -> None:
    async with backend(fixed.url) as prometheus:
        results = await fetch(prometheus, "many")
    assert len(results) == MANY
    assert sum(sample.value for sample in results) == MANY * (MANY - 1) / 2


async def test_response_above_the_maximum_size_is_rejected(fixed: Server) -> None:
    async with backend(fixed.url, max_response_bytes=100_000) as prometheus:
        with pytest.raises(Exception, match="the response is larger than maxResponseBytes"):
            await fetch(prometheus, "many")
        assert await fetch(prometheus, "vector(1)")


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("depth", id="metric name"),
        pytest.param('{__name__="depth"}', id="name as a matcher"),
        pytest.param('depth{namespace=~".*"}', id="matcher for all namespaces"),
        pytest.param("max_over_time(depth[5m])", id="range selector"),
        pytest.param("sum by (namespace) (depth) or depth", id="two selectors"),
        pytest.param("depth unless on (queue) odd", id="set operator"),
        pytest.param('depth or {__name__="depth"}', id="set operator before braces"),
        pytest.param('depth < bool on (queue, namespace) {__name__="depth"}', id="vector matching before braces"),
        pytest.param("max_over_time(depth[5m:1m])", id="subquery"),
        pytest.param("depth offset 1m", id="offset"),
    ],
)
async def test_restricted_query_reads_only_its_own_namespace(fixed: Server, query: str) -> None:
    async with backend(fixed.url) as prometheus:
        all_namespaces = {sample.labels.get("namespace") for sample in await fetch(prometheus, query)}
        own = {
            sample.labels.get("namespace")
            for sample in await fetch(prometheus, restrict_to_namespace(query, "namespace", "shop"))
        }
    assert own <= {"shop"} < all_namespaces | {"shop", "bank"}


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", "\v", "\f", "\x85", "\u2028"])
async def test_selector_after_a_comment_is_restricted_or_rejected(fixed: Server, end: str) -> None:
    try:
        query = restrict_to_namespace(f"depth # comment{end} or depth", "namespace", "shop")
    except PromqlError:
        return
    async with backend(fixed.url) as prometheus:
        assert {sample.labels.get("namespace") for sample in await fetch(prometheus, query)} == {"shop"}


async def test_names_returns_metric_names_with_recent_samples(fixed: Server) -> None:
    async with backend(fixed.url) as prometheus:
        everything = timedelta(seconds=as_of(0).timestamp() - NOW + 3600)
        assert await prometheus.names('{__name__=~"depth|odd|nothing"}', everything, DEADLINE) == {"depth", "odd"}
        assert await prometheus.names("depth", timedelta(minutes=1), DEADLINE) == frozenset()
        with pytest.raises(BadQuery):
            await prometheus.names("sum(depth)", everything, DEADLINE)


async def test_ping_succeeds(fixed: Server) -> None:
    async with backend(fixed.url) as prometheus:
        await prometheus.ping()

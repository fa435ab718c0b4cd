"""What a real Prometheus answers, with data that never change."""

import math
from datetime import timedelta

import pytest

from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.errors import BadQuery
from adapter.rules.promql.lexer import PromqlError, add_matchers
from adapter.rules.promql.matchers import equality_matcher, escape_regex, quote
from adapter.rules.query_builder import Query
from adapter.rules.tenancy import restrict_to_namespace
from adapter.sample import RawSample
from tests.prometheus.fixed_responses import HOSTILE, MANY, NOW, as_of, backend
from tests.prometheus.server import Server

pytestmark = [pytest.mark.prometheus, pytest.mark.usefixtures("nothing_is_left")]
DEADLINE = timedelta(seconds=5)


async def ask(made: PrometheusBackend, query: str) -> tuple[RawSample, ...]:
    return await made.fetch(Query("prometheus", query), DEADLINE)


def age(sample: RawSample) -> int:
    return round((as_of(0) - sample.at).total_seconds())


async def test_series_come_with_their_labels_numbers_and_the_age_of_their_own_samples(fixed: Server) -> None:
    async with backend(fixed.url) as made:
        found = {sample.labels["queue"]: sample for sample in await ask(made, 'depth{namespace="shop",queue!=""}')}
    assert found["a"].labels == {"__name__": "depth", "queue": "a", "namespace": "shop", "tier": "gold"}
    assert {queue: (sample.value, age(sample)) for queue, sample in found.items()} == {"a": (3, 10), "b": (4.5, 100)}


@pytest.mark.parametrize(
    ("query", "value", "seconds"),
    [
        pytest.param('sum(depth{namespace="shop"})', 15.5, 100, id="a sum is as old as the oldest in it"),
        pytest.param('sum by (tier) (depth{queue="a"})', 3, 10, id="by labels"),
        pytest.param('(depth{queue="a"})', 3, 10, id="in parentheses"),
        pytest.param('depth{queue="a"} * 2', 6, 10, id="with a number"),
        pytest.param('depth{queue="a"} + on () depth{queue="b"}', 7.5, 100, id="as old as the quieter input"),
        pytest.param('sum(depth{queue="a"}) # says "why"', 3, 10, id="with a comment"),
        pytest.param('max_over_time(depth{queue="b"}[10m])', 4.5, 100, id="over time"),
        pytest.param("sum(gone) or vector(0)", 0, 0, id="of what is not there, as of now"),
        pytest.param("vector(5)", 5, 0, id="of no series, as of now"),
        pytest.param("42", 42, 0, id="a scalar, as of now"),
        pytest.param('scalar(depth{queue="b"})', 4.5, 100, id="a scalar of a series"),
        pytest.param('scalar(depth{queue="b"}) * 2 # why', 9, 100, id="what is made of a scalar"),
    ],
)
async def test_the_age_is_that_of_the_samples_behind_a_number(
    fixed: Server, query: str, value: float, seconds: int
) -> None:
    async with backend(fixed.url) as made:
        (sample,) = await ask(made, query)
    assert (sample.value, age(sample)) == (value, seconds)


async def test_the_form_that_worked_is_the_one_that_is_asked_from_then_on(fixed: Server) -> None:
    async with backend(fixed.url) as made:
        await ask(made, 'scalar(depth{queue="b"})')
        asked, whole = [], made._query

        async def query(text: str, *more: object) -> object:
            asked.append(text)
            return await whole(text, *more)

        made._query = query
        (sample,) = await ask(made, 'scalar(depth{queue="b"})')
    assert (len(asked), age(sample)) == (1, 100)


async def test_without_sample_times_every_number_is_as_of_now(fixed: Server) -> None:
    async with backend(fixed.url, sample_times=False) as made:
        (sample,) = await ask(made, 'depth{queue="b"}')
    assert age(sample) == 0


async def test_numbers_that_cannot_be_served_come_as_they_are(fixed: Server) -> None:
    async with backend(fixed.url) as made:
        found = {sample.labels["kind"]: sample.value for sample in await ask(made, "odd")}
    assert math.isnan(found.pop("NaN"))
    assert found == {"+Inf": math.inf, "-Inf": -math.inf, "-5": -5, "1e300": 1e300, "0.1": 0.1}


@pytest.mark.parametrize("query", ["nothing_has_this_name", "gone", 'depth{queue="z"}'])
async def test_nothing_is_an_empty_answer_and_so_is_what_prometheus_calls_stale(fixed: Server, query: str) -> None:
    async with backend(fixed.url) as made:
        assert await ask(made, query) == ()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("depth[5m]", "the result is a matrix, not a number for each series", id="a matrix"),
        pytest.param('"text"', "the result is a string, not a number for each series", id="a string"),
        pytest.param(
            "sum(depth", 'invalid parameter "query": 1:10: parse error: unclosed left parenthesis', id="no query"
        ),
        pytest.param(
            "depth * on () depth", "HTTP 422 Unprocessable Entity (execution)", id="a query that cannot be carried out"
        ),
        pytest.param(
            'label_replace(depth, "x", "y", "queue", "(")',
            "HTTP 422 Unprocessable Entity (execution)",
            id="a bad regular expression",
        ),
    ],
)
async def test_a_bad_query_is_told_as_one_in_the_same_words_each_time(fixed: Server, query: str, message: str) -> None:
    async with backend(fixed.url) as made:
        for _ in range(2):
            with pytest.raises(BadQuery) as caught:
                await ask(made, query)
            assert caught.value.message == message


@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_a_hostile_value_is_matched_exactly_and_breaks_out_of_nothing(fixed: Server, number: int) -> None:
    text = HOSTILE[number]
    async with backend(fixed.url, method="POST") as made:
        for query in (
            f"hostile{{{equality_matcher('text', text)}}}",
            f"hostile{{text=~{quote(escape_regex(text))}}}",
            add_matchers("hostile", [equality_matcher("text", text)]),
        ):
            assert [(sample.value, sample.labels["text"]) for sample in await ask(made, query)] == [(number, text)]


async def test_ten_thousand_series_are_one_answer(fixed: Server) -> None:
    async with backend(fixed.url) as made:
        found = await ask(made, "many")
    assert len(found) == MANY
    assert sum(sample.value for sample in found) == MANY * (MANY - 1) / 2


async def test_an_answer_larger_than_allowed_is_refused(fixed: Server) -> None:
    async with backend(fixed.url, max_response_bytes=100_000) as made:
        with pytest.raises(Exception, match="the response is larger than maxResponseBytes"):
            await ask(made, "many")
        assert await ask(made, "vector(1)")


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("depth", id="a name"),
        pytest.param('{__name__="depth"}', id="no name"),
        pytest.param('depth{namespace=~".*"}', id="matchers that ask for all"),
        pytest.param("max_over_time(depth[5m])", id="a range"),
        pytest.param("sum by (namespace) (depth) or depth", id="two places"),
        pytest.param("depth unless on (queue) odd", id="a set operator"),
        pytest.param('depth or {__name__="depth"}', id="a set operator before braces"),
        pytest.param('depth < bool on (queue, namespace) {__name__="depth"}', id="a modifier before braces"),
        pytest.param("max_over_time(depth[5m:1m])", id="a subquery"),
        pytest.param("depth offset 1m", id="an offset"),
    ],
)
async def test_a_confined_query_never_reads_another_namespace(fixed: Server, query: str) -> None:
    async with backend(fixed.url) as made:
        everywhere = {sample.labels.get("namespace") for sample in await ask(made, query)}
        ours = {
            sample.labels.get("namespace") for sample in await ask(made, add_matchers(query, ['namespace="shop"']))
        }
    assert ours <= {"shop"} < everywhere | {"shop", "bank"}


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", "\v", "\f", "\x85", "\u2028"])
async def test_what_follows_a_comment_is_confined_or_refused(fixed: Server, end: str) -> None:
    try:
        query = restrict_to_namespace(f"depth # all that we have{end} or depth", "namespace", "shop")
    except PromqlError:
        return
    async with backend(fixed.url) as made:
        assert {sample.labels.get("namespace") for sample in await ask(made, query)} == {"shop"}


async def test_names_of_series_are_found(fixed: Server) -> None:
    async with backend(fixed.url) as made:
        everything = timedelta(seconds=as_of(0).timestamp() - NOW + 3600)
        assert await made.names('{__name__=~"depth|odd|nothing"}', everything, DEADLINE) == {"depth", "odd"}
        assert await made.names("depth", timedelta(minutes=1), DEADLINE) == frozenset()
        with pytest.raises(BadQuery):
            await made.names("sum(depth)", everything, DEADLINE)


async def test_it_answers_a_ping(fixed: Server) -> None:
    async with backend(fixed.url) as made:
        await made.ping()

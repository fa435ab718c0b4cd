"""What is CloudWatch's own: hundreds of rules in a call, one of them bad; math, searches, periods, pages, statuses."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from adapter.app import clock
from adapter.backends.backend import Aligned
from adapter.backends.configuration import price_per_day
from adapter.backends.loader import opened as backend_opened
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized, BadQuery, ConfigInvalid
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.peers.cloudwatch import NAMESPACE, Peer

pytestmark = [
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="cloudwatch")], indirect=True, scope="session"),
]
MINUTE = timedelta(minutes=1)


def metric(name: str, queue: str = "orders", **more: object) -> Json:
    return {"namespace": NAMESPACE, "metric": name, "dimensions": {"Queue": queue}, **more}


def ratio(expression: str, upper: str, lower: str) -> Json:
    """Ask for math over two metrics, which every rule calls m1 and m2."""
    return {"expression": expression, "metrics": {"m1": metric(upper), "m2": metric(lower)}}


async def outcomes(opened: Opened, asked: Iterable[Json]) -> list[object]:
    """Ask all at once; an error is an outcome, too."""
    return await asyncio.gather(*(opened.ask(each, 20) for each in asked), return_exceptions=True)


def values(outcome: object) -> list[float]:
    assert isinstance(outcome, tuple), outcome
    return [sample.value for sample in outcome]


@asynccontextmanager
async def backend_at(peer: Peer, now: datetime) -> AsyncIterator[Opened]:
    """Open the backend at a time that stands still, for what would come out otherwise a minute later."""
    made = backend_opened("it", configured(peer).backends["it"].settings, lambda: now)
    try:
        yield Opened(made, peer)
    finally:
        await made.aclose()


async def failure(opened: Opened, asked: Json) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await opened.ask(asked)
    return caught.value


# ---- which value


async def test_the_newest_period_that_is_over_counts_with_its_own_time(peer: Peer) -> None:
    now = clock()
    newest = peer.put({"orders": {0: 100, 1: 3, 2: 7, 3: 9}, "mails": {4: 5}}, "Newest", now=now)
    async with backend_at(peer, now) as opened:
        (sample,) = await opened.ask(metric("Newest"))
        assert sample == RawSample(3, newest, {"Queue": "orders"}, MINUTE)
        (sample,) = await opened.ask(metric("Newest", "mails"))
        assert sample == RawSample(5, newest - 3 * MINUTE, {"Queue": "mails"}, MINUTE), "as old as it is"


async def test_how_far_back_and_how_near_is_the_rules_decision(peer: Peer) -> None:
    peer.put({"orders": {1: 3, 4: 7, 40: 9}, "mails": {40: 5}}, "Reach")
    async with backend_of(peer) as opened:
        assert values(await opened.ask(metric("Reach", delay="2m"))) == [7]
        assert await opened.ask(metric("Reach", "mails")) == ()
        assert values(await opened.ask(metric("Reach", "mails", lookback="1h"))) == [5]


@pytest.mark.parametrize(
    ("statistic", "number"),
    [("Average", 4), ("Sum", 12), ("Minimum", 1), ("Maximum", 8), ("SampleCount", 3), ("p50", 3), ("p99.9", 8)],
)
async def test_statistics_and_percentiles(peer: Peer, statistic: str, number: float) -> None:
    name = f"Latency-{statistic}"
    for value in (1, 3, 8):
        peer.put({"orders": {1: value}}, name)
    async with backend_of(peer) as opened:
        assert values(await opened.ask(metric(name, statistic=statistic))) == [number]


async def test_a_longer_period_is_asked_for_whole(peer: Peer) -> None:
    now = clock()
    this = now.replace(second=0, microsecond=0)
    over = this - timedelta(minutes=this.minute % 5 + 5)  # the beginning of the last five minutes that are over
    ago = int((this - over) / MINUTE)
    peer.put({"orders": {ago: 1, ago - 4: 2, ago - 5: 100}}, "Five", now=now)
    async with backend_at(peer, now) as opened:
        (sample,) = await opened.ask(metric("Five", statistic="Sum", period="5m"))
    assert (sample.value, sample.at, sample.window) == (3, over, timedelta(minutes=5))


async def test_a_unit_is_asked_for_and_an_account_and_a_region(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Unit", unit="Seconds")
    peer.server.forget_calls()
    async with backend_of(peer) as opened:
        assert values(await opened.ask(metric("Unit", unit="Seconds", accountId="210987654321"))) == [3]
        assert await opened.ask(metric("Unit", unit="Bytes")) == ()
        assert await opened.ask(metric("Unit", region="eu-north-1")) == ()
    assert peer.server.calls()[0]["MetricDataQueries"][0]["AccountId"] == "210987654321"


# ---- expressions


async def test_math_is_over_a_rules_own_metrics_whatever_others_call_theirs(peer: Peer) -> None:
    peer.put({"orders": {1: 30}}, "Errors")
    peer.put({"orders": {1: 120}}, "Requests")
    async with backend_of(peer) as opened:
        peer.server.forget_calls()
        asked = [ratio("100 * m1 / m2", "Errors", "Requests"), ratio("m1 / m2", "Requests", "Errors"), metric("Errors")]
        assert [values(each) for each in await outcomes(opened, asked)] == [[25], [4], [30]]
        assert [dict(each.labels) for each in await opened.ask(asked[0])] == [{}]
    assert len(peer.server.calls()[0]["MetricDataQueries"]) == 7, "all in one call"


async def test_a_division_by_nothing_is_no_number(peer: Peer) -> None:
    peer.put({"orders": {1: 30}}, "Some")
    peer.put({"orders": {1: 0}}, "None")
    said = [{"Code": "ArithmeticError", "Value": "One or more data points have been dropped"}]
    async with backend_of(peer) as opened:
        with peer.server.ordered(messages={"q0": said}):
            (sample,) = await opened.ask(ratio("m1 / m2", "Some", "None"))
        assert math.isnan(sample.value)
        assert timedelta() < clock() - sample.at < 5 * MINUTE


async def test_a_search_gives_a_series_for_each_metric_that_it_finds(peer: Peer) -> None:
    peer.put({"orders": {1: 3}, "mails": {1: 12}, "a b/c": {1: 4}}, "Depth")
    async with backend_of(peer) as opened:
        found = await opened.ask(peer.search("Depth"))
        assert {sample.labels["Queue"]: sample.value for sample in found} == {"orders": 3, "mails": 12, "a b/c": 4}
        unlabelled = {"expression": peer.search("Depth")["expression"]}
        assert sorted((sample.value, len(sample.labels)) for sample in await opened.ask(unlabelled)) == [
            (3, 0),
            (4, 0),
            (12, 0),
        ]


async def test_an_insights_query_has_a_call_to_itself(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Insights")
    select = [{"expression": f"SELECT {how}(Insights)"} for how in ("SUM", "MAX")]
    async with backend_of(peer) as opened:
        await opened.ask(metric("Insights"))
        peer.server.forget_calls()
        found = await outcomes(opened, [*select, metric("Insights")])
        assert [len(values(each)) for each in found] == [1, 1, 1]
    calls = peer.server.calls()
    assert [len(call["MetricDataQueries"]) for call in calls] == [1, 1, 1]
    assert [query["Period"] for call in calls for query in call["MetricDataQueries"] if "Expression" in query] == [
        60,
        60,
    ]


async def test_an_expression_about_all_metrics_of_a_call_has_one_to_itself(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Mine")
    everything = {"expression": "SUM(METRICS())+m1", "metrics": {"m1": metric("Mine")}}
    async with backend_of(peer) as opened:
        peer.server.forget_calls()
        refused, answered = await outcomes(opened, [everything, metric("Mine")])
    assert isinstance(refused, BadQuery)  # by moto, which knows no functions
    assert values(answered) == [3]
    assert sorted(len(call["MetricDataQueries"]) for call in peer.server.calls()) == [1, 2]


# ---- many in one call


async def test_five_hundred_rules_are_one_call_and_one_more_is_two(peer: Peer) -> None:
    peer.put({f"q{number}": {1: number} for number in range(501)}, "Many")
    asked = [metric("Many", f"q{number}") for number in range(501)]
    async with backend_of(peer) as opened:
        assert isinstance(opened.backend, Aligned)
        await opened.ask(asked[0])
        peer.server.forget_calls()
        assert [values(each) for each in await outcomes(opened, asked)] == [[number] for number in range(501)]
    assert sorted(len(call["MetricDataQueries"]) for call in peer.server.calls()) == [1, 500]


async def test_what_a_rule_needs_besides_counts_too(peer: Peer) -> None:
    peer.put({"orders": {1: 2}}, "Part")
    asked = [ratio(f"m1 + m2 + {number}", "Part", "Part") for number in range(200)]
    async with backend_of(peer) as opened:
        peer.server.forget_calls()
        assert [values(each) for each in await outcomes(opened, asked)] == [[4 + number] for number in range(200)]
    assert sorted(len(call["MetricDataQueries"]) for call in peer.server.calls()) == [102, 498]


async def test_rules_of_different_periods_go_in_calls_of_their_own(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Periods")
    asked = [metric("Periods"), metric("Periods", lookback="30m"), metric("Periods", statistic="Sum")]
    async with backend_of(peer) as opened:
        peer.server.forget_calls()
        assert [values(each) for each in await outcomes(opened, asked)] == [[3], [3], [3]]
    assert sorted(len(call["MetricDataQueries"]) for call in peer.server.calls()) == [1, 2]


@pytest.mark.parametrize("silent", [False, True])
async def test_one_bad_expression_fails_alone_and_is_kept_apart_from_then_on(peer: Peer, *, silent: bool) -> None:
    peer.put({f"q{number}": {1: number} for number in range(60)}, "Good")
    bad = {"expression": f"m1 +* {silent:d}", "metrics": {"m1": metric("Good")}}
    asked = [metric("Good", f"q{number}") for number in range(60)]
    asked.insert(37, bad)
    async with backend_of(peer, callsPerSecond=50) as opened:
        with peer.server.ordered(silent=silent):
            for calls in (14 if silent else 3, 2):  # to find it; from then on
                peer.server.forget_calls()
                found = await outcomes(opened, asked)
                assert isinstance(found.pop(37), BadQuery)
                assert [values(each) for each in found] == [[number] for number in range(60)]
                assert len(peer.server.calls()) <= calls


async def test_several_bad_ones_are_all_found(peer: Peer) -> None:
    peer.put({f"q{number}": {1: number} for number in range(40)}, "Mixed")
    wrong = {3, 4, 21, 39}
    asked = [
        {"expression": f"m1 +* {number}", "metrics": {"m1": metric("Mixed")}}
        if number in wrong
        else metric("Mixed", f"q{number}")
        for number in range(40)
    ]
    async with backend_of(peer, callsPerSecond=50) as opened:
        with peer.server.ordered(silent=True):
            found = await outcomes(opened, asked)
    assert {number for number, each in enumerate(found) if isinstance(each, BadQuery)} == wrong
    assert all(values(each) == [number] for number, each in enumerate(found) if number not in wrong)


# ---- what CloudWatch says of single metrics


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        ("Forbidden", BackendUnauthorized, "this metric may not be read"),
        ("InternalError", BackendRejected, "it could not read this metric"),
        ("PartialData", BackendRejected, "it answers with only a part of the data"),
        ("", BackendRejected, "it could not read this metric"),
    ],
)
async def test_a_metric_that_cannot_be_read_harms_no_other(
    peer: Peer, status: str, kind: type[BackendError], words: str
) -> None:
    peer.put({"orders": {1: 3}}, "Fine")
    peer.put({"orders": {1: 4}}, "Ill")
    async with backend_of(peer) as opened:
        with peer.server.ordered(status={"Ill": status}, messages={"Ill": [{"Code": "X", "Value": "because"}]}):
            ill, fine = await outcomes(opened, [metric("Ill"), metric("Fine")])
    assert isinstance(ill, kind)
    assert (ill.message, "X: because" in ill.detail) == (words, True)
    assert values(fine) == [3]


async def test_a_search_that_leaves_series_out_is_a_failure_and_not_a_smaller_sum(peer: Peer) -> None:
    peer.put({"orders": {1: 3}}, "Cut")
    too_many = [{"Code": "MaxMetricsExceeded", "Value": "too many"}]
    async with backend_of(peer) as opened:
        with peer.server.ordered(messages={"Cut": too_many}):
            error = await failure(opened, peer.search("Cut"))
        assert error.message == "it leaves series out, because there are too many"
        with peer.server.ordered(all_messages=too_many):
            searched, single = await outcomes(opened, [peer.search("Cut"), metric("Cut")])
        assert isinstance(searched, BackendRejected)
        assert values(single) == [3]


async def test_all_pages_are_read_and_the_last_word_counts(peer: Peer) -> None:
    peer.put({"orders": {1: 3, 2: 5, 3: 7, 4: 9}, "mails": {3: 1}}, "Paged")
    async with backend_of(peer, callsPerSecond=50) as opened:
        with peer.server.ordered(points=1):
            peer.server.forget_calls()
            asked = [metric("Paged"), metric("Paged", "mails"), peer.search("Paged")]
            assert [sorted(values(each)) for each in await outcomes(opened, asked)] == [[3], [1], [1, 3]]
        assert len(peer.server.calls()) == 8, "four pages each of the metrics and of the search"


async def test_calls_are_no_more_in_a_second_than_may_be(peer: Peer) -> None:
    peer.put({"orders": {1: 3, 2: 5, 3: 7, 4: 9}}, "Paced")
    async with backend_of(peer, callsPerSecond=5) as opened:
        with peer.server.ordered(points=1):
            started = asyncio.get_running_loop().time()
            assert values(await opened.ask(metric("Paced"))) == [3]
            assert asyncio.get_running_loop().time() - started >= 0.6, (
                "four pages, three times a fifth of a second apart"
            )


async def test_pages_without_end_are_refused(peer: Peer) -> None:
    answer(peer, {"MetricDataResults": [], "NextToken": "again"})
    async with backend_of(peer, callsPerSecond=500) as opened:
        assert (await failure(opened, metric("Any"))).message == "it answers with pages without end"


def answer(peer: Peer, body: Json) -> None:
    peer.hop.answer_http(200, json.dumps(body).encode(), "Content-Type: application/x-amz-json-1.0")


NOW = datetime.now(UTC).timestamp()  # noqa: TID251 - an answer that is made up has the time of when that was
GOOD: Json = {"Id": "q0", "Label": "x", "StatusCode": "Complete", "Timestamps": [NOW - 120], "Values": [1.0]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"MetricDataResults": {}},
        {"MetricDataResults": []},
        {"MetricDataResults": [{**GOOD, "Id": "q1"}]},
        {"MetricDataResults": [{**GOOD, "Values": []}]},
        {"MetricDataResults": [{**GOOD, "Values": ["many"]}]},
        {"MetricDataResults": [{**GOOD, "Timestamps": ["yesterday"]}]},
        {"MetricDataResults": [{**GOOD, "StatusCode": "Perhaps"}]},
        {"MetricDataResults": [3]},
        {"MetricDataResults": "all"},
    ],
)
async def test_an_answer_that_is_none_of_cloudwatchs_is_refused_and_never_no_series(peer: Peer, body: Json) -> None:
    answer(peer, body)
    async with backend_of(peer) as opened:
        assert (await failure(opened, metric("Any"))).failure is FailureClass.REFUSED


async def test_numbers_that_are_none_are_given_as_they_are(peer: Peer) -> None:
    peer.hop.answer_http(200, json.dumps({"MetricDataResults": [{**GOOD, "Values": [math.nan]}]}).encode())
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask(metric("Any"))
        assert math.isnan(sample.value)
        answer(peer, {"MetricDataResults": [{**GOOD, "Values": [-3]}]})
        assert values(await opened.ask(metric("Any"))) == [-3]


# ---- when the rule is read


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"namespace": "x"}, "metric: either this or expression is needed"),
        ({"metric": "m"}, "namespace: must not be empty"),
        (metric("m", expression="m1"), "metric: either this or expression is needed"),
        (metric("m", labels=["Queue"]), "labels: is for expression, which is not there"),
        (
            metric("m", statistic="Mean"),
            "statistic: must be as Average, Sum, Minimum, Maximum, SampleCount or p95, is 'Mean'",
        ),
        (metric("m", period="90s"), "period: must be 1s, 5s, 10s, 20s, 30s or whole minutes, up to a day"),
        (metric("m", lookback="30s"), "lookback: must be at least a period"),
        (metric("m", accountId="1"), "accountId: must be twelve digits, in quotes"),
        ({**metric("m"), "dimensions": {"Queue": ""}}, "dimensions: a dimension has a name and a value"),
        (
            {"expression": "m1", "namespace": "x", "metrics": {"m1": metric("m")}},
            "namespace: is for metric; with expression write it below metrics",
        ),
        (
            {"expression": "m1", "metrics": {"m1": metric("m"), "m2": metric("m")}},
            "metrics.m2: is not used in expression",
        ),
        (
            {"expression": "M1", "metrics": {"M1": metric("m")}},
            "metrics.M1: must begin with a small letter and hold only letters, digits and _",
        ),
        (
            {"expression": "m1", "metrics": {"m1": {**metric("m"), "namespace": ""}}},
            "metrics.m1.namespace: must not be empty",
        ),
        ({"expression": "SELECT x", "labels": ["a", "b"]}, "labels: of a SELECT only one, that which it groups by"),
        ({"expression": "SEARCH('x')", "labels": ["a'}"]}, 'labels: "a\'}" is not the name of a dimension'),
    ],
)
def test_parameters_that_make_no_sense(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, parameters)
    assert caught.value.problems == (f"rules[0].parameters.{problem}",)


@pytest.mark.parametrize(
    ("parameters", "dollars", "because"),
    [
        (metric("m"), 0.0576, "5,760 times 1 at $0.01 per 1,000 metrics"),
        (ratio("m1 / m2", "a", "b"), 0.1152, "5,760 times 2 at $0.01 per 1,000 metrics"),
        ({"expression": "SEARCH('x')"}, 0.0576, "5,760 times at $0.01 per 1,000 metrics, for each that it finds"),
    ],
)
def test_asking_has_its_price(peer: Peer, parameters: Json, dollars: float, because: str) -> None:
    config = configured(peer, parameters)
    price = price_per_day(config.rules[0], config.backends["it"])
    assert price is not None
    assert (round(price.dollars, 6), price.because) == (dollars, because)

"""What is Datadog's own: many questions by one call, a bad one among them, points and their times, limits, formulas."""

import asyncio
import math
from datetime import timedelta
from typing import Any

import pytest

from adapter.app import clock
from adapter.backends.backend import Aligned
from adapter.backends.datadog.rate_limit_headers import Limits
from adapter.backends.datadog.request import renamed
from adapter.errors import BackendError, ConfigInvalid
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.peers.datadog import Peer

pytestmark = [
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="datadog")], indirect=True, scope="session"),
]
BAD: Json = {"query": "this is no query"}
TOO_OFTEN = (FailureClass.REFUSED, "asked more often than Datadog allows")


async def failure(opened: Opened, asked: Json) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.ask(asked)
    return caught.value.failure, caught.value.message


async def all_at_once(opened: Opened, *asked: Json) -> list[Any]:
    found = await asyncio.gather(*(opened.ask(each) for each in asked), return_exceptions=True)
    return [each.failure if isinstance(each, BackendError) else [sample.value for sample in each] for each in found]  # type: ignore[union-attr]


# ---- one call for many


async def test_the_questions_of_many_rules_are_one_call(peer: Peer) -> None:
    peer.hold({f"q{number}": number for number in range(30)})
    async with backend_of(peer) as opened:
        assert isinstance(opened.backend, Aligned)
        assert opened.backend.aligned
        found = await all_at_once(opened, *(peer.one(f"q{number}") for number in range(30)))
    assert found == [[number] for number in range(30)]
    assert [len(asked["queries"]) for asked in peer.server.asked] == [30]


async def test_a_call_has_no_more_questions_than_may_be(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer, maxQueriesPerRequest=4) as opened:
        await all_at_once(opened, *[peer.one("orders")] * 10)
    assert sorted(len(asked["queries"]) for asked in peer.server.asked) == [2, 4, 4]


async def test_each_window_is_a_call_of_its_own(peer: Peer) -> None:
    peer.hold({"orders": 3})
    windows = ("1m", "1m", "1h")
    async with backend_of(peer) as opened:
        await all_at_once(opened, *({**peer.one("orders"), "window": window} for window in windows))
    spans = {(asked["to"] - asked["from"]) // 1000: len(asked["queries"]) for asked in peer.server.asked}
    assert spans == {60: 2, 3600: 1}


async def test_calls_keep_their_pace(peer: Peer) -> None:
    peer.hold({"orders": 3})
    loop = asyncio.get_running_loop()
    async with backend_of(peer, pace="300ms", maxQueriesPerRequest=1) as opened:
        started = loop.time()
        await all_at_once(opened, *[peer.one("orders")] * 3)
        assert loop.time() - started >= 0.6


async def test_a_bad_question_takes_no_other_along_and_travels_alone_from_then_on(peer: Peer) -> None:
    peer.hold({f"q{number}": number for number in range(9)})
    good = [peer.one(f"q{number}") for number in range(9)]
    expected = [[number] for number in range(9)]
    async with backend_of(peer) as opened:
        found = await all_at_once(opened, *good[:4], BAD, *good[4:])
        assert found == [*expected[:4], FailureClass.BAD_QUERY, *expected[4:]]
        at_first, peer.server.calls = peer.server.calls, 0
        found = await all_at_once(opened, *good[:4], BAD, *good[4:])
        assert found == [*expected[:4], FailureClass.BAD_QUERY, *expected[4:]]
        assert (at_first, peer.server.calls) == (9, 2), "it is looked for once, by halves"


async def test_a_question_that_is_good_again_joins_the_others(peer: Peer) -> None:
    peer.hold({"orders": 3, "mails": 4})
    async with backend_of(peer) as opened:
        peer.server.refuses = 400
        await all_at_once(opened, peer.one("orders"), peer.one("mails"))
        peer.server.refuses = 0
        assert await all_at_once(opened, peer.one("orders"), peer.one("mails")) == [[3], [4]]
        peer.server.calls = 0
        assert await all_at_once(opened, peer.one("orders"), peer.one("mails")) == [[3], [4]]
        assert peer.server.calls == 1


@pytest.mark.parametrize(("status", "kind"), [(500, FailureClass.REFUSED), (403, FailureClass.UNAUTHORIZED)])
async def test_a_refusal_that_is_nobodys_question_is_for_all_and_asked_once(
    peer: Peer, status: int, kind: FailureClass
) -> None:
    peer.server.refuses = status
    async with backend_of(peer) as opened:
        assert await all_at_once(opened, peer.one("orders"), peer.one("mails")) == [kind, kind]
    assert peer.server.calls == 1


# ---- limits


async def test_when_the_limit_is_spent_nobody_asks_until_it_is_not(peer: Peer) -> None:
    peer.hold({"orders": 3})
    peer.server.limit = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1", "X-RateLimit-Name": "query"}
    async with backend_of(peer) as opened:
        await opened.ask(peer.one("orders"))
        assert await failure(opened, peer.one("orders")) == TOO_OFTEN
        assert peer.server.calls == 1
        peer.server.limit = {}
        await asyncio.sleep(1)
        await opened.ask(peer.one("orders"))


async def test_told_to_wait_nobody_asks_meanwhile(peer: Peer) -> None:
    peer.server.refuses, peer.server.limit = 429, {"X-RateLimit-Reset": "600", "X-RateLimit-Remaining": "0"}
    async with backend_of(peer) as opened:
        for _ in range(3):
            assert await failure(opened, peer.one("orders")) == TOO_OFTEN
    assert peer.server.calls == 1


@pytest.mark.parametrize(
    ("status", "headers", "rests"),
    [
        (200, {}, 0),
        (200, {"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "30"}, 0),
        (200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}, 30),
        (429, {}, 0),
        (429, {"X-RateLimit-Reset": "30"}, 30),
        (429, {"X-RateLimit-Period": "60"}, 60),
        (429, {"X-RateLimit-Reset": "1e99"}, 3600),
        (429, {"X-RateLimit-Reset": "-5"}, 0),
        (429, {"X-RateLimit-Reset": "soon"}, 0),
        (429, {"X-RateLimit-Reset": "nan"}, 0),
    ],
)
def test_headers_say_how_long(peer: Peer, status: int, headers: dict[str, str], rests: float) -> None:  # noqa: ARG001 - every test here has one
    limits = Limits()
    limits.note(status, headers, 100.0)
    assert bool(limits.spent(100.0)) == (rests > 0)
    assert limits.spent(100.0 + rests - 0.1) or not rests
    assert not limits.spent(100.0 + rests)


# ---- points


@pytest.mark.parametrize(
    ("points", "skip", "value", "age"),
    [
        ([1, 2, 3], 0, 3, 20),
        ([1, 2, None, None], 0, 2, 60),
        ([1, 2, None], 1, 1, 60),
        ([1, 2, 3], 2, 1, 60),
        ([1.5], 0, 1.5, 20),
    ],
)
async def test_the_newest_point_has_its_own_time(
    peer: Peer, points: list[float | None], skip: int, value: float, age: float
) -> None:
    peer.hold({"orders": 3})
    peer.server.points = [points]
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask({**peer.one("orders"), "skipNewest": skip})
    assert sample.value == value
    assert timedelta(seconds=age) <= clock() - sample.at < timedelta(seconds=age + 10)


@pytest.mark.parametrize(("points", "skip"), [([None, None], 0), ([5, None], 1)])
async def test_a_series_without_a_point_is_no_number_and_not_zero(
    peer: Peer, points: list[float | None], skip: int
) -> None:
    peer.hold({"orders": 3})
    peer.server.points = [points]
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask({**peer.one("orders"), "skipNewest": skip})
    assert math.isnan(sample.value)


async def test_tags_are_labels_whatever_is_in_them(peer: Peer) -> None:
    tags = ["url:http://a:80/x", "alone", "größe:ü"]
    series = [{"group_tags": tags, "query_index": 0}]
    peer.server.says = {"data": {"attributes": {"series": series, "times": [1700000000000], "values": [[1]]}}}
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask(peer.one("orders"))
    assert dict(sample.labels) == {"url": "http://a:80/x", "alone": "", "größe": "ü"}


def _answer(index: int = 0, times: Any = (1,), values: Any = ((1,),)) -> Json:
    return {"data": {"attributes": {"series": [{"query_index": index}], "times": times, "values": values}}}


@pytest.mark.parametrize(
    "says",
    [
        {},
        [],
        {"data": {}},
        {"data": {"attributes": []}},
        _answer(index=1),
        _answer(index=-1),
        _answer(times=(1, 2)),
        _answer(values=((1,), (2,))),
        _answer(values=(("1",),)),
        _answer(times=(10**30,)),
        _answer(times=(10**17,)),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused(peer: Peer, says: object) -> None:
    peer.server.says = says
    async with backend_of(peer) as opened:
        told = (FailureClass.REFUSED, "it answers, but not as Datadog does")
        assert await failure(opened, peer.one("orders")) == told


async def test_an_error_inside_of_a_good_answer_is_one(peer: Peer) -> None:
    peer.server.says = {"errors": "no such thing"}
    async with backend_of(peer) as opened:
        told = (FailureClass.BAD_QUERY, "it cannot answer the query")
        assert await failure(opened, peer.one("orders")) == told


async def test_found_nothing_in_every_way_to_say_so(peer: Peer) -> None:
    async with backend_of(peer) as opened:
        for attributes in ({}, {"series": None, "times": None, "values": None}, {"series": [], "times": [1]}):
            peer.server.says = {"data": {"attributes": attributes}}
            assert await opened.ask(peer.one("orders")) == ()


# ---- formulas


async def test_formulas_of_several_rules_do_not_get_in_each_others_way(peer: Peer) -> None:
    peer.hold({"orders": 12, "mails": 4})
    ratio: Json = {
        "queries": {"a": "sum:queue.depth{queue:orders}", "b": "sum:queue.depth{queue:mails}"},
        "formula": "a / b",
    }
    async with backend_of(peer) as opened:
        other: Json = {"queries": {"b": "sum:queue.depth{queue:orders}"}, "formula": "default_zero(b)"}
        assert await all_at_once(opened, ratio, peer.one("mails"), other) == [[3], [4], [0]]
    assert len(peer.server.asked) == 1


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("a", "X"),
        ("a/b", "X/Y"),
        ("default_zero(a) * 100", "default_zero(X) * 100"),
        ("top(a, 5, 'a', \"b\")", "top(X, 5, 'a', \"b\")"),
        ("aa + a1 + a", "aa + a1 + X"),
        ("1e5 * a", "1e5 * X"),
    ],
)
def test_queries_are_renamed_and_nothing_else(peer: Peer, formula: str, expected: str) -> None:  # noqa: ARG001
    assert renamed(formula, {"a": "X", "b": "Y"}) == expected


# ---- keys


async def test_nothing_of_the_environment_is_used(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DD_API_KEY", "DD_APP_KEY", "DD_SITE"):
        monkeypatch.setenv(name, "of-somebody-else")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask(peer.one("orders"))
        assert sample.value == 3


async def test_both_keys_are_needed(peer: Peer) -> None:
    peer.files["DD-API-KEY"].write_text("\n")
    async with backend_of(peer) as opened:
        told = (FailureClass.UNAUTHORIZED, "apiKeyFile holds nothing that can be sent")
        assert await failure(opened, peer.one("orders")) == told
        with pytest.raises(BackendError):
            await opened.backend.ping()
    peer.renew()


# ---- what can be seen before it is asked


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"window": "5m"}, "query: either this or queries is needed"),
        ({"query": "a", "queries": {"a": "b"}}, "query: either this or queries is needed"),
        ({"query": "a", "formula": "b"}, "formula: is for queries, which have names"),
        ({"query": " "}, "query: must not be empty"),
        ({"queries": {"a": "b"}}, "formula: is needed with queries"),
        ({"queries": {"a": "x"}, "formula": "a / b"}, "formula: 'b' is none of the queries"),
        ({"queries": {"a": "x"}, "formula": "a + r0q0"}, "formula: 'r0q0' is none of the queries"),
        ({"queries": {"a": "x", "b": "y"}, "formula": "a"}, "queries.b: is not used by the formula"),
        (
            {"queries": {"abs": "x"}, "formula": "abs(abs)"},
            "queries.abs: is called like a function of the formula; choose another name",
        ),
        ({"query": "a", "window": "1s"}, "window: must be at least 10s; Datadog's points are no closer"),
        ({"query": "a", "skipNewest": -1}, "skipNewest: must not be negative, is -1"),
    ],
)
def test_parameters_that_make_no_sense(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, parameters)
    assert caught.value.problems == (f"rules[0].parameters.{problem}",)


def test_a_formula_may_have_functions_numbers_and_texts(peer: Peer) -> None:
    formula = "top(default_zero(a) / 1e3 * 2, 5, 'mean', 'desc')"
    configured(peer, {"queries": {"a": "avg:x{*}"}, "formula": formula})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"site": "app.datadoghq.eu"},
            "site: must be a site without app. or api., such as datadoghq.eu, is 'app.datadoghq.eu'",
        ),
        (
            {"site": "https://datadoghq.eu"},
            "site: must be a site without app. or api., such as datadoghq.eu, is 'https://datadoghq.eu'",
        ),
        ({"url": "datadog"}, "url: not an http or https URL with a host"),
        ({"apiKeyFile": ""}, "apiKeyFile: must not be empty"),
        ({"maxQueriesPerRequest": 0}, "maxQueriesPerRequest: must be at least 1, is 0"),
    ],
)
def test_settings_that_make_no_sense(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, **settings)
    assert caught.value.problems == (f"backends.it.datadog.{problem}",)


def test_a_site_is_where_its_api_is(peer: Peer) -> None:
    settings: Any = configured(peer, url="", site="us5.datadoghq.com").backends["it"].settings
    assert settings.http.url == "https://api.us5.datadoghq.com"

"""What is Google's own: filters, aligners and pages, values of every type, PromQL, and ways to log in."""

import asyncio
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from google.auth.compute_engine import _metadata
from google.cloud.monitoring_v3 import Aggregation

from adapter.app import clock
from adapter.backends.google.settings import GoogleParameters
from adapter.errors import (
    BackendError,
    BackendRejected,
    BackendUnauthorized,
    BackendUnreachable,
    BadQuery,
    ConfigInvalid,
)
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.google_server import PROJECT, TYPE, series
from tests.backends.peers.google import Peer

pytestmark = [
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="google")], indirect=True, scope="session"),
]
ALL: Json = {"filter": f'metric.type="{TYPE}"'}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def as_new(peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A server with nothing asked of it yet, and an environment without a word of Google."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    server = peer.server
    server.asked, server.logins, server.queries, server.headers = [], [], [], []
    yield
    server.series, server.errors, server.vector, server.said, server.token_status = None, [], None, None, 200


async def failure(opened: Opened, asked: Json) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.ask(asked)
    return caught.value.failure, caught.value.message


def value(**typed: Any) -> list[dict[str, Any]]:
    """Write a series of one point."""
    return [series({}, 0, NOON, points=[{"interval": {"end_time": NOON}, "value": typed}])]


# ---- what is asked


async def test_what_is_asked_is_what_google_defines(peer: Peer) -> None:
    peer.hold({"orders": 3, "mails": 4})
    asked = {
        **ALL,
        "aligner": "percentile99",
        "reducer": "sum",
        "groupBy": ["resource.labels.subscription_id", "metric.labels.x"],
        "alignmentPeriod": "2m",
        "window": "10m",
        "delay": "3m",
    }
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask(asked)
    (request,) = peer.server.asked
    assert sample.value == 7
    assert request.aggregation.per_series_aligner is Aggregation.Aligner.ALIGN_PERCENTILE_99
    assert request.aggregation.cross_series_reducer is Aggregation.Reducer.REDUCE_SUM
    assert list(request.aggregation.group_by_fields) == asked["groupBy"]
    assert request.aggregation.alignment_period == timedelta(minutes=2)
    assert request.interval.end_time - request.interval.start_time == timedelta(minutes=10)
    assert timedelta(minutes=3) <= clock() - request.interval.end_time < timedelta(minutes=4)


@pytest.mark.parametrize(
    ("field", "kind", "prefix"), [("aligner", "Aligner", "ALIGN"), ("reducer", "Reducer", "REDUCE")]
)
async def test_every_aligner_and_reducer_of_google_can_be_named(peer: Peer, field: str, kind: str, prefix: str) -> None:
    def names(of: Any) -> Iterator[str]:
        for each in get_args(of):
            yield from [each] if isinstance(each, str) else names(each)

    ours = list(names(get_type_hints(GoogleParameters)[field]))
    theirs = {each.name for each in getattr(Aggregation, kind)}
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        for name in ours:
            await opened.ask({**ALL, "aligner": "mean", field: name})
    sent = {
        getattr(request.aggregation, "per_series_aligner" if field == "aligner" else "cross_series_reducer").name
        for request in peer.server.asked
    }
    assert sent == theirs
    assert len(ours) == len(theirs)
    assert all(name.startswith(prefix) for name in theirs)


async def test_all_pages_are_read_and_too_many_series_are_refused(peer: Peer) -> None:
    peer.hold({f"q{number}": number for number in range(7)})
    async with backend_of(peer, pageSize=2) as opened:
        found = await opened.ask(ALL)
        assert [sample.value for sample in found] == list(range(7))
        assert [request.page_token for request in peer.server.asked] == ["", "2", "4", "6"]
        assert len(await opened.ask({**ALL, "maxSeries": 7})) == 7
        told = await failure(opened, {**ALL, "maxSeries": 6})
        assert told == (FailureClass.REFUSED, "there are more series than maxSeries")


async def test_another_project_is_asked_only_where_we_may(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        assert len(await opened.ask({**ALL, "project": PROJECT})) == 1
        told = await failure(opened, {**ALL, "project": "another-1"})
        assert told == (FailureClass.UNAUTHORIZED, "HTTP 403 Forbidden")


async def test_calls_keep_to_the_pace(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer, callsPerSecond=10) as opened:
        await opened.ask(ALL)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(opened.ask({**ALL, "maxSeries": number}) for number in range(1, 6)))
        assert loop.time() - started > 0.4


# ---- what is told


async def test_the_newest_point_is_the_number_with_its_own_time(peer: Peer) -> None:
    points = [
        {"interval": {"end_time": NOON - timedelta(minutes=1)}, "value": {"int64_value": 1}},
        {"interval": {"start_time": NOON - timedelta(minutes=1), "end_time": NOON}, "value": {"int64_value": 2**53}},
        {"interval": {"end_time": NOON - timedelta(minutes=2)}, "value": {"int64_value": 3}},
    ]
    peer.server.series = [series({}, 0, NOON, points=points)]
    async with backend_of(peer) as opened:
        assert await opened.ask(ALL) == (RawSample(2.0**53, NOON, {}, timedelta(minutes=1)),)


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ({"bool_value": True}, 1),
        ({"int64_value": -5}, -5),
        ({"double_value": 0.25}, 0.25),
        ({"double_value": math.inf}, math.inf),
        ({"double_value": math.nan}, math.nan),
        ({}, math.nan),
    ],
)
async def test_values_of_every_type_are_numbers(peer: Peer, typed: dict[str, Any], number: float) -> None:
    peer.server.series = value(**typed)
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask(ALL)
    assert sample.value == number or (math.isnan(number) and math.isnan(sample.value))


async def test_a_series_without_points_is_not_a_number_and_never_zero(peer: Peer) -> None:
    peer.server.series = [series({"a": "b"}, 0, NOON, points=[])]
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask(ALL)
    assert math.isnan(sample.value)
    assert sample.labels == {"a": "b"}


@pytest.mark.parametrize(
    ("typed", "words"),
    [({"distribution_value": {"count": 3}}, "distribution"), ({"string_value": "yes"}, "text")],
)
async def test_what_is_no_number_is_told_with_what_makes_it_one(peer: Peer, typed: dict[str, Any], words: str) -> None:
    peer.server.series = value(**typed)
    async with backend_of(peer) as opened:
        with pytest.raises(BadQuery, match=f"the metric is a {words}: an aligner such as"):
            await opened.ask(ALL)


async def test_labels_are_those_of_metric_resource_and_user(peer: Peer) -> None:
    more = {"metric": {"type": TYPE, "labels": {"zone": "a", "kind": "k"}}, "metadata": {"user_labels": {"team": "t"}}}
    peer.server.series = [series({"zone": "b", "id": "7", "kind": "k"}, 1, NOON, **more)]
    async with backend_of(peer) as opened:
        (sample,) = await opened.ask(ALL)
    assert sample.labels == {"zone": "a", "resource_zone": "b", "id": "7", "kind": "k", "team": "t"}


async def test_a_part_of_an_answer_is_none(peer: Peer) -> None:
    peer.hold({"orders": 3})
    peer.server.errors = [{"code": 14, "message": "a region did not answer"}]
    async with backend_of(peer) as opened:
        with pytest.raises(BackendRejected, match="the answer is not complete") as caught:
            await opened.ask(ALL)
    assert caught.value.detail == "a region did not answer"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"[]",
        b'{"timeSeries": 7}',
        b'{"timeSeries": [{"points": [{}]}]}',
        b'{"timeSeries": [{"points": [{"interval": {"endTime": "2026-03-01"}, "value": {"int64Value": "1"}}]}]}',
        b'{"timeSeries": [{"points": [{"interval": {"endTime": "2026-03-01T12:00:00"}, "value": {}}]}]}',
        b'{"timeSeries":[{"points":[{"interval":{"endTime":"2026-03-01T12:00:00Z"},"value":{"int64Value":"x"}}]}]}',
        b"[" * 100_000,
    ],
)
async def test_what_is_no_answer_is_refused(peer: Peer, said: bytes) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        await opened.ask(ALL)
        peer.server.said = said
        assert (await failure(opened, ALL))[0] is FailureClass.REFUSED


async def test_a_filter_that_google_does_not_understand_is_a_bad_query(peer: Peer) -> None:
    async with backend_of(peer) as opened:
        told = await failure(opened, {"filter": f'metric.type="{TYPE}" OR OR'})
    assert told == (FailureClass.BAD_QUERY, "HTTP 400 Bad Request")


async def test_a_page_not_found_that_is_not_googles_is_refused(peer: Peer) -> None:
    peer.hop.answer_http(404, b"no such page")
    async with backend_of(peer) as opened:
        assert await failure(opened, ALL) == (FailureClass.REFUSED, "HTTP 404 Not Found")


# ---- PromQL


async def test_promql_is_answered_with_its_labels_but_for_the_name(peer: Peer) -> None:
    peer.hold({"orders": 3, "mails": 4})
    query = 'sum by (subscription) (n{a="b&c"})'
    async with backend_of(peer) as opened:
        found = await opened.ask({"promql": query})
        assert {sample.labels["subscription"]: sample.value for sample in found} == {"orders": 3, "mails": 4}
        assert all(set(sample.labels) == {"subscription"} for sample in found)
        assert all(clock() - sample.at < timedelta(seconds=10) for sample in found)
        assert peer.server.queries == [query]
        peer.server.vector = []
        assert await opened.ask({"promql": query}) == ()
        assert await failure(opened, {"promql": "sum("}) == (FailureClass.BAD_QUERY, "HTTP 400 Bad Request")
        peer.server.vector = None
        told = await failure(opened, {"promql": query, "maxSeries": 1})
        assert told == (FailureClass.REFUSED, "there are more series than maxSeries")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "7"]}}, [7.0]),
        (
            {"status": "success", "data": {"resultType": "vector", "result": []}, "warnings": ["partial"]},
            "not complete",
        ),
        ({"status": "error", "data": {"resultType": "vector", "result": []}}, "not complete"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, "not as PromQL"),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "x"]}}, "not as PromQL"),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1e300, "1"]}}, "not as PromQL"),
    ],
)
async def test_answers_of_promql_are_whole_or_refused(peer: Peer, said: Json, expected: Any) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        await opened.ask({"promql": "up"})
        peer.server.said = json.dumps(said).encode()
        if isinstance(expected, list):
            assert [sample.value for sample in await opened.ask({"promql": "up"})] == expected
        else:
            with pytest.raises(BackendRejected, match=expected):
                await opened.ask({"promql": "up"})


# ---- who we are


async def test_one_token_does_until_it_is_not_believed_any_more(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        await asyncio.gather(*(opened.ask({**ALL, "maxSeries": number}) for number in range(1, 9)))
        assert peer.server.logins == ["key"]
        peer.server.revoke()
        with pytest.raises(BackendUnauthorized, match="HTTP 401"):
            await opened.ask(ALL)
        assert len(await opened.ask(ALL)) == 1
    assert peer.server.logins == ["key", "key"]


async def test_somebody_from_elsewhere_logs_in_by_a_token_in_a_file(peer: Peer, tmp_path: Path) -> None:
    peer.hold({"orders": 3})
    subject, file = tmp_path / "subject", tmp_path / "external.json"
    subject.write_text(peer.server.subject_token)
    file.write_text(peer.server.external_file(str(subject)))
    async with backend_of(peer, credentialsFile=str(file)) as opened:
        assert len(await opened.ask(ALL)) == 1
        subject.write_text("a-token-that-nobody-believes")
        peer.server.revoke()
        assert await failure(opened, ALL) == (FailureClass.UNAUTHORIZED, "HTTP 401 Unauthorized")
        assert await failure(opened, ALL) == (FailureClass.UNAUTHORIZED, "Google gives us no token")
        subject.write_text(peer.server.subject_token)
        assert len(await opened.ask(ALL)) == 1
    assert peer.server.logins == ["subject", "subject"]


async def test_the_environment_may_name_the_file(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.hold({"orders": 3})
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(peer.file))
    async with backend_of(peer, credentialsFile="") as opened:
        assert len(await opened.ask(ALL)) == 1
    assert peer.server.logins == ["key"]


async def test_without_a_file_the_metadata_server_says_who_we_are(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.hold({"orders": 3})
    # The library reads GCE_METADATA_HOST when it is imported, which was long ago.
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", f"127.0.0.1:{peer.server.port}")
    async with backend_of(peer, credentialsFile="") as opened:
        assert len(await opened.ask(ALL)) == 1
    assert peer.server.logins == ["machine"]


async def test_the_quota_of_another_project_is_used_if_it_is_said(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer, quotaProject="who-pays-1") as opened:
        await opened.ask(ALL)
    assert peer.server.headers[0]["X-Goog-User-Project"] == "who-pays-1"


async def test_a_proxy_is_the_one_that_is_configured(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.hold({"orders": 3})
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with backend_of(peer) as opened:
        assert len(await opened.ask(ALL)) == 1
    async with backend_of(peer, url="http://127.0.0.1:1", proxyUrl=peer.hop.url) as opened:
        assert len(await opened.ask(ALL)) == 1


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_tokens_are_not_asked_for_again_and_again(peer: Peer, status: int) -> None:
    peer.server.token_status = status
    async with backend_of(peer) as opened:
        assert f"HTTP {status}" in (await failure(opened, ALL))[1]
    assert peer.server.logins == ["refused"]


async def test_who_gives_tokens_and_is_not_there_is_unreachable(peer: Peer, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(peer.server.account.file("http://127.0.0.1:1/token"))
    async with backend_of(peer, credentialsFile=str(file)) as opened:
        assert await failure(opened, ALL) == (FailureClass.UNREACHABLE, "connection refused")


async def test_waiting_for_a_token_ends_with_the_deadline_and_leaves_no_thread(peer: Peer, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(peer.server.account.file(f"{peer.hop.url}/token"))
    peer.hop.stall()
    loop = asyncio.get_running_loop()
    async with backend_of(peer, credentialsFile=str(file)) as opened:
        started = loop.time()
        with pytest.raises(BackendError, match=r"no answer within 0\.3s"):
            await opened.ask(ALL, 0.3)
        waiting = asyncio.create_task(opened.ask(ALL, 30))
        await asyncio.sleep(0.1)
        await opened.backend.aclose()
        with pytest.raises(BackendUnreachable):
            await waiting
        assert loop.time() - started < 5


@pytest.mark.parametrize(
    "said",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        '{"type": "service_account", "private_key": "not a key"}',
        '{"type": "external_account", "credential_source": {"executable": {"command": "/bin/true"}}}',
        '{"type": "external_account", "credential_source": 7}',
    ],
)
async def test_a_file_that_makes_no_sense_is_told_in_words_that_stay_the_same(
    peer: Peer, tmp_path: Path, said: str
) -> None:
    file = tmp_path / "key.json"
    file.write_text(said)
    async with backend_of(peer, credentialsFile=str(file)) as opened:
        assert await failure(opened, ALL) == (FailureClass.UNAUTHORIZED, "the credentials cannot be used")
        file.write_text(peer.server.key_file)
        peer.hold({"orders": 3})
        assert len(await opened.ask(ALL)) == 1


# ---- what cannot be right


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, "filter: either this or promql is needed"),
        ({**ALL, "promql": "up"}, "filter: either this or promql is needed"),
        (
            {"filter": 'resource.type="x"'},
            'filter: must name one metric, as metric.type="pubsub.googleapis.com/topic/byte_cost"',
        ),
        ({"promql": "up", "reducer": "sum"}, "reducer: is for filter; PromQL has functions for that"),
        ({"promql": "up", "groupBy": ["project"]}, "groupBy: is for filter; PromQL has functions for that"),
        (
            {**ALL, "reducer": "sum"},
            "aligner: is needed with a reducer; mean is a good one for gauges, rate for counters",
        ),
        ({**ALL, "groupBy": ["project"]}, "reducer: is needed with groupBy"),
        (
            {**ALL, "aligner": "mean", "reducer": "sum", "groupBy": ["zone"]},
            "groupBy[0]: must be a field such as resource.labels.zone, is 'zone'",
        ),
        ({**ALL, "aligner": "mean", "alignmentPeriod": "30s"}, "alignmentPeriod: must be at least 1m"),
        (
            {**ALL, "aligner": "mean", "alignmentPeriod": "10m"},
            "window: must be at least 1m, and as long as alignmentPeriod",
        ),
        ({**ALL, "project": "../x"}, "project: must be the id or the number of a project, is '../x'"),
        ({**ALL, "maxSeries": 0}, "maxSeries: must be at least 1, is 0"),
        ({**ALL, "window": "99999999h"}, "window: must be at most 168h"),
        ({**ALL, "delay": "99999999h"}, "delay: must be at most 168h"),
    ],
)
def test_parameters_that_cannot_be_right_are_told_with_what_to_write(peer: Peer, asked: Json, expected: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, {"delay": "0s", **asked})
    assert caught.value.problems == (f"rules[0].parameters.{expected}",)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"project": ""}, "project: must be the id or the number of a project, is ''"),
        ({"url": "http://example.com"}, "url: must be https: a token would be seen on the way"),
        ({"url": "https://example.com/v3"}, "url: not an https URL with a host and nothing else"),
        ({"url": "monitoring"}, "url: not an https URL with a host and nothing else"),
        ({"proxyUrl": "proxy:3128"}, "proxyUrl: not an http or https URL with a host"),
        ({"proxyUrl": "http://me:secret@proxy:3128"}, "proxyUrl: must not hold a password"),
        ({"pageSize": 100_001}, "pageSize: must be at most 100000, is 100001"),
        ({"callsPerSecond": 0}, "callsPerSecond: must be at least 1, is 0"),
        ({"tls": {"keyFile": "/x"}}, "tls.certFile: is needed with keyFile"),
    ],
)
def test_settings_that_cannot_be_right_are_told_with_what_to_write(peer: Peer, settings: Json, expected: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, **settings)
    assert caught.value.problems == (f"backends.it.google.{expected}",)

"""Under load, and when told to stop."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp import ClientConnectionError, ClientSession

from adapter.config.model import Limits
from tests.unit.adapter.served import METRIC, assembled, served


async def test_an_answer_that_is_late_is_an_error_and_frees_its_place():
    async with served(Limits(request_timeout=timedelta(milliseconds=30))) as it:
        answer = await it.session.get(METRIC)
        body = await answer.json()

        assert (answer.status, body["reason"]) == (504, "Timeout")
        assert body["message"] == "the answer was not ready within 0.03s"
        assert it.figure("steadyscale_requests_in_flight") == 0


async def test_as_many_as_may_be_and_the_next_is_refused_without_being_told_to_wait():
    async with served(Limits(max_concurrent_requests=1)) as it:
        first = asyncio.create_task(it.session.get(METRIC))
        await it.backend.asked.wait()
        second = await it.session.get(METRIC)

        assert (second.status, (await second.json())["reason"]) == (429, "TooManyRequests")
        assert "Retry-After" not in second.headers
        assert it.figure("steadyscale_requests_in_flight") == 1
        for path in ("/readyz", "/apis", "/apis/external.metrics.k8s.io/v1beta1"):
            assert (await it.session.get(path)).status == 200
        it.backend.may_answer.set()
        assert (await first).status == 200
        assert (await it.session.get(METRIC)).status == 200


async def test_administrators_are_not_counted():
    async with served(Limits(max_concurrent_requests=1)) as it:
        first = asyncio.create_task(it.session.get(METRIC))
        await it.backend.asked.wait()
        it.backend.may_answer.set()
        second = await it.session.get(METRIC, headers={"X-Remote-Group": "system:masters"})

        assert (second.status, (await first).status) == (200, 200)


async def test_if_access_cannot_be_reviewed_the_answer_is_no():
    async with served() as it:
        answer = await it.session.get(METRIC, headers={"X-Remote-User": "unreviewable"})

        assert (answer.status, (await answer.json())["reason"]) == (500, "InternalError")
        assert it.figure("steadyscale_authorizations_total", result="failed") == 1


async def test_told_to_stop_it_is_not_ready_at_once_and_still_answers():
    async with served() as it:
        it.backend.may_answer.set()
        leaving = asyncio.create_task(it.server.leave())
        await asyncio.sleep(0)
        ready, live, metric = [await it.session.get(path) for path in ("/readyz", "/livez", METRIC)]

        assert (ready.status, live.status, metric.status) == (500, 200, 200)
        assert "[-]shutdown failed: reason withheld" in (await ready.text()).splitlines()
        assert metric.headers["Connection"] == "close"
        leaving.cancel()


@pytest.mark.looptime
async def test_it_goes_on_answering_for_just_as_long_as_it_was_told(looptime):
    it = assembled(Limits(shutdown_delay=timedelta(seconds=12)))
    await it.server.leave()

    assert looptime == 12


async def test_what_is_in_flight_is_finished_and_nothing_new_begins():
    it = assembled(Limits(drain=timedelta(seconds=5)))
    async with ClientSession() as session:
        async with it.server.serving("127.0.0.1", 0, None) as port:
            url = f"http://127.0.0.1:{port}{METRIC}"
            in_flight = asyncio.create_task(session.get(url))
            await it.backend.asked.wait()
            asyncio.get_running_loop().call_later(0.05, it.backend.may_answer.set)
        answer = await in_flight

        assert (answer.status, (await answer.json())["items"][0]["value"]) == (200, "1")
        with pytest.raises(ClientConnectionError):
            await session.get(url)


async def test_what_does_not_finish_in_time_is_cut_off():
    it = assembled(Limits(drain=timedelta(seconds=0.05)))
    async with ClientSession() as session:
        async with it.server.serving("127.0.0.1", 0, None) as port:
            in_flight = asyncio.create_task(session.get(f"http://127.0.0.1:{port}{METRIC}"))
            await it.backend.asked.wait()

        with pytest.raises(ClientConnectionError):
            await in_flight


async def test_every_request_for_a_metric_leaves_a_line_and_a_figure():
    async with served() as it:
        it.backend.may_answer.set()
        await it.session.get(
            METRIC, headers={"X-Remote-User": "alice", "Audit-Id": "abc", "Authorization": "Bearer secret"}
        )
        await it.session.get("/readyz")
        (line,) = it.lines

        assert {key: line[key] for key in ("msg", "status", "caller", "namespace", "metric", "audit", "endpoint")} == {
            "msg": "request",
            "status": 200,
            "caller": "alice",
            "namespace": "default",
            "metric": "m",
            "audit": "abc",
            "endpoint": "metric",
        }
        assert "secret" not in str(line)
        assert it.figure("steadyscale_requests_total", endpoint="metric", code="200") == 1
        assert it.figure("steadyscale_request_duration_seconds_count", endpoint="metric") == 1


async def test_a_failure_leaves_its_class():
    async with served() as it:
        await it.session.get(METRIC + "m")
        (line,) = it.lines

        assert (line["status"], str(line["error"])[:15]) == (404, "MetricNotFound:")
        assert it.figure("steadyscale_metric_failures_total", failure="unknown metric") == 1

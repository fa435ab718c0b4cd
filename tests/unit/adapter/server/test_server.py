"""Request deadlines, the concurrency limit, shutdown, and metrics and logs of requests."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp import ClientConnectionError, ClientSession

from adapter.config.model import Limits
from adapter.server.listener import listen
from tests.unit.adapter.served import METRIC, assembled, served


async def test_request_that_exceeds_its_deadline_fails_and_is_no_longer_in_flight():
    async with served(Limits(request_timeout=timedelta(milliseconds=30))) as it:
        response = await it.session.get(METRIC)
        body = await response.json()

        assert (response.status, body["reason"]) == (504, "Timeout")
        assert body["message"] == "the request did not complete within 0.03s"
        assert it.metric("steadyscale_requests_in_flight") == 0


async def test_requests_above_the_concurrency_limit_are_rejected_without_retry_after():
    async with served(Limits(max_concurrent_requests=1)) as it:
        first = asyncio.create_task(it.session.get(METRIC))
        await it.backend.queried.wait()
        second = await it.session.get(METRIC)

        assert (second.status, (await second.json())["reason"]) == (429, "TooManyRequests")
        assert "Retry-After" not in second.headers
        assert it.metric("steadyscale_requests_in_flight") == 1
        for path in ("/readyz", "/apis", "/apis/external.metrics.k8s.io/v1beta1"):
            assert (await it.session.get(path)).status == 200
        it.backend.may_respond.set()
        assert (await first).status == 200
        assert (await it.session.get(METRIC)).status == 200


async def test_system_masters_is_exempt_from_the_concurrency_limit():
    async with served(Limits(max_concurrent_requests=1)) as it:
        first = asyncio.create_task(it.session.get(METRIC))
        await it.backend.queried.wait()
        it.backend.may_respond.set()
        second = await it.session.get(METRIC, headers={"X-Remote-Group": "system:masters"})

        assert (second.status, (await first).status) == (200, 200)


async def test_failed_access_review_denies_the_request():
    async with served() as it:
        response = await it.session.get(METRIC, headers={"X-Remote-User": "unreviewable"})

        assert (response.status, (await response.json())["reason"]) == (500, "InternalError")
        assert it.metric("steadyscale_authorizations_total", result="error") == 1


async def test_server_is_not_ready_during_shutdown_and_still_serves():
    async with served() as it:
        it.backend.may_respond.set()
        stopping = asyncio.create_task(it.server.begin_shutdown())
        await asyncio.sleep(0)
        ready, live, metric = [await it.session.get(path) for path in ("/readyz", "/livez", METRIC)]

        assert (ready.status, live.status, metric.status) == (500, 200, 200)
        assert "[-]shutdown failed: reason withheld" in (await ready.text()).splitlines()
        assert metric.headers["Connection"] == "close"
        stopping.cancel()


@pytest.mark.looptime
async def test_shutdown_begins_with_the_configured_delay(looptime):
    it = assembled(Limits(shutdown_delay=timedelta(seconds=12)))
    await it.server.begin_shutdown()

    assert looptime == 12


async def test_requests_in_flight_are_drained_and_new_connections_refused():
    it = assembled(Limits(drain_timeout=timedelta(seconds=5)))
    async with ClientSession() as session:
        async with it.server.serving(listen("127.0.0.1", 0), None) as port:
            url = f"http://127.0.0.1:{port}{METRIC}"
            in_flight = asyncio.create_task(session.get(url))
            await it.backend.queried.wait()
            asyncio.get_running_loop().call_later(0.05, it.backend.may_respond.set)
        response = await in_flight

        assert (response.status, (await response.json())["items"][0]["value"]) == (200, "1")
        with pytest.raises(ClientConnectionError):
            await session.get(url)


async def test_requests_that_exceed_the_drain_timeout_are_cancelled():
    it = assembled(Limits(drain_timeout=timedelta(seconds=0.05)))
    async with ClientSession() as session:
        async with it.server.serving(listen("127.0.0.1", 0), None) as port:
            in_flight = asyncio.create_task(session.get(f"http://127.0.0.1:{port}{METRIC}"))
            await it.backend.queried.wait()

        with pytest.raises(ClientConnectionError):
            await in_flight


async def test_concurrent_requests_are_each_logged_and_counted():
    async with served() as it:
        requests = [asyncio.create_task(it.session.get(f"{METRIC}?pretty={number}")) for number in range(50)]
        await it.backend.queried.wait()
        it.backend.may_respond.set()
        await asyncio.gather(*requests)

        assert [line["status"] for line in it.lines] == [200] * 50
        assert len({line["audit"] for line in it.lines}) == 50
        assert it.metric("steadyscale_requests_total", endpoint="metric", code="200") == 50
        assert it.metric("steadyscale_authorizations_total", result="allowed") == 50


async def test_metric_request_is_logged_and_counted():
    async with served() as it:
        it.backend.may_respond.set()
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
        assert it.metric("steadyscale_requests_total", endpoint="metric", code="200") == 1
        assert it.metric("steadyscale_request_duration_seconds_count", endpoint="metric") == 1


async def test_failed_read_is_logged_and_counted_by_reason():
    async with served() as it:
        await it.session.get(METRIC + "m")
        (line,) = it.lines

        assert (line["status"], str(line["error"])[:15]) == (404, "MetricNotFound:")
        assert it.metric("steadyscale_metric_failures_total", reason="unknown metric") == 1

"""The replay of recorded load with an edited spec, over HTTP: results, bad input, limits and authorization."""

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
import yaml
from aiohttp import ClientSession

from adapter.auth.attributes import NonResourceAttributes, ResourceAttributes
from adapter.errors import AccessDenied
from adapter.server import what_if_endpoint
from autoscaler.settings import ControllerOptions, Settings
from tests.browser.sample_decisions import add_samples
from tests.browser.served_page import ServedPage, serve_page

ORDERS = "/debug/autoscalers/shop/orders"
HISTORY = "/debug/history/shop/orders"
AGGREGATED = "/apis/debug.steadyscale.dev/v1alpha1/namespaces/shop/decisions/orders"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def page() -> AsyncIterator[ServedPage]:
    async with serve_page() as served:
        add_samples(served.log)
        yield served


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def session(page: ServedPage) -> AsyncIterator[ClientSession]:
    async with ClientSession(page.url) as opened:
        yield opened


async def current_spec(session: ClientSession, path: str = ORDERS) -> dict:
    async with session.get(path, params={"whatIf": ""}) as response:
        assert response.status == 200
        return yaml.safe_load((await response.json())["spec"])


async def what_if(session: ClientSession, spec: object, path: str = ORDERS, **query: str) -> tuple[int, dict]:
    text = spec if isinstance(spec, str) else yaml.safe_dump(spec)
    async with session.get(path, params={"whatIf": text, **query}) as response:
        return response.status, await response.json()


def endpoint_of(page: ServedPage) -> what_if_endpoint.WhatIfEndpoint:
    debug = page.server._debug
    assert debug is not None
    return debug.what_if


def measures(view: dict) -> dict[str, list[str]]:
    return {row["label"]: row["values"] for row in view["measures"]}


async def test_current_spec_is_returned_as_yaml(session: ClientSession):
    spec = await current_spec(session)

    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 24)
    assert spec["metrics"][0]["external"]["fallback"] == {
        "replicas": 12,
        "failureDurationSeconds": 180,
        "strategy": "UseMax",
    }


async def test_replay_with_the_current_spec_has_the_recorded_replicas(session: ClientSession):
    status, view = await what_if(session, await current_spec(session))

    was, edited = view["variants"]
    assert (status, was["name"], edited["name"], view["metrics"]) == (
        200,
        "as it was",
        "edited spec",
        ["orders_waiting"],
    )
    assert len(was["time"]) == 181  # every decision of the sample
    assert max(was["replicas"]) == 16
    assert edited["replicas"] == was["replicas"]
    assert edited["state"] == was["state"]
    assert len({*measures(view)["time in fallback"]} - {"0:00:00"}) == 1


async def test_replay_with_an_edited_spec_differs_as_the_edit_says(session: ClientSession):
    spec = await current_spec(session) | {"maxReplicas": 9}
    _, view = await what_if(session, spec)

    was, edited = view["variants"]
    assert (max(was["replicas"]), max(edited["replicas"]), edited["maxReplicas"]) == (16, 9, 9)
    hours = [float(text) for text in measures(view)["replica-hours"]]
    assert hours[1] < hours[0]
    assert any("maxReplicas" in text for each in edited["explained"] for text in each["steps"])


async def test_startup_time_delays_ready_replicas(session: ClientSession):
    _, view = await what_if(session, await current_spec(session), startup="2m")

    edited = view["variants"][1]
    assert any(ready < replicas for ready, replicas in zip(edited["ready"], edited["replicas"], strict=True))


async def test_replay_over_the_decision_history(session: ClientSession):
    status, view = await what_if(session, await current_spec(session), HISTORY, since="1h")

    assert status == 200
    assert max(view["variants"][0]["replicas"]) == 16
    assert max(view["variants"][1]["replicas"]) == 16


async def test_utilization_and_external_metric_are_replayed_together(session: ClientSession):
    path = "/debug/autoscalers/shop/web"
    spec = await current_spec(session, path)
    _, view = await what_if(session, spec, path)

    was, edited = view["variants"]
    assert view["metrics"] == ["mails_waiting", "cpu"]
    assert edited["replicas"] == was["replicas"]
    spec["metrics"][1]["resource"]["target"]["averageUtilization"] = 10
    _, view = await what_if(session, spec, path)
    assert max(view["variants"][1]["replicas"]) > max(was["replicas"])


@pytest.mark.parametrize(
    ("edit", "field", "message"),
    [
        ("maxReplicas: [", "line 1, column 15", "invalid YAML"),
        ("a: &a [1]\nb: *a", "line 2, column 4", "aliases are not supported"),
        ("[" * 16_000, "line 1, column 33", "nested too deep"),
        ("- " * 40, "line 1, column 65", "nested too deep"),
        ("maxReplicas: 3\n---\nmaxReplicas: 4", "", "the spec of one PodAutoscaler"),
        ("just text", "", "the spec of one PodAutoscaler"),
        ({"maxReplicas": 1}, "spec.maxReplicas", "minReplicas"),
        ({"maxReplicas": 10_000}, "spec.maxReplicas", "at most 5,000 replicas can be replayed, is 10000"),
        ({"maxReplica": 10}, "spec.maxReplica", "unknown"),
        (
            {"metrics": None},
            "spec.metrics[0]",
            "no values of cpu were recorded in this period; recorded: orders_waiting",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_problems_of_a_spec_have_paths(session: ClientSession, edit, field, message):
    spec = edit if isinstance(edit, str) else await current_spec(session) | edit
    status, body = await what_if(session, spec)

    assert (status, body["reason"]) == (422, "Invalid")
    (cause,) = body["details"]["causes"][:1]
    assert cause["field"].startswith(field)
    assert message in cause["message"]


async def test_too_large_spec_is_rejected(session: ClientSession):
    status, body = await what_if(session, f"maxReplicas: 3 # {'x' * what_if_endpoint.MAX_SPEC_BYTES}")

    assert (status, body["message"]) == (422, "the spec is too large: at most 16,384 bytes")


@pytest.mark.parametrize(("startup", "message"), [("soon", "not a duration"), ("2h", "at most 1h")])
async def test_invalid_startup_time_is_rejected(session: ClientSession, startup, message):
    status, body = await what_if(session, "maxReplicas: 3", startup=startup)

    assert status == 400
    assert message in body["message"]


@pytest.mark.parametrize("path", ["/debug/autoscalers/shop/nothing", "/debug/history/shop/nothing"])
async def test_unknown_autoscaler_is_not_found(session: ClientSession, path):
    status, _ = await what_if(session, "", path)

    assert status == 404


async def test_replay_needs_the_permission_to_read_the_same_path(session: ClientSession, page: ServedPage, monkeypatch):
    reviewed = []

    async def authorize(_caller, attributes, _source):
        reviewed.append(attributes)
        raise AccessDenied("forbidden")

    monkeypatch.setattr(page.server._authorizer, "authorize", authorize, raising=False)
    assert [(await what_if(session, "maxReplicas: 3", path))[0] for path in (ORDERS, HISTORY, AGGREGATED)] == [403] * 3
    assert reviewed[:2] == [NonResourceAttributes("get", path) for path in (ORDERS, HISTORY)]
    assert reviewed[2] == ResourceAttributes("get", "debug.steadyscale.dev", "v1alpha1", "shop", "decisions", "orders")


async def test_replay_through_the_aggregated_api(session: ClientSession):
    status, view = await what_if(session, await current_spec(session, AGGREGATED), AGGREGATED)

    assert (status, view["metrics"]) == (200, ["orders_waiting"])


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_other_methods_than_get_are_rejected(session: ClientSession, method):
    async with session.request(method, ORDERS, params={"whatIf": "maxReplicas: 3"}) as response:
        assert response.status == 405


@pytest.fixture
def blocked(monkeypatch) -> "BlockedReplays":
    return BlockedReplays(monkeypatch)


class BlockedReplays:
    """Replays that wait at their first check until the test ends them, as a long replay would be computing."""

    def __init__(self, monkeypatch) -> None:
        self.started = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.stopped = threading.Event()
        original = what_if_endpoint._Slices.check

        def check(slices):
            self.started.release()
            while not self.go_on.wait(0.001):
                try:
                    original(slices)
                except what_if_endpoint._Stopped:
                    self.stopped.set()
                    raise

        monkeypatch.setattr(what_if_endpoint._Slices, "check", check)


async def test_replays_are_limited_to_one_per_namespace_and_two_in_total(session: ClientSession, blocked):
    spec = await current_spec(session)
    first = asyncio.create_task(what_if(session, spec))
    await asyncio.to_thread(blocked.started.acquire)

    status, body = await what_if(session, spec)
    assert (status, body["message"]) == (429, "another replay is running, please try again in some seconds")
    reports = "/debug/autoscalers/night/reports"
    second = asyncio.create_task(what_if(session, await current_spec(session, reports), reports))
    await asyncio.to_thread(blocked.started.acquire)
    status, _ = await what_if(session, spec, "/debug/autoscalers/data/etl")
    assert status == 429

    blocked.go_on.set()
    assert [(await first)[0], (await second)[0]] == [200, 200]
    assert (await what_if(session, spec))[0] == 200


async def test_event_loop_runs_while_a_replay_computes(session: ClientSession, blocked):
    running = asyncio.create_task(what_if(session, await current_spec(session)))
    await asyncio.to_thread(blocked.started.acquire)

    async with session.get(ORDERS) as response:
        assert response.status == 200
    assert not running.done()
    blocked.go_on.set()
    assert (await running)[0] == 200


async def test_replay_ends_at_the_time_limit(session: ClientSession, page: ServedPage, monkeypatch):
    spec = await current_spec(session)
    monkeypatch.setattr(endpoint_of(page), "_seconds", 0.0)

    status, body = await what_if(session, spec)

    assert (status, body["message"]) == (504, "the replay did not complete within 0s: choose a shorter period")


async def test_thread_of_a_cancelled_request_ends_and_frees_its_slot(session: ClientSession, blocked):
    spec = await current_spec(session)
    async with asyncio.timeout(60):
        status, _ = await what_if(session, spec, timeout="100ms")  # the deadline of the request
        assert status == 504
        await asyncio.to_thread(blocked.stopped.wait)
    blocked.go_on.set()
    assert (await what_if(session, spec))[0] == 200


async def test_too_long_period_is_refused_before_work_starts(session: ClientSession, page: ServedPage, monkeypatch):
    spec = await current_spec(session)
    settings = Settings(sync_period=timedelta(seconds=0.01))
    monkeypatch.setattr(endpoint_of(page), "options", ControllerOptions(settings=settings))

    status, body = await what_if(session, spec)

    assert (status, body["message"]) == (422, "more than 50,000 decisions: choose a shorter period")

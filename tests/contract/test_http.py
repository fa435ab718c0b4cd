"""What a controller says: status, events, and who of several speaks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from autoscaler.kube.autoscalers import StatusWriter, watch_podautoscalers
from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import Conflict
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.lease import LeadershipLost, Lease, LeaseTimes
from autoscaler.kube.store import Store
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Event
from autoscaler.types.status import UNREAD, Condition, Status
from tests.contract.api import Api
from tests.contract.objects import beside, define, eventually, new_name
from tools.crd.__main__ import PLACE

SCALERS = "/apis/steadyscale.dev/v1beta1/namespaces/default/podautoscalers"
EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
QUICK = LeaseTimes(timedelta(seconds=3), timedelta(seconds=2), timedelta(milliseconds=300))


def clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a lease's times are shown to people


@asynccontextmanager
async def autoscaler(api: Api) -> AsyncIterator[tuple[Store[Autoscaler], str]]:
    await define(api.client, yaml.safe_load(await asyncio.to_thread(PLACE.read_text)))
    name = new_name()
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body: dict[str, Any] = {"apiVersion": "steadyscale.dev/v1beta1", "kind": "PodAutoscaler"}
    await api.client.create(
        SCALERS, {**body, "metadata": {"name": name}, "spec": {"scaleTargetRef": target, "maxReplicas": 5}}
    )
    store = watch_podautoscalers(api.client)
    async with beside(store.run()):
        assert await store.settled(timedelta(seconds=10))
        yield store, f"default/{name}"


def known(store: Store[Autoscaler], key: str) -> Autoscaler:
    found = store.get(key)
    assert found is not None
    return found


async def test_an_autoscaler_is_read_with_its_defaults(api: Api) -> None:
    async with autoscaler(api) as (store, key):
        spec = known(store, key).spec
        assert (spec.min_replicas, spec.max_replicas, spec.mode) == (1, 5, "Active")
        assert spec.metrics is not None
        assert [metric.type for metric in spec.metrics] == ["Resource"]


async def test_a_status_is_written_as_it_is_and_then_as_it_differs(api: Api) -> None:
    ready = Condition("AbleToScale", "True", NOW, "ReadyForNewScale", "recommended size matches current size")
    first = Status(3, (UNREAD,), 1, NOW, 2, (ready,), memory="v1;rec=3@0")
    second = Status(4, None, 1, None, 3, (ready,))
    async with autoscaler(api) as (store, key):
        writer = StatusWriter(api.client, store)
        assert (await writer.write(known(store, key), first)).status == first
        assert known(store, key).status == first
        assert (await writer.write(known(store, key), second)).status == second
        assert known(store, key).metadata.generation == 1


async def test_a_status_that_was_computed_from_an_older_object_is_not_written(api: Api) -> None:
    async with autoscaler(api) as (store, key):
        seen = known(store, key)
        await api.client.patch(f"{SCALERS}/{seen.metadata.name}", {"spec": {"maxReplicas": 9}})
        with pytest.raises(Conflict):
            await StatusWriter(api.client, store).write(seen, Status(1))


async def test_the_same_event_again_is_counted(api: Api) -> None:
    async with autoscaler(api) as (store, key):
        recorder = EventRecorder(api.client, lambda: NOW)
        async with beside(recorder.run()):
            for _ in range(3):
                recorder.tell(known(store, key), Event("Normal", "SuccessfulRescale", "New size: 3"))
            recorder.tell(known(store, key), Event("Warning", "FailedGetScale", "not found"))
            await recorder.flush()
        name = known(store, key).metadata.name
        events = (await api.client.get(EVENTS))["items"]
        mine = {one["reason"]: one for one in events if one["involvedObject"]["name"] == name}
        assert {reason: (one["count"], one["type"]) for reason, one in mine.items()} == {
            "SuccessfulRescale": (3, "Normal"),
            "FailedGetScale": (1, "Warning"),
        }
        assert mine["FailedGetScale"]["involvedObject"]["kind"] == "PodAutoscaler"
        assert mine["FailedGetScale"]["source"] == {"component": "steadyscale"}
        assert recorder.dropped == 0


async def test_an_event_that_the_server_has_forgotten_is_sent_anew(api: Api) -> None:
    async with autoscaler(api) as (store, key):
        recorder = EventRecorder(api.client, lambda: NOW)
        name = known(store, key).metadata.name
        async with beside(recorder.run()):
            for _ in range(2):
                recorder.tell(known(store, key), Event("Normal", "SuccessfulRescale", "New size: 3"))
                await recorder.flush()
                mine = [one for one in (await api.client.get(EVENTS))["items"] if one["involvedObject"]["name"] == name]
                assert [one["count"] for one in mine] == [1]
                await api.client.request("DELETE", f"{EVENTS}/{mine[0]['metadata']['name']}")


def lease(client: KubeClient, name: str, identity: str) -> Lease:
    return Lease(client, namespace="default", name=name, identity=identity, clock=clock, times=QUICK)


async def forever() -> None:
    await asyncio.Event().wait()


async def test_of_two_one_leads_and_the_other_follows_at_once_when_it_lets_go(api: Api) -> None:
    name = new_name()
    first, second = lease(api.client, name, "first"), lease(api.client, name, "second")
    leading = asyncio.create_task(first.lead(forever))

    async def first_leads() -> bool:
        return first.is_held

    await eventually(first_leads)
    waiting = asyncio.create_task(second.lead(forever))
    await asyncio.sleep(1)
    assert (first.is_held, second.is_held) == (True, False)
    leading.cancel()
    await asyncio.wait((leading,))
    assert not first.is_held
    began = asyncio.get_running_loop().time()

    async def second_leads() -> bool:
        return second.is_held

    await eventually(second_leads)
    assert asyncio.get_running_loop().time() - began < 2
    waiting.cancel()
    await asyncio.wait((waiting,))
    spec = (await api.client.get(f"{LEASES}/{name}"))["spec"]
    assert (spec.get("holderIdentity") or "", spec["leaseTransitions"]) == ("", 1)


async def test_who_is_robbed_of_the_lease_stops_before_the_next_write(api: Api) -> None:
    name = new_name()
    ours = lease(api.client, name, "ours")
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await forever()
        finally:
            stopped.set()

    leading = asyncio.create_task(ours.lead(work))

    async def leads() -> bool:
        return ours.is_held

    await eventually(leads)
    robbed = {"spec": {"holderIdentity": "theirs", "leaseDurationSeconds": 60}}
    await api.client.patch(f"{LEASES}/{name}", robbed)
    with pytest.raises(LeadershipLost):
        async with asyncio.timeout(5):
            await leading
    assert stopped.is_set()
    assert not ours.is_held
    assert (await api.client.get(f"{LEASES}/{name}"))["spec"]["holderIdentity"] == "theirs"

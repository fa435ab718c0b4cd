"""Writes of the controller: status, events and leader election."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from autoscaler.kube.autoscalers import StatusWriter, podautoscaler_informer
from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import Conflict
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.informer import Informer
from autoscaler.kube.lease import LeaderElector, LeadershipLost
from autoscaler.settings import ControllerOptions
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Event
from autoscaler.types.status import UNREAD, Condition, Status
from tests.contract.api import Api
from tests.contract.objects import define, eventually, new_name, running
from tests.waiting import GIVE_UP
from tools.crd.__main__ import PATH

SCALERS = "/apis/steadyscale.dev/v1beta1/namespaces/default/podautoscalers"
EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
QUICK = ControllerOptions(
    lease_duration=timedelta(seconds=3),
    renew_deadline=timedelta(seconds=2),
    retry_period=timedelta(milliseconds=300),
    lease_namespace="default",
)


def clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the times in a lease are wall-clock times


@asynccontextmanager
async def autoscaler(api: Api) -> AsyncIterator[tuple[Informer[Autoscaler], str]]:
    await define(api.client, yaml.safe_load(await asyncio.to_thread(PATH.read_text)))
    name = new_name()
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body: dict[str, Any] = {"apiVersion": "steadyscale.dev/v1beta1", "kind": "PodAutoscaler"}
    await api.client.create(
        SCALERS, {**body, "metadata": {"name": name}, "spec": {"scaleTargetRef": target, "maxReplicas": 5}}
    )
    informer = podautoscaler_informer(api.client)
    async with running(informer.run()):
        assert await informer.wait_for_sync(timedelta(seconds=10))
        yield informer, f"default/{name}"


def stored(informer: Informer[Autoscaler], key: str) -> Autoscaler:
    found = informer.get(key)
    assert found is not None
    return found


async def test_autoscaler_is_stored_with_defaults(api: Api) -> None:
    async with autoscaler(api) as (informer, key):
        spec = stored(informer, key).spec
        assert (spec.min_replicas, spec.max_replicas, spec.mode) == (1, 5, "Active")
        assert spec.metrics is not None
        assert [metric.type for metric in spec.metrics] == ["Resource"]


async def test_status_is_written_and_then_replaced(api: Api) -> None:
    ready = Condition("AbleToScale", "True", NOW, "ReadyForNewScale", "recommended size matches current size")
    first = Status(3, (UNREAD,), 1, NOW, 2, (ready,), controller_state="v1;rec=3@0")
    second = Status(4, None, 1, None, 3, (ready,))
    async with autoscaler(api) as (informer, key):
        writer, spec = StatusWriter(api.client, informer), stored(informer, key).spec
        assert (await writer.write(stored(informer, key), first)).status == first
        assert stored(informer, key).status == first
        assert (await writer.write(stored(informer, key), second)).status == second
        assert stored(informer, key).spec == spec
        assert stored(informer, key).metadata.generation == 1


async def test_status_of_an_older_object_raises_conflict(api: Api) -> None:
    async with autoscaler(api) as (informer, key):
        outdated = stored(informer, key)
        await api.client.patch(f"{SCALERS}/{outdated.metadata.name}", {"spec": {"maxReplicas": 9}})
        with pytest.raises(Conflict):
            await StatusWriter(api.client, informer).write(outdated, Status(1))


async def test_repeated_event_is_counted(api: Api) -> None:
    async with autoscaler(api) as (informer, key):
        recorder = EventRecorder(api.client, lambda: NOW)
        async with running(recorder.run()):
            for _ in range(3):
                recorder.record(stored(informer, key), Event("Normal", "SuccessfulRescale", "New size: 3"))
            recorder.record(stored(informer, key), Event("Warning", "FailedGetScale", "not found"))
            await recorder.flush()
        name = stored(informer, key).metadata.name
        events = (await api.client.get(EVENTS))["items"]
        mine = {event["reason"]: event for event in events if event["involvedObject"]["name"] == name}
        assert {reason: (event["count"], event["type"]) for reason, event in mine.items()} == {
            "SuccessfulRescale": (3, "Normal"),
            "FailedGetScale": (1, "Warning"),
        }
        assert mine["FailedGetScale"]["involvedObject"]["kind"] == "PodAutoscaler"
        assert mine["FailedGetScale"]["source"] == {"component": "steadyscale"}


async def test_event_deleted_by_the_server_is_created_again(api: Api) -> None:
    async with autoscaler(api) as (informer, key):
        recorder = EventRecorder(api.client, lambda: NOW)
        name = stored(informer, key).metadata.name
        async with running(recorder.run()):
            for _ in range(2):
                recorder.record(stored(informer, key), Event("Normal", "SuccessfulRescale", "New size: 3"))
                await recorder.flush()
                events = (await api.client.get(EVENTS))["items"]
                mine = [event for event in events if event["involvedObject"]["name"] == name]
                assert [event["count"] for event in mine] == [1]
                await api.client.request("DELETE", f"{EVENTS}/{mine[0]['metadata']['name']}")


def elector(client: KubeClient, name: str, identity: str) -> LeaderElector:
    return LeaderElector(client, replace(QUICK, lease_name=name), identity=identity, clock=clock)


async def forever() -> None:
    await asyncio.Event().wait()


async def test_released_lease_is_acquired_at_once_by_the_other_process(api: Api) -> None:
    name = new_name()
    first, second = elector(api.client, name, "first"), elector(api.client, name, "second")
    leading = asyncio.create_task(first.run(forever))

    async def first_leads() -> bool:
        return first.is_leader

    await eventually(first_leads)
    waiting = asyncio.create_task(second.run(forever))
    await asyncio.sleep(1)
    assert (first.is_leader, second.is_leader) == (True, False)
    leading.cancel()
    await asyncio.wait((leading,))
    assert not first.is_leader
    started = asyncio.get_running_loop().time()

    async def second_leads() -> bool:
        return second.is_leader

    await eventually(second_leads)
    assert asyncio.get_running_loop().time() - started < 2
    waiting.cancel()
    await asyncio.wait((waiting,))
    spec = (await api.client.get(f"{LEASES}/{name}"))["spec"]
    assert (spec.get("holderIdentity") or "", spec["leaseTransitions"]) == ("", 1)


async def test_leader_stops_when_another_process_holds_the_lease(api: Api) -> None:
    name = new_name()
    own = elector(api.client, name, "ours")
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await forever()
        finally:
            stopped.set()

    leading = asyncio.create_task(own.run(work))

    async def leads() -> bool:
        return own.is_leader

    await eventually(leads)
    taken = {"spec": {"holderIdentity": "theirs", "leaseDurationSeconds": 60}}
    await api.client.patch(f"{LEASES}/{name}", taken)
    with pytest.raises(LeadershipLost):
        async with asyncio.timeout(GIVE_UP):
            await leading
    assert stopped.is_set()
    assert not own.is_leader
    assert (await api.client.get(f"{LEASES}/{name}"))["spec"]["holderIdentity"] == "theirs"

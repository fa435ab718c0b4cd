"""An informer of some namespaces: what it stores while the namespaces change."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from autoscaler.kube.client import Json
from autoscaler.kube.partial_informer import PartialInformer
from autoscaler.kube.watch import ListWatch
from tests.contract.objects import eventually
from tests.fakes.cluster import Cluster

pytestmark = pytest.mark.looptime


class Watched:
    """An informer of ConfigMaps, and the namespaces that it accepts."""

    def __init__(self, cluster: Cluster, informer: PartialInformer[Json], accepted: set[str]) -> None:
        self.cluster = cluster
        self.informer = informer
        self.accepted = accepted

    def create(self, *namespaces: str) -> None:
        for namespace in namespaces:
            self.cluster.create(_collection(namespace), {"metadata": {"name": "one"}})

    async def wait_for(self, *keys: str) -> None:
        async def is_known() -> bool:
            return sorted(self.informer.keys()) == sorted(keys)

        await eventually(is_known)


def _collection(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    async with Cluster.serving() as cluster, cluster.client() as client:
        accepted = {"shop"}
        informer = PartialInformer(client, ListWatch("/api/v1/configmaps"), dict, accepted.__contains__)
        created = Watched(cluster, informer, accepted)
        created.create("shop", "bank")
        task = asyncio.create_task(informer.run())
        await created.wait_for("shop/one")
        yield created
        task.cancel()
        await asyncio.wait((task,))


async def test_only_accepted_namespaces_are_stored_from_the_list_and_from_the_watch(watched):
    watched.create("other")
    watched.cluster.patch(f"{_collection('bank')}/one", {"data": {"a": "b"}})
    watched.cluster.create(_collection("shop"), {"metadata": {"name": "two"}})
    await watched.wait_for("shop/one", "shop/two")


async def test_further_namespace_is_complete_after_a_refresh(watched):
    notified: list[str] = []
    watched.informer.add_listener(notified.append)
    watched.accepted.add("bank")
    await watched.informer.refresh()
    assert sorted(watched.informer.keys()) == ["bank/one", "shop/one"]
    assert notified == ["shop/one", "bank/one"]


async def test_namespace_that_is_no_longer_accepted_is_removed(watched):
    watched.accepted.clear()
    watched.informer.remove_unaccepted()
    assert watched.informer.keys() == ()


async def test_object_deleted_during_a_refresh_does_not_return(watched):
    watched.accepted.add("bank")
    await watched.informer.refresh()
    watched.cluster.faults.delay = 1.0
    refreshing = asyncio.create_task(watched.informer.refresh())
    await asyncio.sleep(0.1)
    stale = watched.informer._reduce(watched.cluster.get(f"{_collection('bank')}/one"))
    watched.informer._delete("bank/one")
    watched.informer._update(*watched.informer._reduce(watched.cluster.get(f"{_collection('shop')}/one")))
    await refreshing
    assert stale[0] == "bank/one"
    assert watched.informer.keys() == ("shop/one",)

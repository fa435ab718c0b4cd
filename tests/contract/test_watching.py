"""Lists, watches and informers: pages, selectors, expired resourceVersions."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.kube.client import Json
from autoscaler.kube.errors import Expired
from autoscaler.kube.informer import Informer
from autoscaler.kube.watch import ListWatch, WatchDecoder
from tests.contract.api import Api
from tests.contract.objects import eventually, new_name, running

MAPS = "/api/v1/namespaces/default/configmaps"
SOON = timedelta(seconds=10)


def config_map(name: str, value: str = "1", **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": labels}, "data": {"is": value}}


@asynccontextmanager
async def running_informer(api: Api, label: str) -> AsyncIterator[Informer[str]]:
    source = ListWatch(MAPS, label_selector=f"of={label}")
    informer = Informer(api.client, source, lambda content: str(content["data"]["is"]))
    async with running(informer.run()):
        assert await informer.wait_for_sync(SOON)
        yield informer


async def until(condition: Callable[[], bool]) -> None:
    async def holds() -> bool:
        return condition()

    await eventually(holds)


async def lines(api: Api, version: str, **query: str) -> AsyncIterator[Any]:
    parameters = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "2", **query}
    async with aclosing(api.client.stream(MAPS, parameters, SOON)) as stream:
        async for line in stream:
            if line:
                yield json.loads(line)


async def test_paged_list_returns_all_objects(api: Api) -> None:
    label = new_name()
    names = [f"{label}-{number}" for number in range(5)]
    for name in names:
        await api.client.create(MAPS, config_map(name, of=label))
    query, found, pages = {"labelSelector": f"of={label}", "limit": "2"}, [], 0
    while True:
        page = await api.client.get(MAPS, query)
        found += [item["metadata"]["name"] for item in page["items"]]
        pages += 1
        if not page["metadata"].get("continue"):
            break
        query["continue"] = page["metadata"]["continue"]
    assert (found, pages) == (names, 3)


async def test_informer_recovers_from_an_expired_resource_version(api: Api) -> None:
    label = new_name()
    made = await api.client.create(MAPS, config_map(label, of=label))
    version = made["metadata"]["resourceVersion"]
    async with running_informer(api, label) as informer:
        await api.expire_resource_versions()
        events = [line async for line in lines(api, version)]
        assert [line["type"] for line in events] == ["ERROR"]
        with pytest.raises(Expired):
            WatchDecoder(version).decode(json.dumps(events[0]).encode())
        await api.client.patch(f"{MAPS}/{label}", {"data": {"is": "2"}})
        await until(lambda: informer.get(f"default/{label}") == "2")


async def test_object_that_no_longer_matches_the_selector_is_deleted(api: Api) -> None:
    label, name = new_name(), new_name()
    made = await api.client.create(MAPS, config_map(name, of=label))
    await api.client.patch(f"{MAPS}/{name}", {"data": {"is": "2"}})
    await api.client.patch(f"{MAPS}/{name}", {"metadata": {"labels": {"of": "other"}}})
    version = made["metadata"]["resourceVersion"]
    events = [line["type"] async for line in lines(api, version, labelSelector=f"of={label}")]
    assert events == ["MODIFIED", "DELETED"]


async def test_watch_from_version_zero_starts_with_existing_objects(api: Api) -> None:
    label = new_name()
    await api.client.create(MAPS, config_map(label, of=label))
    events = [line["type"] async for line in lines(api, "0", labelSelector=f"of={label}")]
    assert events == ["ADDED"]


async def test_informer_follows_changes_by_other_clients(api: Api) -> None:
    label = new_name()
    one, two = f"{label}-1", f"{label}-2"
    await api.client.create(MAPS, config_map(one, of=label))
    async with running_informer(api, label) as informer:
        notified: list[str] = []
        informer.add_listener(notified.append)
        await api.client.patch(f"{MAPS}/{one}", {"data": {"is": "2"}})
        await api.client.create(MAPS, config_map(two, of=label))
        await until(lambda: informer.get(f"default/{two}") == "1" and informer.get(f"default/{one}") == "2")
        await api.client.request("DELETE", f"{MAPS}/{one}")
        await until(lambda: informer.get(f"default/{one}") is None)
        assert notified == [f"default/{one}", f"default/{one}", f"default/{two}", f"default/{one}"]


async def test_informer_does_not_notify_of_an_own_write(api: Api) -> None:
    label, other = new_name(), new_name()
    await api.client.create(MAPS, config_map(label, of=label))
    async with running_informer(api, label) as informer:
        notified: list[str] = []
        informer.add_listener(notified.append)
        with informer.own_write(f"default/{label}"):
            informer.apply_response(await api.client.patch(f"{MAPS}/{label}", {"data": {"is": "mine"}}))
        assert informer.get(f"default/{label}") == "mine"
        await api.client.create(MAPS, config_map(other, of=label))  # its event follows all earlier ones
        await until(lambda: informer.get(f"default/{other}") is not None)
        assert notified == [f"default/{label}", f"default/{other}"]
